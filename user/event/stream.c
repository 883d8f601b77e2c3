/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "event/hold.h"
#include "event/ocsf.h"
#include "event/stream.h"

struct sl_event_stream {
	struct sl_event_ops ops;
	struct sl_event_stream_options options;
	struct sl_event_stream_stats stats;
	struct sl_view_source *source;
	struct sl_proc_table *procs;
	struct sl_digest_store *digests;
	struct sl_hold hold;
	struct sl_line line;
	struct sl_view_event_parts parts;
	struct sl_exe exe; /* scratch of request_digest() */
	int error;         /* of the first write that failed */
};

static int set_procs_each(void *ctx, int (*fn)(const struct sl_process *process, void *arg),
			  void *arg)
{
	return sl_procs_each(ctx, fn, arg);
}

struct sl_event_ops sl_event_ops_of_set(struct sl_set *set)
{
	return (struct sl_event_ops){
		.view = sl_view_ops_of_set(set),
		.procs_each = set_procs_each,
		.ctx = set,
	};
}

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int digest_of(unsigned int exe_id, struct sl_digest *out, void *arg)
{
	return sl_digest_get(arg, exe_id, out);
}

void sl_event_stream_free(struct sl_event_stream **stream)
{
	struct sl_event_stream *s = *stream;

	if (!s)
		return;
	sl_view_source_free(&s->source);
	sl_proc_table_free(&s->procs);
	sl_digest_store_free(&s->digests);
	sl_hold_clear(&s->hold);
	free(s);
	*stream = NULL;
}

int sl_event_stream_new(struct sl_event_stream **out, const struct sl_event_ops *ops,
			const struct sl_event_stream_options *options)
{
	_cleanup_(sl_event_stream_free) struct sl_event_stream *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->options = *options;
	s->line.file = options->json;
	if (!s->options.kinds)
		s->options.kinds = SL_EVENT_ALL;
	ret = sl_view_source_new(&s->source, &ops->view);
	if (!ret)
		ret = sl_proc_table_new(&s->procs, 0, 0);
	if (!ret && options->digests)
		ret = sl_digest_store_new(&s->digests);
	if (ret)
		return ret;
	if (s->digests)
		sl_view_source_digests(s->source, digest_of, s->digests);
	*out = TAKE_PTR(s);
	return 0;
}

unsigned int sl_event_stream_wanted(const struct sl_event_stream *stream)
{
	return (stream->options.kinds | SL_EVENT_PROCESS_KINDS) & SL_EVENT_ALL;
}

bool sl_event_stream_done(const struct sl_event_stream *stream)
{
	return stream->options.max && stream->stats.reported >= stream->options.max;
}

static void note_error(struct sl_event_stream *s, int ret)
{
	if (ret && !s->error)
		s->error = ret;
}

static void report(struct sl_event_stream *s, const struct sl_view_event *view)
{
	if (sl_event_stream_done(s))
		return;
	s->stats.reported++;
	if (s->options.json && s->options.ocsf)
		note_error(s, sl_ocsf_line(&s->line, view));
	else if (s->options.json)
		note_error(s, sl_view_event_json(&s->line, view));
	if (s->options.text)
		note_error(s, sl_view_event_text(s->options.text, view, s->options.width));
	if (s->options.fn)
		s->options.fn(view, s->options.arg);
}

static void report_event(struct sl_event_stream *s, const struct sl_event *event)
{
	struct sl_view_event view;

	if (sl_view_event_fill(&view, &s->parts, event, s->source))
		s->stats.dropped++;
	else
		report(s, &view);
	sl_view_source_trim(s->source);
}

static bool event_waits(const struct sl_event_stream *s, const struct sl_event *event)
{
	struct sl_digest digest;

	if (!s->digests || (event->kind != SL_EVENT_EXEC && event->kind != SL_EVENT_CLOSE))
		return false;
	return !sl_digest_get(s->digests, sl_event_exe(event), &digest) &&
	       digest.error == SL_DIGEST_PENDING;
}

/* Asks unless it is known or under way; the file is pinned at once, before it can go. */
static void request_digest(struct sl_event_stream *s, unsigned int exe, unsigned int pid,
			   bool retry)
{
	struct sl_digest digest;
	int ret;

	if (!s->digests || !exe)
		return;
	ret = sl_digest_get(s->digests, exe, &digest);
	if (!ret && (!retry || digest.error == SL_DIGEST_NONE || digest.error == SL_DIGEST_PENDING))
		return;
	if (s->ops.view.identity.exe_by_id(s->ops.view.identity.ctx, exe, &s->exe))
		return;
	if (sl_digest_request(s->digests, &s->exe, (int)pid) == -ENOMEM)
		s->stats.dropped++;
}

static int seed_process(const struct sl_process *process, void *arg)
{
	struct sl_event_stream *s = arg;

	/* Of others no event will come. */
	if (s->options.sandbox && s->options.sandbox != process->sandbox)
		return 0;

	(void)sl_proc_table_seed(s->procs, process);
	request_digest(s, process->exe, process->key.tgid, false);
	return 0;
}

int sl_event_stream_seed(struct sl_event_stream *stream)
{
	int ret;

	sl_view_source_forget_sandbox(stream->source, 0);
	sl_proc_table_resync_begin(stream->procs);
	ret = stream->ops.procs_each(stream->ops.ctx, seed_process, stream);
	if (!ret)
		sl_proc_table_resync_end(stream->procs, sl_boottime_ns());
	return ret;
}

/* What the tables take from an event, whether it is reported or not. */
static void learn(struct sl_event_stream *s, const struct sl_event *event)
{
	const struct sl_event_process *process = (const void *)event;
	const struct sl_event_sock *sock = (const void *)event;

	if (SL_EVENT_BIT(event->kind) & SL_EVENT_PROCESS_KINDS) {
		(void)sl_proc_table_event(s->procs, process);
		if (event->kind == SL_EVENT_ENTER)
			sl_view_source_forget_sandbox(s->source, process->process.sandbox);
		if (event->kind == SL_EVENT_ENTER || event->kind == SL_EVENT_EXEC)
			request_digest(s, process->process.exe, process->process.key.tgid, true);
	} else if (event->kind == SL_EVENT_CLOSE) {
		request_digest(s, sock->sock.owner.exe, sock->sock.owner.tgid, false);
	}
}

static bool is_whole(const struct sl_event *event)
{
	size_t least = sl_event_size_min(event->kind);

	return least && event->size >= least;
}

static bool is_reported(const struct sl_event_stream *s, const struct sl_event *event)
{
	return (s->options.kinds & SL_EVENT_BIT(event->kind)) &&
	       (!s->options.sandbox || s->options.sandbox == sl_event_sandbox(event));
}

static void report_head(struct sl_event_stream *s)
{
	report_event(s, &sl_hold_head(&s->hold)->event.head);
	sl_hold_pop(&s->hold);
}

void sl_event_stream_feed(const struct sl_event *event, void *stream)
{
	struct sl_event_stream *s = stream;

	if (!is_whole(event))
		return;
	learn(s, event);
	if (!is_reported(s, event))
		return;
	if (!s->hold.count && !event_waits(s, event)) {
		report_event(s, event);
		return;
	}
	if (s->hold.count == SL_HOLD_MAX)
		report_head(s);
	if (sl_hold_push(&s->hold, event, clock_ms(CLOCK_MONOTONIC) + SL_HOLD_MS)) {
		/* No memory to wait in: out of turn rather than not at all. */
		report_event(s, event);
	}
}

void sl_event_stream_closed(struct sl_event_stream *stream, const struct sl_sock *sock)
{
	const struct sl_event_sock event = {
		.head = {
			.schema = SL_SCHEMA,
			.kind = SL_EVENT_CLOSE,
			.size = SL_EVENT_SOCK_MIN,
			.time_ns = sock->closed_ns,
		},
		.sock = *sock,
	};

	sl_event_stream_feed(&event.head, stream);
}

static int owner_refs(const struct sl_owner *owner, sl_ref_fn fn, void *arg)
{
	return fn(owner->lineage, owner->exe, owner->script, arg);
}

static int event_refs(const union sl_hold_event *event, sl_ref_fn fn, void *arg)
{
	const struct sl_process *process = &event->process.process;
	const struct sl_event_sock *sock = &event->sock;
	int ret;

	if (SL_EVENT_BIT(event->head.kind) & SL_EVENT_PROCESS_KINDS)
		return fn(process->lineage, process->exe, process->script, arg);
	if (event->head.kind == SL_EVENT_DECISION)
		return owner_refs(&event->decision.decision.owner, fn, arg);
	ret = owner_refs(&sock->sock.owner, fn, arg);
	ret = ret ? ret : owner_refs(&sock->sock.peer, fn, arg);
	if (ret || event->head.size < sizeof(*sock))
		return ret;
	ret = owner_refs(&sock->more.opener, fn, arg);
	return ret ? ret : owner_refs(&sock->more.user, fn, arg);
}

int sl_event_stream_refs(const struct sl_event_stream *stream, sl_ref_fn fn, void *arg)
{
	const struct sl_hold *hold = &stream->hold;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < hold->count; i++)
		ret = event_refs(&hold->slots[(hold->first + i) % SL_HOLD_MAX].event, fn, arg);
	return ret;
}

bool sl_event_stream_holds(const struct sl_event_stream *stream)
{
	return stream->hold.count;
}

static void ignore_answer(unsigned int exe_id, const struct sl_digest *digest, void *arg)
{
	(void)exe_id;
	(void)digest;
	(void)arg;
}

int sl_event_stream_pump(struct sl_event_stream *stream)
{
	const struct sl_hold_slot *head;
	uint64_t now;

	if (stream->digests)
		sl_digest_drain(stream->digests, ignore_answer, NULL);
	if (!stream->hold.count)
		return -1;
	now = clock_ms(CLOCK_MONOTONIC);
	while ((head = sl_hold_head(&stream->hold))) {
		if (event_waits(stream, &head->event.head) && head->deadline_ms > now)
			return (int)(head->deadline_ms - now);
		report_head(stream);
	}
	return -1;
}

void sl_event_stream_lost(struct sl_event_stream *stream, unsigned long long count,
			  const unsigned long long by_kind[SL_EVENT_KIND_MAX])
{
	struct sl_view_lost lost = { .count = count };
	struct sl_view_event view = {
		.event = "lost",
		.time_ns = sl_boottime_ns(),
		.lost = &lost,
	};

	if (!count)
		return;
	stream->stats.lost += count;
	for (int i = 0; i < SL_EVENT_KIND_MAX; i++)
		lost.by_kind[i] = by_kind[i];
	/* It says something about what came before: that goes out first. */
	while (stream->hold.count)
		report_head(stream);
	report(stream, &view);
	(void)sl_event_stream_seed(stream);
}

int sl_event_stream_fd(const struct sl_event_stream *stream)
{
	return stream->digests ? sl_digest_fd(stream->digests) : -1;
}

static void flush_file(struct sl_event_stream *s, FILE *file)
{
	if (!file)
		return;
	errno = 0;
	if (fflush(file))
		note_error(s, -(errno ? errno : EIO));
}

int sl_event_stream_flush(struct sl_event_stream *stream)
{
	flush_file(stream, stream->options.json);
	flush_file(stream, stream->options.text);
	return stream->error;
}

int sl_event_stream_finish(struct sl_event_stream *stream)
{
	uint64_t end = clock_ms(CLOCK_MONOTONIC) + SL_HOLD_MS;
	int timeout;

	while ((timeout = sl_event_stream_pump(stream)) >= 0 && !sl_event_stream_done(stream)) {
		struct pollfd fd = { .fd = sl_event_stream_fd(stream), .events = POLLIN };
		uint64_t now = clock_ms(CLOCK_MONOTONIC);

		if (now >= end)
			break;
		if (now + (uint64_t)timeout > end)
			timeout = (int)(end - now);
		(void)poll(&fd, 1, timeout);
	}
	while (stream->hold.count)
		report_head(stream);
	return sl_event_stream_flush(stream);
}

void sl_event_stream_stats(const struct sl_event_stream *stream, struct sl_event_stream_stats *out)
{
	*out = stream->stats;
}

const struct sl_proc_table *sl_event_stream_procs(const struct sl_event_stream *stream)
{
	return stream->procs;
}
