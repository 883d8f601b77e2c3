// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Bytes of UDP, raw and ping sockets where the sock_*_length tracepoints are missing
 * (before 6.3): payload of the packets at the cgroup's edge. Attached only there, since
 * it costs every packet. AF_PACKET passes no such hook.
 */
#include "kernel.h"
#include "sock.h"

#define IPV4_HEADER_BYTES(first) (((first)&15) * 4)
#define IPV6_HEADER_BYTES 40
#define UDP_HEADER_BYTES 8

static __always_inline __u32 skb_payload(struct __sk_buff *skb, __u16 protocol)
{
	__u32 header = protocol == IPPROTO_UDP ? UDP_HEADER_BYTES : 0;
	__u8 first = 0;

	if (bpf_skb_load_bytes(skb, 0, &first, 1))
		return 0;
	header += first >> 4 == 6 ? IPV6_HEADER_BYTES : IPV4_HEADER_BYTES(first);
	return skb->len > header ? skb->len - header : 0;
}

static __always_inline int skb_count(struct __sk_buff *skb, bool egress)
{
	struct bpf_sock *sk = skb->sk;
	struct sl_sock *rec;
	__u32 bytes;

	if (!sk)
		return 1;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol == IPPROTO_TCP)
		return 1;
	rec = sock_find(sk, bpf_get_socket_cookie(skb));
	if (!rec)
		return 1;
	bytes = skb_payload(skb, sk->protocol);
	rec->flags |= SL_SOCK_COUNTED_SKB;
	if (egress)
		rec->flags |= SL_SOCK_SENT;
	__sync_fetch_and_add(egress ? &rec->bytes_sent : &rec->bytes_received, bytes);
	return 1;
}

SEC("cgroup_skb/egress")
int on_skb_egress(struct __sk_buff *skb)
{
	return skb_count(skb, true);
}

SEC("cgroup_skb/ingress")
int on_skb_ingress(struct __sk_buff *skb)
{
	return skb_count(skb, false);
}
