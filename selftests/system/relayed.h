/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A world (system/world.h) in a relay's network namespace, whose listeners are the test's.
 *
 * Order of use: relayed_up() as .init; load_start() of clients, then relayed_accept() and
 * the like to serve them; relayed_down() as .fini. What can't be made fails the test.
 */
#ifndef SLUICE_SYSTEM_RELAYED_H
#define SLUICE_SYSTEM_RELAYED_H

#include <netinet/in.h>

#include "kernel/netns.h"
#include "kernel/steer.h"
#include "system/world.h"

struct relayed {
	int ns;
	struct sl_steer *steer;
	int listener[SL_STEER_MAX];
};

extern struct relayed relayed;

void relayed_up(void);
void relayed_down(void);
/* Makes all listeners and puts them into place; relayed_up() does. */
void relayed_listen(void);
void relayed_close(void);

/* Waits for a connection at a listener; `name` (INET6_ADDRSTRLEN + 8) is where it was meant to. */
int relayed_accept(enum sl_steer_which which, char *name);
/* Reads a connection to its end and closes it; how much came. */
size_t relayed_drain(int fd);

struct datagram {
	struct sockaddr_storage from, to;
	socklen_t len;  /* of both */
	char name[64];  /* of `to` */
	char text[128]; /* not terminated */
	ssize_t size;
};

/* Waits for a datagram at a listener. */
void relayed_datagram(enum sl_steer_which which, struct datagram *out);

/* "ADDR:PORT" or "[ADDR]:PORT". */
void relayed_name(const struct sockaddr_storage *addr, char *out, size_t size);

#endif
