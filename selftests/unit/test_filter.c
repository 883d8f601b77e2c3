/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The filter as the kernel runs it: installed in a child, which then makes real calls by
 * every entry the machine has. What a call gets without the filter is asked first.
 */
#include <criterion/criterion.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "broker/filter.h"

#define AF_OF(x) (1ULL << (x))

/* 0 or the errno of a call, closing what it returned. */
static int result(long ret)
{
	if (ret >= 0) {
		close((int)ret);
		return 0;
	}
	return (int)-ret;
}

static int call64(long nr, long a, long b, long c)
{
	long ret = syscall(nr, a, b, c, NULL);

	return result(ret < 0 ? -errno : ret);
}

#ifdef __x86_64__
/* By the 32-bit entry; pointers must be below 4 GiB. */
static int call32(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return result((int)ret);
}
#endif

/* Runs `fn` in a child under a filter; gives what it returned. */
static int filtered(const struct sl_filter_options *options, int (*fn)(void))
{
	struct sl_filter filter;
	struct sl_err err = {};
	int status, listener;
	pid_t pid;

	cr_assert_eq(sl_filter_make(&filter, options, &err), 0, "%s", err.text);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid)
		_exit(sl_filter_install(&filter, 0, &listener, &err) ? 255 : fn());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_neq(WEXITSTATUS(status), 255, "the filter was not installed");
	return WEXITSTATUS(status);
}

static struct {
	int (*call)(long nr, long a, long b, long c);
	long nr, a, b, c;
} now;

static int make_call(void)
{
	return now.call(now.nr, now.a, now.b, now.c);
}

/* The result of a call under `options`. */
static int under(const struct sl_filter_options *options, int (*call)(long, long, long, long),
		 long nr, long a, long b, long c)
{
	now.call = call;
	now.nr = nr;
	now.a = a;
	now.b = b;
	now.c = c;
	return filtered(options, make_call);
}

static const struct sl_filter_options defaults;

static void expect_families(int (*call)(long, long, long, long), long nr)
{
	static const int allowed[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

	for (int family = 0; family < 64; family++) {
		bool may = false;

		for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
			may |= family == allowed[i];
		cr_expect_eq(under(&defaults, call, nr, family, SOCK_DGRAM, 0),
			     may ? 0 : EAFNOSUPPORT, "family %d", family);
	}
	/* Only the low half of the register counts, as in the kernel. */
	if (call == call64) {
		cr_expect_eq(under(&defaults, call, nr, 1L << 32 | AF_PACKET, SOCK_RAW, 0),
			     EAFNOSUPPORT);
		cr_expect_eq(under(&defaults, call, nr, 1L << 32 | AF_UNIX, SOCK_STREAM, 0), 0);
	}
	cr_expect_eq(under(&defaults, call, nr, -1, SOCK_STREAM, 0), EAFNOSUPPORT);
}

static void expect_types(int (*call)(long, long, long, long), long nr)
{
	static const struct {
		int family, type, protocol, want;
	} cases[] = {
		{ AF_INET, SOCK_STREAM, 0, 0 },
		{ AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP, 0 },
		{ AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP, 0 },
		{ AF_INET, SOCK_RAW, IPPROTO_ICMP, EPERM },
		{ AF_INET6, SOCK_RAW, IPPROTO_RAW, EPERM },
		/* SOCK_PACKET: the kernel makes AF_PACKET of it. */
		{ AF_INET, 10, 0x300, EPERM },
		{ AF_INET, 10 | SOCK_CLOEXEC, 0x300, EPERM },
		{ AF_INET, SOCK_DGRAM, IPPROTO_ICMP, EPROTONOSUPPORT },
		{ AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6, EPROTONOSUPPORT },
		{ AF_INET, SOCK_STREAM, IPPROTO_SCTP, EPROTONOSUPPORT },
		{ AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP, EPERM },
		{ AF_INET, SOCK_STREAM, 256, EPROTONOSUPPORT },
		{ AF_NETLINK, SOCK_RAW, 0, 0 },
		{ AF_UNIX, SOCK_SEQPACKET, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(under(&defaults, call, nr, cases[i].family, cases[i].type,
				   cases[i].protocol),
			     cases[i].want, "case %zu", i);
}

Test(filter, families)
{
	expect_families(call64, SYS_socket);
}

Test(filter, types_and_protocols)
{
	expect_types(call64, SYS_socket);
}

Test(filter, caller_chooses_families_and_errno)
{
	struct sl_filter_options options = {
		.families = AF_OF(AF_UNIX) | AF_OF(AF_ALG),
		.refuse_errno = EACCES,
	};

	cr_expect_eq(under(&options, call64, SYS_socket, AF_INET, SOCK_STREAM, 0), EACCES);
	cr_expect_eq(under(&options, call64, SYS_socket, AF_UNIX, SOCK_STREAM, 0), 0);
	cr_expect_neq(under(&options, call64, SYS_socket, AF_ALG, SOCK_SEQPACKET, 0), EACCES);
	options = (struct sl_filter_options){ .flags = SL_FILTER_RAW };
	cr_expect_neq(under(&options, call64, SYS_socket, AF_INET, SOCK_STREAM, IPPROTO_SCTP + 1),
		      EPERM);
}

static int pair_families(void)
{
	int fds[2];

	/* AF_TIPC makes real sockets by socketpair(). */
	if (!socketpair(AF_TIPC, SOCK_RDM, 0, fds) || errno != ENOTBLK)
		return 1;
	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) ? 2 : 0;
}

Test(filter, socketpair_is_a_socket)
{
	/* An errno that no kernel gives here: it may lack the family. */
	static const struct sl_filter_options options = { .refuse_errno = ENOTBLK };

	cr_expect_eq(filtered(&options, pair_families), 0);
}

Test(filter, rings_and_bpf)
{
	static const struct sl_filter_options ring = { .flags = SL_FILTER_IO_URING };
	int bare = call64(SYS_io_uring_setup, 0, 0, 0);

	for (int nr = SYS_io_uring_setup; nr <= SYS_io_uring_register; nr++)
		cr_expect_eq(under(&defaults, call64, nr, -1, 0, 0), ENOSYS);
	cr_expect_eq(under(&ring, call64, SYS_io_uring_setup, 0, 0, 0), bare);
	cr_expect_eq(under(&defaults, call64, SYS_bpf, BPF_PROG_QUERY, 0, 0), EPERM);
	cr_expect_eq(under(&defaults, call64, SYS_bpf, 999, 0, 0), EPERM);
}

static int still_works(void)
{
	if (syscall(SYS_getpid) != getpid() || socket(AF_UNIX, SOCK_STREAM, 0) < 0)
		return 1;
	return 0;
}

Test(filter, stacks)
{
	struct sl_filter filter;
	int listener;

	cr_assert_eq(sl_filter_make(&filter, &defaults, NULL), 0);
	cr_expect_not(filter.notifies);
	cr_assert_eq(sl_filter_install(&filter, 0, &listener, NULL), 0);
	cr_expect_eq(listener, -1);
	cr_expect_eq(filtered(&defaults, still_works), 0);
}

Test(filter, options_are_checked)
{
	struct sl_filter_options options = { .hold = 8 };
	struct sl_filter filter = { .len = 7 };

	cr_expect_eq(sl_filter_make(&filter, &options, NULL), -EINVAL);
	options = (struct sl_filter_options){ .refuse_errno = 4096 };
	cr_expect_eq(sl_filter_make(&filter, &options, NULL), -EINVAL);
	cr_expect_eq(filter.len, 7);
	options = (struct sl_filter_options){ .families = UINT64_MAX,
					      .hold = SL_HOLD_EXEC | SL_HOLD_CONNECT | SL_HOLD_SEND,
					      .flags = SL_FILTER_NOTIFY_LISTEN };
	cr_expect_eq(sl_filter_make(&filter, &options, NULL), 0);
	cr_expect(filter.notifies);
}

Test(filter, numbers_go_both_ways)
{
#ifdef __x86_64__
	const uint32_t own = AUDIT_ARCH_X86_64;
#else
	const uint32_t own = AUDIT_ARCH_AARCH64;
#endif

	for (int call = 0; call < SL_CALL_MAX; call++) {
		int nr = sl_filter_nr(own, call);

		cr_expect_eq((int)sl_filter_call_of(own, nr), nr < 0 ? SL_CALL_MAX : call);
	}
	cr_expect_eq(sl_filter_nr(AUDIT_ARCH_S390X, SL_CALL_CONNECT), -1);
	cr_expect_eq(sl_filter_call_of(own, SYS_getpid), SL_CALL_MAX);
}

/*
 * What the program says about a call that this kernel can't make. Only the instructions
 * that the filter uses.
 */
static uint32_t simulate(const struct sl_filter *filter, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned int pc = 0; pc < filter->len; pc++) {
		const struct sock_filter *i = &filter->code[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			cr_assert_fail("unexpected instruction %#x", i->code);
		}
	}
	cr_assert_fail("ran off the end");
	return 0;
}

Test(filter, other_abis_get_nothing)
{
	const uint32_t refused = SECCOMP_RET_ERRNO | ENOSYS;
	struct seccomp_data data = { .arch = AUDIT_ARCH_S390X };
	struct sl_filter filter;

	cr_assert_eq(sl_filter_make(&filter, &defaults, NULL), 0);
	for (int nr = -1; nr < 500; nr++) {
		data.nr = nr;
		cr_expect_eq(simulate(&filter, &data), refused);
	}
#ifdef __x86_64__
	data.arch = AUDIT_ARCH_X86_64;
	for (int nr = 0; nr < 600; nr++) {
		data.nr = 0x40000000 | nr;
		cr_expect_eq(simulate(&filter, &data), refused);
	}
	data.nr = -1;
	cr_expect_eq(simulate(&filter, &data), refused);
	data.nr = SYS_getpid;
	cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_ALLOW);
#endif
}

Test(filter, strict_refuses_tracing)
{
	static const enum sl_filter_call calls[] = { SL_CALL_PTRACE, SL_CALL_PROCESS_VM_READV,
						     SL_CALL_PROCESS_VM_WRITEV,
						     SL_CALL_PIDFD_GETFD };
#ifdef __x86_64__
	static const uint32_t arches[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_I386 };
#else
	static const uint32_t arches[] = { AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM };
#endif
	static const struct sl_filter_options strict = { .flags = SL_FILTER_STRICT }, loose = { 0 };
	struct sl_filter filter, without;
	struct seccomp_data data = { 0 };

	cr_assert_eq(sl_filter_make(&filter, &strict, NULL), 0);
	cr_assert_eq(sl_filter_make(&without, &loose, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls) * ARRAY_SIZE(arches); i++) {
		data.arch = arches[i % ARRAY_SIZE(arches)];
		data.nr = sl_filter_nr(data.arch, calls[i / ARRAY_SIZE(arches)]);
		cr_assert_geq(data.nr, 0);
		cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_ERRNO | EPERM, "case %zu", i);
		cr_expect_eq(simulate(&without, &data), SECCOMP_RET_ALLOW, "case %zu", i);
	}
}

Test(filter, holds_what_was_asked)
{
	static const struct {
		unsigned int hold, flags;
		enum sl_filter_call call;
	} cases[] = {
		{ SL_HOLD_EXEC, 0, SL_CALL_EXECVE },
		{ SL_HOLD_EXEC, 0, SL_CALL_EXECVEAT },
		{ SL_HOLD_CONNECT, 0, SL_CALL_CONNECT },
		{ SL_HOLD_SEND, 0, SL_CALL_SENDTO },
		{ SL_HOLD_SEND, 0, SL_CALL_SENDMSG },
		{ SL_HOLD_SEND, 0, SL_CALL_SENDMMSG },
		{ 0, SL_FILTER_NOTIFY_LISTEN, SL_CALL_LISTEN },
		{ 0, SL_FILTER_NOTIFY_FAMILY, SL_CALL_SOCKET },
	};
	struct seccomp_data data = { .args = { AF_PACKET, 0, 0, 0, 1UL << 12 } };
	struct sl_filter filter;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_filter_options options = { .hold = cases[i].hold,
						     .flags = cases[i].flags };

#ifdef __x86_64__
		data.arch = i % 2 ? AUDIT_ARCH_I386 : AUDIT_ARCH_X86_64;
#else
		data.arch = AUDIT_ARCH_AARCH64;
#endif
		data.nr = sl_filter_nr(data.arch, cases[i].call);
		cr_assert_eq(sl_filter_make(&filter, &options, NULL), 0);
		cr_expect(filter.notifies);
		cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_USER_NOTIF, "case %zu", i);
		options.hold = options.flags = 0;
		cr_assert_eq(sl_filter_make(&filter, &options, NULL), 0);
		cr_expect_neq(simulate(&filter, &data), SECCOMP_RET_USER_NOTIF, "case %zu", i);
	}
}

/* send() is sendto() without an address: what it sends to was decided when it connected. */
Test(filter, only_sends_with_an_address_are_held)
{
	static const uint64_t addresses[] = { 0, 1, 1UL << 31, 1UL << 32, UINT64_MAX };
	static const struct sl_filter_options options = { .hold = SL_HOLD_SEND };
	struct seccomp_data data = { .nr = SYS_sendto };
	struct sl_filter filter;

#ifdef __x86_64__
	data.arch = AUDIT_ARCH_X86_64;
#else
	data.arch = AUDIT_ARCH_AARCH64;
#endif
	cr_assert_eq(sl_filter_make(&filter, &options, NULL), 0);
	cr_expect(filter.holds_send);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		data.args[4] = addresses[i];
		cr_expect_eq(simulate(&filter, &data),
			     addresses[i] ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ALLOW, "%#lx",
			     (unsigned long)addresses[i]);
	}
}

#ifdef __x86_64__
Test(filter, x32_is_another_abi)
{
	long x32 = 0x40000000;

	cr_expect_eq(under(&defaults, call64, x32 | SYS_getpid, 0, 0, 0), ENOSYS);
	cr_expect_eq(under(&defaults, call64, x32 | SYS_socket, AF_UNIX, SOCK_STREAM, 0), ENOSYS);
	cr_expect_eq(under(&defaults, call64, -1, 0, 0, 0), ENOSYS);
}

#define NR32_SOCKETCALL 102

/* Where the 32-bit entry is missing, this is all there is to see of it. */
Test(filter, ia32_simulated)
{
	struct seccomp_data data = { .arch = AUDIT_ARCH_I386, .nr = NR32_SOCKETCALL };
	struct sl_filter filter;

	cr_assert_eq(sl_filter_make(&filter, &defaults, NULL), 0);
	for (int call = 0; call < 32; call++) {
		data.args[0] = call;
		cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_ERRNO | ENOSYS);
	}
	data.nr = sl_filter_nr(AUDIT_ARCH_I386, SL_CALL_SOCKET);
	data.args[1] = SOCK_RAW;
	for (int family = 0; family < 64; family++) {
		data.args[0] = family;
		if (family == AF_UNIX || family == AF_NETLINK)
			cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_ALLOW);
		else
			cr_expect_neq(simulate(&filter, &data), SECCOMP_RET_ALLOW, "%d", family);
	}
	data.nr = sl_filter_nr(AUDIT_ARCH_I386, SL_CALL_BPF);
	cr_expect_eq(simulate(&filter, &data), SECCOMP_RET_ERRNO | EPERM);
}

static void need_ia32(void)
{
	/* getpid; without the entry the kernel sends SIGSEGV, hence a child. */
	pid_t pid = fork();
	int status;

	if (!pid) {
		/* A sanitizer would take it for a fault of the test. */
		signal(SIGSEGV, SIG_DFL);
		_exit(call32(20, 0, 0, 0) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		cr_skip_test("this kernel has no 32-bit entry");
}

Test(filter, ia32_direct_calls)
{
	need_ia32();
	expect_families(call32, sl_filter_nr(AUDIT_ARCH_I386, SL_CALL_SOCKET));
	expect_types(call32, sl_filter_nr(AUDIT_ARCH_I386, SL_CALL_SOCKET));
	cr_expect_eq(under(&defaults, call32, 357, 999, 0, 0), EPERM);
	cr_expect_eq(under(&defaults, call32, 425, 0, 0, 0), ENOSYS);
}

/* B3: socket(AF_PACKET) and socket(AF_UNIX) by the multiplexer. */
Test(filter, ia32_socketcall)
{
	unsigned int *args;

	need_ia32();
	args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		    0);
	cr_assert_neq(args, MAP_FAILED);
	args[0] = AF_UNIX;
	args[1] = SOCK_STREAM;
	cr_expect_eq(call32(NR32_SOCKETCALL, 1, (long)args, 0), 0, "the call itself is right");
	cr_expect_eq(under(&defaults, call32, NR32_SOCKETCALL, 1, (long)args, 0), ENOSYS);
	args[0] = AF_PACKET;
	args[1] = SOCK_RAW;
	cr_expect_eq(under(&defaults, call32, NR32_SOCKETCALL, 1, (long)args, 0), ENOSYS);
}
#endif
