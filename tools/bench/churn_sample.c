/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling what must stay flat, and saying whether it did. */
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "churn.h"
#include "proc.h"

/* Last third of a run over its first third. */
#define GROWTH_BUDGET 1.05

static const char *const names[CHURN_MAX] = {
#define X(name, text, slack) text,
	CHURN_QUANTITIES(X)
#undef X
};

static const double slacks[CHURN_MAX] = {
#define X(name, text, slack) slack,
	CHURN_QUANTITIES(X)
#undef X
};

/* Memory of a map as the kernel accounts it, 0 where it does not say. */
static double map_bytes(int fd)
{
	_cleanup_file_ FILE *file = NULL;
	char path[64], line[256];
	unsigned long long bytes;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			return (double)bytes;
	}
	return 0;
}

int churn_sample(struct sl_set *set, pid_t consumer, double *v)
{
	static const enum sl_map maps[] = {
		[CHURN_SOCKS] = SL_MAP_SOCKS_OVER,
		[CHURN_PROCS] = SL_MAP_PROCS,
		[CHURN_EXES] = SL_MAP_EXES,
		[CHURN_LINEAGES] = SL_MAP_LINEAGES,
	};
	struct sl_counters counters;
	long long count;
	int rc;

	for (unsigned int i = 0; i < ARRAY_SIZE(maps); i++) {
		count = i == CHURN_TUPLES ? sl_tuples_count(set)
					  : sl_map_count_rows(sl_set_map_fd(set, maps[i]));
		if (count < 0)
			return (int)count;
		v[i] = (double)count;
	}
	rc = sl_counters_total(set, &counters);
	if (rc)
		return rc;
	/* Read while they change, so the difference may be off by a few. */
	v[CHURN_SOCKETS] = (double)(long long)(counters.n[SL_COUNTER_SOCK_CREATED] -
					       counters.n[SL_COUNTER_SOCK_DELETED]);
	v[CHURN_MAP_BYTES] = 0;
	for (unsigned int i = 0; i < SL_MAP_MAX; i++)
		v[CHURN_MAP_BYTES] += map_bytes(sl_set_map_fd(set, i));
	v[CHURN_RSS_BYTES] = (double)sl_proc_rss_bytes(consumer);
	return 0;
}

static double mean(const double *v, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += v[i];
	return to > from ? sum / (double)(to - from) : 0;
}

int churn_report_samples(struct sl_report *report, const double *v, size_t count)
{
	_cleanup_free_ double *column = calloc(count + 1, sizeof(*column));
	size_t warm = count / 10 + (count > 1); /* while processes start and tables fill */
	double first, last, max;
	char name[64];

	if (!column)
		return -ENOMEM;
	for (unsigned int q = 0; q < CHURN_MAX; q++) {
		max = 0;
		for (size_t i = 0; i < count; i++) {
			column[i] = v[i * CHURN_MAX + q];
			max = column[i] > max ? column[i] : max;
		}
		first = mean(column, warm, warm + (count - warm) / 3);
		last = mean(column, count - (count - warm) / 3, count);
		sl_report_row(report, "memory", names[q]);
		sl_report_int(report, "first_third", (int64_t)first);
		sl_report_int(report, "last_third", (int64_t)last);
		sl_report_int(report, "max", (int64_t)max);
		sl_report_samples(report, "samples", column, count);
		snprintf(name, sizeof(name), "%s: last third / first third", names[q]);
		sl_report_at_most(report, name,
				  last <= first + slacks[q] ? 1 : last / (first > 0 ? first : 1),
				  GROWTH_BUDGET);
	}
	return 0;
}
