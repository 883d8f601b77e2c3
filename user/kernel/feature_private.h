/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of feature probing. A probe fills `value` when there is something to tell
 * and returns whether the feature is there; which feature it probes is its row's `arg`.
 */
#ifndef SLUICE_USER_FEATURE_PRIVATE_H
#define SLUICE_USER_FEATURE_PRIVATE_H

#include "kernel/feature.h"

struct btf;

/* What one run of all probes shares. */
struct sl_feature_run {
	const struct sl_feature_env *env;
	struct btf *btf; /* the kernel's; NULL when it can't be read */
	bool may_bpf;    /* privileged enough to load programs */
};

struct sl_feature_probe {
	const char *name;
	enum sl_feature_need need;
	enum sl_feature_state (*probe)(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX]);
	const char *arg;
	const char *consequence;
	const char *next_step;
};

typedef enum sl_feature_state sl_feature_fn(const struct sl_feature_run *run, const char *arg,
					    char value[SL_FEATURE_VALUE_MAX]);

/* Reads the first line of a file below the root, without newline. 0 or -errno. */
int sl_feature_read(const struct sl_feature_env *env, const char *path, char *out, size_t size);

/* True when a file or directory is there. */
bool sl_feature_exists(const struct sl_feature_env *env, const char *path);

/*
 * Mount point of the first mount of a type, in mountinfo's own encoding; `at` (may be
 * NULL) must be the mount point then. `root` (may be NULL) gets what of the file system
 * is mounted. -ENODEV when there is none.
 */
int sl_feature_mount(const struct sl_feature_env *env, const char *type, const char *at,
		     char point[SL_FEATURE_VALUE_MAX], char root[SL_FEATURE_VALUE_MAX]);

/* Effective capabilities of this process that are missing of those needed, as a mask. */
int sl_feature_caps_missing(const struct sl_feature_env *env, unsigned long long *missing);

/* feature_host.c: procfs and sysfs */
sl_feature_fn sl_probe_kernel;
sl_feature_fn sl_probe_capability; /* arg: its name */
sl_feature_fn sl_probe_user_ns;
sl_feature_fn sl_probe_btf;
sl_feature_fn sl_probe_cgroup2;
sl_feature_fn sl_probe_cgroup_ns;
sl_feature_fn sl_probe_bpffs;
sl_feature_fn sl_probe_lockdown;
sl_feature_fn sl_probe_jit;
sl_feature_fn sl_probe_lsm; /* arg: its name in the list of active ones */
sl_feature_fn sl_probe_kprobes;

/* feature_bpf.c: by loading programs and making maps */
sl_feature_fn sl_probe_helper;  /* arg: "task_storage_get", … */
sl_feature_fn sl_probe_map;     /* arg: "ringbuf", … */
sl_feature_fn sl_probe_program; /* arg: "sock_ops", … */
sl_feature_fn sl_probe_cgroup_link;
sl_feature_fn sl_probe_storage_in_hooks;
sl_feature_fn sl_probe_sock_of_file;
sl_feature_fn sl_probe_tracepoint; /* arg: its name */
sl_feature_fn sl_probe_iterator;   /* arg: "task", … */
sl_feature_fn sl_probe_fentry;
sl_feature_fn sl_probe_bpf_lsm;
sl_feature_fn sl_probe_memcg;

/* feature_syscall.c: by calling */
sl_feature_fn sl_probe_io_uring;
sl_feature_fn sl_probe_landlock;
sl_feature_fn sl_probe_seccomp_notify;
sl_feature_fn sl_probe_seccomp_killable;
sl_feature_fn sl_probe_seccomp_wake;
sl_feature_fn sl_probe_ia32;
sl_feature_fn sl_probe_socket; /* arg: "mptcp", "vsock", "packet", "xdp" */

#endif
