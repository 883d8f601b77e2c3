// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/denied.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/format.h"
#include "base/htab.h"
#include "base/log.h"
#include "policy/decide.h"
#include "run/target.h"

struct key {
	struct sl_endpoint remote;
	char name[SL_NAME_MAX]; /* "": none is known */
	__u32 exe;
	__u16 reason;
	__u16 audit;
	char proto[16];
};

struct row {
	char exe[256];
	char proto[16];
	char to[SL_TARGET_MAX];
	char rule[SL_ESCAPE_MAX(128)];
	const char *verdict;
	const char *reason;
	__u32 pid; /* the latest */
	__u64 count;
	__u64 next; /* count at which it is told again */
};

struct sl_denied {
	struct sl_htab *rows;
	sl_advise_fn advise;
	void *arg;
	__u64 by_reason[SL_REASON_MAX];
	__u64 denied, audited, beyond, lines;
};

static const struct sl_field row_fields[] = {
	SL_FIELD_AS(STRING, struct row, exe, "exe", "BINARY", .flags = SL_FIELD_ELIDE),
	SL_FIELD_UINT(struct row, pid, "PID"),
	SL_FIELD_STRING(struct row, proto, "PROTO"),
	SL_FIELD_STRING(struct row, to, "TO"),
	SL_FIELD_TEXT(struct row, verdict, "VERDICT"),
	SL_FIELD_TEXT(struct row, reason, "REASON"),
	SL_FIELD_STRING(struct row, rule, "RULE"),
	SL_FIELD_UINT(struct row, count, "COUNT"),
	{ 0 },
};

void sl_denied_free(struct sl_denied **denied)
{
	if (!*denied)
		return;
	sl_htab_free(&(*denied)->rows);
	free(*denied);
	*denied = NULL;
}

int sl_denied_new(struct sl_denied **out, sl_advise_fn advise, void *arg)
{
	_cleanup_(sl_denied_free) struct sl_denied *denied = calloc(1, sizeof(*denied));
	int rc;

	if (!denied)
		return -ENOMEM;
	rc = sl_htab_new(&denied->rows, sizeof(struct key), sizeof(struct row));
	if (rc)
		return rc;
	denied->advise = advise;
	denied->arg = arg;
	*out = TAKE_PTR(denied);
	return 0;
}

static const char *exe_of(const struct sl_view_event *event)
{
	const struct sl_view_process *process = event->process;

	if (!process)
		return NULL;
	return process->exe ? process->exe->path : process->comm;
}

static void key_of(struct key *key, const struct sl_view_event *event)
{
	const struct sl_view_decision *decision = event->decision;

	memset(key, 0, sizeof(*key));
	key->remote = decision->remote;
	key->exe = event->process && event->process->exe ? event->process->exe->id : 0;
	key->reason = (__u16)decision->reason_id;
	key->audit = decision->verdict_id == SL_VERDICT_AUDIT;
	memcpy(key->proto, decision->proto, sizeof(key->proto));
	if (decision->name)
		snprintf(key->name, sizeof(key->name), "%s", decision->name);
}

static void fill_to(struct row *row, const struct sl_view_decision *decision)
{
	sl_target_text(row->to, sizeof(row->to), decision->name, &decision->remote);
	if (!row->to[0] && decision->family)
		snprintf(row->to, sizeof(row->to), "family %s", decision->family);
}

static void row_start(struct row *row, const struct sl_view_event *event)
{
	const struct sl_view_decision *decision = event->decision;
	const char *exe = exe_of(event);

	snprintf(row->exe, sizeof(row->exe), "%s", exe ? exe : "no member");
	snprintf(row->proto, sizeof(row->proto), "%s", decision->proto);
	fill_to(row, decision);
	snprintf(row->rule, sizeof(row->rule), "%s", decision->rule ? decision->rule : "");
	row->verdict = decision->verdict;
	row->reason = decision->reason;
	row->next = 1;
}

/* "denied: /usr/bin/curl[12] tcp 192.0.2.1:443: no rule names …; add to 'lo': …" */
static void tell(struct sl_denied *denied, struct row *row, const struct sl_view_event *event)
{
	const struct sl_view_decision *decision = event->decision;
	struct sl_advice advice = {
		.reason = decision->reason_id,
		.remote = decision->remote,
		.name = decision->name,
		.proto = decision->proto,
		.tried = decision->tried,
		.exe = event->process && event->process->exe ? event->process->exe->path : NULL,
		.rule = decision->rule,
	};
	char text[SL_ADVICE_MAX], times[32] = "", exe[SL_ESCAPE_MAX(sizeof(row->exe))];
	char to[SL_ESCAPE_MAX(sizeof(row->to))];

	if (event->process && event->process->exe)
		advice.exe_id = event->process->exe->id;
	if (*decision->sha256_found)
		advice.found = decision->sha256_found;
	if (*decision->sha256_expected)
		advice.expected = decision->sha256_expected;
	advice.pinned = decision->pinned;
	if (denied->advise)
		denied->advise(&advice, event, denied->arg);
	sl_advice_text(text, sizeof(text), &advice);
	if (row->count > 1)
		snprintf(times, sizeof(times), ", %llu times", (unsigned long long)row->count);
	sl_escape_text(exe, sizeof(exe), row->exe);
	sl_escape_text(to, sizeof(to), row->to);
	sl_log_warning("%s: %s[%u] %s %s%s: %s: %s%s%s",
		       decision->verdict_id == SL_VERDICT_AUDIT ? "would be denied" : "denied", exe,
		       row->pid, row->proto, to, times, row->reason,
		       sl_reason_help(decision->reason_id), *text ? "; " : "", text);
}

static void tell_if_due(struct sl_denied *denied, struct row *row,
			const struct sl_view_event *event)
{
	if (row->count < row->next)
		return;
	while (row->next <= row->count)
		row->next *= 10;
	if (denied->lines == SL_DENIED_LINES)
		sl_log_warning("further denials are not told one by one: see the table at the end");
	if (denied->lines++ < SL_DENIED_LINES)
		tell(denied, row, event);
}

void sl_denied_add(struct sl_denied *denied, const struct sl_view_event *event)
{
	const struct sl_view_decision *decision = event->decision;
	struct row *row;
	struct key key;

	if (event->kind != SL_EVENT_DECISION || !decision)
		return;
	if (decision->verdict_id == SL_VERDICT_AUDIT)
		denied->audited += decision->count;
	else
		denied->denied += decision->count;
	if (decision->reason_id < SL_REASON_MAX)
		denied->by_reason[decision->reason_id] += decision->count;
	key_of(&key, event);
	row = sl_htab_get(denied->rows, &key);
	if (!row && sl_htab_count(denied->rows) < SL_DENIED_ROWS) {
		row = sl_htab_add(denied->rows, &key, NULL);
		if (row)
			row_start(row, event);
	}
	if (!row) {
		denied->beyond += decision->count;
		return;
	}
	row->count += decision->count;
	if (event->process)
		row->pid = event->process->pid;
	tell_if_due(denied, row, event);
}

static int by_count(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;
	int order = strcmp(ra->exe, rb->exe);

	if (ra->count != rb->count)
		return ra->count < rb->count ? 1 : -1;
	return order ? order : strcmp(ra->to, rb->to);
}

/* Those of which no event told, since the map of kinds was full of others. */
static __u64 missing(const struct sl_denied *denied, const struct sl_counters *counted)
{
	__u64 sum = 0;

	for (int i = 0; counted && i < SL_REASON_MAX; i++)
		if (counted->denied[i] > denied->by_reason[i])
			sum += counted->denied[i] - denied->by_reason[i];
	return sum;
}

/* The rows, owned by the caller, and the numbers that go with them. */
struct totals {
	__u64 denied, audited, untold;
	struct row *rows;
	struct sl_records denials;
};

static int totals_fill(struct totals *totals, const struct sl_denied *denied,
		       const struct sl_counters *counted)
{
	size_t count = sl_htab_count(denied->rows), at = 0, n = 0;
	__u64 audited = counted ? counted->n[SL_COUNTER_AUDITED] : 0;
	void *value;

	*totals = (struct totals){ .untold = missing(denied, counted) };
	totals->rows = calloc(count + 1, sizeof(*totals->rows));
	if (!totals->rows)
		return -ENOMEM;
	while (sl_htab_next(denied->rows, &at, NULL, &value))
		totals->rows[n++] = *(struct row *)value;
	qsort(totals->rows, n, sizeof(*totals->rows), by_count);
	totals->denials = (struct sl_records){ totals->rows, n, sizeof(*totals->rows) };
	/* Of those that no event told, the ones that passed are counted by themselves. */
	audited = audited > denied->audited ? audited - denied->audited : 0;
	audited = audited < totals->untold ? audited : totals->untold;
	totals->audited = denied->audited + audited;
	totals->denied = denied->denied + totals->untold - audited;
	return 0;
}

static const struct sl_field totals_fields[] = {
	SL_FIELD_UINT(struct totals, denied, NULL),
	SL_FIELD_UINT(struct totals, audited, NULL),
	SL_FIELD_RECORDS(struct totals, denials, NULL, row_fields),
	{ 0 },
};

int sl_denied_json(struct json_object **out, struct sl_denied *denied,
		   const struct sl_counters *counted)
{
	struct totals totals;
	int rc = totals_fill(&totals, denied, counted);

	rc = rc ? rc : sl_object_json(out, totals_fields, &totals);
	free(totals.rows);
	return rc;
}

static void print_head(const struct totals *totals, FILE *file)
{
	fprintf(file, "\nsluice: ");
	if (totals->denied || !totals->audited)
		fprintf(file, "%llu denied%s", (unsigned long long)totals->denied,
			totals->audited ? ", " : "");
	if (totals->audited)
		fprintf(file, "%llu would be denied, and passed (audit)",
			(unsigned long long)totals->audited);
	fputc('\n', file);
}

int sl_denied_print(struct sl_denied *denied, const struct sl_counters *counted, FILE *file)
{
	struct totals totals;
	struct sl_output output;
	size_t count;
	int rc = totals_fill(&totals, denied, counted);

	if (rc || (!totals.denied && !totals.audited)) {
		free(totals.rows);
		return rc;
	}
	count = totals.denials.count;
	if (totals.denials.count > SL_DENIED_SHOWN)
		totals.denials.count = SL_DENIED_SHOWN;
	sl_output_init(&output, file);
	print_head(&totals, file);
	if (count)
		rc = sl_print_list(&output, row_fields, &totals.denials);
	if (count > totals.denials.count || denied->beyond || totals.untold)
		fprintf(file, "… and %zu more rows, %llu denials beyond them\n",
			count - totals.denials.count,
			(unsigned long long)(denied->beyond + totals.untold));
	free(totals.rows);
	return rc;
}
