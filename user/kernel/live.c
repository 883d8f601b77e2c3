/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The check as a whole: opens the set, asks each part, sums up. */
#include "kernel/live.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/live_private.h"
#include "kernel/proxy.h"

const char *const sl_condition_status_words[SL_CONDITION_STATUS_MAX] = { "Unknown", "True",
									 "False" };

void sl_condition_set(struct sl_condition *condition, enum sl_condition_status status,
		      const char *reason, const char *fmt, ...)
{
	va_list args;

	condition->status = status;
	condition->reason = reason;
	va_start(args, fmt);
	vsnprintf(condition->message, sizeof(condition->message), fmt, args);
	va_end(args);
}

/* A condition of this type; NULL when there is no memory. */
static struct sl_condition *condition_new(struct sl_live *live, unsigned int sandbox,
					  const char *type)
{
	struct sl_condition *condition = sl_array_add(&live->conditions);

	if (condition) {
		condition->sandbox = sandbox;
		condition->type = type;
		condition->reason = "NotChecked";
	}
	return condition;
}

static int add_sandbox(const struct sl_sandbox *sandbox, void *arg)
{
	struct sl_live *live = arg;
	struct sl_live_sandbox *row = sl_array_add(&live->sandboxes);

	if (!row)
		return -ENOMEM;
	row->row = *sandbox;
	row->row.name[sizeof(row->row.name) - 1] = '\0';
	row->row.cgroup[sizeof(row->row.cgroup) - 1] = '\0';
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct sl_live_sandbox *x = a, *y = b;

	return (x->row.id > y->row.id) - (x->row.id < y->row.id);
}

static struct sl_live_sandbox *find_sandbox(const struct sl_live *live, unsigned int id)
{
	const struct sl_live_sandbox key = { .row.id = id };

	if (!live->sandboxes.count)
		return NULL;
	return bsearch(&key, live->sandboxes.data, live->sandboxes.count, sizeof(key), by_id);
}

static int count_process(const struct sl_process *process, void *arg)
{
	struct sl_live_sandbox *row = find_sandbox(arg, process->sandbox);

	if (row)
		row->processes++;
	return 0;
}

static int count_sock(const struct sl_sock *sock, void *arg)
{
	struct sl_live_sandbox *row = find_sandbox(arg, sock->owner.sandbox);

	if (row)
		row->sockets++;
	return 0;
}

static int collect(struct sl_live *live, struct sl_set *set)
{
	int rc = sl_sandbox_each(set, add_sandbox, live);

	if (rc || !live->sandboxes.count)
		return rc;
	qsort(live->sandboxes.data, live->sandboxes.count, live->sandboxes.item, by_id);
	live->attached = true;
	rc = sl_procs_each(set, count_process, live);
	return rc ? rc : sl_socks_each(set, count_sock, live);
}

/* True when the condition holds; one that doesn't leaves nothing live. */
static bool holds(const struct sl_condition *condition)
{
	return condition->status == SL_CONDITION_TRUE;
}

static int check_sandbox(struct sl_live *live, struct sl_set *set, struct sl_live_sandbox *row,
			 const char *mount, const struct sl_live_options *options)
{
	const struct sl_sandbox *sandbox = &row->row;
	char path[2 * PATH_MAX];
	struct sl_condition *condition;

	snprintf(path, sizeof(path), "%s%s", mount,
		 strcmp(sandbox->cgroup, "/") ? sandbox->cgroup : "");
	condition = condition_new(live, sandbox->id, "CgroupPresent");
	if (!condition)
		return -ENOMEM;
	sl_live_cgroup(sandbox, path, condition);
	row->live = holds(condition);
	condition = condition_new(live, sandbox->id, "LinksAttached");
	if (!condition)
		return -ENOMEM;
	sl_live_cgroup_links(set, sandbox, condition);
	/* Without the cgroup there is nothing that a canary could enter. */
	if (options->no_canary || !row->live) {
		row->live = row->live && holds(condition);
		return 0;
	}
	row->live = holds(condition);
	condition = condition_new(live, sandbox->id, "Recording");
	if (!condition)
		return -ENOMEM;
	sl_live_canary(set, sandbox, path, options->timeout_ms, condition);
	row->live = row->live && holds(condition);
	return 0;
}

static int add_bad_proxy(const struct sl_proxy_info *info, void *arg)
{
	struct sl_condition *condition = arg;

	if (info->state != SL_PROXY_ATTACHED)
		sl_condition_set(condition, SL_CONDITION_FALSE, "ProxyDetached",
				 "cgroup %llu of a proxy: %s; 'sluice proxy detach %llu' tidies up",
				 info->cgroup_id, sl_proxy_state_names[info->state],
				 info->cgroup_id);
	else if (condition->status == SL_CONDITION_UNKNOWN)
		sl_condition_set(condition, SL_CONDITION_TRUE, "AllAttached",
				 "proxies learn where to");
	return 0;
}

static int count_proxy(const struct sl_proxy_info *info, void *arg)
{
	(void)info;
	++*(unsigned int *)arg;
	return 0;
}

/* No sandbox is less enforced for want of one: a proxy that does not learn where to. */
static int check_proxies(struct sl_live *live, struct sl_set *set)
{
	struct sl_condition *condition;
	unsigned int count = 0;
	int rc = sl_proxy_each(set, count_proxy, &count);

	if (rc || !count)
		return rc;
	condition = condition_new(live, 0, "ProxiesAttached");
	return condition ? sl_proxy_each(set, add_bad_proxy, condition) : -ENOMEM;
}

static int check_faults(struct sl_live *live, struct sl_set *set)
{
	struct sl_condition *condition = condition_new(live, 0, "FaultFree");
	int rc = condition ? sl_live_faults(set, 0, SL_LIVE_ATTACHED, &live->faults) : -ENOMEM;

	if (rc)
		return rc;
	if (live->faults.count)
		sl_condition_set(condition, SL_CONDITION_FALSE, "FaultsCounted",
				 "%zu fault counters are not zero: some records are incomplete",
				 live->faults.count);
	else
		sl_condition_set(condition, SL_CONDITION_TRUE, "NoFaults",
				 "no map was full, no event was lost");
	return 0;
}

static int check_set(struct sl_live *live, struct sl_set *set,
		     const struct sl_live_options *options, struct sl_err *err)
{
	struct sl_condition *condition = condition_new(live, 0, "Compatible");
	char mount[PATH_MAX];
	bool tracepoints;
	int rc = sl_cgroup_mount(mount, sizeof(mount), err);

	if (rc)
		return rc;
	if (!condition)
		return -ENOMEM;
	sl_condition_set(condition, SL_CONDITION_TRUE, "SchemaEqual", "schema %d", SL_SCHEMA);
	condition = condition_new(live, 0, "TracepointsAttached");
	if (!condition)
		return -ENOMEM;
	sl_live_tracepoints(set, condition);
	tracepoints = holds(condition);
	live->live = tracepoints;
	for (size_t i = 0; i < live->sandboxes.count; i++) {
		struct sl_live_sandbox *row = sl_array_at(&live->sandboxes, i);

		rc = check_sandbox(live, set, row, mount, options);
		if (rc)
			return rc;
		/* Without its tracepoints no sandbox is whole. */
		row->live = row->live && tracepoints;
		live->live = live->live && row->live;
	}
	rc = check_proxies(live, set);
	return rc ? rc : check_faults(live, set);
}

/*
 * A set that can't be opened: none (*err is cleared), one of another schema, or pins that
 * somebody took away while others still record.
 */
static int check_unopened(struct sl_live *live, const char *dir, int rc, struct sl_err *err)
{
	struct sl_condition *condition;

	if (rc == -ENOENT && access(dir, F_OK)) {
		*err = (struct sl_err){ 0 };
		return 0;
	}
	if (rc != -ENOENT && rc != -EPROTO)
		return rc;
	condition = condition_new(live, 0, "Compatible");
	if (!condition)
		return sl_err_sys(err, ENOMEM, "checking '%s'", dir);
	live->attached = true;
	if (rc == -EPROTO)
		sl_condition_set(condition, SL_CONDITION_FALSE, "SchemaDiffers", "%.200s",
				 err->text);
	else
		sl_condition_set(condition, SL_CONDITION_FALSE, "PinsMissing",
				 "'%.120s' is there but lacks maps: it is being made right now, or "
				 "damaged",
				 dir);
	*err = (struct sl_err){ 0 };
	return 0;
}

int sl_live_check(struct sl_live *live, const char *dir, const struct sl_live_options *options,
		  struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	struct sl_err why = { 0 };
	int rc;

	*live = (struct sl_live){
		.sandboxes = SL_ARRAY(struct sl_live_sandbox),
		.conditions = SL_ARRAY(struct sl_condition),
		.faults = SL_ARRAY(struct sl_live_fault),
	};
	rc = sl_set_open(&set, dir, &why);
	if (rc) {
		rc = check_unopened(live, dir, rc, &why);
		if (rc && err)
			*err = why;
		return rc;
	}
	rc = collect(live, set);
	if (rc)
		return sl_err_sys(err, -rc, "reading the set at '%s'", dir);
	if (!live->attached)
		return 0;
	rc = check_set(live, set, options, &why);
	if (rc && err)
		*err = why;
	if (rc && !why.code)
		sl_err_sys(err, -rc, "checking the set at '%s'", dir);
	return rc;
}

void sl_live_free(struct sl_live *live)
{
	if (!live)
		return;
	sl_array_free(&live->sandboxes);
	sl_array_free(&live->conditions);
	sl_array_free(&live->faults);
}
