/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a command loses that mediation relies on: everything by which it could reach the
 * network through somebody outside, or take the mediation away.
 *
 *	sl_contain_plan(&plan, &options, &err)	in the parent; plan.lines say what is lost
 *	fork, enter the cgroup
 *	sl_contain_apply(&plan, &err)		in the child
 *	sl_handoff_give(), exec
 *
 * 1. Descriptors above 2 close at exec; an internet socket among 0 to 2 is refused, since
 *    nobody mediated its connection (`pass_socket` takes it over all the same).
 * 2. no_new_privs: set-user-ID programs and file capabilities give nothing.
 * 3. Capabilities that undo mediation leave all sets, the bounding and ambient ones too.
 * 4. The user is changed, supplementary groups included, when asked.
 * 5. A Landlock domain keeps ptrace(), pidfd_getfd() and memory of processes outside away,
 *    also from processes of the same user, which need no capability for them. For a plain
 *    user on Linux 6.12 it consists of a scope and costs nothing but signals to outside. For
 *    root, and before, it is one of files: for root it also keeps cgroupfs and bpffs from
 *    being written to, or root would move itself out, or unpin what mediates.
 * 6. `strict`: that domain is one of files for every user, and keeps /proc from being written
 *    to as well, or /proc/PID/mem would do what the filter refuses ptrace() and its kin.
 */
#ifndef SLUICE_USER_BROKER_CONTAIN_H
#define SLUICE_USER_BROKER_CONTAIN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct sl_contain_options {
	bool change_user;
	uid_t uid;
	gid_t gid;
	const char *name; /* whose supplementary groups; NULL: none. Borrowed */
	bool pass_socket;
	bool strict; /* not without Landlock: -ENOTSUP */
};

enum sl_contain_domain {
	SL_DOMAIN_NONE, /* the kernel has no Landlock: said in the lines */
	SL_DOMAIN_SCOPE,
	SL_DOMAIN_FILES,
	SL_DOMAIN_FILES_READ_ONLY,
};

#define SL_CONTAIN_LINES 8
#define SL_CONTAIN_PATHS 32

struct sl_contain_plan {
	struct sl_contain_options options;
	enum sl_contain_domain domain;
	unsigned int path_count;
	char paths[SL_CONTAIN_PATHS][256]; /* mounts that are kept from being written to */
	unsigned int line_count;
	char lines[SL_CONTAIN_LINES][256]; /* what was taken away, a sentence each */
};

/*
 * -EPERM: a socket among 0 to 2, with its number. -E2BIG: more mounts to protect than
 * SL_CONTAIN_PATHS, or one with a longer path.
 */
int sl_contain_plan(struct sl_contain_plan *out, const struct sl_contain_options *options,
		    struct sl_err *err);

/* Whether it is a socket by which the network can be reached: not AF_UNIX, not AF_NETLINK. */
bool sl_contain_is_network(int fd);

/* Single-threaded, before exec. On failure the caller must not exec: part of it is done. */
int sl_contain_apply(const struct sl_contain_plan *plan, struct sl_err *err);

#endif
