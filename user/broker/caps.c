// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
#ifndef CAP_CHECKPOINT_RESTORE
#define CAP_CHECKPOINT_RESTORE 40
#endif

static const struct {
	unsigned int cap;
	const char *name;
} undoing[] = {
	{ CAP_SYS_ADMIN, "sys_admin" },             /* mount, setns, BPF before 5.8 */
	{ CAP_BPF, "bpf" },                         /* detach what mediates */
	{ CAP_NET_ADMIN, "net_admin" },             /* routes, rules, transparent sockets */
	{ CAP_NET_RAW, "net_raw" },                 /* packet sockets, past the hooks */
	{ CAP_PERFMON, "perfmon" },                 /* kernel memory by tracing programs */
	{ CAP_SYS_PTRACE, "sys_ptrace" },           /* any process, whatever its user */
	{ CAP_SYS_MODULE, "sys_module" },           /* kernel code */
	{ CAP_SYS_RAWIO, "sys_rawio" },             /* /dev/mem, ports */
	{ CAP_SYS_BOOT, "sys_boot" },               /* kexec */
	{ CAP_MKNOD, "mknod" },                     /* devices of disks and memory */
	{ CAP_DAC_READ_SEARCH, "dac_read_search" }, /* open_by_handle_at(), past Landlock */
	{ CAP_MAC_ADMIN, "mac_admin" },
	{ CAP_MAC_OVERRIDE, "mac_override" },
	{ CAP_CHECKPOINT_RESTORE, "checkpoint_restore" },
};

uint64_t sl_caps_undoing(void)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(undoing); i++)
		bits |= 1ULL << undoing[i].cap;
	return bits;
}

void sl_caps_names(char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(undoing) && at < size; i++)
		at += snprintf(out + at, size - at, "%s%s", i ? " " : "", undoing[i].name);
}

int sl_caps_unbound(struct sl_err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(undoing); i++) {
		/* -1: this kernel does not know the capability. */
		if (prctl(PR_CAPBSET_READ, undoing[i].cap, 0, 0, 0) != 1)
			continue;
		if (!prctl(PR_CAPBSET_DROP, undoing[i].cap, 0, 0, 0))
			continue;
		/* A plain user can't, and with no_new_privs it gains none of them. */
		if (errno == EPERM && geteuid())
			continue;
		return sl_err_sys(err, errno, "can't drop capability %s", undoing[i].name);
	}
	return 0;
}

int sl_caps_keep(uint64_t bits, struct sl_err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return sl_err_sys(err, errno, "can't read the capabilities");
	for (size_t i = 0; i < ARRAY_SIZE(data); i++) {
		uint32_t keep = (uint32_t)(bits >> (32 * i));

		data[i].effective &= keep;
		data[i].permitted &= keep;
		data[i].inheritable &= keep;
	}
	if (syscall(SYS_capset, &header, data))
		return sl_err_sys(err, errno, "can't drop the capabilities");
	/* EINVAL: no ambient set before 4.3. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) && errno != EINVAL)
		return sl_err_sys(err, errno, "can't clear the ambient capabilities");
	return 0;
}

int sl_caps_drop(struct sl_err *err)
{
	return sl_caps_keep(~sl_caps_undoing(), err);
}

uint64_t sl_caps_mediating(void)
{
	static const unsigned int caps[] = {
		CAP_BPF,
		CAP_PERFMON,
		CAP_NET_ADMIN,
		CAP_NET_BIND_SERVICE, /* port 53 in a relay's namespace */
		CAP_SYS_ADMIN,        /* maps by their ids, iterators, all of it before 5.8 */
		CAP_SYS_RESOURCE,     /* memory of maps before 5.11 */
		CAP_SYS_PTRACE,       /* arguments of held calls, files of /proc/PID */
		CAP_DAC_READ_SEARCH,  /* files that are executed, whoever may read them */
		CAP_DAC_OVERRIDE,     /* files of cgroups, whoever they were given to */
		CAP_KILL,             /* whether a client still lives */
	};
	uint64_t bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		bits |= 1ULL << caps[i];
	return bits;
}
