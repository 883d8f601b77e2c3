// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/summary.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/htab.h"

struct key {
	struct sl_endpoint local;
	struct sl_endpoint remote;
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
	char remote[SL_FORMAT_MAX];
	struct sl_endpoint local; /* of an inbound connection; else empty */
	__u32 pid;                /* the latest */
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

static const struct sl_field row_fields[] = {
	SL_FIELD_AS(STRING, struct row, exe, "exe", "BINARY", .flags = SL_FIELD_ELIDE),
	SL_FIELD_UINT(struct row, pid, "PID"),
	SL_FIELD_STRING(struct row, proto, "PROTO"),
	SL_FIELD_TEXT(struct row, direction, "DIR"),
	SL_FIELD_ENDPOINT(struct row, local, "LOCAL", .present = has_local),
	SL_FIELD_STRING(struct row, remote, "REMOTE"),
	SL_FIELD_UINT(struct row, count, "COUNT"),
	SL_FIELD_BYTES(struct row, sent, "SENT"),
	SL_FIELD_BYTES(struct row, received, "RECEIVED"),
	SL_FIELD_AS(DURATION_US, struct row, longest_us, "duration_us", "LONGEST"),
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
	}
	key->exe = sock->process.exe ? sock->process.exe->id : 0;
	key->state = (__u16)sock->state;
	memcpy(key->proto, sock->proto, sizeof(key->proto));
}

static void row_start(struct row *row, const struct key *key, const struct sl_view_sock *sock)
{
	snprintf(row->exe, sizeof(row->exe), "%s",
		 sock->process.exe ? sock->process.exe->path : sock->process.comm);
	snprintf(row->proto, sizeof(row->proto), "%s", sock->proto);
	row->direction = ways[key->way];
	row->state = sl_view_state_name(sock->state);
	row->local = key->local;
	if (sl_view_endpoint_empty(&key->remote))
		return;
	if (key->way == WAY_IN)
		sl_format_addr(row->remote, sizeof(row->remote), key->remote.addr_be);
	else
		sl_format_endpoint(row->remote, sizeof(row->remote), &key->remote);
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
	if (sl_view_endpoint_empty(&sock->remote) && !sock->bytes_sent && !sock->bytes_received) {
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
	row->pid = sock->process.pid;
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

int sl_summary_print(struct sl_summary *summary, uint64_t missing, FILE *file)
{
	size_t count = sl_htab_count(summary->rows), at = 0, n = 0;
	_cleanup_free_ struct row *rows = calloc(count + 1, sizeof(*rows));
	struct sl_records records = { rows, 0, sizeof(*rows) };
	struct sl_output output;
	void *value;
	int rc = 0;

	if (!rows)
		return -ENOMEM;
	while (sl_htab_next(summary->rows, &at, NULL, &value))
		rows[n++] = *(struct row *)value;
	qsort(rows, n, sizeof(*rows), by_count);
	records.count = n < SL_SUMMARY_SHOWN ? n : SL_SUMMARY_SHOWN;
	sl_output_init(&output, file);
	print_head(summary, missing, file);
	if (n)
		rc = sl_print_list(&output, row_fields, &records);
	if (n > records.count || summary->beyond)
		fprintf(file, "… and %zu more rows, %llu sockets beyond them\n", n - records.count,
			(unsigned long long)summary->beyond);
	return rc;
}
