/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The places that belong to one agent at a time: its control socket, its state directory, and
 * the set on bpffs. Taken before the keeper is, and held by it and its workers.
 *
 *	sl_place_take(&place, &names, &err);	-EBUSY: another agent has one of them
 *	… place.listener
 *	sl_place_leave(&place);			removes the socket
 *
 * Each is a lock (flock(2)) that ends with its last holder, however it ends:
 *	SOCKET.lock		a file
 *	the state directory	itself
 *	SET-agent		a directory on bpffs beside the set, which may not be there yet
 * Nothing is changed before all three are held, so whoever comes second harms nobody.
 */
#ifndef SLUICE_USER_AGENT_PLACE_H
#define SLUICE_USER_AGENT_PLACE_H

#include <limits.h>

#include "base/err.h"

struct sl_place_names {
	const char *socket, *state_dir, *set_dir;
};

struct sl_place {
	struct sl_place_names names;
	char mark[PATH_MAX]; /* SET-agent */
	int socket_lock, state_lock, set_lock;
	int listener;
};

/* The directory of the socket and the state directory are made, but not their parents. */
int sl_place_take(struct sl_place *out, const struct sl_place_names *names, struct sl_err *err);
void sl_place_leave(struct sl_place *place);

#endif
