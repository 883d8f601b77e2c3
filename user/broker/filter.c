// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Builds the program. One block an architecture, one sub-block a call that needs a look
 * at its arguments; a block starts with "not mine? jump over it". Jumps over a block are
 * 32 bits wide (BPF_JA), so nothing depends on a block's length.
 */
#include "broker/filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "broker/filter_private.h"
#include "broker/notify.h"

/* Only the low half: the kernel takes these arguments as int. Little-endian. */
#define ARG_LOW(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define ARG_HIGH(n) (ARG_LOW(n) + 4)
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "ARG_LOW");

#define FAMILY_BITS 64
#define TYPE_MASK 0xf /* SOCK_TYPE_MASK of include/linux/net.h: the rest are flags */

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

/* Protocols of IP sockets that the cgroup hooks mediate. 0: the type's own. */
static const int protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, IPPROTO_MPTCP };
static const int types[] = { SOCK_STREAM, SOCK_DGRAM };

static void put(struct sl_filter *f, unsigned int code, unsigned int jt, unsigned int jf,
		unsigned int k)
{
	/* One too many is seen by sl_filter_make(). */
	if (f->len < SL_FILTER_MAX)
		f->code[f->len] = (struct sock_filter){ code, jt, jf, k };
	f->len += f->len <= SL_FILTER_MAX;
}

static void put_load(struct sl_filter *f, unsigned int offset)
{
	put(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void put_ret(struct sl_filter *f, unsigned int action)
{
	put(f, BPF_RET | BPF_K, 0, 0, action);
}

static void put_ret_if(struct sl_filter *f, unsigned int value, unsigned int action)
{
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
	put_ret(f, action);
}

/* Opens a block that runs when the accumulator is `a` or `b`; returns it for close. */
static unsigned int block_open(struct sl_filter *f, unsigned int a, unsigned int b)
{
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, a);
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, b);
	put(f, BPF_JMP | BPF_JA, 0, 0, 0);
	return f->len;
}

/* The accumulator is what the block left in it when the block falls through. */
static void block_close(struct sl_filter *f, unsigned int block)
{
	if (block <= SL_FILTER_MAX)
		f->code[block - 1].k = f->len - block;
}

/* Goes on when the accumulator is one of `values`, else ends with `action`. */
static void put_require(struct sl_filter *f, const int *values, size_t count, unsigned int action)
{
	for (size_t i = 0; i < count; i++)
		put(f, BPF_JMP | BPF_JEQ | BPF_K, count - i, 0, values[i]);
	put_ret(f, action);
}

int sl_filter_refusal(const struct sl_filter_options *options, int family, int type)
{
	uint64_t families = options->families ?: SL_FILTER_FAMILIES;

	if (options->refuse_errno)
		return options->refuse_errno;
	if (family < 0 || family >= FAMILY_BITS || !(families & 1ULL << family))
		return EAFNOSUPPORT;
	return (type & TYPE_MASK) == SOCK_STREAM || (type & TYPE_MASK) == SOCK_DGRAM
		       ? EPROTONOSUPPORT
		       : EPERM;
}

static unsigned int refuse(const struct sl_filter_options *options, int family, int type)
{
	if (options->flags & SL_FILTER_NOTIFY_FAMILY)
		return SECCOMP_RET_USER_NOTIF;
	return SECCOMP_RET_ERRNO | sl_filter_refusal(options, family, type);
}

/* Arguments of socket() and socketpair() are the same: family, type, protocol. */
static void put_socket(struct sl_filter *f, const struct sl_filter_options *options)
{
	uint64_t families = options->families ?: SL_FILTER_FAMILIES;

	put_load(f, ARG_LOW(0));
	for (int family = 0; family < FAMILY_BITS; family++) {
		unsigned int block;

		if (!(families & 1ULL << family))
			continue;
		if ((family != AF_INET && family != AF_INET6) || options->flags & SL_FILTER_RAW) {
			put_ret_if(f, family, SECCOMP_RET_ALLOW);
			continue;
		}
		block = block_open(f, family, family);
		put_load(f, ARG_LOW(1));
		put(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, TYPE_MASK);
		put_require(f, types, ARRAY_SIZE(types), refuse(options, family, SOCK_RAW));
		put_load(f, ARG_LOW(2));
		put_require(f, protocols, ARRAY_SIZE(protocols),
			    refuse(options, family, SOCK_STREAM));
		put_ret(f, SECCOMP_RET_ALLOW);
		block_close(f, block);
	}
	put_ret(f, refuse(options, -1, 0));
}

/* What a call gets that needs no look at its arguments; ALLOW: it is no rule. */
static unsigned int action_of(const struct sl_filter_options *options, enum sl_filter_call call)
{
	switch (call) {
	case SL_CALL_SOCKETCALL:
		return SECCOMP_RET_ERRNO | ENOSYS;
	case SL_CALL_EXECVE:
	case SL_CALL_EXECVEAT:
		return options->hold & SL_HOLD_EXEC ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
	case SL_CALL_CONNECT:
		return options->hold & SL_HOLD_CONNECT ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
	case SL_CALL_LISTEN:
		return options->flags & SL_FILTER_NOTIFY_LISTEN ? SECCOMP_RET_USER_NOTIF
								: SECCOMP_RET_ALLOW;
	case SL_CALL_SENDMSG:
	case SL_CALL_SENDMMSG:
		return options->hold & SL_HOLD_SEND ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW;
	case SL_CALL_BPF:
		return SECCOMP_RET_ERRNO | EPERM;
	case SL_CALL_IO_URING_SETUP:
	case SL_CALL_IO_URING_ENTER:
	case SL_CALL_IO_URING_REGISTER:
		return options->flags & SL_FILTER_IO_URING ? SECCOMP_RET_ALLOW
							   : SECCOMP_RET_ERRNO | ENOSYS;
	case SL_CALL_PTRACE:
	case SL_CALL_PROCESS_VM_READV:
	case SL_CALL_PROCESS_VM_WRITEV:
	case SL_CALL_PIDFD_GETFD:
		return options->flags & SL_FILTER_STRICT ? SECCOMP_RET_ERRNO | EPERM
							 : SECCOMP_RET_ALLOW;
	case SL_CALL_SOCKET:
	case SL_CALL_SOCKETPAIR:
	case SL_CALL_SENDTO:
	case SL_CALL_MAX:
		break;
	}
	return SECCOMP_RET_ALLOW;
}

/* sendto(): held when its fifth argument, a pointer, is there. */
static void put_sendto(struct sl_filter *f)
{
	put_load(f, ARG_LOW(4));
	put(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0);
	put_ret(f, SECCOMP_RET_USER_NOTIF);
	put_load(f, ARG_HIGH(4));
	put_ret_if(f, 0, SECCOMP_RET_ALLOW);
	put_ret(f, SECCOMP_RET_USER_NOTIF);
}

static void put_arch(struct sl_filter *f, const struct sl_filter_options *options,
		     const struct sl_filter_arch *arch)
{
	const int *nr = arch->nr;
	unsigned int block = block_open(f, arch->audit, arch->audit), sockets, sends;

	put_load(f, offsetof(struct seccomp_data, nr));
	if (arch->nr_limit) {
		put(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, arch->nr_limit);
		put_ret(f, SECCOMP_RET_ERRNO | ENOSYS);
	}
	for (int call = 0; call < SL_CALL_MAX; call++) {
		unsigned int action = action_of(options, call);

		if (nr[call] >= 0 && action != SECCOMP_RET_ALLOW)
			put_ret_if(f, nr[call], action);
	}
	if (options->hold & SL_HOLD_SEND) {
		sends = block_open(f, nr[SL_CALL_SENDTO], nr[SL_CALL_SENDTO]);
		put_sendto(f);
		block_close(f, sends);
	}
	sockets = block_open(f, nr[SL_CALL_SOCKET], nr[SL_CALL_SOCKETPAIR]);
	put_socket(f, options);
	block_close(f, sockets);
	put_ret(f, SECCOMP_RET_ALLOW);
	block_close(f, block);
}

int sl_filter_make(struct sl_filter *out, const struct sl_filter_options *options,
		   struct sl_err *err)
{
	const struct sl_filter_arch *arches;
	size_t count = sl_filter_arches(&arches);
	struct sl_filter f = { .len = 0 };

	if (options->hold & ~(SL_HOLD_EXEC | SL_HOLD_CONNECT | SL_HOLD_SEND))
		return sl_err_set(err, EINVAL, "unknown hold mode %#x", options->hold);
	if (options->refuse_errno < 0 || options->refuse_errno > 4095)
		return sl_err_set(err, EINVAL, "%d is no errno", options->refuse_errno);
	put_load(&f, offsetof(struct seccomp_data, arch));
	for (size_t i = 0; i < count; i++)
		put_arch(&f, options, &arches[i]);
	put_ret(&f, SECCOMP_RET_ERRNO | ENOSYS);
	if (f.len > SL_FILTER_MAX)
		return sl_err_set(err, E2BIG, "the filter is longer than %d instructions",
				  SL_FILTER_MAX);
	f.notifies = options->hold ||
		     options->flags & (SL_FILTER_NOTIFY_FAMILY | SL_FILTER_NOTIFY_LISTEN);
	f.holds_send = options->hold & SL_HOLD_SEND;
	*out = f;
	return 0;
}

int sl_filter_install(const struct sl_filter *filter, unsigned long flags, int *listener,
		      struct sl_err *err)
{
	struct sock_fprog prog = {
		.len = filter->len,
		.filter = (struct sock_filter *)filter->code,
	};
	long fd;

	/* The kernel takes flags of a listener only with one. */
	if (filter->notifies)
		flags |= SECCOMP_FILTER_FLAG_NEW_LISTENER;
	else
		flags &= ~SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return sl_err_sys(err, errno, "can't set no_new_privs");
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	if (fd >= 0) {
		*listener = filter->notifies ? (int)fd : -1;
		return 0;
	}
	if (errno != EBUSY)
		return sl_err_sys(err, errno, "can't install the seccomp filter");
	sl_err_set(err, EBUSY, "this process already has a seccomp listener of another supervisor");
	return sl_err_hint(err, "a task can have one only: start it outside of the other "
				"supervisor, or hold nothing here");
}
