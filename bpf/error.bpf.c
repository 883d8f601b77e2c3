// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Errors of TCP connections, at the moment the stack reports them: connect(), SO_ERROR and
 * recv() hand sk_err to the application and clear it, so at release it is usually gone.
 *
 *	tcp_reset(), tcp_write_err(), tcp_v4_err(), tcp_v6_err(), MPTCP's own
 *	-> sk_error_report() -> inet_sk_error_report
 *
 * Runs for failures only, often in softirq: `current` is never read here. The waiter has
 * been woken just before; if it took the error on another CPU meanwhile, there is none left
 * to record, and the socket's record says "failed" without a reason.
 */
#include "kernel.h"
#include "sock.h"
#include "trampoline.h"

TRAMPOLINE(inet_sk_error_report)

SEC("tp_btf/inet_sk_error_report")
int BPF_PROG(on_sk_error, struct sock *sk)
{
	int error = sk->sk_err;
	struct sl_sock *rec;

	/* Of datagram sockets it is one message's error, not the end of anything. */
	if (!error || (sk->sk_protocol != IPPROTO_TCP && sk->sk_protocol != IPPROTO_MPTCP))
		return 0;
	/* connect(AF_UNSPEC) reports a reset to its own caller: the network said nothing. */
	if (!sk->__sk_common.skc_dport)
		return 0;
	rec = sock_find(sk, bpf_get_socket_cookie(sk));
	if (rec)
		rec->error = error;
	return 0;
}
