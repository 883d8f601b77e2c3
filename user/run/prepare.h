/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is done for a held call before it goes on: the guard is told of the files it runs,
 * and a socket that the filter has refused is told as a decision. Safe from several threads.
 */
#ifndef SLUICE_USER_RUN_PREPARE_H
#define SLUICE_USER_RUN_PREPARE_H

#include "broker/call.h"
#include "guard/files.h"
#include "run/members.h"

/* Whose call it is; all borrowed. */
struct sl_prepare {
	struct sl_set *set;
	unsigned int sandbox;
	struct sl_members *members;
	struct sl_files *files;
};

/*
 * Prepares the files of a call. What stays unmatched the guard denies, so the call may go on
 * whatever comes of it. 0, or -ENOSPC: no more files can be remembered, further ones stay
 * without the rules that need that.
 */
int sl_prepare_files(const struct sl_prepare *prepare, const struct sl_call *call);

/* A call of kind SOCKET, as a decision like the guard's. -errno: it could not be told. */
int sl_prepare_refused(const struct sl_prepare *prepare, const struct sl_call *call);

#endif
