/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes and end of a TCP connection, from its tcp_sock. Sequence numbers count SYN and
 * FIN as one byte each (RFC 9293, 3.4); they are taken off, so payload is left.
 */
#ifndef SLUICE_BPF_BYTES_H
#define SLUICE_BPF_BYTES_H

#include <bpf/bpf_core_read.h>

#include "sock.h"

#define TCP_FIN_SENT_STATES                                                                 \
	(1 << TCP_FIN_WAIT1 | 1 << TCP_FIN_WAIT2 | 1 << TCP_TIME_WAIT | 1 << TCP_LAST_ACK | \
	 1 << TCP_CLOSING)

/* enum sock_flags (include/net/sock.h): set by tcp_fin() alone for a full TCP socket. */
#define SOCK_DONE_BIT (1 << 1)

struct tcp_bytes {
	__u64 sent;
	__u64 acked;
	__u64 received;
};

static __always_inline __u64 minus(__u64 a, __u64 b)
{
	return a > b ? a - b : 0;
}

/*
 * `active`: this side sent the SYN (a passive child starts counting after it).
 *
 * In TCP_CLOSE nothing says any more whether a FIN was among what was sent; the counts
 * of payload that left (bytes_sent less bytes_retrans) and of what never did tell it.
 *
 * tcp_disconnect(), which connect() itself calls when it fails, zeroes the counts and moves
 * write_seq ahead of snd_una by a window: there the difference is no payload. It also
 * clears the remote port, which nothing else does.
 */
static __always_inline void tcp_bytes_read(struct tcp_bytes *out, struct tcp_sock *tp, __u8 state,
					   bool active)
{
	__u64 acked = BPF_CORE_READ(tp, bytes_acked);
	__u64 received = BPF_CORE_READ(tp, bytes_received);
	__u32 snd_una = BPF_CORE_READ(tp, snd_una);
	__u32 write_seq = BPF_CORE_READ(tp, write_seq);
	__u32 unacked = write_seq - snd_una;
	__be16 dport_be = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_dport);
	__u64 syn = active ? 1 : 0, fin = 0, left;

	if (state == TCP_CLOSE && !dport_be) {
		__builtin_memset(out, 0, sizeof(*out));
		return;
	}
	if (1 << state & TCP_FIN_SENT_STATES) {
		fin = 1;
	} else if (state == TCP_CLOSE) {
		left = BPF_CORE_READ(tp, bytes_sent) - BPF_CORE_READ(tp, bytes_retrans) +
		       (__u32)(write_seq - BPF_CORE_READ(tp, snd_nxt));
		fin = minus(acked + unacked, syn) == left + 1;
	}
	out->sent = minus(acked + unacked, syn + fin);
	/* All is acknowledged: the FIN is as well. Else it is the last of what is not. */
	out->acked = minus(acked, syn + (unacked ? 0 : fin));
	if (BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_flags) & SOCK_DONE_BIT)
		received = minus(received, 1);
	out->received = received;
}

#endif
