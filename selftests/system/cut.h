/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place between a runtime and its agent where their connection can be cut: a process that
 * passes on what both say, with descriptors.
 *
 * Order of use: cut_up() before anything is connected, the runtime connects to cut.socket,
 * cut_now() and cut_heal() as often as it takes; cut_down(). Nothing here returns an error:
 * what can't be made fails the test.
 */
#ifndef SLUICE_SYSTEM_CUT_H
#define SLUICE_SYSTEM_CUT_H

#include <sys/types.h>

struct cut {
	pid_t pid;
	int control;
	char socket[96];
};

enum cut_how {
	CUT_BOTH,   /* each end is told */
	CUT_RUNTIME /* the runtime's is told, the agent's closing is held back */
};

#define CUT_FOR_EVER (~0U)

/* At `path`, in front of the agent at `to`. */
void cut_up(struct cut *cut, const char *path, const char *to);
void cut_down(struct cut *cut);

/* Ends what is connected, and whatever comes within the next `ms`, unanswered. */
void cut_now(const struct cut *cut, enum cut_how how, unsigned int ms);
/* What comes is passed on again. */
void cut_heal(const struct cut *cut);
/* The closings that were held back arrive. */
void cut_release(const struct cut *cut);
/* From now on a runtime that speaks version 1 says that it speaks 7 to 9. */
void cut_other_version(const struct cut *cut);

#endif
