/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The numbers of i386 against the kernel's header, which can't be seen beside the own one. */
#include <criterion/criterion.h>

#include "broker/filter.h"

#ifdef __x86_64__
#include <asm/unistd_32.h>
#include <linux/audit.h>

Test(filter, numbers_of_i386)
{
	static const int want[] = {
		[SL_CALL_SOCKET] = __NR_socket,
		[SL_CALL_SOCKETPAIR] = __NR_socketpair,
		[SL_CALL_SOCKETCALL] = __NR_socketcall,
		[SL_CALL_EXECVE] = __NR_execve,
		[SL_CALL_EXECVEAT] = __NR_execveat,
		[SL_CALL_CONNECT] = __NR_connect,
		[SL_CALL_LISTEN] = __NR_listen,
		[SL_CALL_SENDTO] = __NR_sendto,
		[SL_CALL_SENDMSG] = __NR_sendmsg,
		[SL_CALL_SENDMMSG] = __NR_sendmmsg,
		[SL_CALL_BPF] = __NR_bpf,
		[SL_CALL_IO_URING_SETUP] = __NR_io_uring_setup,
		[SL_CALL_IO_URING_ENTER] = __NR_io_uring_enter,
		[SL_CALL_IO_URING_REGISTER] = __NR_io_uring_register,
		[SL_CALL_PTRACE] = __NR_ptrace,
		[SL_CALL_PROCESS_VM_READV] = __NR_process_vm_readv,
		[SL_CALL_PROCESS_VM_WRITEV] = __NR_process_vm_writev,
		[SL_CALL_PIDFD_GETFD] = __NR_pidfd_getfd,
	};

	_Static_assert(sizeof(want) / sizeof(want[0]) == SL_CALL_MAX, "a call without a test");
	for (int call = 0; call < SL_CALL_MAX; call++)
		cr_expect_eq(sl_filter_nr(AUDIT_ARCH_I386, call), want[call], "call %d", call);
}
#endif
