/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls on a seccomp listener (seccomp_unotify(2)), each with its answer narrowed to
 * what a caller acts on. They return 0 or -errno.
 */
#ifndef SLUICE_USER_BROKER_NOTIFY_H
#define SLUICE_USER_BROKER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/ioctl.h>
#include <linux/seccomp.h>

#include "base/err.h"

/* Debian 12's header lacks these (include/uapi/linux/seccomp.h). */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* Room for a kernel whose struct has grown (SECCOMP_GET_NOTIF_SIZES). */
#define SL_NOTIF_SIZE 256

union sl_notif {
	struct seccomp_notif notif;
	char room[SL_NOTIF_SIZE];
};

struct sl_answer {
	bool go_on; /* the kernel runs the call with the arguments it then finds */
	int code;   /* positive errno of a call that does not go on */
};

/* Whether the kernel's structs are of sizes that this program can handle. */
int sl_notify_check(struct sl_err *err);

/* Whether `fd` is a seccomp listener at all; by its name, which has no side effect. */
bool sl_notify_is_listener(int fd);

/*
 * Receives into *notif, which is cleared first, as the kernel demands. To be called when
 * poll(2) says readable: it blocks otherwise, whatever O_NONBLOCK says. -ENOENT: the
 * target was killed or interrupted meanwhile.
 */
int sl_notify_receive(int fd, union sl_notif *notif);

/* -ENOENT: the target is gone. -EINPROGRESS: it has an answer already. */
int sl_notify_answer(int fd, uint64_t id, const struct sl_answer *answer);

/* -ENOENT: what was read of the target's memory may have been another task's. */
int sl_notify_valid(int fd, uint64_t id);

/* Answers wake their target on this CPU (6.6). -EINVAL: this kernel can't. */
int sl_notify_sync_wake(int fd);

#endif
