// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Bytes of sockets other than TCP, and senders that no cgroup hook sees (AF_PACKET).
 *
 *	sock_sendmsg(), sock_recvmsg() and io_uring's -> sock_send_length, sock_recv_length
 *
 * In the caller's context, with the exact count the call returns, so it is right for
 * sendmmsg, sendfile, splice, GSO and every mode of AF_PACKET alike. Kernels before 6.3
 * lack these tracepoints; skb.bpf.c counts there.
 */
#include "kernel.h"
#include "sock.h"
#include "trampoline.h"

#define MSG_PEEK 2

TRAMPOLINE(sock_send_length)
TRAMPOLINE(sock_recv_length)

/* First sight of a socket that was made outside the sandbox and is used inside. */
static __always_inline struct sl_sock *traffic_adopt(struct sock *sk, __u64 cookie,
						     const struct sl_owner *state)
{
	struct sl_owner owner;
	struct sl_sock *rec;

	if (!state)
		return NULL;
	owner_fill(&owner, state, bpf_get_current_task_btf());
	rec = sock_adopt(sk, cookie, &owner, SL_SOCK_FOREIGN);
	if (!rec)
		return NULL;
	rec->family = sk->__sk_common.skc_family;
	rec->type = sk->sk_type;
	rec->protocol = sk->sk_protocol;
	rec->since_ns = bpf_ktime_get_boot_ns();
	count(owner.sandbox, SL_COUNTER_SOCK_UNSEEN);
	sock_event(SL_EVENT_SEND, rec, rec->since_ns);
	return rec;
}

/* A function of its own for its stack, which others of the hook need as well. */
static __noinline struct sl_sock *packet_adopt(struct sock *sk, __u64 cookie)
{
	struct packet_sock *packet = (void *)sk;
	struct sl_owner owner;
	struct sl_sock *rec, empty = {};
	long err;

	if (!owner_now(&owner))
		return NULL;
	err = bpf_map_update_elem(&packets, &cookie, &empty, BPF_NOEXIST);
	if (err == -17) /* EEXIST: two threads' first sends at once, the other one fills it */
		return bpf_map_lookup_elem(&packets, &cookie);
	if (err) {
		count_map_error(owner.sandbox, SL_COUNTER_PACKETS_FULL, err);
		return NULL;
	}
	rec = bpf_map_lookup_elem(&packets, &cookie);
	if (!rec)
		return NULL;
	count(owner.sandbox, SL_COUNTER_PACKET_CREATED);
	rec->owner = owner;
	sock_init(rec, cookie, SL_SOCK_SENT);
	rec->since_ns = bpf_ktime_get_boot_ns();
	rec->family = AF_PACKET;
	rec->type = sk->sk_type;
	rec->protocol = bpf_ntohs(BPF_CORE_READ(packet, num));
	rec->ifindex = BPF_CORE_READ(packet, ifindex);
	sock_event(SL_EVENT_SEND, rec, rec->since_ns);
	return rec;
}

static __always_inline struct sl_sock *traffic_record(struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;
	struct sl_owner *state;
	struct sl_sock *rec;
	__u64 cookie;

	if (family != AF_PACKET && family != AF_INET && family != AF_INET6)
		return NULL;
	/* This runs for the whole host. TCP, which counts for itself, matters to members only. */
	state = owner_state(bpf_get_current_task_btf());
	if (!state && family != AF_PACKET && sk->sk_protocol == IPPROTO_TCP)
		return NULL;
	cookie = bpf_get_socket_cookie(sk);
	if (family == AF_PACKET) {
		rec = bpf_map_lookup_elem(&packets, &cookie);
		if (!rec)
			return packet_adopt(sk, cookie);
	} else {
		rec = sock_find(sk, cookie);
		if (!rec)
			return traffic_adopt(sk, cookie, state);
	}
	sock_note_user(rec, state);
	return rec;
}

/* TCP counts for itself (bytes.h). */
static __always_inline bool traffic_counts(const struct sl_sock *rec)
{
	return rec->family == AF_PACKET || rec->protocol != IPPROTO_TCP;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(on_send_length, struct sock *sk, int ret, int flags)
{
	struct sl_sock *rec;

	if (ret < 0)
		return 0;
	rec = traffic_record(sk);
	if (!rec || !traffic_counts(rec))
		return 0;
	rec->flags |= SL_SOCK_SENT;
	__sync_fetch_and_add(&rec->bytes_sent, ret);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(on_recv_length, struct sock *sk, int ret, int flags)
{
	struct sl_sock *rec;

	if (ret <= 0 || (flags & MSG_PEEK))
		return 0;
	rec = traffic_record(sk);
	if (rec && traffic_counts(rec))
		__sync_fetch_and_add(&rec->bytes_received, ret);
	return 0;
}
