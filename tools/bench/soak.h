/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the soak of the relay is made of: a server in the world, and in the sandbox a program
 * (this one, executed anew) that does as it is told on its stdin and says what came of it on
 * its stdout.
 *
 * Each stream carries soak_pattern() from a place of its own, so that who receives tells every
 * byte right from wrong, and one stream's from another's.
 */
#ifndef SLUICE_BENCH_SOAK_H
#define SLUICE_BENCH_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dns.h"

/* What a connection is for. */
enum soak_what {
	SOAK_ECHO = 1, /* a byte there and back */
	SOAK_UP,       /* to the server */
	SOAK_DOWN,     /* from the server */
};

/* The first bytes of a connection. */
struct soak_head {
	uint64_t what;  /* enum soak_what */
	uint64_t place; /* in the pattern */
	uint64_t bytes;
};

enum soak_order_what {
	SOAK_CONNECTIONS = 1, /* `count`, one after the other */
	SOAK_STREAMS,         /* `count` at once, half of them each way */
	SOAK_STALL,           /* one, whose reader stands still */
	SOAK_RESUME,          /* that one is read to its end */
	SOAK_QUIT,
};

struct soak_order {
	uint64_t what; /* enum soak_order_what */
	uint64_t count, bytes;
};

struct soak_result {
	uint64_t ns;
	uint64_t received; /* bytes that were right */
	uint64_t wrong;    /* bytes */
	uint64_t failed;   /* connections, or streams that ended early */
	int64_t error;     /* errno of the latest of these */
};

/* Shared with the server. */
struct soak_shared {
	_Atomic uint64_t received, wrong;
};

struct soak_stream {
	int fd;
	struct soak_head head;
	uint64_t done;
	uint64_t wrong;
};

/* soak_stream.c: both on a non-blocking socket; 1: there is more to come, 0: all is done,
 * -errno. What is received ends with the peer's FIN; -EPIPE: too early or too late. */
int soak_send(struct soak_stream *stream);
int soak_receive(struct soak_stream *stream);

/* soak_server.c */
int soak_server_start(struct sl_child *child, uint16_t *port, struct soak_shared *shared,
		      struct sl_err *err);

/* soak_load.c: first argument of the program in the sandbox; then come host and port. */
#define SOAK_ARGUMENT "soak-load"
int soak_load_main(int argc, char **argv);

#endif
