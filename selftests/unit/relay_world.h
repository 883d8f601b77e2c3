/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A relay on loopback with its clients and servers, all in one thread: whoever waits for
 * something runs the relay until it is there. A test is a process, so there is one world.
 */
#ifndef SLUICE_UNIT_RELAY_WORLD_H
#define SLUICE_UNIT_RELAY_WORLD_H

#include <criterion/criterion.h>

#include "base/clock.h"
#include "relay/relay.h"

#define RELAY_WAIT_MS 20000

enum relay_policy { RELAY_DIAL, RELAY_REFUSE, RELAY_LATER };

struct relay_world {
	struct sl_relay *relay;
	int listener, server; /* -1: none */
	uint16_t port, server_port;
	enum relay_policy policy;
	struct sl_addr addresses[SL_RELAY_ADDRESSES_MAX];
	struct sl_relay_target target;
	/* What was asked last, and told. */
	struct sl_relay_ask ask;
	char host[SL_RELAY_HOST_MAX];
	struct sl_relay_stream *stream;
	struct sl_relay_flow *flow;
	struct sl_relay_end end;
	struct sl_relay_end unreachable; /* of the last dial that failed */
	enum sl_head_fault fault;        /* of the last head that was none */
	unsigned int asked, gone, ended, malformed, unmade;
};

extern struct relay_world relay_world;

/* A relay, a listener of it of `kind`, and a server that it dials; ops are set here. */
void relay_start(enum sl_relay_kind kind, struct sl_relay_options options);
void relay_stop(void);

struct sl_addr relay_v4(const char *text);
uint64_t relay_count(enum sl_relay_count which);
unsigned int relay_streams(void);

/* Runs the relay until `cond` holds. */
#define RELAY_UNTIL(cond)                                                                \
	do {                                                                             \
		int64_t _until = sl_monotonic_ms() + RELAY_WAIT_MS;                      \
                                                                                         \
		while (!(cond)) {                                                        \
			cr_assert_lt(sl_monotonic_ms(), _until, "waited for %s", #cond); \
			sl_relay_run(relay_world.relay, 5);                              \
		}                                                                        \
	} while (0)

int relay_listen_any(uint16_t *port, int backlog);
/* Non-blocking; connected to the relay's listener, or connecting. */
int relay_connect(void);
int relay_connect_to(uint16_t port);
/* What the relay has dialled. */
int relay_accept(void);

void relay_send(int fd, const void *data, size_t size);
void relay_send_text(int fd, const char *text);
/* Exactly these bytes come next. */
void relay_expect(int fd, const void *data, size_t size);
void relay_expect_text(int fd, const char *text);
/* All that comes until the end, terminated; bytes. */
size_t relay_read_all(int fd, char *dst, size_t size);
void relay_expect_eof(int fd);
/* The end is an RST. */
void relay_expect_reset(int fd);
void relay_reset(int *fd);

#endif
