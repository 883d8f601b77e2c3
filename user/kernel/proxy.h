/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Transparent proxies: cgroups whose processes may ask a connection that they have accepted
 * where its client meant it to go, by getsockopt(SOL_IP or SOL_IPV6, SO_ORIGINAL_DST), as they
 * would of one that netfilter had redirected (bpf/proxy.bpf.c).
 *
 *	sl_proxy_attach(set, "proxy.slice/squid.service", &err);
 *	sl_proxy_each(set, fn, arg);
 *	sl_proxy_detach(set, id, &err);
 *
 * A cgroup's link is pinned below the set's directory by the cgroup's id, outlives the process,
 * and ends with the set. What counts is the cgroup that a listener was made in. Answered is what
 * the set has records of, in the proxy's own network namespace; all else is the kernel's answer.
 * Only sockets of these cgroups pay for it, with each getsockopt().
 */
#ifndef SLUICE_USER_PROXY_H
#define SLUICE_USER_PROXY_H

#include <limits.h>

#include "kernel/set.h"

enum sl_proxy_state {
	SL_PROXY_ATTACHED,
	SL_PROXY_GONE,  /* the cgroup was removed */
	SL_PROXY_OTHER, /* what is pinned is no link of the set's program to this cgroup */
	SL_PROXY_STATE_MAX
};

extern const char *const sl_proxy_state_names[SL_PROXY_STATE_MAX];

struct sl_proxy_info {
	unsigned long long cgroup_id;
	unsigned int state;    /* enum sl_proxy_state */
	char cgroup[PATH_MAX]; /* below the mount; empty: it is gone */
};

/*
 * `cgroup` as for sl_cgroup_resolve(). -EEXIST: it is attached already. Errors with a cause and
 * a hint.
 */
int sl_proxy_attach(struct sl_set *set, const char *cgroup, struct sl_err *err);

/* At once. -ENOENT: none is attached to a cgroup of that id, which need not exist any more. */
int sl_proxy_detach(struct sl_set *set, unsigned long long cgroup_id, struct sl_err *err);

/* In the order of the directory; `fn` as in sl_sandbox_each(). */
int sl_proxy_each(struct sl_set *set, int (*fn)(const struct sl_proxy_info *info, void *arg),
		  void *arg);

#endif
