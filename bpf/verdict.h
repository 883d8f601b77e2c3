/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verdict: a pure function of maps, in the caller's context, on the kernel's own copy
 * of the address. Any miss denies. See sluice/guard.h for the look-ups, and
 * user/policy/decide.h for the order of reasons, which is the same here.
 */
#ifndef SLUICE_BPF_VERDICT_H
#define SLUICE_BPF_VERDICT_H

#include "scratch.h"
#include "sock.h"

struct verdict {
	__u32 policy;
	__u32 class_id;
	__u32 reason;    /* enum sl_reason; SL_REASON_NONE: allowed */
	__u32 lineage;   /* who asks; these are set by verdict_ask() */
	__u32 opener;    /* of who opened the socket; 0: not known */
	__u32 strict;    /* whether the opener counts */
	__u32 transport; /* enum sl_transport */
};

static __always_inline bool bits_meet(const struct sl_bits *a, const struct sl_bits *b)
{
	__u64 both = 0;

	for (int i = 0; i < SL_POLICY_WORDS; i++)
		both |= a->word[i] & b->word[i];
	return both != 0;
}

static __always_inline struct sl_guard_dest *verdict_dest(__u32 policy, __u8 transport,
							  const struct sl_endpoint *remote)
{
	struct sl_guard_port port = {
		.prefix_bits = SL_GUARD_PORT_BITS(16),
		.policy = policy,
		.transport = transport,
		.port_be = remote->port_be,
	};
	__u32 *port_class = bpf_map_lookup_elem(&guard_ports, &port);
	struct sl_guard_dest_key key = {
		.prefix_bits = 128,
		.policy = port_class ? policy : 0,
		.port_class = port_class ? *port_class : 0,
	};
	struct sl_guard_dest *dest;

	__builtin_memcpy(key.addr_be, remote->addr_be, sizeof(key.addr_be));
	dest = port_class ? bpf_map_lookup_elem(&guard_leases, &key) : NULL;
	if (dest)
		return dest;
	key.prefix_bits = SL_GUARD_DEST_BITS(128);
	return bpf_map_lookup_elem(&guard_dests, &key);
}

/* Lineage of who opened a socket; 0: not known. */
static __always_inline __u32 opener_lineage(const struct sl_sock *rec)
{
	__u64 cookie = rec ? rec->cookie : 0;
	struct sl_sock_more *more = NULL;

	if (!rec || (rec->flags & (SL_SOCK_FOREIGN | SL_SOCK_PREEXISTING | SL_SOCK_OPENER_LOST)))
		return 0;
	if (rec->flags & SL_SOCK_MORE)
		more = bpf_map_lookup_elem(&sock_more, &cookie);
	return more && more->opener.tgid ? more->opener.lineage : rec->owner.lineage;
}

/* What is asked, and nothing against it yet; verdict_rules() or listen_rules() answers. */
static __always_inline void verdict_ask(struct verdict *v, const struct sl_guard *guard,
					__u32 lineage, const struct sl_sock *rec, __u32 transport)
{
	v->policy = guard->policy;
	v->class_id = 0;
	v->reason = SL_REASON_NONE;
	v->lineage = lineage;
	v->strict = guard->flags & SL_GUARD_STRICT;
	v->opener = v->strict ? opener_lineage(rec) : 0;
	v->transport = transport;
}

/*
 * Whether a destination and a lineage have a bit in common. A strict one counts only if who
 * opened the socket has it as well, so that nobody lends one to, or has one connected by,
 * an allowed binary.
 */
static __always_inline bool allowed_by(const struct verdict *v, const struct sl_bits *allowed,
				       const struct sl_guard_lineage *has)
{
	struct sl_guard_lineage_key key = { v->policy, v->opener };
	struct sl_guard_lineage *opener;
	struct sl_guard_policy *policy;
	__u64 both = 0, strict;
	__u32 id = v->policy;

	if (!v->strict)
		return bits_meet(allowed, &has->match);
	opener = bpf_map_lookup_elem(&guard_lineages, &key);
	policy = bpf_map_lookup_elem(&guard_policies, &id);
	if (!policy)
		return false;
	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		strict = policy->strict_bits.word[i];
		if (opener)
			strict &= ~opener->match.word[i];
		both |= allowed->word[i] & has->match.word[i] & ~strict;
	}
	return both != 0;
}

/* Whether it is for strictness that the lineage, which has what it takes, is denied. */
static __always_inline bool denied_strict(__u32 policy_id, const struct sl_bits *allowed,
					  const struct sl_guard_lineage *has)
{
	struct sl_guard_policy *policy = bpf_map_lookup_elem(&guard_policies, &policy_id);
	__u64 unchecked = has->flags & SL_GUARD_UNCHECKED ? ~0ULL : 0, both = 0, bits;

	if (!policy)
		return false;
	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		bits = has->match.word[i] | (has->missed.word[i] & unchecked);
		both |= allowed->word[i] & bits & policy->strict_bits.word[i];
	}
	return both != 0;
}

/* Rules 2 to 8 of decide(), after verdict_ask(). */
SL_GLOBAL int verdict_rules(struct verdict *v, const struct sl_endpoint *remote)
{
	struct sl_guard_lineage_key key = {};
	struct sl_guard_lineage *has;
	struct sl_guard_dest *dest;

	if (!v)
		return 0;
	v->reason = SL_REASON_INTERNAL; /* until there is another one */
	if (!remote)
		return 0;
	key.policy = v->policy;
	key.lineage = v->lineage;
	has = bpf_map_lookup_elem(&guard_lineages, &key);
	dest = verdict_dest(v->policy, v->transport, remote);
	v->reason = SL_REASON_NO_IDENTITY;
	if (dest)
		v->class_id = dest->class_id;
	if (!has || (has->flags & SL_GUARD_NO_IDENTITY))
		return 0;
	v->reason = SL_REASON_ENDPOINT;
	/* Else clang makes one test of the two, which the verifier of 6.1 can't follow. */
	barrier();
	if (!dest)
		return 0;
	if (allowed_by(v, &dest->allowed, has))
		v->reason = SL_REASON_NONE;
	else if (denied_strict(v->policy, &dest->allowed, has))
		v->reason = SL_REASON_STRICT;
	else if (bits_meet(&dest->allowed, &has->missed))
		v->reason = SL_REASON_INTEGRITY;
	else if (dest->flags & SL_GUARD_RULE)
		v->reason = SL_REASON_BINARY;
	else if (dest->flags & SL_GUARD_RESERVED)
		v->reason = SL_REASON_RESERVED_ADDRESS;
	return 0;
}

/* The guard of a sandbox when it decides at all; NULL in observe mode. */
static __always_inline struct sl_guard *guard_active(__u32 sandbox)
{
	struct sl_guard *guard = bpf_map_lookup_elem(&guards, &sandbox);

	return guard && guard->mode != SL_GUARD_OBSERVE ? guard : NULL;
}

/* Whether an entry has the port, after verdict_ask(). */
SL_GLOBAL int listen_rules(struct verdict *v, __u16 port_be)
{
	struct sl_guard_port port = { .prefix_bits = SL_GUARD_PORT_BITS(16), .port_be = port_be };
	struct sl_guard_dest_key key = { .prefix_bits = 128 };
	struct sl_guard_lineage_key lineage_key = {};
	struct sl_guard_lineage *has;
	struct sl_guard_dest *dest;
	__u32 *port_class;

	if (!v)
		return 0;
	port.policy = v->policy;
	port.transport = v->transport;
	port_class = bpf_map_lookup_elem(&guard_ports, &port);
	if (!port_class)
		return 0;
	key.policy = v->policy;
	key.port_class = *port_class;
	dest = bpf_map_lookup_elem(&guard_leases, &key);
	lineage_key.policy = v->policy;
	lineage_key.lineage = v->lineage;
	has = bpf_map_lookup_elem(&guard_lineages, &lineage_key);
	return dest && has && !(has->flags & SL_GUARD_NO_IDENTITY) &&
	       allowed_by(v, &dest->allowed, has);
}

/*
 * Whether a socket may be reached from outside of its sandbox: it listens on loopback, or an
 * entry of the policy has the port for its owner's lineage.
 */
static __always_inline bool listen_allowed(struct sl_guard *guard, enum sl_transport transport,
					   const struct sl_endpoint *local,
					   const struct sl_sock *rec)
{
	struct verdict v;

	if (endpoint_loopback(local))
		return true;
	verdict_ask(&v, guard, rec->owner.lineage, rec, SL_GUARD_LISTEN + transport);
	return listen_rules(&v, local->port_be);
}

/* --- telling --- */

static __always_inline void decision_owner(struct sl_owner *out, const struct sl_owner *owner)
{
	if (owner)
		*out = *owner;
	else
		__builtin_memset(out, 0, sizeof(*out));
}

/*
 * The row of decisions like this one; made if there is none, in scratch space: the stack
 * of a hook and of what it calls is 512 bytes together. NULL: no memory.
 */
static __always_inline struct sl_decision_row *
decision_row(struct sl_decision_key *key, const struct sl_owner *owner, __u32 class_id, __u64 now)
{
	struct sl_decision_row *row = bpf_map_lookup_elem(&decisions, key), *fresh;
	struct scratch *s;
	__u32 slot;

	if (row)
		return row;
	slot = scratch_take();
	s = scratch_at(slot);
	if (!s)
		return NULL;
	fresh = (struct sl_decision_row *)s->buf;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	decision_owner(&fresh->owner, owner);
	fresh->first_ns = now;
	fresh->class_id = class_id;
	bpf_map_update_elem(&decisions, key, fresh, BPF_NOEXIST);
	scratch_give(slot);
	return bpf_map_lookup_elem(&decisions, key);
}

/*
 * How many of this kind the next event has to tell; 0: none now. Who moves `told` tells
 * them, so that each is told once; what can't be told after all is given back.
 */
static __always_inline __u64 decision_due(struct sl_decision_row *row, __u64 now)
{
	__u64 told, due;

	row->last_ns = now;
	__sync_fetch_and_add(&row->count, 1);
	told = row->told;
	if (told && now - row->told_ns < SL_DECISION_INTERVAL_NS)
		return 0;
	due = row->count - told;
	if (!due || __sync_val_compare_and_swap(&row->told, told, told + due) != told)
		return 0;
	row->told_ns = now;
	return due;
}

static __always_inline void count_denied(__u32 sandbox, enum sl_reason reason, bool audit)
{
	struct sl_counters *row = bpf_map_lookup_elem(&counters, &sandbox);

	if (!row)
		return;
	__sync_fetch_and_add(&row->n[audit ? SL_COUNTER_AUDITED : SL_COUNTER_DENIED], 1);
	__sync_fetch_and_add(&row->denied[reason & 15], 1);
}

/* Counts and tells a denial. Returns whether the call goes on all the same (audit). */
SL_GLOBAL int verdict_tell(const struct sl_decision_key *what, const struct sl_owner *owner,
			   __u64 cookie, __u32 class_id)
{
	struct sl_event_decision *event;
	struct sl_decision_row *row;
	struct sl_decision_key key;
	struct sl_guard *guard;
	__u64 now, due = 1;
	__u32 sandbox;
	bool audit;

	if (!what)
		return 0;
	key = *what; /* 6.1 takes no key from memory that came in by a pointer */
	sandbox = key.sandbox;
	guard = bpf_map_lookup_elem(&guards, &sandbox);
	audit = guard && guard->mode == SL_GUARD_AUDIT;
	key.verdict = audit ? SL_VERDICT_AUDIT : SL_VERDICT_DENY;
	count_denied(sandbox, key.reason, audit);
	now = bpf_ktime_get_boot_ns();
	row = decision_row(&key, owner, class_id, now);
	if (row)
		due = decision_due(row, now);
	else
		count(sandbox, SL_COUNTER_DECISIONS_FULL);
	event = due ? event_begin(sandbox, SL_EVENT_DECISION, sizeof(*event), now) : NULL;
	if (event) {
		event->decision.key = key;
		decision_owner(&event->decision.owner, owner);
		event->decision.cookie = cookie;
		event->decision.first_ns = row ? row->first_ns : now;
		event->decision.last_ns = now;
		event->decision.count = due;
		event->decision.class_id = class_id;
		event->decision.pad = 0;
		event_end(sandbox, event);
	} else if (due && row) {
		__sync_fetch_and_add(&row->told, -due);
	}
	return audit;
}

/*
 * Tells that a socket gets nothing from outside, for want of a `listen` entry. Returns
 * whether it does all the same (audit).
 */
static __always_inline bool listen_tell(const struct sl_sock *rec, struct sl_guard *guard,
					__u16 protocol, const struct sl_endpoint *local)
{
	struct sl_decision_key key = {
		.remote = *local,
		.sandbox = rec->owner.sandbox,
		.lineage = rec->owner.lineage,
		.policy = guard->policy,
		.protocol = protocol,
		.reason = SL_REASON_LISTEN,
	};

	return verdict_tell(&key, &rec->owner, rec->cookie, 0);
}

#endif
