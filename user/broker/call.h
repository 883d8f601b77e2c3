/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A held call, read: who makes it and with which arguments. What comes from the task's
 * memory is what was there when it was read; the kernel reads it again when the call goes
 * on. So an answer may prepare something and may deny; it can't vouch for the arguments.
 */
#ifndef SLUICE_USER_BROKER_CALL_H
#define SLUICE_USER_BROKER_CALL_H

#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>

#include <sluice/sock.h>

#include "broker/image.h"
#include "broker/notify.h"
#include "broker/races.h"
#include "broker/task.h"

enum sl_call_kind {
	SL_HELD_EXEC,
	SL_HELD_CONNECT,
	SL_HELD_LISTEN,
	SL_HELD_SEND,   /* sendto(), sendmsg(), sendmmsg(): that it is made is all that is read */
	SL_HELD_SOCKET, /* refused by the filter: told, to be logged; never goes on */
	SL_HELD_MAX
};

struct sl_call {
	uint64_t tag; /* of the listener */
	pid_t tid;    /* the task that made it; more by sl_call_task() */
	enum sl_call_kind kind;
	uint32_t arch; /* AUDIT_ARCH_* */
	union {
		struct {
			struct sl_images images;
			int dirfd;       /* AT_FDCWD for execve(2) */
			bool check_only; /* AT_EXECVE_CHECK: nothing will be executed */
		} exec;
		struct {
			int fd;
			int family;
			bool is_ip;            /* `to` is set */
			struct sl_endpoint to; /* as the application asked */
		} connect;
		struct {
			int fd;
		} listen;
		struct {
			int family, type, protocol;
		} socket;
	};
	int listener; /* borrowed */
	uint64_t id;
	char path[PATH_MAX]; /* exec: as passed, not safe to print */
};

/* SL_HELD_MAX: no call that a filter of sluice holds. */
enum sl_call_kind sl_call_kind_of(const struct seccomp_data *data);

/*
 * Reads a call. 0: *out is whole, the caller frees it. Else the kind of its outcome: an
 * APPLICATION goes on at once, a RACE or FAULT does not.
 */
int sl_call_read(struct sl_call *out, const struct seccomp_notif *notif, int listener, uint64_t tag,
		 enum sl_broker_kind *outcome);

/*
 * The process that made it, for who wants to know: it costs two files of /proc. -ESRCH: it
 * has gone meanwhile. Other errors are this process' own.
 */
int sl_call_task(const struct sl_call *call, struct sl_task *out);

/*
 * The name that the kernel will record of a script that an exec names (bpf/script.h): as it
 * was passed, made absolute. -ENAMETOOLONG, or -errno of reading the working directory. If
 * the task has changed that meanwhile, the name is another one.
 */
int sl_call_script(const struct sl_call *call, char out[PATH_MAX]);

void sl_call_free(struct sl_call *call);

#endif
