/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this kernel and this process can do, and what follows when they can't.
 *
 *	sl_feature_require()	the quick check before loading: a millisecond at most, files only
 *	sl_feature_probe()	everything, by trying: loads tiny programs, opens sockets, forks
 *
 * Nothing that is probed stays: no program, socket or process is left. Files are read
 * below a root directory that tests replace.
 */
#ifndef SLUICE_USER_FEATURE_H
#define SLUICE_USER_FEATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum sl_feature_need {
	SL_FEATURE_REQUIRED, /* nothing works without it */
	SL_FEATURE_OPTIONAL, /* used when there; the consequence says what else happens */
	SL_FEATURE_LATER,    /* not used by recording; matters for enforcement */
	SL_FEATURE_NEED_MAX
};

enum sl_feature_state {
	SL_FEATURE_NO,
	SL_FEATURE_YES,
	SL_FEATURE_UNKNOWN, /* could not be tried; the value says why */
	SL_FEATURE_STATE_MAX
};

/* What JSON and tables say. */
extern const char *const sl_feature_need_words[SL_FEATURE_NEED_MAX];
extern const char *const sl_feature_state_words[SL_FEATURE_STATE_MAX];

#define SL_FEATURE_VALUE_MAX 128

struct sl_feature {
	const char *name;
	enum sl_feature_need need;
	enum sl_feature_state state;
	char value[SL_FEATURE_VALUE_MAX]; /* version, place or cause; may be empty */
	const char *consequence;          /* of its absence; NULL when it is there */
	const char *next_step;            /* to get it; NULL when it is there or can't be had */
};

/* Where files are read: "" for this machine. Tests name a directory with a faked tree. */
struct sl_feature_env {
	const char *root;
};
extern const struct sl_feature_env sl_feature_env_host;

/* How many features are known: the length of what probe() fills. */
size_t sl_feature_count(void);

/* Probes all features into rows[0] … rows[sl_feature_count() - 1]. */
void sl_feature_probe(const struct sl_feature_env *env, struct sl_feature *rows);

/*
 * Whether the hooks of sockets may read task storage; the loader asks as well. Needs the
 * privilege to load programs, else it is false.
 */
bool sl_feature_storage_in_hooks(void);

/*
 * Whether an iterator over files may hand a file's socket to helpers: to ask for its storage.
 * Kernels after 6.18.0 (seen: 6.18.44) take what is read through such a pointer for untrusted.
 */
struct btf;
bool sl_feature_sock_of_file(const struct btf *btf);

/* True when a required feature is not known to be there. */
bool sl_feature_missing(const struct sl_feature *rows, size_t count);

/*
 * Checks what loading needs: kernel, privilege, BTF, cgroup2, bpffs, lockdown. 0, or
 * with one message, the cause first found, and its next step:
 * -EPERM (privilege, lockdown), -ENOSYS (kernel too old, no BTF), -ENODEV (no cgroup2,
 * no bpffs).
 */
int sl_feature_require(struct sl_err *err);
int sl_feature_require_at(const struct sl_feature_env *env, struct sl_err *err);

#endif
