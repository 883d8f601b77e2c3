/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Denials in the agent's log. They are read from the kernel's counts, not from the ring of
 * events, which has one consumer and belongs to who watches. So what is denied a thousand
 * times between two looks is one line.
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

/* Lines of one look; what is beyond is one line with their number. */
#define LINES_MAX 64

struct sl_decisions {
	uint64_t since_ns;    /* what was denied last before that is the log's of before */
	struct sl_htab *told; /* struct sl_decision_key -> __u64, its count */
};

int sl_decisions_new(struct sl_decisions **out)
{
	_cleanup_(sl_decisions_free) struct sl_decisions *decisions = calloc(1, sizeof(*decisions));
	int ret;

	if (!decisions)
		return -ENOMEM;
	decisions->since_ns = sl_boottime_ns();
	ret = sl_htab_new(&decisions->told, sizeof(struct sl_decision_key), sizeof(__u64));
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
	free(TAKE_PTR(*decisions));
}

struct look {
	struct sl_decisions *decisions;
	struct sl_view_source *source;
	unsigned int lines;
	unsigned long long beyond;
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

static int look_at(const struct sl_decision_key *key, const struct sl_decision_row *row, void *arg)
{
	struct look *look = arg;
	const __u64 *before = sl_htab_get(look->decisions->told, key);
	struct sl_event_decision event = {
		.head = { .schema = SL_SCHEMA,
			  .kind = SL_EVENT_DECISION,
			  .size = sizeof(event),
			  .time_ns = row->last_ns },
	};
	__u64 *now = sl_htab_add(look->told, key, NULL);

	if (!now)
		return -ENOMEM;
	*now = row->count;
	if (before ? *before == row->count : row->last_ns < look->decisions->since_ns)
		return 0;
	if (look->lines == LINES_MAX) {
		look->beyond++;
		return 0;
	}
	sl_decision_untold(key, row, &event.decision);
	/* A row that was dropped and came again begins anew. */
	event.decision.count = row->count - (before && *before < row->count ? *before : 0);
	look->lines++;
	log_line(look, &event);
	return 0;
}

void sl_decisions_log(struct sl_decisions *decisions, struct sl_set *set)
{
	struct sl_view_ops ops = sl_view_ops_of_set(set);
	struct look look = { .decisions = decisions };
	int ret = sl_view_source_new(&look.source, &ops);

	ret = ret ?: sl_htab_new(&look.told, sizeof(struct sl_decision_key), sizeof(__u64));
	ret = ret ?: sl_decisions_each(set, 0, look_at, &look);
	if (look.beyond)
		sl_log_notice("%llu more kinds of denials: see 'sluice decision list'",
			      look.beyond);
	if (ret) {
		sl_log_error("can't read the decisions: %s", strerror(-ret));
	} else {
		sl_htab_free(&decisions->told);
		decisions->told = TAKE_PTR(look.told);
	}
	if (look.told)
		sl_htab_free(&look.told);
	sl_view_source_free(&look.source);
}
