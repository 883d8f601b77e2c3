/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The features as a table, running their probes, and the quick check before a load. */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/feature_private.h"

#define NEWER "use a newer kernel, 6.1 at least"
#define AS_ROOT "run as root, in a container with the capability added"

const struct sl_feature_env sl_feature_env_host = { .root = "" };

const char *const sl_feature_need_words[SL_FEATURE_NEED_MAX] = { "required", "optional", "later" };
const char *const sl_feature_state_words[SL_FEATURE_STATE_MAX] = { "no", "yes", "unknown" };

#define REQUIRED(text, fn, param, lost, next)                               \
	{                                                                   \
		text, SL_FEATURE_REQUIRED, sl_probe_##fn, param, lost, next \
	}
#define OPTIONAL(text, fn, param, lost, next)                               \
	{                                                                   \
		text, SL_FEATURE_OPTIONAL, sl_probe_##fn, param, lost, next \
	}
#define LATER(text, fn, param, lost, next)                               \
	{                                                                \
		text, SL_FEATURE_LATER, sl_probe_##fn, param, lost, next \
	}

static const struct sl_feature_probe probes[] = {
	REQUIRED("kernel", kernel, NULL, "programs don't load", NEWER),
	REQUIRED("user-namespace", user_ns, NULL,
		 "capabilities of a user namespace don't cover BPF: nothing loads",
		 "run in the initial user namespace (no rootless container)"),
	REQUIRED("cap_bpf", capability, "cap_bpf", "maps and programs can't be made", AS_ROOT),
	REQUIRED("cap_net_admin", capability, "cap_net_admin",
		 "cgroup socket programs can't be attached", AS_ROOT),
	REQUIRED("cap_perfmon", capability, "cap_perfmon",
		 "programs may not read the kernel's structures", AS_ROOT),
	REQUIRED("cap_sys_admin", capability, "cap_sys_admin",
		 "no iterators, no mount of bpffs, no kernel addresses", AS_ROOT),
	REQUIRED("btf", btf, NULL, "programs can't adapt to this kernel",
		 "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"),
	REQUIRED("cgroup2", cgroup2, NULL, "there are no cgroups to attach to", NULL),
	OPTIONAL("cgroup-namespace", cgroup_ns, NULL,
		 "cgroup paths are those of this cgroup namespace; others can't be named",
		 "run in the host's cgroup namespace (docker run --cgroupns=host)"),
	REQUIRED("bpffs", bpffs, NULL, "what is attached would end with the command",
		 "mount -t bpf bpf /sys/fs/bpf"),
	REQUIRED("lockdown", lockdown, NULL, "programs may not read kernel memory",
		 "boot without lockdown=confidentiality"),
	REQUIRED("bpf-jit", jit, NULL, "callbacks of bpf_loop are refused",
		 "sysctl net.core.bpf_jit_enable=1"),
	REQUIRED("map-ringbuf", map, "ringbuf", "no events", NEWER),
	REQUIRED("map-task-storage", map, "task_storage", "no identity of tasks",
		 "use a kernel built with CONFIG_BPF_SYSCALL=y, 6.1 at least"),
	REQUIRED("map-socket-storage", map, "sk_storage", "no owners of sockets", NEWER),
	OPTIONAL("task-storage-in-hooks", storage_in_hooks, NULL,
		 "members are looked up by hash at each call, and --max-procs is their limit",
		 "use a newer kernel: 6.18 has it, 6.12 has not"),
	OPTIONAL("socket-of-file", sock_of_file, NULL,
		 "sockets from before a sandbox are read by descriptor (pidfd_getfd)",
		 "none is needed, but the agent must be in the host's pid namespace"),
	REQUIRED("helper-loop", helper, "loop", "paths of executables can't be read", NEWER),
	REQUIRED("prog-cgroup-sock", program, "cgroup_sock", "sockets are not seen",
		 "use a kernel built with CONFIG_CGROUP_BPF=y"),
	REQUIRED("prog-cgroup-sock-addr", program, "cgroup_sock_addr", "connects are not seen",
		 "use a kernel built with CONFIG_CGROUP_BPF=y"),
	REQUIRED("prog-sock-ops", program, "sock_ops", "TCP connections are not resolved",
		 "use a kernel built with CONFIG_CGROUP_BPF=y"),
	REQUIRED("prog-cgroup-skb", program, "cgroup_skb", "datagrams can't be counted by packet",
		 "use a kernel built with CONFIG_CGROUP_BPF=y"),
	REQUIRED("cgroup-link", cgroup_link, NULL, "attachments can't be pinned", NEWER),
	REQUIRED("tp-sched_process_fork", tracepoint, "sched_process_fork", "no lineage", NEWER),
	REQUIRED("tp-sched_process_exec", tracepoint, "sched_process_exec", "no identity", NEWER),
	REQUIRED("tp-sched_process_exit", tracepoint, "sched_process_exit",
		 "rows of processes would never end", NEWER),
	REQUIRED("tp-cgroup_attach_task", tracepoint, "cgroup_attach_task",
		 "processes that are moved in are not seen", NEWER),
	REQUIRED("tp-sk_error_report", tracepoint, "inet_sk_error_report",
		 "why connections fail is not seen", NEWER),
	OPTIONAL("tp-sock_send_length", tracepoint, "sock_send_length",
		 "bytes of what is not TCP are counted by packet, not by call",
		 "use a kernel of 6.3 or later"),
	OPTIONAL("tp-sock_recv_length", tracepoint, "sock_recv_length",
		 "bytes of what is not TCP are counted by packet, not by call",
		 "use a kernel of 6.3 or later"),
	REQUIRED("iter-task", iterator, "task", "processes that run already are not seen", NEWER),
	REQUIRED("iter-task_file", iterator, "task_file", "open sockets can't be listed", NEWER),
	OPTIONAL("memcg-accounting", memcg, NULL, "maps count against RLIMIT_MEMLOCK",
		 "ulimit -l unlimited"),
	LATER("fentry", fentry, NULL, "tracepoints are used instead", NULL),
	LATER("bpf-lsm", bpf_lsm, NULL, "io_uring can make vsock and packet sockets unseen",
	      "boot with lsm=…,bpf and CONFIG_BPF_LSM=y"),
	LATER("kprobes", kprobes, NULL, "tracepoints are used instead", NULL),
	LATER("io_uring", io_uring, NULL, "programs can't use it: one path less to cover", NULL),
	LATER("mptcp", socket, "mptcp", "programs can't use it: one path less to cover", NULL),
	LATER("ia32", ia32, NULL, "32-bit programs don't run: one path less to cover", NULL),
	LATER("vsock", socket, "vsock", "programs can't use it: one path less to cover", NULL),
	LATER("packet", socket, "packet", "programs can't use it: one path less to cover", NULL),
	LATER("xdp", socket, "xdp", "programs can't use it: one path less to cover", NULL),
	LATER("landlock", landlock, NULL, "a command can't be kept from other processes' sockets",
	      "boot with lsm=landlock,… and CONFIG_SECURITY_LANDLOCK=y"),
	LATER("seccomp-notify", seccomp_notify, NULL, "an exec can't be held for a digest",
	      "use a kernel built with CONFIG_SECCOMP_FILTER=y"),
	LATER("seccomp-sync-wake-up", seccomp_wake, NULL, "a held call takes longer",
	      "use a kernel of 6.6 or later"),
	LATER("seccomp-wait-killable", seccomp_killable, NULL,
	      "signals may interrupt and restart a held call", "use a kernel of 5.19 or later"),
};

size_t sl_feature_count(void)
{
	return ARRAY_SIZE(probes);
}

static bool may_bpf(const struct sl_feature_env *env)
{
	unsigned long long missing;
	char value[SL_FEATURE_VALUE_MAX];
	const struct sl_feature_run run = { .env = env };

	return !sl_feature_caps_missing(env, &missing) && !missing &&
	       sl_probe_user_ns(&run, NULL, value) == SL_FEATURE_YES;
}

static int silent(enum libbpf_print_level level, const char *fmt, va_list args)
{
	(void)level;
	(void)fmt;
	(void)args;
	return 0;
}

static const char *mount_step(const struct sl_feature_env *env)
{
	char point[SL_FEATURE_VALUE_MAX];

	return sl_cgroup_mount_step(!sl_feature_mount(env, "cgroup", NULL, point, NULL));
}

void sl_feature_probe(const struct sl_feature_env *env, struct sl_feature *rows)
{
	/* What a probe expects to fail is no message for anybody. */
	libbpf_print_fn_t before = libbpf_set_print(silent);
	struct sl_feature_run run = {
		.env = env,
		.btf = btf__load_vmlinux_btf(),
		.may_bpf = may_bpf(env),
	};

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
		const struct sl_feature_probe *p = &probes[i];

		rows[i] = (struct sl_feature){ .name = p->name, .need = p->need };
		rows[i].state = p->probe(&run, p->arg, rows[i].value);
		if (rows[i].state != SL_FEATURE_YES) {
			rows[i].consequence = p->consequence;
			rows[i].next_step = p->next_step;
			if (p->probe == sl_probe_cgroup2)
				rows[i].next_step = mount_step(env);
		}
	}
	btf__free(run.btf);
	libbpf_set_print(before);
}

bool sl_feature_missing(const struct sl_feature *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].need == SL_FEATURE_REQUIRED && rows[i].state != SL_FEATURE_YES)
			return true;
	return false;
}

static int require_privilege(const struct sl_feature_run *run, struct sl_err *err)
{
	static const struct {
		int cap;
		const char *name;
	} needed[] = { { CAP_BPF, "CAP_BPF" },
		       { CAP_NET_ADMIN, "CAP_NET_ADMIN" },
		       { CAP_PERFMON, "CAP_PERFMON" },
		       { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" } };
	char list[80] = "", value[SL_FEATURE_VALUE_MAX];
	unsigned long long missing;
	size_t used = 0;
	int rc;

	rc = sl_feature_caps_missing(run->env, &missing);
	if (rc)
		return sl_err_sys(err, -rc, "can't read this process' capabilities");
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (missing & 1ULL << needed[i].cap)
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 used ? ", " : "", needed[i].name);
	if (missing) {
		sl_err_set(err, EPERM, "not enough privilege: this process lacks %s", list);
		return sl_err_hint(err,
				   "run as root (sudo), in a container with these capabilities "
				   "added");
	}
	if (sl_probe_user_ns(run, NULL, value) == SL_FEATURE_YES)
		return 0;
	sl_err_set(err, EPERM, "this is a user namespace, whose root may not load BPF programs");
	return sl_err_hint(err, "run in the initial user namespace: as the host's root, in no "
				"rootless container");
}

/* One check of the list below: the probe, the errno, and what is said. */
struct requirement {
	sl_feature_fn *probe;
	int code;
	const char *text; /* "<text> (<value>)" */
	const char *hint; /* NULL: it depends on the host */
};

static const struct requirement requirements[] = {
	{ sl_probe_kernel, ENOSYS, "the kernel is too old: 6.1 is the oldest that will do",
	  "boot a kernel of 6.1 or later" },
	{ sl_probe_lockdown, EPERM, "kernel lockdown forbids BPF programs to read kernel memory",
	  "boot without lockdown=confidentiality (lockdown=integrity is fine)" },
	{ sl_probe_btf, ENOSYS, "the kernel has no BTF, the description of its types",
	  "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (Debian's are)" },
	{ sl_probe_cgroup2, ENODEV, "cgroup2 is not mounted", NULL },
	{ sl_probe_bpffs, ENODEV, "bpffs is not mounted at /sys/fs/bpf and can't be",
	  "use a kernel with CONFIG_BPF_SYSCALL=y; in a container, bind /sys/fs/bpf from the host" },
};

int sl_feature_require_at(const struct sl_feature_env *env, struct sl_err *err)
{
	const struct sl_feature_run run = { .env = env };
	int rc = require_privilege(&run, err);

	for (size_t i = 0; !rc && i < ARRAY_SIZE(requirements); i++) {
		const struct requirement *r = &requirements[i];
		char value[SL_FEATURE_VALUE_MAX] = "";

		if (r->probe(&run, NULL, value) == SL_FEATURE_YES)
			continue;
		rc = sl_err_set(err, r->code, "%s%s%s%s", r->text, value[0] ? " (" : "", value,
				value[0] ? ")" : "");
		sl_err_hint(err, "%s", r->hint ?: mount_step(env));
	}
	return rc;
}

int sl_feature_require(struct sl_err *err)
{
	return sl_feature_require_at(&sl_feature_env_host, err);
}
