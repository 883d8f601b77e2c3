/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The check before loading, on faked machines: one thing is wrong with each. */
#include <criterion/criterion.h>

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/feature_private.h"

#define CAPS_ALL "CapEff:\t000001ffffffffff\n"
#define CGROUP2_LINE "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
#define CGROUP1_LINE "31 25 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
#define BPF_LINE "32 25 0:28 / /sys/fs/bpf rw shared:11 - bpf bpf rw,mode=700\n"

static char root[PATH_MAX];
static struct sl_feature_env env;
static struct sl_feature_run run;
static char value[SL_FEATURE_VALUE_MAX];

static void put_bytes(const char *path, const char *data, size_t size)
{
	char full[2 * PATH_MAX];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	file = fopen(full, "we");
	cr_assert(file, "%s", full);
	fwrite(data, 1, size, file);
	fclose(file);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void drop(const char *path)
{
	char full[2 * PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	cr_assert_eq(remove(full), 0, "%s", full);
}

/* A machine on which everything is as it should be. */
static void setup(void)
{
	snprintf(root, sizeof(root), "%s/sl-feature-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	cr_assert(mkdtemp(root));
	env.root = root;
	run.env = &env;
	value[0] = '\0';
	put("/proc/self/status", "Name:\tx\nCapPrm:\t0\n" CAPS_ALL);
	put("/proc/self/uid_map", "         0          0 4294967295\n");
	put("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
	put("/proc/self/mountinfo", CGROUP2_LINE BPF_LINE);
	put("/proc/filesystems", "nodev\tsysfs\nnodev\tbpf\n\text4\n");
	put_bytes("/sys/kernel/btf/vmlinux", (const char[]){ (char)0x9f, (char)0xeb, 1, 0 }, 4);
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	put("/sys/fs/bpf/x", "");
	drop("/sys/fs/bpf/x");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(feature, .init = setup, .fini = teardown);

/* The check fails with that code, and text and hint say these. */
static void expect(int code, const char *text, const char *hint)
{
	struct sl_err err = { 0 };

	cr_expect_eq(sl_feature_require_at(&env, &err), -code, "%s", err.text);
	cr_expect_eq(err.code, code);
	cr_expect(strstr(err.text, text), "'%s' lacks '%s'", err.text, text);
	cr_expect(strstr(err.hint, hint), "'%s' lacks '%s'", err.hint, hint);
}

Test(feature, good_machine_is_accepted)
{
	struct sl_err err = { 0 };

	cr_expect_eq(sl_feature_require_at(&env, &err), 0, "%s", err.text);
	cr_expect_eq(err.code, 0);
	cr_expect_eq(sl_feature_require_at(&env, NULL), 0);
}

Test(feature, plain_user)
{
	put("/proc/self/status", "CapEff:\t0000000000000000\n");
	expect(EPERM, "CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON, CAP_SYS_ADMIN", "as root");
}

Test(feature, only_missing_capabilities_are_named)
{
	struct sl_err err = { 0 };

	/* All but CAP_PERFMON, number 38. */
	put("/proc/self/status", "CapEff:\t000001bfffffffff\n");
	expect(EPERM, "lacks CAP_PERFMON", "as root");
	sl_feature_require_at(&env, &err);
	cr_expect_not(strstr(err.text, "CAP_BPF"));
}

Test(feature, root_of_a_user_namespace)
{
	put("/proc/self/uid_map", "         0       1000          1\n");
	expect(EPERM, "user namespace", "initial user namespace");
	put("/proc/self/uid_map", "");
	expect(EPERM, "user namespace", "initial user namespace");
}

Test(feature, kernel_without_user_namespaces)
{
	drop("/proc/self/uid_map");
	cr_expect_eq(sl_feature_require_at(&env, NULL), 0);
}

Test(feature, old_kernel)
{
	put("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n");
	expect(ENOSYS, "too old: 6.1 is the oldest that will do (5.15.0-91-generic)",
	       "6.1 or later");
	put("/proc/sys/kernel/osrelease", "6.0.19\n");
	expect(ENOSYS, "(6.0.19)", "6.1 or later");
}

Test(feature, newer_kernels)
{
	static const char *const releases[] = { "6.1.0\n", "6.12-rc1\n", "7.0.1\n", "10.1\n" };

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		put("/proc/sys/kernel/osrelease", releases[i]);
		cr_expect_eq(sl_feature_require_at(&env, NULL), 0, "%s", releases[i]);
	}
}

Test(feature, lockdown)
{
	put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	expect(EPERM, "lockdown", "lockdown=integrity is fine");
	drop("/sys/kernel/security/lockdown");
	cr_expect_eq(sl_feature_require_at(&env, NULL), 0);
}

Test(feature, no_btf)
{
	put("/sys/kernel/btf/vmlinux", "hello");
	expect(ENOSYS, "no BTF in it", "CONFIG_DEBUG_INFO_BTF=y");
	drop("/sys/kernel/btf/vmlinux");
	expect(ENOSYS, "No such file", "CONFIG_DEBUG_INFO_BTF=y");
}

Test(feature, no_cgroup2)
{
	put("/proc/self/mountinfo", BPF_LINE);
	expect(ENODEV, "cgroup2 is not mounted", "mount -t cgroup2 none /sys/fs/cgroup");
	put("/proc/self/mountinfo", CGROUP1_LINE BPF_LINE);
	/* Not over those of version 1, which would be gone. */
	expect(ENODEV, "cgroup v1 only", "mount -t cgroup2 none /sys/fs/cgroup/unified");
}

Test(feature, bpffs_that_can_be_mounted)
{
	put("/proc/self/mountinfo", CGROUP2_LINE);
	cr_expect_eq(sl_feature_require_at(&env, NULL), 0);
	cr_expect_eq(sl_probe_bpffs(&run, NULL, value), SL_FEATURE_YES);
	cr_expect(strstr(value, "will be mounted"));
}

Test(feature, bpffs_elsewhere_does_not_count)
{
	put("/proc/self/mountinfo", CGROUP2_LINE "32 25 0:28 / /mnt/bpf rw - bpf bpf rw\n");
	put("/proc/filesystems", "nodev\tsysfs\n");
	expect(ENODEV, "no bpf file system", "CONFIG_BPF_SYSCALL=y");
	drop("/sys/fs/bpf");
	expect(ENODEV, "there is no /sys/fs/bpf", "bind /sys/fs/bpf");
}

Test(feature, cause_comes_first_where_several_are)
{
	put("/proc/self/status", "CapEff:\t0\n");
	drop("/sys/kernel/btf/vmlinux");
	expect(EPERM, "not enough privilege", "as root");
}

Test(feature, cgroup2_place)
{
	cr_expect_eq(sl_probe_cgroup2(&run, NULL, value), SL_FEATURE_YES);
	cr_expect_str_eq(value, "/sys/fs/cgroup (unified)");
	put("/proc/self/mountinfo",
	    CGROUP1_LINE "33 25 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	cr_expect_eq(sl_probe_cgroup2(&run, NULL, value), SL_FEATURE_YES);
	cr_expect_str_eq(value, "/sys/fs/cgroup/unified (hybrid)");
}

Test(feature, value_from_a_file_is_escaped)
{
	put("/proc/self/mountinfo", "30 25 0:26 / /a\x1b[31mb rw - cgroup2 cgroup2 rw\n");
	cr_expect_eq(sl_probe_cgroup2(&run, NULL, value), SL_FEATURE_YES);
	cr_expect_not(strchr(value, '\x1b'));
}

Test(feature, security_modules)
{
	cr_expect_eq(sl_probe_lsm(&run, "bpf", value), SL_FEATURE_UNKNOWN);
	put("/sys/kernel/security/lsm", "lockdown,capability,landlock,bpf\n");
	cr_expect_eq(sl_probe_lsm(&run, "bpf", value), SL_FEATURE_YES);
	cr_expect_eq(sl_probe_lsm(&run, "apparmor", value), SL_FEATURE_NO);
	cr_expect_eq(sl_probe_lsm(&run, "bp", value), SL_FEATURE_NO);
}

Test(feature, jit)
{
	put("/proc/sys/net/core/bpf_jit_enable", "0\n");
	cr_expect_eq(sl_probe_jit(&run, NULL, value), SL_FEATURE_NO);
	put("/proc/sys/net/core/bpf_jit_enable", "2\n");
	cr_expect_eq(sl_probe_jit(&run, NULL, value), SL_FEATURE_YES);
	drop("/proc/sys/net/core/bpf_jit_enable");
	cr_expect_eq(sl_probe_jit(&run, NULL, value), SL_FEATURE_YES);
}

/* Without privilege nothing is loaded, and nothing is claimed. */
Test(feature, probe_without_privilege_claims_nothing)
{
	struct sl_feature rows[128];
	size_t count = sl_feature_count();

	put("/proc/self/status", "CapEff:\t0\n");
	cr_assert_leq(count, sizeof(rows) / sizeof(rows[0]));
	sl_feature_probe(&env, rows);
	cr_expect(sl_feature_missing(rows, count));
	for (size_t i = 0; i < count; i++) {
		cr_expect_lt(rows[i].state, SL_FEATURE_STATE_MAX);
		cr_expect_eq(!rows[i].consequence, rows[i].state == SL_FEATURE_YES, "%s",
			     rows[i].name);
		if (rows[i].need == SL_FEATURE_REQUIRED && rows[i].state != SL_FEATURE_YES)
			cr_expect(rows[i].next_step, "%s has no next step", rows[i].name);
		if (!strncmp(rows[i].name, "map-", 4))
			cr_expect_eq(rows[i].state, SL_FEATURE_UNKNOWN, "%s", rows[i].name);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(rows[i].name, rows[j].name);
	}
}

Test(feature, only_required_ones_are_missing)
{
	struct sl_feature rows[] = {
		{ .need = SL_FEATURE_REQUIRED, .state = SL_FEATURE_YES },
		{ .need = SL_FEATURE_OPTIONAL, .state = SL_FEATURE_NO },
		{ .need = SL_FEATURE_LATER, .state = SL_FEATURE_UNKNOWN },
	};

	cr_expect_not(sl_feature_missing(rows, 3));
	rows[0].state = SL_FEATURE_UNKNOWN;
	cr_expect(sl_feature_missing(rows, 3));
}
