// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers of the calls that the filter handles. They are ABI and never change; those of
 * the machine's own architecture are checked against its headers when this is compiled,
 * those of i386 by a unit test.
 */
#include <linux/audit.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "broker/filter_private.h"

static const struct sl_filter_arch arches[] = {
#if defined(__x86_64__)
	{
		.audit = AUDIT_ARCH_X86_64,
		/* __X32_SYSCALL_BIT: x32 shares the audit value. */
		.nr_limit = 0x40000000,
		.nr = { 41, 53, -1, 59, 322, 42, 50, 44, 46, 307, 321, 425, 426, 427, 101, 310, 311,
			438 },
	},
	{
		.audit = AUDIT_ARCH_I386,
		.nr = { 359, 360, 102, 11, 358, 362, 363, 369, 370, 345, 357, 425, 426, 427, 26,
			347, 348, 438 },
	},
#elif defined(__aarch64__)
	{
		.audit = AUDIT_ARCH_AARCH64,
		.nr = { 198, 199, -1, 221, 281, 203, 201, 206, 211, 269, 280, 425, 426, 427, 117,
			270, 271, 438 },
	},
	{
		.audit = AUDIT_ARCH_ARM,
		/* The old ABI's socketcall is gone from EABI kernels, its number is refused. */
		.nr = { 281, 288, 102, 11, 387, 283, 284, 290, 296, 374, 386, 425, 426, 427, 26,
			376, 377, 438 },
	},
#else
#error "the filter has no system call numbers for this architecture"
#endif
};

#if defined(__x86_64__)
_Static_assert(__NR_socket == 41 && __NR_socketpair == 53 && __NR_execve == 59, "numbers");
_Static_assert(__NR_execveat == 322 && __NR_connect == 42 && __NR_listen == 50, "numbers");
_Static_assert(__NR_sendto == 44 && __NR_sendmsg == 46 && __NR_sendmmsg == 307, "numbers");
_Static_assert(__NR_bpf == 321 && __NR_ptrace == 101, "numbers");
_Static_assert(__NR_process_vm_readv == 310 && __NR_process_vm_writev == 311, "numbers");
#else
_Static_assert(__NR_socket == 198 && __NR_socketpair == 199 && __NR_execve == 221, "numbers");
_Static_assert(__NR_execveat == 281 && __NR_connect == 203 && __NR_listen == 201, "numbers");
_Static_assert(__NR_sendto == 206 && __NR_sendmsg == 211 && __NR_sendmmsg == 269, "numbers");
_Static_assert(__NR_bpf == 280 && __NR_ptrace == 117, "numbers");
_Static_assert(__NR_process_vm_readv == 270 && __NR_process_vm_writev == 271, "numbers");
#endif
_Static_assert(__NR_io_uring_setup == 425 && __NR_io_uring_register == 427, "numbers");
_Static_assert(__NR_pidfd_getfd == 438, "numbers");

size_t sl_filter_arches(const struct sl_filter_arch **out)
{
	*out = arches;
	return ARRAY_SIZE(arches);
}

static const struct sl_filter_arch *arch_of(uint32_t audit)
{
	for (size_t i = 0; i < ARRAY_SIZE(arches); i++) {
		if (arches[i].audit == audit)
			return &arches[i];
	}
	return NULL;
}

int sl_filter_nr(uint32_t audit, enum sl_filter_call call)
{
	const struct sl_filter_arch *arch = arch_of(audit);

	return arch && call < SL_CALL_MAX ? arch->nr[call] : -1;
}

enum sl_filter_call sl_filter_call_of(uint32_t audit, int nr)
{
	const struct sl_filter_arch *arch = arch_of(audit);
	int call = 0;

	if (!arch || nr < 0)
		return SL_CALL_MAX;
	while (call < SL_CALL_MAX && arch->nr[call] != nr)
		call++;
	return call;
}
