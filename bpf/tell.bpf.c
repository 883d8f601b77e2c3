// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What user space knows, told like what the hooks see. Run by user space itself
 * (bpf_prog_test_run), so that counters, rows and events have one writer.
 */
#include "kernel.h"
#include "original.h"
#include "verdict.h"

/* A denial of its own: a socket that the seccomp filter refuses runs no hook. */
SEC("syscall")
int on_refused(struct sl_refused *ctx)
{
	struct sl_decision_key key = ctx->key;
	struct sl_owner owner = ctx->owner;

	verdict_tell(&key, &owner, 0, 0);
	return 0;
}

/* What an explicit proxy was asked for, into its client's record: the hooks saw the proxy. */
static __always_inline void note_asked(const struct sl_relayed *ctx)
{
	struct sl_sock *rec = sock_by_cookie(ctx->sock.cookie);
	struct sl_sock_more *more;

	/* Closed, or connected anew, meanwhile: it is another connection's. */
	if (!rec || rec->generation != ctx->sock.generation || rec->flags & SL_SOCK_RELEASED)
		return;
	more = sock_more_get(rec);
	if (!more)
		return;
	more->original = ctx->more.original;
	rec->name = ctx->sock.name;
	__sync_fetch_and_or(&rec->flags, SL_SOCK_ASKED);
}

/* What has become of a relay's client: the relay dials for it, which no hook of its sees. */
SEC("syscall")
int on_relayed(struct sl_relayed *ctx)
{
	__u32 sandbox = ctx->sandbox, kind = ctx->kind, counter = ctx->counter;
	struct sl_event_sock *event;

	count(sandbox, counter); /* if there is such a one */
	if (!ctx->sock.cookie || (kind != SL_EVENT_REQUEST && kind != SL_EVENT_UNREACHABLE))
		return 0;
	if (kind == SL_EVENT_REQUEST)
		note_asked(ctx);
	event = event_begin(sandbox, kind, sizeof(*event), bpf_ktime_get_boot_ns());
	if (!event)
		return 0;
	event->sock = ctx->sock;
	event->more = ctx->more;
	event_end(sandbox, event);
	return 0;
}

/* A socket that user space has given a record, in its storage. */
SEC("syscall")
int on_adopted(struct sl_adopted *ctx)
{
	__u32 sandbox = ctx->sandbox;

	count(sandbox, SL_COUNTER_SOCK_CREATED);
	count(sandbox, SL_COUNTER_SOCK_ADOPTED);
	return 0;
}
