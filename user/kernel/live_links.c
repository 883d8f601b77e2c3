/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares pinned links with what must be attached. A pin alone proves nothing: the link
 * of a cgroup that was removed stays, attached to nothing, and a new cgroup at the same
 * path has none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/live_private.h"
#include "kernel/set_private.h"

/* What is wrong with the first bad link, and how many are bad. */
struct findings {
	unsigned int checked;
	unsigned int bad;
	char first[160];
};

static void found(struct findings *findings, const char *name, const char *what)
{
	if (!findings->bad++)
		snprintf(findings->first, sizeof(findings->first), "%s %s", name, what);
}

int sl_link_info(const char *path, struct bpf_link_info *info)
{
	_cleanup_fd_ int fd = bpf_obj_get(path);
	__u32 len = sizeof(*info);

	if (fd < 0)
		return -errno;
	memset(info, 0, sizeof(*info));
	return bpf_obj_get_info_by_fd(fd, info, &len) ? -errno : 0;
}

int sl_program_id(const struct sl_set *set, const char *name, __u32 *id)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_PROGS, name);

	if (rc)
		return rc;
	fd = bpf_obj_get(path);
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return -errno;
	*id = info.id;
	return 0;
}

/* True when the program of that id was loaded as `name` (cut to the kernel's 15 bytes). */
static bool program_named(__u32 id, const char *name)
{
	struct bpf_prog_info info = {};
	__u32 len = sizeof(info);
	_cleanup_fd_ int fd = bpf_prog_get_fd_by_id(id);

	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
	       !strncmp(info.name, name, sizeof(info.name) - 1);
}

static void check_tracepoint(const struct sl_set *set, const char *name, struct findings *findings)
{
	struct bpf_link_info info = {};
	char path[PATH_MAX], program[64];
	int rc = sl_set_path(path, set->dir, SL_SET_LINKS, name);

	findings->checked++;
	snprintf(program, sizeof(program), "enter_%s", name);
	rc = rc ? rc : sl_link_info(path, &info);
	if (rc)
		found(findings, name, rc == -ENOENT ? "has no pin" : strerror(-rc));
	else if (info.type != BPF_LINK_TYPE_TRACING && info.type != BPF_LINK_TYPE_RAW_TRACEPOINT)
		found(findings, name, "is pinned to something else");
	else if (!program_named(info.prog_id, program))
		found(findings, name, "runs another program");
}

void sl_live_tracepoints(const struct sl_set *set, struct sl_condition *condition)
{
	struct findings findings = { 0 };

	for (unsigned int i = 0; i < sl_tracepoint_count; i++)
		/* Where bytes are counted by packet, the optional ones are not attached. */
		if (!sl_tracepoints[i].optional || !set->count_skb)
			check_tracepoint(set, sl_tracepoints[i].name, &findings);
	if (findings.bad)
		sl_condition_set(condition, SL_CONDITION_FALSE, "TracepointMissing",
				 "%u of %u: tracepoint %s; detach all sandboxes and attach again",
				 findings.bad, findings.checked, findings.first);
	else
		sl_condition_set(condition, SL_CONDITION_TRUE, "AllAttached", "%u tracepoints",
				 findings.checked);
}

void sl_live_cgroup(const struct sl_sandbox *sandbox, const char *path,
		    struct sl_condition *condition)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id;
	struct sl_err err = { 0 };
	int rc = sl_cgroup_open(&fd, path, &err);

	if (rc == -ENOENT) {
		sl_condition_set(condition, SL_CONDITION_FALSE, "CgroupGone",
				 "the cgroup was removed; 'sluice sandbox detach %u' tidies up",
				 sandbox->id);
		return;
	}
	rc = rc ? rc : sl_cgroup_id(&id, fd);
	if (rc)
		sl_condition_set(condition, SL_CONDITION_UNKNOWN, "CgroupUnreadable", "%.200s",
				 err.code ? err.text : strerror(-rc));
	else if (id != sandbox->cgroup_id)
		sl_condition_set(
			condition, SL_CONDITION_FALSE, "CgroupReplaced",
			"not recorded: the cgroup was replaced (id %llu, attached was %llu); "
			"'sluice sandbox detach %u', then attach again",
			id, (unsigned long long)sandbox->cgroup_id, sandbox->id);
	else
		sl_condition_set(condition, SL_CONDITION_TRUE, "SameCgroup", "id %llu", id);
}

static void check_cgroup_link(const struct sl_set *set, const struct sl_sandbox *sandbox,
			      const struct sl_cgroup_prog *prog, struct findings *findings)
{
	struct bpf_link_info info = {};
	char path[PATH_MAX], sub[32];
	__u32 expected = 0;
	int rc;

	findings->checked++;
	snprintf(sub, sizeof(sub), SL_SET_SANDBOXES "/%u", sandbox->id);
	rc = sl_set_path(path, set->dir, sub, prog->name);
	rc = rc ? rc : sl_link_info(path, &info);
	if (rc)
		found(findings, prog->name, rc == -ENOENT ? "has no pin" : strerror(-rc));
	else if (info.type != BPF_LINK_TYPE_CGROUP || info.cgroup.attach_type != prog->type)
		found(findings, prog->name, "is pinned to something else");
	else if (!info.cgroup.cgroup_id)
		found(findings, prog->name, "is attached to nothing: its cgroup is gone");
	else if (info.cgroup.cgroup_id != sandbox->cgroup_id)
		found(findings, prog->name, "is attached to another cgroup");
	else if (sl_program_id(set, prog->name, &expected))
		found(findings, prog->name, "can't be compared: the set's program has no pin");
	else if (expected != info.prog_id)
		found(findings, prog->name, "runs another program");
}

/* The escape guard's: to the root, whose id is the only one that every path leads to. */
static void check_root_link(const struct sl_set *set, const struct sl_cgroup_prog *prog,
			    struct findings *findings)
{
	struct bpf_link_info info = {};
	char path[PATH_MAX];
	int rc = sl_set_path(path, set->dir, SL_SET_LINKS, prog->name);

	findings->checked++;
	rc = rc ? rc : sl_link_info(path, &info);
	if (rc)
		found(findings, prog->name, rc == -ENOENT ? "has no pin" : strerror(-rc));
	else if (info.type != BPF_LINK_TYPE_CGROUP || info.cgroup.attach_type != prog->type)
		found(findings, prog->name, "is pinned to something else");
	else if (!info.cgroup.cgroup_id)
		found(findings, prog->name, "is attached to nothing");
}

void sl_live_cgroup_links(const struct sl_set *set, const struct sl_sandbox *sandbox,
			  struct sl_condition *condition)
{
	struct findings findings = { 0 };
	struct sl_guard guard = { 0 };
	__u32 id = sandbox->id;

	(void)sl_map_lookup(set->maps[SL_MAP_GUARDS], &id, &guard);
	for (unsigned int i = 0; i < sl_cgroup_prog_count; i++) {
		enum sl_prog_when when = sl_cgroup_progs[i].when;

		if (when == SL_PROG_ALWAYS || (when == SL_PROG_COUNT_SKB && set->count_skb) ||
		    (when == SL_PROG_REDIRECT && (guard.flags & (SL_GUARD_DNS | SL_GUARD_PROXY))) ||
		    (when == SL_PROG_GUARD && guard.mode != SL_GUARD_OBSERVE))
			check_cgroup_link(set, sandbox, &sl_cgroup_progs[i], &findings);
		else if (when == SL_PROG_ROOT && guard.mode != SL_GUARD_OBSERVE)
			check_root_link(set, &sl_cgroup_progs[i], &findings);
	}
	if (findings.bad)
		sl_condition_set(condition, SL_CONDITION_FALSE, "LinkMissing",
				 "%u of %u: %s; 'sluice sandbox detach %u', then attach again",
				 findings.bad, findings.checked, findings.first, sandbox->id);
	else
		sl_condition_set(condition, SL_CONDITION_TRUE, "AllAttached", "%u links",
				 findings.checked);
}
