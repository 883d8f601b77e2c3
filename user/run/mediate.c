/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "run/mediate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/listener.h"
#include "broker/loop.h"
#include "broker/probe.h"
#include "run/members.h"
#include "run/prepare.h"

#define LISTENER_TAG 1

/* How long the child may take from fork to the hand-over. */
#define HANDOFF_MS 10000

struct sl_mediate {
	struct sl_mediate_options options;
	struct sl_contain_plan plan;
	struct sl_filter filter;
	struct sl_filter_options filter_options;
	unsigned long flags;
	struct sl_handoff handoff;
	struct sl_broker *broker;
	struct sl_files *files;
	struct sl_members *members;
	atomic_ullong untold; /* refused sockets that could not be told */
	atomic_bool full;     /* that files were left out was said */
};

void sl_mediate_free(struct sl_mediate **mediate)
{
	struct sl_mediate *m = *mediate;

	if (!m)
		return;
	sl_handoff_end(&m->handoff);
	sl_broker_free(&m->broker);
	sl_members_free(&m->members);
	free(m);
	*mediate = NULL;
}

/* --- in the broker's threads --- */

static struct sl_prepare prepare_of(const struct sl_mediate *m)
{
	return (struct sl_prepare){ .set = m->options.set,
				    .sandbox = m->options.sandbox,
				    .members = m->members,
				    .files = m->files };
}

/* With no file to be looked at there is nothing that the guard has to wait for. */
static bool at_once(void *ctx, uint64_t tag, enum sl_call_kind kind)
{
	const struct sl_mediate *m = ctx;

	(void)tag;
	(void)kind;
	return !m->files;
}

static void held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	struct sl_mediate *m = ctx;
	const struct sl_prepare prepare = prepare_of(m);

	if (call->kind == SL_HELD_SOCKET) {
		if (sl_prepare_refused(&prepare, call))
			atomic_fetch_add(&m->untold, 1);
		return;
	}
	answer->go_on = true;
	if (sl_prepare_files(&prepare, call) && !atomic_exchange(&m->full, true))
		sl_log_warning("no more files can be remembered: further ones stay without the "
			       "rules that need that");
}

static void fault(void *ctx, enum sl_broker_kind kind, uint64_t tag, pid_t tid, int code)
{
	(void)ctx;
	(void)tag;
	sl_log_error("broker: %s: task %d%s%s", sl_broker_kind_help(kind), tid, code ? ": " : "",
		     code ? strerror(code) : "");
}

static void races(void *ctx, const struct sl_race_line *line)
{
	(void)ctx;
	sl_log_notice("races, all harmless: %s, %llu times", sl_broker_kind_help(line->kind),
		      (unsigned long long)line->count);
}

/* --- setting up --- */

static int make_filter(struct sl_mediate *m, struct sl_err *err)
{
	const char *why = NULL;

	m->filter_options = (struct sl_filter_options){
		.hold = m->options.hold,
		.flags = SL_FILTER_NOTIFY_FAMILY | (m->options.io_uring ? SL_FILTER_IO_URING : 0) |
			 (m->options.contain.strict ? SL_FILTER_STRICT : 0),
		.refuse_errno = EACCES,
	};
	/* Its port may be one that only user space can tell is the program's. */
	if (m->options.prepare && m->options.hold & SL_HOLD_CONNECT)
		m->filter_options.flags |= SL_FILTER_NOTIFY_LISTEN;
	sl_probe_listener_flags(&m->flags, &why);
	if (why)
		sl_log_debug("held calls can be interrupted by signals: %s", why);
	return sl_filter_make(&m->filter, &m->filter_options, err);
}

static int make_broker(struct sl_mediate *m, struct sl_err *err)
{
	const struct sl_broker_options options = {
		.ops = { .at_once = at_once, .held = held, .fault = fault, .races = races },
		.ctx = m,
		.deadline_ms = 30000,
	};

	if (sl_members_new(&m->members, m->options.set))
		return sl_err_sys(err, ENOMEM, "mediation");
	return sl_broker_new(&m->broker, &options, err);
}

int sl_mediate_new(struct sl_mediate **out, const struct sl_mediate_options *options,
		   struct sl_err *err)
{
	_cleanup_(sl_mediate_free) struct sl_mediate *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return sl_err_sys(err, ENOMEM, "mediation");
	m->options = *options;
	m->handoff = (struct sl_handoff){ -1, -1 };
	rc = sl_contain_plan(&m->plan, &options->contain, err);
	rc = rc ?: make_filter(m, err);
	rc = rc || options->attach ? rc : make_broker(m, err);
	rc = rc ?: sl_handoff_new(&m->handoff, err);
	if (rc)
		return rc;
	*out = TAKE_PTR(m);
	return 0;
}

unsigned int sl_mediate_lines(const struct sl_mediate *m, const char **lines, unsigned int max)
{
	unsigned int n = m->plan.line_count < max ? m->plan.line_count : max;

	for (unsigned int i = 0; i < n; i++)
		lines[i] = m->plan.lines[i];
	return n;
}

int sl_mediate_child(struct sl_mediate *m, struct sl_err *err)
{
	int rc = sl_contain_apply(&m->plan, err);

	return rc ? rc : sl_handoff_give(&m->handoff, &m->filter, m->flags, err);
}

bool sl_mediate_attaches(const struct sl_mediate *m)
{
	return m->options.attach != NULL;
}

static int start_broker(struct sl_mediate *m, int *listener, struct sl_err *err)
{
	int rc = *listener < 0 ? 0 : sl_broker_add(m->broker, *listener, LISTENER_TAG, err);

	if (rc)
		return rc;
	*listener = -1;
	return sl_broker_start(m->broker, err);
}

int sl_mediate_parent(struct sl_mediate *m, struct sl_files *files, pid_t child, struct sl_err *err)
{
	_cleanup_fd_ int listener = -1;
	int rc = sl_handoff_take(&m->handoff, HANDOFF_MS, &listener, err);

	if (rc)
		return rc;
	m->files = files;
	rc = m->options.attach ? m->options.attach(m->options.ctx, listener, child, err)
			       : start_broker(m, &listener, err);
	rc = rc ?: sl_handoff_release(&m->handoff, err);
	sl_handoff_end(&m->handoff);
	return rc;
}

/* --- in the loop --- */

void sl_mediate_tick(struct sl_mediate *m)
{
	unsigned long long untold = atomic_exchange(&m->untold, 0);

	if (untold)
		sl_log_warning("%llu refused sockets were not counted", untold);
	if (m->broker)
		sl_broker_tick(m->broker);
}
