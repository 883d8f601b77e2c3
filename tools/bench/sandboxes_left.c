/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sandboxes_left.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "guard/guard.h"
#include "proc.h"

#define SETTLE_MS 10000
#define LOOK_MS 100

static const char *const names[SL_LEFT_MAX] = {
#define X(name, text, map) text,
	SL_LEFT_MAPS(X)
#undef X
		"guards",
	"sandboxes",
	"closed sockets",
	"pins",
	"cgroup entries",
	"state files",
	"descriptors of the worker",
	"descriptors of the keeper",
};

static const enum sl_map maps[] = {
#define X(name, text, map) map,
	SL_LEFT_MAPS(X)
#undef X
};

static int add_sandbox(const struct sl_sandbox *sandbox, void *sum)
{
	(void)sandbox;
	++*(long long *)sum;
	return 0;
}

static int add_closed(const struct sl_sock *sock, void *sum)
{
	(void)sock;
	++*(long long *)sum;
	return 0;
}

static long long guards(struct sl_set *set)
{
	static const struct sl_guard none;
	struct sl_guard guard;
	long long sum = 0;

	for (unsigned int id = 1; id < SL_SANDBOX_MAX; id++)
		sum += !sl_guard_read(set, id, &guard) && memcmp(&guard, &none, sizeof(guard)) != 0;
	return sum;
}

static int count(struct sl_left *out, struct sl_set *set, const struct sl_daemon *d,
		 const struct sl_world *world)
{
	pid_t worker = sl_daemon_worker(d);
	int rc;

	*out = (struct sl_left){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		out->n[i] = sl_map_count_rows(sl_set_map_fd(set, maps[i]));
		if (out->n[i] < 0)
			return (int)out->n[i];
	}
	out->n[SL_LEFT_GUARDS] = guards(set);
	rc = sl_sandbox_each(set, add_sandbox, &out->n[SL_LEFT_SANDBOXES]);
	rc = rc ?: sl_closed_each(set, add_closed, &out->n[SL_LEFT_CLOSED]);
	out->n[SL_LEFT_PINS] = sl_dir_entries(d->set_dir);
	out->n[SL_LEFT_CGROUP] = sl_dir_entries(world->cgroup);
	out->n[SL_LEFT_STATE] = sl_dir_entries(d->state);
	out->n[SL_LEFT_WORKER_FDS] = sl_proc_fds(worker);
	out->n[SL_LEFT_KEEPER_FDS] = sl_proc_fds(d->keeper.pid);
	out->worker_bytes = sl_proc_own_bytes(worker);
	out->keeper_bytes = sl_proc_own_bytes(d->keeper.pid);
	return rc;
}

int sl_left_read(struct sl_left *out, const struct sl_daemon *daemon, const struct sl_world *world,
		 const struct sl_left *base, struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	int64_t end_ms = sl_monotonic_ms() + SETTLE_MS;
	struct sl_left before = { 0 };
	int rc = sl_set_open(&set, daemon->set_dir, err);

	if (rc)
		return rc;
	do {
		poll(NULL, 0, LOOK_MS);
		rc = count(out, set, daemon, world);
		/* Without a base: what does not change any more. */
		if (rc || !memcmp(out->n, base ? base->n : before.n, sizeof(out->n)))
			break;
		before = *out;
	} while (sl_monotonic_ms() < end_ms && !sl_world_stopped());
	return rc ? sl_err_sys(err, -rc, "can't count what is left") : 0;
}

void sl_left_report(struct sl_report *report, const struct sl_left *base, const struct sl_left *end)
{
	char name[96];

	for (unsigned int i = 0; i < SL_LEFT_MAX; i++) {
		sl_report_row(report, "left", names[i]);
		sl_report_int(report, "early", base->n[i]);
		sl_report_int(report, "end", end->n[i]);
		snprintf(name, sizeof(name), "%s: end - early", names[i]);
		sl_report_equal(report, name, end->n[i] - base->n[i], 0);
	}
}
