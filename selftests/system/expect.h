/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the set recorded, looked up and compared with a fact of sl-load. */
#ifndef SLUICE_SYSTEM_EXPECT_H
#define SLUICE_SYSTEM_EXPECT_H

#include "system/world.h"

/* Waits for a condition, 5 s at most; false when it did not come true. */
bool eventually(bool (*fn)(void *arg), void *arg);

/* The record of a closed socket; waits for it. Fails the test when there is none. */
struct sl_sock closed_sock(uint64_t cookie);
/* The record of an open one. False when there is none. */
bool live_sock(uint64_t cookie, struct sl_sock *out);
/* Who created it, and who used it last. */
struct sl_owner opener_of(const struct sl_sock *sock);
struct sl_owner user_of(const struct sl_sock *sock);
unsigned int live_socks(void);
/* Entries of a hash map of the set. */
unsigned int map_rows(enum sl_map map);

struct sl_counters counters(void);
uint64_t counter(enum sl_counter which);
/* Fails when a counter of a fault is not 0. */
void expect_no_faults(void);

/* Whether this owner is the process of the line (pid and start_ns). */
bool owner_is(const struct sl_owner *owner, const char *line);
void expect_owner(const struct sl_owner *owner, const char *line, const char *role);

/* Path of an executable, or fails. */
void exe_path(unsigned int id, struct sl_exe *out);
/* Paths from the leaf to the root, at most `max`; returns how many. */
unsigned int lineage_exes(unsigned int id, unsigned int exes[], unsigned int max);

#endif
