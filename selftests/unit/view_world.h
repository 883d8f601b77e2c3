/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A kernel without a kernel, for tests of views and events: fake look-ups of a few rows. */
#ifndef SLUICE_TEST_VIEW_WORLD_H
#define SLUICE_TEST_VIEW_WORLD_H

#include <sluice/event.h>

#include "event/stream.h"

#define WORLD_ROWS 16

struct world {
	struct sl_exe exes[WORLD_ROWS];
	struct sl_lineage lineages[WORLD_ROWS];
	char sandboxes[WORLD_ROWS][SL_SANDBOX_NAME_MAX]; /* "": there is none */
	struct sl_process procs[WORLD_ROWS];             /* tgid 0: none */
};

extern struct world world;

/*
 * Empties the world, and puts into it: sandbox 1 "web"; executables 1 /usr/bin/sh and
 * 2 /usr/bin/curl; lineage 1 of sh from outside, lineage 2 of curl below it. Name 1 is
 * registry.example.org.
 */
void world_reset(void);

void world_exe(unsigned int id, const char *path);
void world_lineage(unsigned int id, unsigned int parent, unsigned int exe, unsigned int flags);

struct sl_view_ops world_view_ops(void);
struct sl_event_ops world_event_ops(void);

/* A TCP connection of pid 100 (lineage 2), 10.0.0.1:40000 to 192.0.2.1:443. */
struct sl_sock world_sock(void);

struct sl_event_sock world_sock_event(enum sl_event_kind kind, const struct sl_sock *sock);
struct sl_event_process world_process_event(enum sl_event_kind kind, unsigned int exe,
					    unsigned int lineage);

struct sl_endpoint world_endpoint(const char *text);

#endif
