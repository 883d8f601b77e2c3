/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Events as lines for people. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/format.h"
#include "event/view_event.h"

/* A line is cut there: what a workload chose can't make it longer. */
#define TEXT_MAX 2048

/* The image keeps at least so many columns. */
#define IMAGE_MIN 12

struct text {
	char buf[TEXT_MAX];
	size_t used;
};

static void add(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Appends what is safe already. */
static void add(struct text *text, const char *fmt, ...)
{
	size_t room = sizeof(text->buf) - text->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->buf + text->used, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_escaped(struct text *text, const char *raw)
{
	text->used += sl_escape_text(text->buf + text->used, sizeof(text->buf) - text->used, raw);
}

static void add_head(struct text *text, const struct sl_view_event *view)
{
	char time[SL_FORMAT_MAX];

	sl_format_time(time, sizeof(time), view->time_ns, sl_realtime_offset_ns());
	/* Time of day (UTC) to the millisecond. */
	add(text, "%.12s %-11s ", strchr(time, 'T') ? strchr(time, 'T') + 1 : time, view->event);
}

static void add_endpoint(struct text *text, const struct sl_endpoint *endpoint)
{
	char address[SL_FORMAT_MAX];

	if (sl_view_endpoint_empty(endpoint))
		add(text, "*");
	else
		add(text, "%s", sl_format_endpoint(address, sizeof(address), endpoint));
}

/* By which the address was looked up, or which was asked for. */
static void add_name(struct text *text, const char *name)
{
	if (!name)
		return;
	add(text, text->buf[text->used - 1] == ' ' ? "(" : " (");
	add_escaped(text, name);
	add(text, ")");
}

/* What a line gives up, one after the other, when it is wider than the terminal. */
enum detail {
	DETAIL_NO_DURATION,
	DETAIL_NO_LOCAL, /* of an outgoing connection: the kernel's choice, it tells least */
	DETAIL_ALL,
};

static void add_close(struct text *text, const struct sl_view_sock *sock, enum detail detail)
{
	char sent[SL_FORMAT_MAX], received[SL_FORMAT_MAX], duration[SL_FORMAT_MAX];

	add(text, " sent %s recv %s", sl_format_bytes(sent, sizeof(sent), sock->bytes_sent),
	    sl_format_bytes(received, sizeof(received), sock->bytes_received));
	if (detail > DETAIL_NO_DURATION)
		add(text, " in %s",
		    sl_format_duration_us(duration, sizeof(duration), sock->duration_us));
	if (sock->state != SL_VIEW_CLOSED)
		add(text, " %s", sl_view_state_name(sock->state));
}

static void add_sock(struct text *text, const struct sl_view_event *view, enum detail detail)
{
	const struct sl_view_sock *sock = view->sock;
	bool in = sock->direction == SL_VIEW_DIRECTION_IN;

	add(text, "%s ", sock->proto);
	if (detail == DETAIL_ALL || sock->direction != SL_VIEW_DIRECTION_OUT)
		add_endpoint(text, &sock->local);
	if (sock->direction != SL_VIEW_DIRECTION_LISTEN) {
		add(text, "%s%s ", text->buf[text->used - 1] == ' ' ? "" : " ", in ? "<" : ">");
		add_endpoint(text, &sock->remote);
		add_name(text, sock->name);
	}
	if (view->kind == SL_EVENT_CLOSE)
		add_close(text, sock, detail);
	if (view->kind == SL_EVENT_UNREACHABLE)
		add(text, " %s", sock->error);
	if (sock->peer.pid && view->kind == SL_EVENT_ACCEPT)
		add(text, " of [%u]", sock->peer.pid);
}

static void add_decision(struct text *text, const struct sl_view_decision *decision)
{
	add(text, "%s %s ", decision->verdict, decision->proto);
	if (!decision->family)
		add(text, "> ");
	if (!sl_view_endpoint_empty(&decision->remote))
		add_endpoint(text, &decision->remote);
	add_name(text, decision->name);
	add(text, " %s", decision->reason);
	if (decision->rule) {
		add(text, " rule ");
		add_escaped(text, decision->rule);
	}
	if (decision->sha256_found[0] && decision->sha256_expected[0])
		add(text, " sha256 %s expected %s", decision->sha256_found,
		    decision->sha256_expected);
	if (decision->count > 1)
		add(text, " x%llu", (unsigned long long)decision->count);
}

static void add_exit(struct text *text, const struct sl_view_event *view)
{
	char lifetime[SL_FORMAT_MAX];

	sl_format_duration_us(lifetime, sizeof(lifetime), view->lifetime_us);
	if (view->signal[0])
		add(text, "%s after %s", view->signal, lifetime);
	else
		add(text, "status %d after %s", view->exit_code, lifetime);
}

/* The last component of a path that is safe text already. */
static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The image (its name alone when there is little room), then what it was started by. */
static void add_process(struct text *text, const struct sl_view_process *process,
			unsigned int width, bool lineage)
{
	char path[TEXT_MAX], shown[TEXT_MAX + 4], pid[16];
	size_t columns;

	if (text->buf[text->used - 1] != ' ')
		add(text, " ");
	snprintf(pid, sizeof(pid), "[%u]", process->pid);
	columns = sl_utf8_width(text->buf) + strlen(pid);
	columns = width > columns + IMAGE_MIN ? width - columns : IMAGE_MIN;
	sl_escape_text(path, sizeof(path), process->exe ? process->exe->path : NULL);
	if (!width || sl_utf8_width(path) <= columns)
		add(text, "%s%s", path, pid);
	else if (sl_elide(shown, sizeof(shown), base_name(path), columns))
		add(text, "%s%s", shown, pid);
	for (size_t i = 0; lineage && i < process->lineage.count; i++) {
		size_t before = text->used;

		add(text, " < ");
		add_escaped(text, process->lineage.items[i]);
		if (width && sl_utf8_width(text->buf) > width) {
			text->used = before;
			text->buf[before] = '\0';
			return;
		}
	}
}

static void fill(struct text *text, const struct sl_view_event *view, unsigned int width,
		 enum detail detail)
{
	text->used = 0;
	add_head(text, view);
	if (view->lost)
		add(text, "%llu events: the ring buffer was full",
		    (unsigned long long)view->lost->count);
	else if (view->sock)
		add_sock(text, view, detail);
	else if (view->decision)
		add_decision(text, view->decision);
	else if (view->kind == SL_EVENT_EXIT)
		add_exit(text, view);
	if (view->process)
		add_process(text, view->process, width, !view->sock);
}

int sl_view_event_text(FILE *file, const struct sl_view_event *view, unsigned int width)
{
	int detail = DETAIL_ALL;
	struct text text;

	do {
		fill(&text, view, width, (enum detail)detail);
	} while (width && view->sock && sl_utf8_width(text.buf) > width && detail-- > 0);
	errno = 0;
	fprintf(file, "%s\n", text.buf);
	return ferror(file) ? -(errno ? errno : EIO) : 0;
}
