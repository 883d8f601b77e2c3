// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/notify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int sl_notify_check(struct sl_err *err)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes))
		return sl_err_sys(err, errno, "this kernel has no seccomp notification");
	if (sizes.seccomp_notif <= sizeof(union sl_notif) &&
	    sizes.seccomp_notif_resp == sizeof(struct seccomp_notif_resp))
		return 0;
	return sl_err_set(err, EOVERFLOW, "notifications of this kernel have %u and %u bytes",
			  sizes.seccomp_notif, sizes.seccomp_notif_resp);
}

bool sl_notify_is_listener(int fd)
{
	static const char want[] = "anon_inode:seccomp notify";
	char path[64], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name));
	return n == (ssize_t)strlen(want) && !memcmp(name, want, n);
}

static int call(int fd, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(fd, request, arg);
	while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int sl_notify_receive(int fd, union sl_notif *notif)
{
	memset(notif, 0, sizeof(*notif));
	/* Not retried: after a signal the caller polls again. */
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, notif) ? -errno : 0;
}

int sl_notify_answer(int fd, uint64_t id, const struct sl_answer *answer)
{
	struct seccomp_notif_resp resp = { .id = id };

	if (answer->go_on)
		resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else
		resp.error = -(answer->code > 0 ? answer->code : EACCES);
	return call(fd, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

int sl_notify_valid(int fd, uint64_t id)
{
	return call(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

int sl_notify_sync_wake(int fd)
{
	/* The flags are the argument itself, not behind a pointer. */
	return call(fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, (void *)SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}
