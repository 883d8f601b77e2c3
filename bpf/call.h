/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verdict on a call: making a socket, naming a destination. Used at the sandbox's own
 * cgroup, and at the root for members that have left it.
 */
#ifndef SLUICE_BPF_CALL_H
#define SLUICE_BPF_CALL_H

#include "cgroup.h"
#include "loopback.h"
#include "name.h"
#include "peer.h"
#include "probe.h"
#include "proxy.h"

/*
 * Tells a denial of the calling task's call and sets its errno. Returns what the hook
 * returns: 1 when the call goes on (audit).
 */
SL_GLOBAL int call_deny(struct sl_decision_key *key, __u64 cookie, __u32 class_id)
{
	struct sl_guard *guard;
	struct sl_owner owner;
	__u32 sandbox;

	if (!key)
		return 0;
	if (verdict_tell(key, owner_now(&owner) ? &owner : NULL, cookie, class_id))
		return 1;
	sandbox = key->sandbox;
	guard = bpf_map_lookup_elem(&guards, &sandbox);
	bpf_set_retval(guard && guard->deny_errno > 0 ? -guard->deny_errno : -13); /* EACCES */
	return 0;
}

/* What a global function returns has no bounds, and a hook's result must. */
static __always_inline int verdict_deny(struct sl_decision_key *key, __u64 cookie, __u32 class_id)
{
	return call_deny(key, cookie, class_id) & 1;
}

/* Types whose traffic runs the hooks: the others are refused when they are made. */
static __always_inline bool type_mediated(struct bpf_sock *ctx)
{
	if (ctx->type == SOCK_STREAM)
		return ctx->protocol == IPPROTO_TCP || ctx->protocol == IPPROTO_MPTCP;
	return ctx->type == SOCK_DGRAM &&
	       (ctx->protocol == IPPROTO_UDP || ctx->protocol == IPPROTO_UDPLITE);
}

/*
 * The sandbox that decides a call. A task in its cgroup that is not known (no memory for
 * its state) must not pass for nobody's: its cgroup names the sandbox.
 */
static __always_inline __u32 caller_sandbox(struct task_struct *task, const struct sl_owner *state)
{
	return state ? state->sandbox : task_cgroup_sandbox(task);
}

/* What the policy says of making such a socket; as the hook returns it. */
static __always_inline int create_verdict(struct bpf_sock *ctx, __u32 sandbox,
					  const struct sl_owner *state)
{
	struct sl_guard *guard = guard_active(sandbox);
	struct sl_decision_key key = { .sandbox = sandbox };

	if (!guard)
		return 1;
	if (state)
		key.lineage = state->lineage;
	if (guard->mode == SL_GUARD_FROZEN)
		key.reason = SL_REASON_FROZEN;
	else if (!state)
		key.reason = SL_REASON_NO_IDENTITY;
	else if (!type_mediated(ctx) && !(guard->flags & SL_GUARD_RAW))
		key.reason = SL_REASON_FAMILY;
	else
		return 1;
	key.policy = guard->policy;
	key.family = ctx->family;
	key.type = ctx->type;
	key.protocol = ctx->protocol;
	return verdict_deny(&key, 0, 0);
}

/*
 * `v6` is the hook's family, which is the address's and not the socket's: IPv6 UDP
 * sockets take IPv4 addresses, and those run the hooks for IPv4.
 */
static __always_inline void remote_of(struct sl_endpoint *remote, struct bpf_sock_addr *ctx,
				      bool v6)
{
	__be32 addr_be[4];

	if (!v6) {
		endpoint_v4(remote, ctx->user_ip4, ctx->user_port);
		return;
	}
	addr_be[0] = ctx->user_ip6[0];
	addr_be[1] = ctx->user_ip6[1];
	addr_be[2] = ctx->user_ip6[2];
	addr_be[3] = ctx->user_ip6[3];
	endpoint_v6(remote, addr_be, ctx->user_port);
}

static __always_inline bool call_own_loopback(struct bpf_sock_addr *ctx,
					      const struct sl_endpoint *remote,
					      struct sl_guard *guard, __u32 sandbox, bool udp)
{
	struct sl_endpoint local = {};

	if (!endpoint_loopback(remote))
		return false;
	if (udp && ctx->sk)
		endpoint_local(&local, ctx->sk);
	return own_loopback(ctx, remote, &local, guard, sandbox, udp);
}

/*
 * What has allowed the socket's remote end. Its own loopback: no rule did, so no later
 * policy takes it back.
 */
static __always_inline void sock_settle(struct sl_sock *rec, __u32 policy, bool own)
{
	rec->policy = policy;
	if (own)
		rec->flags |= SL_SOCK_OWN;
	else
		rec->flags &= ~SL_SOCK_OWN;
}

/* What comes with the verdict on a call. */
struct call_found {
	const struct sl_endpoint *proxy; /* who takes it, being allowed; NULL: who was asked */
	__u32 name;                      /* id of the destination's; 0: none is known */
};

/*
 * What a verdict on a datagram depends on, as one word under the set's secret seed, so that
 * threads which send at once can't leave a mixture of two that were allowed. 0: it can't be
 * remembered.
 */
static __always_inline __u64 allowed_hash(const struct verdict *v, const struct sl_endpoint *remote)
{
	struct sl_config *cfg = config_get();

	if (!cfg || v->strict)
		return 0;
	return peer_mix(peer_hash(remote), (__u64)v->policy << 32 | v->lineage, cfg->hash_seed);
}

/*
 * What the policy says of this destination; as the hook returns it. `settles`: it is the
 * socket's remote end from now on, and not that of one datagram. Fills in what else was
 * found, unless the destination is that of the datagram before.
 */
static __always_inline int remote_verdict(struct bpf_sock_addr *ctx, struct sl_sock *rec,
					  const struct sl_endpoint *remote,
					  struct task_struct *task, const struct sl_owner *state,
					  bool connecting, bool settles, struct call_found *found)
{
	__u32 sandbox = !state && rec ? rec->owner.sandbox : caller_sandbox(task, state);
	/* MPTCP joins are made by a kworker, for the socket's owner. */
	const struct sl_owner *who = state ?: rec && !task->mm ? &rec->owner : NULL;
	struct sl_guard *guard = guard_active(sandbox);
	struct sl_decision_key key = {};
	struct verdict v = {};
	bool udp = ctx->type == SOCK_DGRAM, own = false;
	__u64 hash = 0;

	if (!guard)
		return 1;
	verdict_ask(&v, guard, who ? who->lineage : 0, rec,
		    udp ? SL_TRANSPORT_UDP : SL_TRANSPORT_TCP);
	if (guard->mode == SL_GUARD_FROZEN)
		v.reason = SL_REASON_FROZEN;
	else if (!who)
		v.reason = SL_REASON_NO_IDENTITY;
	else if (udp && rec && !connecting)
		hash = allowed_hash(&v, remote);
	if (hash && rec->allowed == hash) {
		count(sandbox, SL_COUNTER_ALLOWED);
		return 1;
	}
	if (v.reason == SL_REASON_NONE &&
	    !(own = call_own_loopback(ctx, remote, guard, sandbox, udp)))
		verdict_rules(&v, remote);
	found->name = remote_name(guard, sandbox, who, remote);
	if (v.reason == SL_REASON_ENDPOINT && (guard->flags & SL_GUARD_SYNTHETIC) && !found->name &&
	    endpoint_synthetic(remote))
		v.reason = SL_REASON_UNMAPPED_NAME;
	if ((guard->flags & SL_GUARD_PROXY) && !udp && !own && v.reason == SL_REASON_NONE) {
		found->proxy = proxy_takes(rec, sandbox, remote);
		if (!found->proxy)
			v.reason = SL_REASON_PROXY;
	}
	if (v.reason == SL_REASON_NONE) {
		count(sandbox, SL_COUNTER_ALLOWED);
		if (rec && settles)
			sock_settle(rec, v.policy, own);
		if (rec && udp)
			rec->allowed = own ? 0 : hash;
		return 1;
	}
	if (connecting && who && guard->mode != SL_GUARD_FROZEN &&
	    probe_connect(ctx, rec, guard, who->lineage, sandbox, remote))
		return 1;
	key.remote = *remote;
	key.sandbox = sandbox;
	key.lineage = who ? who->lineage : 0;
	key.policy = v.policy;
	key.protocol = udp ? IPPROTO_UDP : IPPROTO_TCP;
	key.reason = v.reason;
	key.name = found->name;
	/* A datagram's connect() has sent nothing yet: see SL_DECISION_TRIED. */
	if (connecting && udp)
		key.type = SL_DECISION_TRIED;
	return verdict_deny(&key, rec ? rec->cookie : 0, v.class_id);
}

#endif
