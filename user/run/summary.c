// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/summary.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/htab.h"

struct key {
	struct sl_endpoint local;
	struct sl_endpoint remote;
	struct sl_endpoint original; /* empty, unless it was redirected */
	char name[SL_NAME_MAX];      /* "": none is known */
	__u32 exe;
	__u16 way;
	__u16 state;
	char proto[16];
};

struct row {
	char exe[256];
	char proto[16];
	const char *direction;
	const char *state;
	char name[SL_NAME_MAX];
	char remote[SL_NAME_MAX + 8]; /* as the application knows it */
	struct sl_endpoint local;     /* of an inbound connection; else empty */
	struct sl_endpoint to;        /* the remote end; its port is 0 of an inbound one */
	struct sl_endpoint original;  /* that the application asked for; empty: the remote end */
	__u32 pid;                    /* the latest */
	bool several;                 /* processes; there were others before it */
	char pids[16];                /* "12", "12+" */
	__u64 count, sent, received, longest_us;
};

struct sl_summary {
	struct sl_htab *rows;
	__u64 sockets, unused, beyond;
};

static bool has_local(const void *record)
{
	return !sl_view_endpoint_empty(&((const struct row *)record)->local);
}

static bool has_remote(const void *record)
{
	return !sl_view_endpoint_empty(&((const struct row *)record)->to);
}

static bool has_original(const void *record)
{
	return !sl_view_endpoint_empty(&((const struct row *)record)->original);
}

static bool has_name(const void *record)
{
	return ((const struct row *)record)->name[0];
}

static const struct sl_field row_fields[] = {
	SL_FIELD_AS(STRING, struct row, exe, "exe", "BINARY", .flags = SL_FIELD_ELIDE),
	SL_FIELD_AS(UINT, struct row, pid, "pid", NULL, .flags = SL_FIELD_JSON_ONLY),
	SL_FIELD_AS(BOOL, struct row, several, "more_pids", NULL, .flags = SL_FIELD_JSON_ONLY),
	SL_FIELD_AS(STRING, struct row, pids, "pid", "PID", .flags = SL_FIELD_PLAIN_ONLY),
	SL_FIELD_STRING(struct row, proto, "PROTO"),
	SL_FIELD_TEXT(struct row, direction, "DIR"),
	SL_FIELD_ENDPOINT(struct row, local, "LOCAL", .present = has_local),
	SL_FIELD_AS(STRING, struct row, remote, "remote", "REMOTE", .flags = SL_FIELD_PLAIN_ONLY),
	SL_FIELD_AS(ENDPOINT, struct row, to, "remote", NULL, .flags = SL_FIELD_JSON_ONLY,
		    .present = has_remote),
	SL_FIELD_AS(ENDPOINT, struct row, original, "original", NULL, .flags = SL_FIELD_JSON_ONLY,
		    .present = has_original),
	SL_FIELD_AS(STRING, struct row, name, "name", NULL, .flags = SL_FIELD_JSON_ONLY,
		    .present = has_name),
	SL_FIELD_UINT(struct row, count, "COUNT"),
	SL_FIELD_AS(BYTES, struct row, sent, "bytes_sent", "SENT"),
	SL_FIELD_AS(BYTES, struct row, received, "bytes_received", "RECEIVED"),
	SL_FIELD_AS(DURATION_US, struct row, longest_us, "longest_us", "LONGEST"),
	SL_FIELD_TEXT(struct row, state, "STATE"),
	{ 0 },
};

int sl_summary_new(struct sl_summary **out)
{
	struct sl_summary *summary = calloc(1, sizeof(*summary));
	int rc;

	if (!summary)
		return -ENOMEM;
	rc = sl_htab_new(&summary->rows, sizeof(struct key), sizeof(struct row));
	if (rc) {
		free(summary);
		return rc;
	}
	*out = summary;
	return 0;
}

void sl_summary_free(struct sl_summary **summary)
{
	if (!summary || !*summary)
		return;
	sl_htab_free(&(*summary)->rows);
	free(*summary);
	*summary = NULL;
}

enum way { WAY_NONE, WAY_OUT, WAY_IN, WAY_LISTEN, WAY_MAX };

static const char *const ways[WAY_MAX] = { "-", "out", "in", "listen" };

/* A datagram socket that only received is a server's, whatever it was meant for. */
static enum way way_of(const struct sl_view_sock *sock)
{
	switch (sock->direction) {
	case SL_VIEW_DIRECTION_OUT:
		return WAY_OUT;
	case SL_VIEW_DIRECTION_IN:
		return WAY_IN;
	case SL_VIEW_DIRECTION_LISTEN:
		return WAY_LISTEN;
	case SL_VIEW_DIRECTION_DATAGRAM:
		return sock->bytes_received && !sock->bytes_sent ? WAY_IN : WAY_OUT;
	default:
		return WAY_NONE;
	}
}

/*
 * What connections have in common. On the way out the local port is the kernel's choice,
 * on the way in the remote one is the client's: neither tells anything.
 */
static void key_of(struct key *key, const struct sl_view_sock *sock)
{
	memset(key, 0, sizeof(*key));
	key->remote = sock->remote;
	key->way = (__u16)way_of(sock);
	if (key->way == WAY_IN) {
		key->local = sock->local;
		key->remote.port_be = 0;
	} else {
		if (memcmp(&sock->original, &sock->remote, sizeof(sock->remote)) != 0)
			key->original = sock->original;
		snprintf(key->name, sizeof(key->name), "%s", sock->name ? sock->name : "");
	}
	key->exe = sock->process.exe ? sock->process.exe->id : 0;
	key->state = (__u16)sock->state;
	memcpy(key->proto, sock->proto, sizeof(key->proto));
}

/* What it was meant for: by name, or the address that was asked for. */
static void format_remote(struct row *row, const struct key *key)
{
	const struct sl_endpoint *end = has_original(row) ? &row->original : &row->to;

	if (sl_view_endpoint_empty(end))
		return;
	if (key->way == WAY_IN)
		sl_format_addr(row->remote, sizeof(row->remote), end->addr_be);
	else if (has_name(row))
		snprintf(row->remote, sizeof(row->remote), "%s:%u", row->name, ntohs(end->port_be));
	else
		sl_format_endpoint(row->remote, sizeof(row->remote), end);
}

static void row_start(struct row *row, const struct key *key, const struct sl_view_sock *sock)
{
	snprintf(row->exe, sizeof(row->exe), "%s",
		 sock->process.exe ? sock->process.exe->path : sock->process.comm);
	snprintf(row->proto, sizeof(row->proto), "%s", sock->proto);
	row->direction = ways[key->way];
	row->state = sl_view_state_name(sock->state);
	row->local = key->local;
	row->to = key->remote;
	row->original = key->original;
	memcpy(row->name, key->name, sizeof(row->name));
	format_remote(row, key);
}

void sl_summary_add(const struct sl_view_event *event, void *arg)
{
	const struct sl_view_sock *sock = event->sock;
	struct sl_summary *summary = arg;
	struct key key;
	struct row *row;
	bool added;

	if (event->kind != SL_EVENT_CLOSE || !sock)
		return;
	summary->sockets++;
	/* Sockets that went nowhere, as resolvers open by the dozen, are only counted. */
	if ((sl_view_endpoint_empty(&sock->remote) && !sock->bytes_sent && !sock->bytes_received) ||
	    sock->flags & SL_VIEW_PROBE) {
		summary->unused++;
		return;
	}
	key_of(&key, sock);
	row = sl_htab_get(summary->rows, &key);
	if (!row && sl_htab_count(summary->rows) < SL_SUMMARY_ROWS) {
		row = sl_htab_add(summary->rows, &key, &added);
		if (row)
			row_start(row, &key, sock);
	}
	if (!row) {
		summary->beyond++;
		return;
	}
	row->several |= row->count && row->pid != sock->process.pid;
	row->pid = sock->process.pid;
	snprintf(row->pids, sizeof(row->pids), "%u%s", row->pid, row->several ? "+" : "");
	row->count++;
	row->sent += sock->bytes_sent;
	row->received += sock->bytes_received;
	if (sock->duration_us > row->longest_us)
		row->longest_us = sock->duration_us;
}

static int by_count(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;

	if (ra->count != rb->count)
		return ra->count < rb->count ? 1 : -1;
	return strcmp(ra->exe, rb->exe);
}

static void print_head(const struct sl_summary *summary, uint64_t missing, FILE *file)
{
	unsigned long long all = summary->sockets + missing;

	/* A line of its own goes before a table, not before a lone number. */
	fprintf(file, "%ssluice: %llu socket%s", sl_htab_count(summary->rows) ? "\n" : "", all,
		all == 1 ? "" : "s");
	if (summary->unused)
		fprintf(file, ", %llu of them unused", (unsigned long long)summary->unused);
	if (missing)
		fprintf(file, ", %llu of them missing here: their events were lost",
			(unsigned long long)missing);
	fputc('\n', file);
}

/* Sorted; the caller frees *out. */
static int sorted_rows(struct row **out, struct sl_records *records, struct sl_summary *summary)
{
	size_t at = 0, n = 0;
	struct row *rows = calloc(sl_htab_count(summary->rows) + 1, sizeof(*rows));
	void *value;

	if (!rows)
		return -ENOMEM;
	while (sl_htab_next(summary->rows, &at, NULL, &value))
		rows[n++] = *(struct row *)value;
	qsort(rows, n, sizeof(*rows), by_count);
	*records = (struct sl_records){ rows, n, sizeof(*rows) };
	*out = rows;
	return 0;
}

struct document {
	__u64 sockets, unused, missing, beyond;
	struct sl_records connections;
};

static const struct sl_field document_fields[] = {
	SL_FIELD_UINT(struct document, sockets, NULL),
	SL_FIELD_UINT(struct document, unused, NULL),
	SL_FIELD_UINT(struct document, missing, NULL),
	SL_FIELD_UINT(struct document, beyond, NULL),
	SL_FIELD_RECORDS(struct document, connections, NULL, row_fields),
	{ 0 },
};

int sl_summary_json(struct json_object **out, struct sl_summary *summary, uint64_t missing)
{
	struct document document = {
		.sockets = summary->sockets + missing,
		.unused = summary->unused,
		.missing = missing,
		.beyond = summary->beyond,
	};
	_cleanup_free_ struct row *rows = NULL;
	int rc = sorted_rows(&rows, &document.connections, summary);

	return rc ? rc : sl_object_json(out, document_fields, &document);
}

int sl_summary_print(struct sl_summary *summary, uint64_t missing, FILE *file)
{
	_cleanup_free_ struct row *rows = NULL;
	struct sl_records records;
	struct sl_output output;
	size_t count;
	int rc = sorted_rows(&rows, &records, summary);

	if (rc)
		return rc;
	count = records.count;
	if (records.count > SL_SUMMARY_SHOWN)
		records.count = SL_SUMMARY_SHOWN;
	sl_output_init(&output, file);
	print_head(summary, missing, file);
	if (count)
		rc = sl_print_list(&output, row_fields, &records);
	if (count > records.count || summary->beyond)
		fprintf(file, "… and %zu more rows, %llu sockets beyond them\n",
			count - records.count, (unsigned long long)summary->beyond);
	if (!rc && ferror(file))
		rc = -EIO;
	return rc;
}
