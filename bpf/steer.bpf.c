// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Steering in a relay sandbox's network namespace, where two routes make every address a
 * local one: what is for another address than loopback goes to the relay's listeners, and
 * port 53 of any address to the policy DNS. An object of its own, loaded once a sandbox.
 *
 *	inet_lookup_listener() -> inet_lookup_run_sk_lookup()   each SYN
 *	__udp4_lib_lookup()    -> the same                      unless a connected socket has it
 *
 * So it comes before the members' own listeners, also those of every address, and what is
 * established or connected never comes here. The address stays as it is: the accepted
 * socket's own one is where the client wanted to go. Nobody there to take it: refused.
 */
#include "kernel.h"
#include "inet.h"

#include <sluice/steer.h>

struct {
	__uint(type, BPF_MAP_TYPE_SOCKMAP);
	__uint(max_entries, SL_STEER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} listeners SEC(".maps");

static __always_inline void local_of(struct sl_endpoint *local, struct bpf_sk_lookup *ctx)
{
	/* Read before the branch: see sockops_endpoints(). */
	__be32 local4 = ctx->local_ip4;
	__be32 local6[4] = { ctx->local_ip6[0], ctx->local_ip6[1], ctx->local_ip6[2],
			     ctx->local_ip6[3] };
	__be16 port_be = bpf_htons(ctx->local_port);

	barrier_var(local4);
	if (ctx->family == AF_INET)
		endpoint_v4(local, local4, port_be);
	else
		endpoint_v6(local, local6, port_be);
}

SEC("sk_lookup")
int on_lookup(struct bpf_sk_lookup *ctx)
{
	struct sl_endpoint local;
	struct bpf_sock *sk;
	__u32 which = 0;
	long err;

	local_of(&local, ctx);
	if (local.port_be == bpf_htons(SL_DNS_PORT))
		which |= SL_STEER_DNS;
	else if (endpoint_loopback(&local))
		return SK_PASS;
	if (ctx->protocol == IPPROTO_UDP)
		which |= SL_STEER_UDP;
	if (ctx->family != AF_INET)
		which |= SL_STEER_V6;
	sk = bpf_map_lookup_elem(&listeners, &which);
	if (!sk)
		return SK_DROP;
	err = bpf_sk_assign(ctx, sk, 0);
	bpf_sk_release(sk);
	return err ? SK_DROP : SK_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
