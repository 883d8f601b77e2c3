// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/unreached.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/htab.h"
#include "egress/unreachable.h"
#include "run/target.h"

struct key {
	struct sl_endpoint remote;
	char name[SL_NAME_MAX]; /* "": it was asked for by its address */
	__u32 exe;
	int error;
	char proto[16];
};

struct row {
	char exe[256];
	char proto[16];
	char to[SL_TARGET_MAX];
	char error[24];
	const char *why;
	__u32 pid; /* the latest */
	__u64 count;
};

struct sl_unreached {
	struct sl_htab *rows;
	__u64 told; /* in rows */
};

static const struct sl_field row_fields[] = {
	SL_FIELD_AS(STRING, struct row, exe, "exe", "BINARY", .flags = SL_FIELD_ELIDE),
	SL_FIELD_UINT(struct row, pid, "PID"),
	SL_FIELD_STRING(struct row, proto, "PROTO"),
	SL_FIELD_STRING(struct row, to, "TO"),
	SL_FIELD_STRING(struct row, error, "ERROR"),
	SL_FIELD_TEXT(struct row, why, "WHY"),
	SL_FIELD_UINT(struct row, count, "COUNT"),
	{ 0 },
};

void sl_unreached_free(struct sl_unreached **unreached)
{
	if (!*unreached)
		return;
	sl_htab_free(&(*unreached)->rows);
	free(*unreached);
	*unreached = NULL;
}

int sl_unreached_new(struct sl_unreached **out)
{
	_cleanup_(sl_unreached_free) struct sl_unreached *unreached = calloc(1, sizeof(*unreached));
	int rc;

	if (!unreached)
		return -ENOMEM;
	rc = sl_htab_new(&unreached->rows, sizeof(struct key), sizeof(struct row));
	if (!rc)
		*out = TAKE_PTR(unreached);
	return rc;
}

static void key_of(struct key *key, const struct sl_view_sock *sock)
{
	memset(key, 0, sizeof(*key));
	key->remote = sock->remote;
	key->exe = sock->process.exe ? sock->process.exe->id : 0;
	key->error = sock->error_code;
	memcpy(key->proto, sock->proto, sizeof(key->proto));
	snprintf(key->name, sizeof(key->name), "%s", sock->name ? sock->name : "");
}

static void row_start(struct row *row, const struct sl_view_sock *sock)
{
	snprintf(row->exe, sizeof(row->exe), "%s",
		 sock->process.exe ? sock->process.exe->path : sock->process.comm);
	memcpy(row->proto, sock->proto, sizeof(row->proto));
	memcpy(row->error, sock->error, sizeof(row->error));
	sl_target_text(row->to, sizeof(row->to), sock->name, &sock->remote);
	row->why = sl_unreachable_text(sock->error_code, sl_target_unresolved(&sock->remote));
}

void sl_unreached_add(struct sl_unreached *unreached, const struct sl_view_event *event)
{
	const struct sl_view_sock *sock = event->sock;
	struct row *row;
	struct key key;

	if (event->kind != SL_EVENT_UNREACHABLE || !sock)
		return;
	key_of(&key, sock);
	row = sl_htab_get(unreached->rows, &key);
	if (!row && sl_htab_count(unreached->rows) < SL_UNREACHED_ROWS) {
		row = sl_htab_add(unreached->rows, &key, NULL);
		if (row)
			row_start(row, sock);
	}
	if (!row)
		return;
	row->count++;
	row->pid = sock->process.pid;
	unreached->told++;
}

static int by_count(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;

	if (ra->count != rb->count)
		return ra->count < rb->count ? 1 : -1;
	return strcmp(ra->to, rb->to);
}

struct totals {
	__u64 connections, untold;
	struct row *rows; /* the caller's */
	struct sl_records causes;
};

static const struct sl_field totals_fields[] = {
	SL_FIELD_UINT(struct totals, connections, NULL),
	SL_FIELD_UINT(struct totals, untold, NULL),
	SL_FIELD_RECORDS(struct totals, causes, NULL, row_fields),
	{ 0 },
};

static int totals_fill(struct totals *totals, struct sl_unreached *unreached,
		       const struct sl_counters *counted)
{
	__u64 all = counted ? counted->n[SL_COUNTER_RELAY_UNREACHABLE] : 0;
	size_t at = 0, n = 0;
	void *value;

	if (all < unreached->told)
		all = unreached->told;
	*totals = (struct totals){ .connections = all, .untold = all - unreached->told };
	totals->rows = calloc(sl_htab_count(unreached->rows) + 1, sizeof(*totals->rows));
	if (!totals->rows)
		return -ENOMEM;
	while (sl_htab_next(unreached->rows, &at, NULL, &value))
		totals->rows[n++] = *(struct row *)value;
	qsort(totals->rows, n, sizeof(*totals->rows), by_count);
	totals->causes = (struct sl_records){ totals->rows, n, sizeof(*totals->rows) };
	return 0;
}

int sl_unreached_json(struct json_object **out, struct sl_unreached *unreached,
		      const struct sl_counters *counted)
{
	struct totals totals;
	int rc = totals_fill(&totals, unreached, counted);

	rc = rc ?: sl_object_json(out, totals_fields, &totals);
	free(totals.rows);
	return rc;
}

static int print(struct totals *totals, FILE *file)
{
	struct sl_output output;
	size_t count = totals->causes.count;
	__u64 beyond = totals->untold;
	int rc = 0;

	for (size_t i = SL_UNREACHED_SHOWN; i < count; i++)
		beyond += totals->rows[i].count;
	if (count > SL_UNREACHED_SHOWN)
		totals->causes.count = SL_UNREACHED_SHOWN;
	sl_output_init(&output, file);
	fprintf(file, "\nsluice: %llu connection%s or look-up%s could not be made\n",
		(unsigned long long)totals->connections, totals->connections == 1 ? "" : "s",
		totals->connections == 1 ? "" : "s");
	if (count)
		rc = sl_print_list(&output, row_fields, &totals->causes);
	if (beyond)
		fprintf(file, "… and %llu more\n", (unsigned long long)beyond);
	return rc;
}

int sl_unreached_print(struct sl_unreached *unreached, const struct sl_counters *counted,
		       FILE *file)
{
	struct totals totals;
	int rc = totals_fill(&totals, unreached, counted);

	if (!rc && totals.connections)
		rc = print(&totals, file);
	free(totals.rows);
	return rc;
}
