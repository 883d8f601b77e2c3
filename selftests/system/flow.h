/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams whose data moves: `sl-load tcp-idle --echo` on one side, the test on the other, which
 * knows each byte by its place.
 *
 * Order of use: flows_accept(), flows_round() again and again, flows_end() or flows_close().
 * Nothing here returns an error: a byte that is wrong, and a stream that ends, fail the test.
 */
#ifndef SLUICE_SYSTEM_FLOW_H
#define SLUICE_SYSTEM_FLOW_H

#include <poll.h>
#include <stdint.h>

#define FLOWS 175

struct flow {
	int fd;
	uint64_t sent, received;
};

extern struct flow flows[FLOWS];

void flows_accept(int server);
/*
 * Sends and reads what is possible now, having waited for that, or for `also`, timeout_ms at
 * most. How many streams were ready; `also` as after poll().
 */
unsigned int flows_round(struct pollfd *also, int timeout_ms);
/* Of all streams. */
uint64_t flows_received(void);
/* Nothing more is sent; what was sent comes back, whole. */
void flows_end(void);
void flows_close(void);

#endif
