/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probes that make a system call, in a child where it would change the caller. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/feature_private.h"

/* Debian 12's headers lack these (include/uapi/linux/seccomp.h). */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

static enum sl_feature_state no_such(char value[SL_FEATURE_VALUE_MAX])
{
	snprintf(value, SL_FEATURE_VALUE_MAX, "%s", strerror(errno));
	return SL_FEATURE_NO;
}

enum sl_feature_state sl_probe_io_uring(const struct sl_feature_run *run, const char *arg,
					char value[SL_FEATURE_VALUE_MAX])
{
	(void)run;
	(void)arg;
	/* No entries and no parameters: a kernel that has it complains of these. */
	if (syscall(SYS_io_uring_setup, 0, NULL) >= 0 || errno == EFAULT || errno == EINVAL)
		return SL_FEATURE_YES;
	return no_such(value);
}

enum sl_feature_state sl_probe_landlock(const struct sl_feature_run *run, const char *arg,
					char value[SL_FEATURE_VALUE_MAX])
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	(void)run;
	(void)arg;
	if (abi < 0)
		return no_such(value);
	snprintf(value, SL_FEATURE_VALUE_MAX, "ABI %ld", abi);
	return SL_FEATURE_YES;
}

enum sl_feature_state sl_probe_seccomp_notify(const struct sl_feature_run *run, const char *arg,
					      char value[SL_FEATURE_VALUE_MAX])
{
	__u32 action = SECCOMP_RET_USER_NOTIF;

	(void)run;
	(void)arg;
	if (!syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action))
		return SL_FEATURE_YES;
	return no_such(value);
}

enum sl_feature_state sl_probe_seccomp_killable(const struct sl_feature_run *run, const char *arg,
						char value[SL_FEATURE_VALUE_MAX])
{
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER |
			      SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	(void)run;
	(void)arg;
	/* Flags are looked at before the filter, which is none. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT)
		return SL_FEATURE_YES;
	return no_such(value);
}

/* Runs `fn` in a child and gives its exit status, or -1 when a signal ended it. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return -1;
	if (!pid) {
		/* A fault is an answer here: it must not leave a core file. */
		prctl(PR_SET_DUMPABLE, 0);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGILL, SIG_DFL);
		_exit(fn());
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int set_listener_flags(void)
{
	struct sock_filter allow[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { .len = ARRAY_SIZE(allow), .filter = allow };
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return errno;
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			  &prog);
	if (fd < 0)
		return errno;
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) < 0)
		return errno;
	return 0;
}

enum sl_feature_state sl_probe_seccomp_wake(const struct sl_feature_run *run, const char *arg,
					    char value[SL_FEATURE_VALUE_MAX])
{
	int code = in_child(set_listener_flags);

	(void)run;
	(void)arg;
	if (code > 0)
		snprintf(value, SL_FEATURE_VALUE_MAX, "%s", strerror(code));
	if (code < 0)
		snprintf(value, SL_FEATURE_VALUE_MAX, "not tried: no child process");
	return code < 0 ? SL_FEATURE_UNKNOWN : !code;
}

#ifdef __x86_64__
/* getpid() by the 32-bit entry; a kernel without it delivers SIGSEGV. */
static int call_ia32(void)
{
	long nr = 20, ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(nr) : "memory", "r8", "r9", "r10", "r11");
	return ret > 0 ? 0 : 1;
}
#endif

enum sl_feature_state sl_probe_ia32(const struct sl_feature_run *run, const char *arg,
				    char value[SL_FEATURE_VALUE_MAX])
{
	(void)run;
	(void)arg;
#ifdef __x86_64__
	(void)value;
	return !in_child(call_ia32);
#else
	snprintf(value, SL_FEATURE_VALUE_MAX, "not of this architecture");
	return SL_FEATURE_NO;
#endif
}

enum sl_feature_state sl_probe_socket(const struct sl_feature_run *run, const char *arg,
				      char value[SL_FEATURE_VALUE_MAX])
{
	/* A packet socket of protocol 0 receives nothing. */
	static const struct {
		const char *name;
		int family, type, protocol;
	} known[] = { { "mptcp", AF_INET, SOCK_STREAM, IPPROTO_MPTCP },
		      { "vsock", AF_VSOCK, SOCK_STREAM, 0 },
		      { "packet", AF_PACKET, SOCK_RAW, 0 },
		      { "xdp", AF_XDP, SOCK_RAW, 0 } };
	_cleanup_fd_ int fd = -1;

	(void)run;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strcmp(known[i].name, arg) != 0)
			continue;
		fd = socket(known[i].family, known[i].type | SOCK_CLOEXEC, known[i].protocol);
		if (fd >= 0)
			return SL_FEATURE_YES;
		if (errno != EPERM && errno != EACCES)
			return no_such(value);
		no_such(value);
		return SL_FEATURE_UNKNOWN;
	}
	return SL_FEATURE_UNKNOWN;
}
