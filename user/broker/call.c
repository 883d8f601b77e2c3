// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/filter.h"
#include "broker/parse.h"

/* Whose doing a failure was, by where it came from. */
static enum sl_broker_kind outcome_of(int error, enum sl_broker_kind application)
{
	switch (-error) {
	case ESRCH:
		return SL_BROKER_GONE_READ;
	case EPERM:
		return SL_BROKER_ACCESS;
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return SL_BROKER_RESOURCES;
	default:
		return application;
	}
}

static int fail(enum sl_broker_kind *outcome, enum sl_broker_kind kind)
{
	*outcome = kind;
	return -1;
}

static int read_exec(struct sl_call *call, const struct seccomp_data *data, bool at,
		     enum sl_broker_kind *outcome)
{
	int dirfd = at ? (int)data->args[0] : AT_FDCWD, flags = at ? (int)data->args[4] : 0, ret;

	ret = sl_task_read_string(call->tid, data->args[at], call->path, sizeof(call->path));
	if (ret)
		return fail(outcome, outcome_of(ret, SL_BROKER_BAD_ARGUMENT));
	call->exec.dirfd = dirfd;
	call->exec.check_only = flags & AT_EXECVE_CHECK;
	ret = sl_images_resolve(&call->exec.images, call->tid, dirfd, call->path, flags);
	if (!ret)
		return 0;
	if (ret == -ENOENT || ret == -ENOTDIR)
		return fail(outcome, SL_BROKER_ABSENT);
	if (ret == -EBADF)
		return fail(outcome, SL_BROKER_BAD_ARGUMENT);
	/* EPERM is the file's here, not this process' lack of privilege. */
	return fail(outcome,
		    ret == -EPERM ? SL_BROKER_UNRESOLVED : outcome_of(ret, SL_BROKER_UNRESOLVED));
}

static int read_connect(struct sl_call *call, const struct seccomp_data *data,
			enum sl_broker_kind *outcome)
{
	struct sockaddr_storage addr;
	int len = (int)data->args[2], ret;

	call->connect.fd = (int)data->args[0];
	/* As move_addr_to_kernel() (net/socket.c): what it refuses is not read. */
	if (len <= 0 || (size_t)len > sizeof(addr))
		return fail(outcome, SL_BROKER_BAD_ARGUMENT);
	ret = sl_task_read(call->tid, data->args[1], &addr, len);
	if (ret)
		return fail(outcome, outcome_of(ret, SL_BROKER_BAD_ARGUMENT));
	ret = sl_parse_sockaddr(&addr, len, &call->connect.family, &call->connect.to);
	if (ret == -EINVAL)
		return fail(outcome, SL_BROKER_BAD_ARGUMENT);
	call->connect.is_ip = !ret;
	return 0;
}

enum sl_call_kind sl_call_kind_of(const struct seccomp_data *data)
{
	switch (sl_filter_call_of(data->arch, data->nr)) {
	case SL_CALL_EXECVE:
	case SL_CALL_EXECVEAT:
		return SL_HELD_EXEC;
	case SL_CALL_CONNECT:
		return SL_HELD_CONNECT;
	case SL_CALL_LISTEN:
		return SL_HELD_LISTEN;
	case SL_CALL_SENDTO:
	case SL_CALL_SENDMSG:
	case SL_CALL_SENDMMSG:
		return SL_HELD_SEND;
	case SL_CALL_SOCKET:
	case SL_CALL_SOCKETPAIR:
		return SL_HELD_SOCKET;
	default:
		return SL_HELD_MAX;
	}
}

static int read_arguments(struct sl_call *call, const struct seccomp_data *data,
			  enum sl_broker_kind *outcome)
{
	call->kind = sl_call_kind_of(data);
	switch (call->kind) {
	case SL_HELD_EXEC:
		return read_exec(call, data,
				 sl_filter_call_of(data->arch, data->nr) == SL_CALL_EXECVEAT,
				 outcome);
	case SL_HELD_CONNECT:
		return read_connect(call, data, outcome);
	case SL_HELD_LISTEN:
		call->listen.fd = (int)data->args[0];
		return 0;
	case SL_HELD_SEND:
		return 0;
	case SL_HELD_SOCKET:
		call->socket.family = (int)data->args[0];
		call->socket.type = (int)data->args[1];
		call->socket.protocol = (int)data->args[2];
		return 0;
	case SL_HELD_MAX:
		break;
	}
	/* A listener with another filter than ours: nothing is known of this call. */
	return fail(outcome, SL_BROKER_FOREIGN);
}

int sl_call_read(struct sl_call *out, const struct seccomp_notif *notif, int listener, uint64_t tag,
		 enum sl_broker_kind *outcome)
{
	out->tag = tag;
	out->tid = (pid_t)notif->pid;
	out->listener = listener;
	out->id = notif->id;
	out->arch = notif->data.arch;
	out->kind = SL_HELD_MAX;
	/* 0: the task is in a pid namespace that this process can't see. */
	if (!notif->pid)
		return fail(outcome, SL_BROKER_ACCESS);
	return read_arguments(out, &notif->data, outcome);
}

int sl_call_task(const struct sl_call *call, struct sl_task *out)
{
	struct sl_task task;
	int ret = sl_task_find(&task, call->tid);

	/* While the call is held its task, and so the leader, can't have been replaced. */
	if (!ret)
		ret = sl_notify_valid(call->listener, call->id);
	if (!ret)
		*out = task;
	return ret == -ENOENT ? -ESRCH : ret;
}

int sl_call_script(const struct sl_call *call, char out[PATH_MAX])
{
	const char *path = call->path;
	char dir[PATH_MAX], link[64];
	ssize_t n = 0;
	int len;

	if (path[0] == '/') {
		dir[0] = '\0';
	} else if (call->exec.dirfd != AT_FDCWD) {
		/* alloc_bprm() (fs/exec.c) */
		snprintf(dir, sizeof(dir), "/dev/fd/%d", call->exec.dirfd);
	} else {
		snprintf(link, sizeof(link), "/proc/%d/cwd", call->tid);
		n = readlink(link, dir, sizeof(dir) - 1);
		if (n < 0)
			return -errno;
		dir[n == 1 ? 0 : n] = '\0'; /* the root is "/" */
		if (!strncmp(path, "./", 2))
			path += 2;
	}
	len = snprintf(out, PATH_MAX, "%s%s%s", dir, path[0] && path[0] != '/' ? "/" : "", path);
	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

void sl_call_free(struct sl_call *call)
{
	if (call->kind == SL_HELD_EXEC)
		sl_images_free(&call->exec.images);
	call->kind = SL_HELD_MAX;
}
