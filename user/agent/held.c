/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/held.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/htab.h"
#include "base/log.h"
#include "run/prepare.h"

/* A decision that takes longer is denied: the file system of a workload may never answer. */
#define DEADLINE_MS 30000

/* What a call is denied with for the sake of a freeze: again, then. */
#define DRAIN_ERRNO EAGAIN

/* Of a sandbox; goes with its last listener. */
struct row {
	struct sl_use *now, *next;
	unsigned int listeners;
};

struct sl_held {
	struct sl_keeper_link *link;
	struct sl_broker *broker;
	int event;
	uint64_t last_tag;
	atomic_ullong untold; /* refused sockets that could not be told */
	atomic_ullong unkept; /* files that were left out for want of room */
	pthread_mutex_t lock; /* over what follows */
	struct sl_htab *rows; /* group -> struct row */
	struct sl_array drained;
};

/* With the lock held. */
static struct row *find_row(const struct sl_held *held, uint64_t tag)
{
	uint64_t group = sl_broker_group(tag);

	return sl_htab_get(held->rows, &group);
}

/* --- in the broker's threads --- */

static bool at_once(void *ctx, uint64_t tag, enum sl_call_kind kind)
{
	struct sl_held *held = ctx;
	const struct row *row;
	bool plain;

	(void)kind;
	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	plain = !row || (!sl_use_files(row->now) && !sl_use_files(row->next));
	pthread_mutex_unlock(&held->lock);
	return plain;
}

static struct row row_get(struct sl_held *held, uint64_t tag)
{
	struct row out = { 0 };
	const struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	if (row)
		out = (struct row){ .now = sl_use_get(row->now), .next = sl_use_get(row->next) };
	pthread_mutex_unlock(&held->lock);
	return out;
}

static void row_put(struct row *row)
{
	sl_use_put(&row->now);
	sl_use_put(&row->next);
}

static void prepare(struct sl_held *held, const struct sl_use *use, const struct sl_call *call)
{
	const struct sl_prepare wanted = {
		.set = use->set->set,
		.sandbox = use->sandbox,
		.members = use->set->members,
		.files = sl_use_files(use),
	};

	if (call->kind == SL_HELD_SOCKET) {
		if (sl_prepare_refused(&wanted, call))
			atomic_fetch_add(&held->untold, 1);
	} else if (wanted.files && sl_prepare_files(&wanted, call)) {
		atomic_fetch_add(&held->unkept, 1);
	}
}

static void on_held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	struct sl_held *held = ctx;
	_cleanup_(row_put) struct row row = row_get(held, call->tag);

	answer->go_on = call->kind != SL_HELD_SOCKET;
	if (row.now)
		prepare(held, row.now, call);
	if (row.next && call->kind != SL_HELD_SOCKET)
		prepare(held, row.next, call);
}

static void on_fault(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code)
{
	(void)ctx;
	(void)tag;
	sl_log_error("broker: %s: task %d%s%s", sl_broker_kind_help(kind), tid, code ? ": " : "",
		     code ? strerror(code) : "");
}

static void drop_row(struct sl_held *held, uint64_t tag)
{
	uint64_t group = sl_broker_group(tag);
	struct row gone = { 0 };
	struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	if (row && !--row->listeners) {
		gone = *row;
		sl_htab_del(held->rows, &group);
	}
	pthread_mutex_unlock(&held->lock);
	row_put(&gone);
}

static void on_ended(void *ctx, uint64_t tag)
{
	struct sl_held *held = ctx;

	drop_row(held, tag);
	if (sl_keeper_drop(held->link, tag))
		sl_log_error("the keeper does not know the listener that has ended");
}

static void on_drained(void *ctx, uint64_t tag)
{
	struct sl_held *held = ctx;
	uint64_t *slot;

	pthread_mutex_lock(&held->lock);
	slot = sl_array_add(&held->drained);
	if (slot)
		*slot = tag;
	pthread_mutex_unlock(&held->lock);
	/* Without memory for it the drain takes its longest time. */
	eventfd_write(held->event, 1);
}

static void on_races(void *ctx, const struct sl_race_line *line)
{
	(void)ctx;
	sl_log_notice("races, all harmless: %s, %llu times", sl_broker_kind_help(line->kind),
		      (unsigned long long)line->count);
}

/* --- in the loop, and its jobs --- */

int sl_held_new(struct sl_held **out, struct sl_keeper_link *link, struct sl_err *err)
{
	_cleanup_(sl_held_free) struct sl_held *held = calloc(1, sizeof(*held));
	const struct sl_broker_options options = {
		.ops = { .at_once = at_once,
			 .held = on_held,
			 .fault = on_fault,
			 .ended = on_ended,
			 .drained = on_drained,
			 .races = on_races },
		.ctx = held,
		.inflight = sl_keeper_inflight(link),
		.deadline_ms = DEADLINE_MS,
	};
	int ret;

	if (!held)
		return sl_err_sys(err, ENOMEM, "mediation");
	held->link = link;
	held->drained = (struct sl_array)SL_ARRAY(uint64_t);
	pthread_mutex_init(&held->lock, NULL);
	held->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (held->event < 0)
		return sl_err_sys(err, errno, "mediation");
	ret = sl_htab_new(&held->rows, sizeof(uint64_t), sizeof(struct row));
	if (ret)
		return sl_err_sys(err, -ret, "mediation");
	ret = sl_broker_new(&held->broker, &options, err);
	if (ret)
		return ret;
	*out = TAKE_PTR(held);
	return 0;
}

void sl_held_free(struct sl_held **out)
{
	struct sl_held *held = TAKE_PTR(*out);
	void *row;

	if (!held)
		return;
	sl_broker_free(&held->broker);
	for (size_t at = 0; held->rows && sl_htab_next(held->rows, &at, NULL, &row);)
		row_put(row);
	sl_htab_free(&held->rows);
	sl_array_free(&held->drained);
	sl_cleanup_fd(&held->event);
	pthread_mutex_destroy(&held->lock);
	free(held);
}

static int add_row(struct sl_held *held, uint64_t tag, struct sl_use *use)
{
	uint64_t group = sl_broker_group(tag);
	struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag) ?: sl_htab_add(held->rows, &group, NULL);
	if (row && !row->listeners++)
		row->now = sl_use_get(use);
	pthread_mutex_unlock(&held->lock);
	return row ? 0 : -ENOMEM;
}

void sl_held_adopt(struct sl_held *held,
		   bool (*use_of)(void *ctx, uint64_t tag, struct sl_use **use), void *ctx)
{
	struct sl_err err;
	uint64_t tag;
	size_t at = 0;
	int fd;

	while (sl_keeper_inherited(held->link, &at, &fd, &tag)) {
		_cleanup_(sl_use_put) struct sl_use *use = NULL;

		/* Of what else the keeper holds, what is wanted was taken (serve.h). */
		if (!sl_notify_is_listener(fd) || !use_of(ctx, tag, &use)) {
			sl_keeper_drop(held->link, tag);
			close(fd);
			continue;
		}
		/* Without a row its calls go on: the guard denies what needs more. */
		if (add_row(held, tag, use))
			sl_log_error("no memory for the policy of a listener");
		if (sl_broker_add(held->broker, fd, tag, &err)) {
			sl_log_err(SL_LOG_ERROR, &err);
			close(fd);
		}
	}
}

int sl_held_start(struct sl_held *held, struct sl_err *err)
{
	return sl_broker_start(held->broker, err);
}

uint64_t sl_held_tag(struct sl_held *held)
{
	/* Units of about a microsecond: they leave the bits of members free for 146 years. */
	uint64_t tag = sl_boottime_ns() >> 10;

	held->last_tag = tag > held->last_tag ? tag : held->last_tag + 1;
	return held->last_tag;
}

static int hold(struct sl_held *held, int listener, uint64_t tag, struct sl_err *err)
{
	int ret = sl_keeper_hold(held->link, listener, tag);

	if (ret == -ENOSPC)
		return sl_err_set(err, ENOSPC, "the agent holds %d listeners, no more",
				  SL_KEEPER_LISTENERS);
	return ret ? sl_err_sys(err, -ret, "the keeper can't hold the listener") : 0;
}

static int listen_as(struct sl_held *held, int *listener, uint64_t tag, struct sl_use *use,
		     struct sl_err *err)
{
	int ret = add_row(held, tag, use);

	if (ret)
		return sl_err_sys(err, -ret, "mediation");
	ret = hold(held, *listener, tag, err);
	if (!ret) {
		ret = sl_broker_add(held->broker, *listener, tag, err);
		if (ret)
			(void)sl_keeper_drop(held->link, tag);
	}
	if (ret)
		drop_row(held, tag);
	else
		*listener = -1;
	return ret;
}

/* Asked before anything is made; the broker would ask as well. */
static int check(int listener, struct sl_err *err)
{
	return sl_notify_is_listener(listener)
		       ? 0
		       : sl_err_set(err, EBADF, "the descriptor is no seccomp listener");
}

int sl_held_listen(struct sl_held *held, int *listener, uint64_t tag, struct sl_use *use,
		   struct sl_err *err)
{
	return check(*listener, err) ?: listen_as(held, listener, tag, use, err);
}

int sl_held_add(struct sl_held *held, int *listener, uint64_t tag, struct sl_use *use,
		struct sl_err *err)
{
	int ret = check(*listener, err) ?: -EEXIST;

	/* Those that have ended are free again, but the keeper may not have heard of it. */
	for (uint64_t member = SL_BROKER_TAG_MEMBER; ret == -EEXIST && member;
	     member += SL_BROKER_TAG_MEMBER)
		ret = listen_as(held, listener, sl_broker_group(tag) | member, use, err);
	return ret == -EEXIST ? sl_err_set(err, ENOSPC, "the sandbox has too many listeners") : ret;
}

void sl_held_next(struct sl_held *held, uint64_t tag, struct sl_use *use)
{
	struct sl_use *before = NULL;
	struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	if (row) {
		before = row->next;
		row->next = sl_use_get(use);
	}
	pthread_mutex_unlock(&held->lock);
	sl_use_put(&before);
}

void sl_held_switch(struct sl_held *held, uint64_t tag, bool done)
{
	struct sl_use *before = NULL;
	struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	if (row && row->next) {
		before = done ? row->now : row->next;
		row->now = done ? row->next : row->now;
		row->next = NULL;
	}
	pthread_mutex_unlock(&held->lock);
	sl_use_put(&before);
}

void sl_held_release(struct sl_held *held, uint64_t tag)
{
	struct row gone = { 0 };
	struct row *row;

	pthread_mutex_lock(&held->lock);
	row = find_row(held, tag);
	if (row) {
		gone = *row;
		row->now = row->next = NULL;
	}
	pthread_mutex_unlock(&held->lock);
	row_put(&gone);
}

bool sl_held_known(struct sl_held *held, uint64_t tag)
{
	bool known;

	pthread_mutex_lock(&held->lock);
	known = find_row(held, tag);
	pthread_mutex_unlock(&held->lock);
	return known;
}

unsigned int sl_held_drain(struct sl_held *held, uint64_t tag)
{
	int running = tag ? sl_broker_drain_begin(held->broker, tag) : 0;

	return running > 0 ? (unsigned int)running : 0;
}

void sl_held_deny_rest(struct sl_held *held, uint64_t tag)
{
	(void)sl_broker_drain(held->broker, tag, 0, DRAIN_ERRNO);
}

void sl_held_resume(struct sl_held *held, uint64_t tag)
{
	if (tag)
		(void)sl_broker_resume(held->broker, tag);
}

int sl_held_fd(const struct sl_held *held)
{
	return held->event;
}

bool sl_held_drained(struct sl_held *held, uint64_t *tag)
{
	const uint64_t *last;
	eventfd_t count;

	pthread_mutex_lock(&held->lock);
	last = held->drained.count ? sl_array_at(&held->drained, held->drained.count - 1) : NULL;
	if (last) {
		*tag = *last;
		held->drained.count--;
	} else {
		(void)eventfd_read(held->event, &count);
	}
	pthread_mutex_unlock(&held->lock);
	return last;
}

void sl_held_tick(struct sl_held *held)
{
	unsigned long long untold = atomic_exchange(&held->untold, 0);
	unsigned long long unkept = atomic_exchange(&held->unkept, 0);

	if (untold)
		sl_log_warning("%llu refused sockets were not counted", untold);
	if (unkept)
		sl_log_warning("%llu files could not be remembered: they stay without the rules "
			       "that need that",
			       unkept);
	sl_broker_tick(held->broker);
}

void sl_held_stats(struct sl_held *held, struct sl_held_stats *out)
{
	void *row;

	*out = (struct sl_held_stats){
		.calls = sl_broker_count(held->broker, SL_BROKER_RECEIVED) +
			 sl_broker_count(held->broker, SL_BROKER_RECOVERED),
		.recovered = sl_broker_count(held->broker, SL_BROKER_RECOVERED),
	};
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		if (sl_broker_kind_class((enum sl_broker_kind)kind) == SL_OUTCOME_FAULT)
			out->faults += sl_broker_count(held->broker, (enum sl_broker_kind)kind);
	}
	pthread_mutex_lock(&held->lock);
	for (size_t at = 0; sl_htab_next(held->rows, &at, NULL, &row);)
		out->listeners += ((const struct row *)row)->listeners;
	pthread_mutex_unlock(&held->lock);
}
