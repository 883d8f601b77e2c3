// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "agent/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define NR_LIMIT 0x40000000 /* x32 is above (__X32_SYSCALL_BIT) */
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#define NR_LIMIT 0x7fffffff
#else
#error "the agent's filter does not know this architecture"
#endif

static const int refused[] = {
	__NR_execve,
	__NR_execveat,
/* The sanitizer looks for leaks by tracing its own process. */
#ifndef __SANITIZE_ADDRESS__
	__NR_ptrace,
#endif
	__NR_process_vm_writev,
	__NR_mount,
	__NR_umount2,
	__NR_move_mount,
	__NR_open_tree,
	__NR_fsopen,
	__NR_fspick,
	__NR_mount_setattr,
	__NR_pivot_root,
	__NR_chroot,
	__NR_init_module,
	__NR_finit_module,
	__NR_delete_module,
	__NR_kexec_load,
	__NR_kexec_file_load,
	__NR_reboot,
	__NR_swapon,
	__NR_swapoff,
	__NR_sethostname,
	__NR_setdomainname,
	__NR_settimeofday,
	__NR_clock_settime,
	__NR_clock_adjtime,
	__NR_adjtimex,
	__NR_acct,
	__NR_quotactl,
	__NR_add_key,
	__NR_request_key,
	__NR_keyctl,
	__NR_userfaultfd,
	__NR_io_uring_setup,
	__NR_personality,
#ifdef __NR_iopl
	__NR_iopl,
	__NR_ioperm,
	__NR_modify_ldt,
#endif
};

#define HEAD 5
#define COUNT ARRAY_SIZE(refused)

int sl_confine(struct sl_err *err)
{
	/* Another architecture's calls have other numbers: all of them are refused. */
	struct sock_filter code[HEAD + COUNT + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, NR_LIMIT, COUNT + 1, 0),
	};
	const struct sock_fprog program = { .len = ARRAY_SIZE(code), .filter = code };

	_Static_assert(COUNT + 1 <= UINT8_MAX, "a jump has 8 bits");
	for (size_t i = 0; i < COUNT; i++)
		code[HEAD + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (__u32)refused[i], (__u8)(COUNT - i), 0);
	code[HEAD + COUNT] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[HEAD + COUNT + 1] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return sl_err_sys(err, errno, "can't take from the agent what it never does");
	return 0;
}
