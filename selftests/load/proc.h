/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Processes: fork under the time limit, wait, copies of this program, and the argument
 * vector with which a copy goes on.
 *
 * The limit is one deadline for the whole tree: main arms it, sl_fork() arms it again
 * in a child, an exec'ed copy finds it in the environment (SL_LOAD_DEADLINE).
 */
#ifndef SLUICE_LOAD_PROC_H
#define SLUICE_LOAD_PROC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "load.h"
#include "truth.h"

#define SL_ARGV_MAX 256

/* An argument vector for execve; its texts live in it, or in main's own argv. */
struct sl_argv {
	char *v[SL_ARGV_MAX + 1];
	unsigned int n;
	size_t used;
	bool full; /* something did not fit: sl_exec() fails with E2BIG */
	char text[8192];
};

/* Sets the deadline: `timeout_s` from now, or the environment's when SL_UNSET. */
void sl_deadline_arm(uint64_t timeout_s);

/* fork() with the alarm armed in the child; -errno on failure. */
pid_t sl_fork(void);

/* Waits for the child; what its exit says as a subcommand's result (-EIO for a failure). */
int sl_wait(pid_t pid);

/* Waits for each of the caller's children; the first failure. */
int sl_wait_all(void);

/*
 * Waits for any child, prints its "what=child" line unless quiet, and reaps it. Returns
 * its exit code (128 + signal when killed), or -errno.
 */
int sl_reap_one(bool quiet);

/* Ends the process with the exit code for `rc`, no exit handlers. */
void sl_exit(int rc) __attribute__((noreturn));

/* Copies this program to DIR/NAME (mode 0755), replacing it. 0 or -errno. */
int sl_copy_self(const char *dir, const char *name, char path[PATH_MAX]);
int sl_copy_self_to(int fd);

void sl_argv_add(struct sl_argv *argv, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* path, subcommand. */
void sl_argv_start(struct sl_argv *argv, const char *path, const char *cmd);
/* The options of the tail (SL_TAIL_OPTIONS) and the tail command; must come last. */
void sl_argv_tail(struct sl_argv *argv, const struct sl_opts *o);

/* Executes argv; returns only on failure, told with sl_fail(). */
int sl_exec(const char *path, struct sl_argv *argv);

/*
 * Writes where a copy of this program is: made at DIR/NAME when --dir is given, else
 * the program itself.
 */
int sl_self_path(const struct sl_opts *o, const char *name, char path[PATH_MAX]);

/* Sleeps until `i` steps of `rate` a second are due since start_ns; rate 0: not at all. */
void sl_pace(uint64_t start_ns, uint64_t i, uint64_t rate);
uint64_t sl_now_ns(void);
void sl_sleep_ms(unsigned int ms);

/* Reads stdin to its end. */
void sl_wait_stdin(void);

/* The caller's identity for --identify. */
struct sl_ident sl_ident_self(uint32_t n);

#endif
