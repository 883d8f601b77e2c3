/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The seccomp filter of a sandboxed command. It does what no cgroup hook can: it refuses
 * sockets that no hook sees, and it holds calls for the broker.
 *
 *	sl_filter_make(&filter, &options, &err);
 *	sl_filter_install(&filter, flags, &fd, &err);	in the task, see broker/listener.h
 *
 * What it does, by architecture
 * 1. The machine's own and its 32-bit one are handled alike; every other one, x32 too,
 *    gets ENOSYS for every call.
 * 2. socket(), socketpair(): an allow-list of families; AF_INET and AF_INET6 only as
 *    streams and datagrams of protocols that the cgroup hooks mediate. SOCK_PACKET is
 *    refused by this: the kernel turns it into AF_PACKET (__sock_create(), net/socket.c).
 *    All these are plain arguments, so the filter's decision can't be raced.
 * 3. socketcall() of i386: ENOSYS. Its arguments are in memory, where a filter can't look
 *    and where a thread may change them after a supervisor has. The direct calls (Linux
 *    4.3) stay; 32-bit programs whose C library only knows socketcall() get no sockets.
 * 4. io_uring_*(): ENOSYS unless allowed: a ring opens sockets past filter and hooks.
 * 5. bpf(): EPERM, as an unprivileged task gets it: root could detach what mediates.
 * 6. With SL_FILTER_STRICT, ptrace(), process_vm_readv(), process_vm_writev() and
 *    pidfd_getfd(): EPERM, also among the command's own processes.
 * 7. Held: execve() and execveat(), connect(), as asked. Sends that may name where they go
 *    on their own request only, since every message costs then: sendto() with an address,
 *    and all of sendmsg() and sendmmsg(), whose addresses are in memory. bind() is left to
 *    the hooks; listen() is notified on request.
 *
 * What it leaves alone, and why: seccomp(), since filters stack, the strictest wins, and a
 * task with a listener gets no second one (EBUSY); ptrace() and its kin but for the
 * above, since Landlock confines them (broker/contain.h) without breaking debuggers inside; setns(), unshare(), mount(),
 * since membership is the cgroup's and outlives a change of namespaces.
 *
 * Classic BPF of our own, not libseccomp's: that compares one argument once in a rule, so
 * it can't express an allow-list; a rule on i386's socket() always drags in socketcall();
 * and 2.5 knows no WAIT_KILLABLE_RECV. The kernel caches the calls that are always
 * allowed (5.11), so that they cost nothing.
 */
#ifndef SLUICE_USER_BROKER_FILTER_H
#define SLUICE_USER_BROKER_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/filter.h>

#include "base/err.h"

/* Which calls wait for the broker; or-ed, 0: none. */
enum sl_hold {
	SL_HOLD_EXEC = 1 << 0,
	SL_HOLD_CONNECT = 1 << 1,
	SL_HOLD_SEND = 1 << 2,
};

enum sl_filter_flag {
	SL_FILTER_IO_URING = 1 << 0,      /* allow io_uring */
	SL_FILTER_RAW = 1 << 1,           /* allow any type and protocol of AF_INET, AF_INET6 */
	SL_FILTER_NOTIFY_FAMILY = 1 << 2, /* refused sockets are told to the broker */
	SL_FILTER_NOTIFY_LISTEN = 1 << 3, /* so is listen() */
	SL_FILTER_STRICT = 1 << 4,        /* nobody traces anybody */
};

struct sl_filter_options {
	unsigned int hold;  /* enum sl_hold */
	unsigned int flags; /* enum sl_filter_flag */
	uint64_t families;  /* bit AF_x allows family x; 0: SL_FILTER_FAMILIES */
	/*
	 * errno of a refused socket; 0: what a kernel without it would say: EAFNOSUPPORT,
	 * EPERM (raw), EPROTONOSUPPORT.
	 */
	int refuse_errno;
};

/* AF_UNIX, AF_INET, AF_INET6, AF_NETLINK (getifaddrs() needs it). */
#define SL_FILTER_FAMILIES (1ULL << 1 | 1ULL << 2 | 1ULL << 10 | 1ULL << 16)

#define SL_FILTER_MAX 448 /* instructions */

struct sl_filter {
	struct sock_filter code[SL_FILTER_MAX];
	unsigned short len;
	bool notifies;   /* needs a listener */
	bool holds_send; /* which can't be handed over by sendmsg() then */
};

/* A call of the filter's table, on an architecture. */
enum sl_filter_call {
	SL_CALL_SOCKET,
	SL_CALL_SOCKETPAIR,
	SL_CALL_SOCKETCALL,
	SL_CALL_EXECVE,
	SL_CALL_EXECVEAT,
	SL_CALL_CONNECT,
	SL_CALL_LISTEN,
	SL_CALL_SENDTO,
	SL_CALL_SENDMSG,
	SL_CALL_SENDMMSG,
	SL_CALL_BPF,
	SL_CALL_IO_URING_SETUP,
	SL_CALL_IO_URING_ENTER,
	SL_CALL_IO_URING_REGISTER,
	SL_CALL_PTRACE,
	SL_CALL_PROCESS_VM_READV,
	SL_CALL_PROCESS_VM_WRITEV,
	SL_CALL_PIDFD_GETFD,
	SL_CALL_MAX
};

/*
 * Its number on `audit` (AUDIT_ARCH_*), -1 when the architecture has no such call or is
 * not one of this machine's.
 */
int sl_filter_nr(uint32_t audit, enum sl_filter_call call);

/* Which call a number is; SL_CALL_MAX when none of the table. */
enum sl_filter_call sl_filter_call_of(uint32_t audit, int nr);

/* The errno that `options` want for a refused socket(family, type, protocol). */
int sl_filter_refusal(const struct sl_filter_options *options, int family, int type);

/* Builds the program. -EINVAL for options that make no sense, -E2BIG when it is too long. */
int sl_filter_make(struct sl_filter *out, const struct sl_filter_options *options,
		   struct sl_err *err);

/*
 * Installs it in the calling thread, for good and for all its descendants. Sets
 * no_new_privs first. *listener (close-on-exec, the caller's; 0 is a valid one) is -1 when
 * the filter notifies nothing. `flags`: those of broker/probe.h. -EBUSY: the task has a listener of somebody else.
 */
int sl_filter_install(const struct sl_filter *filter, unsigned long flags, int *listener,
		      struct sl_err *err);

#endif
