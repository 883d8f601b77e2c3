/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Verbs that reach the kernel by another entry: int 0x80, x32 numbers, io_uring. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "do.h"
#include "proc.h"
#include "truth.h"
#include "uring.h"

#ifdef __x86_64__

/* arch/x86/entry/syscalls/syscall_32.tbl */
#define I386_GETPID 20
#define I386_SOCKETCALL 102
#define I386_SOCKET 359
#define I386_CONNECT 362
#define I386_SENDTO 369
#define SOCKETCALL_CONNECT 3 /* SYS_CONNECT of linux/net.h */
#define X32_BIT 0x40000000

/* What 32-bit pointers can reach; one page that is never freed. */
struct low {
	struct sl_addr addr;
	uint32_t args[3];
	char text[4];
};

static struct low *low(void)
{
	static struct low *mem;

	if (!mem)
		mem = mmap(NULL, sizeof(*mem), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	return mem == MAP_FAILED ? NULL : mem;
}

static uint32_t pointer(const void *p)
{
	return (uint32_t)(uintptr_t)p;
}

static long enter(long nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f)
{
	long rc = nr;

	/*
	 * The sixth is in ebp, which the compiler may need: swapped around the entry. "&", since
	 * an argument of the same value must not be in the register that is swapped.
	 */
	__asm__ volatile("xchg %%rbp, %[f]\n\tint $0x80\n\txchg %%rbp, %[f]"
			 : "+a"(rc), [f] "+&r"((uint64_t){ f })
			 : "b"((uint64_t)a), "c"((uint64_t)b), "d"((uint64_t)c), "S"((uint64_t)d),
			   "D"((uint64_t)e)
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)rc;
}

/* Kernels without IA32 emulation, or with it turned off, end the process with SIGSEGV. */
static bool has_int80(void)
{
	static int has = -1;
	pid_t pid;
	int status;

	if (has >= 0)
		return has;
	pid = sl_fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		enter(I386_GETPID, 0, 0, 0, 0, 0, 0);
		_exit(0);
	}
	has = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      !WEXITSTATUS(status);
	return has;
}

static long int80(long nr, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f)
{
	return has_int80() ? enter(nr, a, b, c, d, e, f) : sl_skip("int 0x80", ENOSYS);
}

static long low_addr(struct low **out, const char *arg)
{
	*out = low();
	return *out ? sl_do_addr(arg, &(*out)->addr) : -ENOMEM;
}

static long do_int80_socket(struct sl_doer *doer, const char *arg)
{
	int type = strcmp(arg, "udp") ? SOCK_STREAM : SOCK_DGRAM;

	return sl_do_use(doer, int80(I386_SOCKET, AF_INET, (uint32_t)type, 0, 0, 0, 0));
}

static long do_int80_connect(struct sl_doer *doer, const char *arg)
{
	struct low *m;
	long rc = low_addr(&m, arg);

	return rc < 0 ? rc
		      : int80(I386_CONNECT, (uint32_t)doer->fd, pointer(&m->addr.sa), m->addr.len,
			      0, 0, 0);
}

static long do_int80_sendto(struct sl_doer *doer, const char *arg)
{
	struct low *m;
	long rc = low_addr(&m, arg);

	return rc < 0 ? rc
		      : int80(I386_SENDTO, (uint32_t)doer->fd, pointer(m->text), 1, MSG_NOSIGNAL,
			      pointer(&m->addr.sa), m->addr.len);
}

static long do_socketcall_connect(struct sl_doer *doer, const char *arg)
{
	struct low *m;
	long rc = low_addr(&m, arg);

	if (rc < 0)
		return rc;
	m->args[0] = (uint32_t)doer->fd;
	m->args[1] = pointer(&m->addr.sa);
	m->args[2] = m->addr.len;
	return int80(I386_SOCKETCALL, SOCKETCALL_CONNECT, pointer(m->args), 0, 0, 0, 0);
}

static long do_x32_connect(struct sl_doer *doer, const char *arg)
{
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	if (rc < 0)
		return rc;
	return syscall(X32_BIT | SYS_connect, doer->fd, &addr.sa, addr.len) < 0 ? -errno : 0;
}

#else

static long none(struct sl_doer *doer, const char *arg)
{
	(void)doer, (void)arg;
	return sl_skip("entries of x86", ENOSYS);
}
#define do_int80_socket none
#define do_int80_connect none
#define do_int80_sendto none
#define do_socketcall_connect none
#define do_x32_connect none

#endif

static long do_uring_socket(struct sl_doer *doer, const char *arg)
{
	_cleanup_(sl_uring_free) struct sl_uring *ring = NULL;
	int family, type, protocol, rc;

	if (sscanf(arg, "%d.%d.%d", &family, &type, &protocol) != 3)
		return sl_usage("uring-socket: no such kind '%s'", arg);
	rc = sl_uring_new(&ring, doer->o->uring);
	return rc < 0 ? rc : sl_do_use(doer, sl_uring_socket(ring, family, type, protocol));
}

static long do_uring_connect(struct sl_doer *doer, const char *arg)
{
	_cleanup_(sl_uring_free) struct sl_uring *ring = NULL;
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	rc = rc ?: sl_uring_new(&ring, doer->o->uring);
	return rc < 0 ? rc : sl_uring_connect(ring, doer->fd, &addr.sa, addr.len);
}

static long do_uring_sendto(struct sl_doer *doer, const char *arg)
{
	_cleanup_(sl_uring_free) struct sl_uring *ring = NULL;
	struct iovec iov = { .iov_base = (char[]){ "x" }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sl_addr addr;
	int rc = sl_do_addr(arg, &addr);

	msg.msg_name = &addr.sa;
	msg.msg_namelen = addr.len;
	rc = rc ?: sl_uring_new(&ring, doer->o->uring);
	return rc < 0 ? rc : sl_uring_sendmsg(ring, doer->fd, &msg);
}

const struct sl_verb sl_entry_verbs[] = {
	{ "int80-socket", do_int80_socket },
	{ "int80-connect", do_int80_connect },
	{ "int80-sendto", do_int80_sendto },
	{ "socketcall-connect", do_socketcall_connect },
	{ "x32-connect", do_x32_connect },
	{ "uring-socket", do_uring_socket },
	{ "uring-connect", do_uring_connect },
	{ "uring-sendto", do_uring_sendto },
	{ 0 },
};
