/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a command has left running when it ends. */
#ifndef SLUICE_USER_RUN_LEFT_H
#define SLUICE_USER_RUN_LEFT_H

#include "run/world.h"

/*
 * Kills and names what is left: all in the cgroup, and members that have moved out of it.
 * Waits until they are gone, for a few seconds at most. Warns when the cgroup itself is
 * gone, since then the last sockets may not have been recorded.
 */
void sl_run_kill_left(struct sl_run_world *world);

#endif
