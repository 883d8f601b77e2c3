// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/races.h"

#include <stddef.h>

#include "base/clock.h"

static const struct {
	const char *name, *help;
	enum sl_outcome class;
} kinds[] = {
#define X(name, class, text, help) [SL_BROKER_##name] = { text, help, SL_OUTCOME_##class },
	SL_BROKER_KINDS(X)
#undef X
};

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == SL_BROKER_KIND_MAX, "one row a kind");

const char *sl_broker_kind_name(enum sl_broker_kind kind)
{
	return kind < SL_BROKER_KIND_MAX ? kinds[kind].name : NULL;
}

const char *sl_broker_kind_help(enum sl_broker_kind kind)
{
	return kind < SL_BROKER_KIND_MAX ? kinds[kind].help : NULL;
}

enum sl_outcome sl_broker_kind_class(enum sl_broker_kind kind)
{
	return kind < SL_BROKER_KIND_MAX ? kinds[kind].class : SL_OUTCOME_MAX;
}

void sl_races_count(struct sl_races *races, enum sl_broker_kind kind)
{
	if (kinds[kind].class == SL_OUTCOME_RACE) {
		unsigned long long none = 0, now = sl_boottime_ns();

		atomic_compare_exchange_strong(&races->races[kind].first_ns, &none, now);
		atomic_store(&races->races[kind].last_ns, now);
	}
	/* After the times: who sees the count sees them. */
	atomic_fetch_add(&races->total[kind], 1);
}

void sl_races_tell(struct sl_races *races, void (*line)(void *ctx, const struct sl_race_line *line),
		   void *ctx)
{
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		unsigned long long total = atomic_load(&races->total[kind]);
		struct sl_race_line out = { .kind = kind };

		if (kinds[kind].class != SL_OUTCOME_RACE)
			continue;
		out.count = total - atomic_exchange(&races->races[kind].told, total);
		if (!out.count)
			continue;
		out.last_ns = atomic_load(&races->races[kind].last_ns);
		out.first_ns = atomic_exchange(&races->races[kind].first_ns, 0) ?: out.last_ns;
		line(ctx, &out);
	}
}
