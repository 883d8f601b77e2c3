/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A child of the test that runs one of its functions, inside the sandbox or outside of it:
 * for what has to ask sluice by a descriptor of its own, or to act step by step.
 *
 * Order of use: member_start(), then member_await() and member_go() in step with the
 * child's member_say() and member_wait(), member_end(). The child must not use Criterion;
 * what goes wrong there ends it (member_need()) and fails the test at the next step.
 */
#ifndef SLUICE_SYSTEM_MEMBER_H
#define SLUICE_SYSTEM_MEMBER_H

#include "system/world.h"

struct member {
	pid_t pid;    /* in the test */
	int in, out;  /* steps to and from the other side */
	void *shared; /* from member_shared() */
};

typedef void (*member_fn)(struct member *self);

/* Zeroed memory that the test and its children share; never freed, the test is a process. */
void *member_shared(size_t size);

void member_start(struct member *member, enum load_where where, member_fn fn, void *shared);
/* Moves a member that was started outside into the sandbox. */
void member_move_in(const struct member *member);
void member_await(struct member *member);
void member_go(struct member *member);
/* Waits for its end and fails unless it returned. */
void member_end(struct member *member);

/* In the child: */
void member_say(struct member *self);
void member_wait(struct member *self);
/* Ends the child, naming what it was doing, unless `ok`. */
void member_need(bool ok, const char *what);
uint64_t member_cookie(int fd); /* SO_COOKIE */

/* Waits until the process is blocked in this system call. */
void await_syscall(pid_t pid, long number);
/* Waits for the end of a child, which stays to be waited for: /proc still shows it. */
void await_exit(pid_t pid);

#endif
