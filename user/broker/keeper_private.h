/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The keeper's table of listeners and its messages. */
#ifndef SLUICE_USER_BROKER_KEEPER_PRIVATE_H
#define SLUICE_USER_BROKER_KEEPER_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "broker/keeper.h"

struct sl_keeper_listener {
	uint64_t tag;
	int fd; /* -1: given away by sl_keeper_inherited() */
};

/*
 * In the keeper: what it holds. In a worker: the copy that fork() made, with descriptors of
 * its own, and the socket to the keeper.
 */
struct sl_keeper_link {
	struct sl_inflight *inflight;
	atomic_llong *beat_ms; /* when the worker last said that it is there; shared */
	int sock;
	unsigned int generation;
	size_t count;
	struct sl_keeper_listener listeners[SL_KEEPER_LISTENERS];
	pthread_mutex_t lock; /* of the socket, in a worker */
};

/* A pair for messages, close-on-exec. */
int sl_keeper_sockets(int *keeper, int *worker);

/* One message of the worker. 0, or -errno when there is none. */
int sl_keeper_serve(struct sl_keeper_link *link, int sock);

void sl_keeper_close_all(struct sl_keeper_link *link);

#endif
