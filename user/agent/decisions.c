/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Denials in the agent's log. They are read from the kernel's counts, not from the ring of
 * events, which has one consumer and belongs to who watches. What is denied for the first time
 * is told with the next look; what goes on being denied, once a minute with its number. A
 * sandbox that is denied ever new things has a few lines at once, then one a look: it fills
 * neither the log nor the place of others.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "event/view_event.h"

#define LINES_MAX 64 /* of a sandbox at once; each look gives one back */
#define REPEAT_MS 60000

/* Of a kind of denials: how many of them the log has, and since when. */
struct told {
	__u64 count;
	int64_t at_ms;
};

/* Of a sandbox. */
struct share {
	unsigned int used;
	__u64 beyond;  /* kinds that had no line */
	int64_t at_ms; /* the latest line with their number */
};

struct sl_decisions {
	uint64_t since_ns;      /* what was denied last before that is the log's of before */
	struct sl_htab *told;   /* struct sl_decision_key -> struct told */
	struct sl_htab *shares; /* __u32, sandbox -> struct share */
};

int sl_decisions_new(struct sl_decisions **out)
{
	_cleanup_(sl_decisions_free) struct sl_decisions *decisions = calloc(1, sizeof(*decisions));
	int ret;

	if (!decisions)
		return -ENOMEM;
	decisions->since_ns = sl_boottime_ns();
	ret = sl_htab_new(&decisions->told, sizeof(struct sl_decision_key), sizeof(struct told));
	ret = ret ?: sl_htab_new(&decisions->shares, sizeof(__u32), sizeof(struct share));
	if (ret)
		return ret;
	*out = TAKE_PTR(decisions);
	return 0;
}

void sl_decisions_free(struct sl_decisions **decisions)
{
	if (!*decisions)
		return;
	sl_htab_free(&(*decisions)->told);
	sl_htab_free(&(*decisions)->shares);
	free(TAKE_PTR(*decisions));
}

struct look {
	struct sl_decisions *decisions;
	struct sl_view_source *source;
	int64_t now_ms;
	struct sl_htab *told; /* of the rows that are there now */
};

static void log_line(const struct look *look, const struct sl_event_decision *event)
{
	struct sl_view_event_parts *parts = calloc(1, sizeof(*parts));
	_cleanup_free_ char *text = NULL;
	struct sl_view_event view;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	if (file && parts && !sl_view_event_fill(&view, parts, &event->head, look->source))
		(void)sl_view_event_text(file, &view, 0);
	if (file)
		fclose(file);
	if (text && len)
		sl_log_notice("%.*s", (int)len - 1, text);
	free(parts);
}

/* Whether its sandbox has a line left. */
static bool take_line(const struct look *look, __u32 sandbox)
{
	struct share *share = sl_htab_add(look->decisions->shares, &sandbox, NULL);

	if (!share)
		return false;
	if (share->used < LINES_MAX) {
		share->used++;
		return true;
	}
	share->beyond++;
	return false;
}

/* False: there is nothing to tell of it now. */
static bool is_due(const struct look *look, const struct sl_decision_row *row,
		   const struct told *before)
{
	if (!before)
		return row->last_ns >= look->decisions->since_ns;
	return before->count != row->count && look->now_ms - before->at_ms >= REPEAT_MS;
}

static int look_at(const struct sl_decision_key *key, const struct sl_decision_row *row, void *arg)
{
	struct look *look = arg;
	const struct told *before = sl_htab_get(look->decisions->told, key);
	struct sl_event_decision event = {
		.head = { .schema = SL_SCHEMA,
			  .kind = SL_EVENT_DECISION,
			  .size = sizeof(event),
			  .time_ns = row->last_ns },
	};
	struct told *now = sl_htab_add(look->told, key, NULL);

	if (!now)
		return -ENOMEM;
	if (!is_due(look, row, before)) {
		*now = before ? *before : (struct told){ row->count, look->now_ms - REPEAT_MS };
		return 0;
	}
	*now = (struct told){ row->count, look->now_ms };
	if (!take_line(look, key->sandbox))
		return 0;
	sl_decision_untold(key, row, &event.decision);
	/* A row that was dropped and came again begins anew. */
	event.decision.count =
		row->count - (before && before->count < row->count ? before->count : 0);
	log_line(look, &event);
	return 0;
}

/* Each sandbox has one line more, and what had none is told by its number. */
static void next_look(struct sl_decisions *decisions, int64_t now_ms)
{
	const void *sandbox;
	__u32 done = 0;
	void *value;

	for (size_t at = 0; sl_htab_next(decisions->shares, &at, &sandbox, &value);) {
		struct share *share = value;

		if (share->beyond && now_ms - share->at_ms >= REPEAT_MS) {
			sl_log_notice("sandbox %u: %llu more kinds of denials: see 'sluice "
				      "decision list'",
				      *(const __u32 *)sandbox, share->beyond);
			share->beyond = 0;
			share->at_ms = now_ms;
		}
		share->used -= share->used > 0;
		if (!share->used && !share->beyond)
			done = *(const __u32 *)sandbox;
	}
	/* As fast as sandboxes come. */
	sl_htab_del(decisions->shares, &done);
}

void sl_decisions_log(struct sl_decisions *decisions, struct sl_set *set)
{
	struct sl_view_ops ops = sl_view_ops_of_set(set);
	struct look look = { .decisions = decisions, .now_ms = sl_monotonic_ms() };
	int ret = sl_view_source_new(&look.source, &ops);

	ret = ret ?: sl_htab_new(&look.told, sizeof(struct sl_decision_key), sizeof(struct told));
	ret = ret ?: sl_decisions_each(set, 0, look_at, &look);
	next_look(decisions, look.now_ms);
	if (ret) {
		sl_log_error("can't read the decisions: %s", strerror(-ret));
	} else {
		sl_htab_free(&decisions->told);
		decisions->told = TAKE_PTR(look.told);
	}
	sl_htab_free(&look.told);
	sl_view_source_free(&look.source);
}
