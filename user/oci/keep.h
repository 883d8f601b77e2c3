/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is kept of attached containers, so that who follows a `sluice oci serve` that was
 * killed takes them up: one file each, named by the cgroup's id, in a directory of root's.
 * It is to end with the host, as containers do: below /run.
 *
 *	sl_oci_keep_open(&keep, dir, &err);
 *	sl_oci_keep_load(&keep, fn, ctx, &err);		what is there
 *	sl_oci_keep_put(&keep, &kept, &err);		before it is attached, without a token,
 *							and after, with it
 *	sl_oci_keep_drop(&keep, &kept);			when it is detached
 *	sl_oci_keep_close(&keep);
 *
 * A file is there whole or not at all. A token is a secret: others can't read it.
 */
#ifndef SLUICE_USER_OCI_KEEP_H
#define SLUICE_USER_OCI_KEEP_H

#include <limits.h>
#include <stdint.h>

#include "base/err.h"
#include "oci/state.h"

#define SL_OCI_TOKEN 65 /* hexadecimal digits, with terminator */

struct sl_oci_kept {
	char id[SL_OCI_ID];
	char cgroup[PATH_MAX];
	uint64_t cgroup_id;
	char token[SL_OCI_TOKEN]; /* "": it was being attached */
};

struct sl_oci_keep {
	int dir;
};

/* Makes it unless it is there. -EPERM: it is not root's alone. */
int sl_oci_keep_open(struct sl_oci_keep *out, const char *dir, struct sl_err *err);
void sl_oci_keep_close(struct sl_oci_keep *keep);

int sl_oci_keep_put(const struct sl_oci_keep *keep, const struct sl_oci_kept *kept,
		    struct sl_err *err);
void sl_oci_keep_drop(const struct sl_oci_keep *keep, const struct sl_oci_kept *kept);

/* `fn` for each; files that are damaged are removed with a line in the log. */
int sl_oci_keep_load(const struct sl_oci_keep *keep,
		     void (*fn)(void *ctx, const struct sl_oci_kept *kept), void *ctx,
		     struct sl_err *err);

#endif
