// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/contain.h"

#include <errno.h>
#include <grp.h>
#include <mntent.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "broker/caps.h"
#include "broker/landlock.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

static void say(struct sl_contain_plan *plan, const char *text)
{
	if (plan->line_count < SL_CONTAIN_LINES)
		snprintf(plan->lines[plan->line_count++], sizeof(plan->lines[0]), "%s", text);
}

bool sl_contain_is_network(int fd)
{
	socklen_t len = sizeof(int);
	int domain;

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) && domain != AF_UNIX &&
	       domain != AF_NETLINK;
}

static int check_fds(const struct sl_contain_options *options, struct sl_err *err)
{
	for (int fd = 0; fd <= STDERR_FILENO; fd++) {
		if (options->pass_socket || !sl_contain_is_network(fd))
			continue;
		sl_err_set(err, EPERM, "descriptor %d is a network socket that nobody mediated",
			   fd);
		return sl_err_hint(err, "redirect it, or give --pass-socket to hand it over");
	}
	return 0;
}

/*
 * Where root can write to cgroups and pins, to the memory of others, and to settings by which
 * the kernel executes a file outside of all sandboxes (core_pattern, modprobe, uevent_helper).
 */
static bool is_protected(const char *type)
{
	static const char *const types[] = { "cgroup", "cgroup2", "bpf", "proc", "sysfs" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

static int find_mounts(struct sl_contain_plan *plan, struct sl_err *err)
{
	FILE *file = setmntent("/proc/self/mounts", "re");
	struct mntent entry, *mount;
	char text[PATH_MAX + 1024];
	int ret = 0;

	if (!file)
		return sl_err_sys(err, errno, "can't read the table of mounts");
	while (!ret && (mount = getmntent_r(file, &entry, text, sizeof(text)))) {
		if (!is_protected(mount->mnt_type))
			continue;
		if (plan->path_count == SL_CONTAIN_PATHS ||
		    strlen(mount->mnt_dir) >= sizeof(plan->paths[0]))
			ret = sl_err_set(err, E2BIG,
					 "too many mounts of cgroupfs, bpffs, procfs and sysfs, or "
					 "at too long a path, to keep them all read-only");
		else
			snprintf(plan->paths[plan->path_count++], sizeof(plan->paths[0]), "%s",
				 mount->mnt_dir);
	}
	endmntent(file);
	return ret;
}

static int plan_domain(struct sl_contain_plan *plan, struct sl_err *err)
{
	uid_t uid = plan->options.change_user ? plan->options.uid : getuid();
	int abi = sl_landlock_abi();

	if (abi < SL_LANDLOCK_REFER && plan->options.strict) {
		sl_err_set(err, ENOTSUP,
			   "a policy with `strict` binaries needs Landlock, which "
			   "this kernel lacks or has in a version that is too old");
		return sl_err_hint(err, "leave `strict` out: nothing else keeps /proc/PID/mem of "
					"these binaries from being written to");
	}
	if (abi < SL_LANDLOCK_REFER) {
		plan->domain = SL_DOMAIN_NONE;
		say(plan,
		    "NOT contained: this kernel's Landlock is missing or too old, so processes "
		    "outside of the same user can be traced");
		return 0;
	}
	say(plan, "tracing processes outside, taking their descriptors and memory (Landlock)");
	if (plan->options.strict)
		say(plan, "tracing among its own processes (strict binaries)");
	if (!uid || plan->options.strict) {
		plan->domain = SL_DOMAIN_FILES_READ_ONLY;
		say(plan,
		    "writing to procfs, sysfs, cgroupfs and bpffs, mount(), and new entries in "
		    "the directories above those, / among them");
		if (abi >= SL_LANDLOCK_SCOPES)
			say(plan, "signals to processes outside");
		return find_mounts(plan, err);
	}
	plan->domain = abi >= SL_LANDLOCK_SCOPES ? SL_DOMAIN_SCOPE : SL_DOMAIN_FILES;
	say(plan, plan->domain == SL_DOMAIN_SCOPE ? "signals to processes outside"
						  : "mount() in user namespaces");
	return 0;
}

int sl_contain_plan(struct sl_contain_plan *out, const struct sl_contain_options *options,
		    struct sl_err *err)
{
	struct sl_contain_plan plan = { .options = *options };
	char names[200], line[256];
	int ret = check_fds(options, err);

	if (ret)
		return ret;
	say(&plan, "descriptors above 2");
	say(&plan, "new privileges by set-user-ID programs (no_new_privs)");
	sl_caps_names(names, sizeof(names));
	snprintf(line, sizeof(line), "capabilities: %s", names);
	say(&plan, line);
	ret = plan_domain(&plan, err);
	if (!ret)
		*out = plan;
	return ret;
}

static int become(const struct sl_contain_options *options, struct sl_err *err)
{
	if (!options->change_user)
		return 0;
	if (options->name ? initgroups(options->name, options->gid) : setgroups(0, NULL))
		return sl_err_sys(err, errno, "can't set the groups");
	if (setresgid(options->gid, options->gid, options->gid) ||
	    setresuid(options->uid, options->uid, options->uid))
		return sl_err_sys(err, errno, "can't become user %u", options->uid);
	return 0;
}

static int enter_domain(const struct sl_contain_plan *plan, struct sl_err *err)
{
	const char *paths[SL_CONTAIN_PATHS];

	for (unsigned int i = 0; i < plan->path_count; i++)
		paths[i] = plan->paths[i];
	switch (plan->domain) {
	case SL_DOMAIN_NONE:
		return 0;
	case SL_DOMAIN_SCOPE:
		return sl_landlock_scope(err);
	case SL_DOMAIN_FILES:
	case SL_DOMAIN_FILES_READ_ONLY:
		return sl_landlock_read_only(paths, plan->path_count, err);
	}
	return sl_err_set(err, EINVAL, "unknown domain");
}

int sl_contain_apply(const struct sl_contain_plan *plan, struct sl_err *err)
{
	int ret;

	/* Not closed yet: the caller's own are needed up to the exec. */
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC))
		return sl_err_sys(err, errno, "can't close the descriptors above 2");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return sl_err_sys(err, errno, "can't set no_new_privs");
	/* As root, which reads every directory on the way. */
	ret = enter_domain(plan, err);
	/* The bounding set while CAP_SETPCAP is there, the rest after the change of user. */
	if (!ret)
		ret = sl_caps_unbound(err);
	if (!ret)
		ret = become(&plan->options, err);
	if (!ret)
		ret = sl_caps_drop(err);
	return ret;
}
