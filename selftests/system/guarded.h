/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A world (system/world.h) whose sandbox has a guard, in a network namespace of its own,
 * and receivers outside of the sandbox that count what reaches them: the truth about a
 * denial. sl-load may reach those of `guarded.open`, and nobody those of `guarded.shut`.
 *
 * Order of use: guarded_up() as .init; guarded_expect() and others, or guarded_run() for
 * `sluice run`; guarded_down() as .fini. Nothing here returns an error: what can't be made
 * fails the test.
 */
#ifndef SLUICE_SYSTEM_GUARDED_H
#define SLUICE_SYSTEM_GUARDED_H

#include <netinet/in.h>

#include "system/cli.h"
#include "system/world.h"

struct sink {
	int fd;
	bool udp;
	unsigned int port;
	char text[64]; /* address and port */
	struct sockaddr_storage addr;
};

/* The denied ones differ in one thing each from what is allowed. */
enum { OTHER_PORT, OTHER_ADDR, SHUT_MAX };

struct guarded {
	struct sink open, open_udp, open_v6;
	struct sink shut[SHUT_MAX], shut_udp[SHUT_MAX], shut_v6;
	char policy[PATH_MAX]; /* the file */
	int deny_errno;        /* of the next load; 0: the guard's own */
};

extern struct guarded guarded;

void guarded_up(void);
/* The same with sizes of the set; NULL: the defaults. */
void guarded_make(const struct sl_set_options *options);
void guarded_down(void);

/* A receiver in this process: counts connections or datagrams. `port` 0: any. */
void sink_open(struct sink *sink, bool udp, const char *addr, unsigned int port);
/* How many came since the last call; exact, also when the network stack is behind. */
unsigned int sink_take(struct sink *sink);
/* The sum over all receivers that are denied. */
unsigned int guarded_leaks(void);

/* Writes guarded.policy, for `sluice run`. */
void guarded_write(const char *text);
/* `mode` of the policies that are loaded from now on; SL_GUARD_ENFORCE in guarded_up(). */
void guarded_mode(enum sl_guard_mode mode);

/* Puts a policy into force: in the set of the world, and in guarded.policy. */
void guarded_load(const char *text);
/* The one of guarded_up(); `more` are further lines of YAML below network_policies. */
void guarded_load_more(const char *more);

/*
 * Runs `sl-load <words> --server ADDR` in the sandbox for each receiver of its kind: what is
 * allowed must arrive `count` times, what is denied must fail with EACCES and not arrive.
 */
void guarded_expect(bool udp, unsigned int count, const char *words);
/* The same with IPv6. */
void guarded_expect_v6(const char *words);

/* The same with verbs of `sl-load do` before and after the address. */
void guarded_expect_do(bool udp, const char *before, const char *verb);

/* One more verb for an `sl-load do --until-eof`; waits until it was done. */
void do_more(struct load *load, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* errno name of the last line of this kind that has one. */
const char *last_errno(const struct load *load, const char *what);
/* The line of this verb, the n-th from 0, or NULL. */
const char *did_line(const struct load *load, const char *verb, unsigned int n);
/* errno name of the line of this verb, the n-th from 0. */
const char *did_errno(const struct load *load, const char *verb, unsigned int n);

/* `sluice run --policy guarded.policy <words>`, facts in *load; ends with NULL. */
#define GUARDED_RUN(load, ...) guarded_run((load), (const char *const[]){ __VA_ARGS__, NULL })
int guarded_run(struct load *load, const char *const words[]);

#endif
