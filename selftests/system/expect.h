/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the set recorded, looked up and compared with a fact of sl-load. */
#ifndef SLUICE_SYSTEM_EXPECT_H
#define SLUICE_SYSTEM_EXPECT_H

#include <arpa/inet.h>

#include "system/world.h"

/* Waits for a condition, a minute at most; false when it did not come true. */
bool eventually(bool (*fn)(void *arg), void *arg);

/* The record of a closed socket; waits for it. Fails the test when there is none. */
struct sl_sock closed_sock(uint64_t cookie);
/* The one that process `tgid` closed, from local port `port` unless that is 0. */
struct sl_sock closed_by(uint64_t tgid, uint64_t port);
/* The record of an open one. False when there is none. */
bool live_sock(uint64_t cookie, struct sl_sock *out);
/* Who created it, and who used it last. */
struct sl_owner opener_of(const struct sl_sock *sock);
struct sl_owner user_of(const struct sl_sock *sock);
unsigned int live_socks(void);
/* The row of a live process. False when there is none. */
bool process_by_pid(uint64_t pid, struct sl_process *out);
/* Entries of a hash map of the set. */
unsigned int map_rows(enum sl_map map);

/* Kinds of events that are made for a reader: not 0 once it has begun. */
unsigned int watched_events(void);

struct sl_counters counters(void);
uint64_t counter(enum sl_counter which);
/* Fails when a counter of a fault is not 0. */
void expect_no_faults(void);
/*
 * Waits until what came in and has not gone is what is there: sockets (`live` of them have
 * a record), rows of live tuples, processes. Fails when it does not come true.
 */
void expect_conserved(unsigned int live);

/* Whether this owner is the process of the line (pid and start_ns). */
bool owner_is(const struct sl_owner *owner, const char *line);
void expect_owner(const struct sl_owner *owner, const char *line, const char *role);
/* The same for a process that is there, or not yet waited for. */
void expect_owner_pid(const struct sl_owner *owner, pid_t pid, const char *role);
/* Whether an address is this IPv4 one (host order), as records have it. */
bool endpoint_is(const struct sl_endpoint *endpoint, uint32_t addr, unsigned int port);

/* created = live + deleted, in form of eventually(); `arg`: unsigned int *, live sockets. */
bool socks_balance(void *arg);
bool tuples_balance(void *arg);
bool procs_balance(void *arg);
/* All of them, with `live` sockets open; and every closed one was kept. */
void expect_conserved(unsigned int live);

/* The record of an executable, or fails. */
void exe_path(unsigned int id, struct sl_exe *out);
/* Fails unless its path is this one, as the process' root sees it. */
void expect_path(unsigned int id, const char *path);
/* Paths from the leaf to the root, at most `max`; returns how many. */
unsigned int lineage_exes(unsigned int id, unsigned int exes[], unsigned int max);
/* Fails unless a lineage begins with these paths, leaf first, NULL last; links followed. */
void expect_lineage(unsigned int id, const char *const paths[]);

#endif
