// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What refers to executables and lineages, from where references begin to where they end. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kernel/set_private.h"
#include "kernel/sweep_private.h"

struct gather {
	struct sl_set *set;
	sl_ref_fn mark;
	void *arg;
	unsigned int sandbox; /* whose references; 0: all */
	struct sl_htab *seen; /* cookies of sockets that were there at the start */
	bool sandboxes[SL_SANDBOX_MAX];
	/*
	 * The start is when the counters are read: between these two. What came or went
	 * just then is left out of `seen`, so that a doubt is taken for one not seen.
	 */
	__u64 before_ns;
	__u64 after_ns;
	__s64 expected; /* sockets with a storage of their own at the start */
};

void sl_sweep_marks_free(struct sl_sweep_marks *marks)
{
	sl_htab_free(&marks->exes);
	sl_htab_free(&marks->lineages);
}

int sl_sweep_marks_new(struct sl_sweep_marks *marks)
{
	int rc;

	*marks = (struct sl_sweep_marks){ 0 };
	rc = sl_htab_new(&marks->exes, sizeof(__u32), 0);
	return rc ?: sl_htab_new(&marks->lineages, sizeof(__u32), 1);
}

int sl_sweep_mark(unsigned int lineage, unsigned int exe, unsigned int script, void *arg)
{
	struct sl_sweep_marks *marks = arg;

	if (!sl_htab_add(marks->lineages, &lineage, NULL) ||
	    !sl_htab_add(marks->exes, &exe, NULL) || !sl_htab_add(marks->exes, &script, NULL))
		return -ENOMEM;
	return 0;
}

static int mark(struct gather *g, unsigned int sandbox, unsigned int lineage, unsigned int exe,
		unsigned int script)
{
	return g->sandbox && sandbox != g->sandbox ? 0 : g->mark(lineage, exe, script, g->arg);
}

static int mark_owner(struct gather *g, const struct sl_owner *owner)
{
	return mark(g, owner->sandbox, owner->lineage, owner->exe, owner->script);
}

static int mark_sock(struct gather *g, const struct sl_sock *sock)
{
	int rc = mark_owner(g, &sock->owner);

	return rc ?: mark_owner(g, &sock->peer);
}

/* --- processes --- */

static int mark_process(const struct sl_process *process, void *arg)
{
	struct gather *g = arg;

	return mark(g, process->sandbox, process->lineage, process->exe, process->script);
}

/* By their storage, since a full map of processes lacks some; then by the map. */
static int gather_processes(struct gather *g)
{
	_cleanup_fd_ int fd = sl_iter_open(g->set, "dump_members");
	struct sl_iter_member member;
	int rc;

	if (fd < 0)
		return fd;
	while ((rc = sl_iter_read(fd, &member, sizeof(member))) > 0) {
		rc = mark(g, member.sandbox, member.lineage, member.exe, member.script);
		if (rc)
			return rc;
	}
	return rc ? rc : sl_procs_each(g->set, mark_process, g);
}

/* --- tuples, further owners, AF_PACKET sockets --- */

static int gather_tuple(const void *tuple, void *value, void *arg)
{
	const struct sl_tuple_owner *tuple_owner = value;

	(void)tuple;
	return mark_owner(arg, &tuple_owner->owner);
}

static int gather_tuples(struct gather *g)
{
	return sl_map_each(g->set->maps[SL_MAP_TUPLES], gather_tuple, g);
}

static int gather_further(const void *cookie, void *value, void *arg)
{
	const struct sl_sock_more *more = value;
	int rc = mark_owner(arg, &more->opener);

	(void)cookie;
	return rc ?: mark_owner(arg, &more->user);
}

static int gather_more(struct gather *g)
{
	return sl_map_each(g->set->maps[SL_MAP_SOCK_MORE], gather_further, g);
}

static int gather_packet(const void *cookie, void *value, void *arg)
{
	(void)cookie;
	return mark_sock(arg, value);
}

static int gather_packets(struct gather *g)
{
	return sl_map_each(g->set->maps[SL_MAP_PACKETS], gather_packet, g);
}

/* --- sockets, and whether all were seen --- */

/* One of those that the counters told of at the start. */
static int note_seen(struct gather *g, const struct sl_sock *sock)
{
	__u32 sandbox = sock->owner.sandbox;

	if (!(sock->flags & SL_SOCK_ADOPTED) || sock->since_ns > g->before_ns ||
	    sandbox >= SL_SANDBOX_MAX || !g->sandboxes[sandbox])
		return 0;
	return sl_htab_add(g->seen, &sock->cookie, NULL) ? 0 : -ENOMEM;
}

static int gather_holder(const struct sl_sock *sock, const struct sl_iter_sock *now, void *arg)
{
	struct gather *g = arg;
	int rc = mark_sock(g, sock);

	rc = rc
		     ?: mark(g, now->holder_sandbox, now->holder_lineage, now->holder_exe,
			     now->holder_script);
	return rc || !g->seen ? rc : note_seen(g, sock);
}

/* Open or closed. An adopted one that is found here was closed. */
static int gather_row(const struct sl_sock *sock, void *arg)
{
	struct gather *g = arg;
	int rc = mark_sock(g, sock);

	if (rc || !g->seen || sock->closed_ns <= g->after_ns)
		return rc;
	return note_seen(g, sock);
}

static int add_sandbox(const struct sl_sandbox *sandbox, void *arg)
{
	struct gather *g = arg;
	struct sl_counters counters;
	int rc = sl_counters_read(g->set, sandbox->id, &counters);

	if (rc)
		return rc;
	if (sandbox->id < SL_SANDBOX_MAX)
		g->sandboxes[sandbox->id] = true;
	/* All other records are in maps; of these some may wait to be accepted. */
	g->expected += counters.n[SL_COUNTER_SOCK_ADOPTED] - counters.n[SL_COUNTER_ADOPTED_ENDED];
	return 0;
}

static int gather_start(struct gather *g)
{
	int rc;

	g->before_ns = sl_boottime_ns();
	rc = sl_sandbox_each(g->set, add_sandbox, g);
	g->after_ns = sl_boottime_ns();
	return rc;
}

/* Each of those there at the start was either met, or closed and met among the rows. */
static int gather_check(const struct gather *g)
{
	return (__s64)sl_htab_count(g->seen) < g->expected ? -EAGAIN : 0;
}

int sl_sweep_gather(struct sl_set *set, struct sl_sweep_marks *marks)
{
	_cleanup_(sl_htab_free) struct sl_htab *seen = NULL;
	struct gather g = { .set = set, .mark = sl_sweep_mark, .arg = marks };
	int rc = sl_htab_new(&seen, sizeof(__u64), 0);

	g.seen = seen;
	rc = rc ?: gather_start(&g);
	rc = rc ?: gather_processes(&g);
	rc = rc ?: gather_tuples(&g);
	rc = rc ?: gather_more(&g);
	rc = rc ?: gather_packets(&g);
	rc = rc ?: sl_holders_each(set, gather_holder, &g);
	rc = rc ?: sl_sock_rows_each(set, gather_row, &g);
	return rc ? rc : gather_check(&g);
}

int sl_sandbox_refs(struct sl_set *set, unsigned int sandbox, sl_ref_fn fn, void *arg)
{
	struct gather g = { .set = set, .mark = fn, .arg = arg, .sandbox = sandbox };
	struct sl_counters counters;
	int rc = sl_counters_read(set, sandbox, &counters);

	rc = rc ?: gather_processes(&g);
	/* To look for sockets takes long, and one that is just attached has none. */
	if (rc || !(counters.n[SL_COUNTER_SOCK_CREATED] | counters.n[SL_COUNTER_SOCK_ADOPTED]))
		return rc;
	rc = gather_more(&g);
	rc = rc ?: gather_packets(&g);
	rc = rc ?: sl_holders_each(set, gather_holder, &g);
	return rc ?: sl_sock_rows_each(set, gather_row, &g);
}
