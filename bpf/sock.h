/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The record of a socket: making one, finding it, closing it. */
#ifndef SLUICE_BPF_SOCK_H
#define SLUICE_BPF_SOCK_H

#include "tuple.h"

/* --- what few sockets have --- */

/* The row to write into, made on first use; NULL when there is no room (counted). */
static __noinline struct sl_sock_more *more_get(__u64 cookie)
{
	struct sl_sock_more *more = bpf_map_lookup_elem(&sock_more, &cookie), empty = {};

	if (more)
		return more;
	if (bpf_map_update_elem(&sock_more, &cookie, &empty, BPF_NOEXIST))
		return NULL;
	return bpf_map_lookup_elem(&sock_more, &cookie);
}

static __always_inline struct sl_sock_more *sock_more_get(struct sl_sock *rec)
{
	struct sl_sock_more *more = more_get(rec->cookie);

	if (more)
		rec->flags |= SL_SOCK_MORE;
	else
		count(rec->owner.sandbox, SL_COUNTER_MORE_FULL);
	return more;
}

/*
 * The calling process, whose state is given, becomes the owner. A creator other than it (or
 * it before an exec) stays known as the opener.
 */
static __always_inline void sock_take(struct sl_sock *rec, const struct sl_owner *state)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sl_sock_more *more;

	/* MPTCP joins are made by a kworker, which owns nothing. */
	if (!state)
		return;
	if (owner_equal(&rec->owner, state) && rec->owner.tid == (__u32)task->pid)
		return;
	if (!owner_equal(&rec->owner, state)) {
		more = sock_more_get(rec);
		if (!more)
			rec->flags |= SL_SOCK_OPENER_LOST;
		else if (!more->opener.tgid)
			more->opener = rec->owner;
	}
	owner_fill(&rec->owner, state, task);
}

/*
 * Notes that the calling process, whose state is given, uses the socket. Another process than
 * the owner, or the owner after an exec, becomes `user`.
 */
static __always_inline void sock_note_user(struct sl_sock *rec, const struct sl_owner *state)
{
	struct sl_sock_more *more;

	if (!state || owner_equal(&rec->owner, state))
		return;
	more = sock_more_get(rec);
	if (!more)
		return;
	if (!(rec->flags & SL_SOCK_INHERITED) || !owner_equal(&more->user, state))
		owner_fill(&more->user, state, bpf_get_current_task_btf());
	rec->flags |= SL_SOCK_INHERITED;
}

/* --- events --- */

/* Tells it with what few sockets have, if it has. 0. */
SL_GLOBAL int sock_tell(__u32 kind, struct sl_sock *rec, __u64 now)
{
	struct sl_sock_more *more = NULL;
	struct sl_event_sock *event;
	__u64 cookie;
	__u32 sandbox;

	if (!rec)
		return 0;
	cookie = rec->cookie;
	sandbox = rec->owner.sandbox;
	if (rec->flags & SL_SOCK_MORE)
		more = bpf_map_lookup_elem(&sock_more, &cookie);
	if (more)
		event = event_begin(sandbox, kind, sizeof(*event), now);
	else
		event = event_begin(sandbox, kind, SL_EVENT_SOCK_MIN, now);
	if (!event)
		return 0;
	event->sock = *rec;
	if (more)
		event->more = *more;
	event_end(sandbox, event);
	return 0;
}

/* `now` 0: read the clock, if the event is wanted at all. */
static __always_inline void sock_event(enum sl_event_kind kind, struct sl_sock *rec, __u64 now)
{
	if (event_wanted(rec->owner.sandbox, kind))
		sock_tell(kind, rec, now ?: bpf_ktime_get_boot_ns());
}

/* --- finding and making records --- */

/* First fields of an adopted record, whose memory is zero. */
static __always_inline void sock_init(struct sl_sock *rec, __u64 cookie, __u32 flags)
{
	rec->cookie = cookie;
	rec->flags = flags;
	count(rec->owner.sandbox, SL_COUNTER_SOCK_CREATED);
}

/* A record for a socket whose creation was not seen; the caller fills in what it is. */
static __always_inline struct sl_sock *sock_adopt(void *sk, __u64 cookie,
						  const struct sl_owner *owner, __u32 flags)
{
	struct sl_sock *rec = bpf_sk_storage_get(&adopted, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!rec) {
		count(owner->sandbox, SL_COUNTER_SOCK_NOMEM);
		return NULL;
	}
	rec->owner = *owner;
	sock_init(rec, cookie, flags);
	count(owner->sandbox, SL_COUNTER_SOCK_ADOPTED);
	return rec;
}

/* The first use; a connect, which may be repeated, sets it anew. */
static __always_inline void sock_since(struct sl_sock *rec)
{
	if (!rec->since_ns)
		rec->since_ns = bpf_ktime_get_boot_ns();
}

/* --- the end --- */

/* The one end of every record: counts, event, a place among the closed ones. */
static __always_inline void sock_finish(struct sl_sock *rec)
{
	__u64 now = bpf_ktime_get_boot_ns(), cookie = rec->cookie;
	struct sl_sock *slot = slot_find(cookie);
	__u32 sandbox = rec->owner.sandbox;

	rec->closed_ns = now;
	tuple_remove(rec);
	count(sandbox, SL_COUNTER_SOCK_DELETED);
	if (rec->flags & SL_SOCK_ADOPTED)
		count(sandbox, SL_COUNTER_ADOPTED_ENDED);
	sock_event(SL_EVENT_CLOSE, rec, now);
	/* From here its slot may be taken. */
	__sync_fetch_and_or(&rec->flags, SL_SOCK_RELEASED);
	closed_keep(rec, slot, cookie, sandbox);
}

#endif
