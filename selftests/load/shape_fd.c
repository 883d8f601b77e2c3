/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets that change hands: inherited over fork and exec, passed with SCM_RIGHTS. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc.h"
#include "stream.h"
#include "tail.h"

/* Sends on a connected socket that somebody else opened, and closes it. */
static int send_on(const struct sl_opts *o, int fd)
{
	struct sl_stream s = SL_STREAM_INIT;
	int rc;

	sl_truth_proc();
	sl_stream_adopt(&s, o, fd);
	rc = o->identify ? sl_stream_identify(&s, 0) : 0;
	if (rc == 0)
		rc = sl_stream_send(&s, o, sl_or(o->bytes, 16), sl_or(o->count, 1));
	if (rc == 0 && o->hold) {
		sl_stream_tell_open(&s);
		sl_wait_stdin();
	}
	return sl_stream_end(&s, rc);
}

static int open_stream(struct sl_stream *s, const struct sl_opts *o)
{
	int rc;

	if (o->n_servers == 0)
		return sl_usage("%s needs --server", o->cmd);
	rc = sl_stream_open(s, o, &o->server[0]);
	if (rc < 0)
		return sl_stream_end(s, rc);
	sl_stream_tell_open(s);
	return 0;
}

/* "sl-load CMD --fd N ..." at the program's own path or at a copy. */
static int exec_with_fd(const struct sl_opts *o, const char *cmd, int fd)
{
	static struct sl_argv argv;
	char path[PATH_MAX];
	int rc = sl_self_path(o, o->name ? o->name : "sl-load-fd", path);

	if (rc < 0)
		return sl_fail("copy", -rc);
	if (fcntl(fd, F_SETFD, 0) < 0)
		return sl_fail("fcntl", errno);
	sl_argv_start(&argv, path, cmd);
	sl_argv_add(&argv, "--fd");
	sl_argv_add(&argv, "%d", fd);
	sl_argv_tail(&argv, o);
	return sl_exec(path, &argv);
}

static int fork_exec_fd(const struct sl_opts *o)
{
	struct sl_stream s = SL_STREAM_INIT;
	int rc = open_stream(&s, o);
	pid_t pid;

	if (rc < 0)
		return rc;
	pid = sl_fork();
	if (pid < 0)
		return sl_stream_end(&s, sl_fail("fork", -pid));
	if (pid == 0)
		sl_exit(exec_with_fd(o, "fd-send", s.fd));
	rc = sl_wait(pid);
	return sl_stream_end(&s, rc);
}

static int fd_send(const struct sl_opts *o)
{
	return o->fd == SL_UNSET ? sl_usage("%s needs --fd", o->cmd) : send_on(o, (int)o->fd);
}

/* The message carries one byte, since an empty one carries no descriptor. */
union fd_control {
	char text[CMSG_SPACE(sizeof(int))];
	struct cmsghdr header;
};

static int put_fd(int channel, int fd)
{
	union fd_control control = { 0 };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.text,
			      .msg_controllen = sizeof(control.text) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(channel, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int take_fd(int channel, int *fd)
{
	union fd_control control = { 0 };
	struct iovec iov = { &(char){ 0 }, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.text,
			      .msg_controllen = sizeof(control.text) };
	struct cmsghdr *cmsg;

	if (recvmsg(channel, &msg, MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(*fd)) || (msg.msg_flags & MSG_CTRUNC))
		return -EPROTO;
	memcpy(fd, CMSG_DATA(cmsg), sizeof(*fd));
	return 0;
}

/* Receives the socket, waits until the channel ends (the opener is dead), sends. */
static int fd_receive(const struct sl_opts *o)
{
	int channel = (int)o->fd, fd = -1;
	char byte;
	int rc;

	if (o->fd == SL_UNSET)
		return sl_usage("%s needs --fd", o->cmd);
	rc = take_fd(channel, &fd);
	if (rc < 0)
		return sl_fail("receive", -rc);
	while (read(channel, &byte, 1) > 0)
		;
	return send_on(o, fd);
}

/* The opener: connects, hands the socket over, is gone. */
static int opener(const struct sl_opts *o, int channel)
{
	struct sl_stream s = SL_STREAM_INIT;
	int rc = open_stream(&s, o);

	if (rc == 0) {
		rc = put_fd(channel, s.fd);
		if (rc < 0)
			rc = sl_fail("pass", -rc);
		rc = sl_stream_end(&s, rc);
	}
	return rc;
}

static int pass_fd(const struct sl_opts *o)
{
	_cleanup_fd_ int ours = -1, theirs = -1;
	pid_t first, second;
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sl_fail("socketpair", errno);
	ours = pair[0];
	theirs = pair[1];
	second = sl_fork();
	if (second < 0)
		return sl_fail("fork", -second);
	if (second == 0) {
		sl_cleanup_fd(&ours);
		sl_exit(exec_with_fd(o, "fd-receive", theirs));
	}
	sl_cleanup_fd(&theirs);
	first = sl_fork();
	if (first < 0)
		return sl_fail("fork", -first);
	if (first == 0)
		sl_exit(opener(o, ours));
	rc = sl_wait(first);
	/* Reaped, so its pid is free: now the second one may send. */
	sl_cleanup_fd(&ours);
	first = sl_wait(second);
	return rc < 0 ? rc : first;
}

const struct sl_cmd sl_fd_cmds[] = {
	{ .name = "fork-exec-fd",
	  .run = fork_exec_fd,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "connects; a child executes itself or, with --dir, a copy, which sends on the "
		  "inherited socket" },
	{ .name = "pass-fd",
	  .run = pass_fd,
	  .options = SL_TAIL_OPTIONS "name",
	  .help = "one process connects, passes the socket to a second and is reaped; then the "
		  "second sends" },
	{ .name = "fd-send",
	  .run = fd_send,
	  .options = SL_TAIL_OPTIONS "fd",
	  .help = "sends on the inherited socket --fd" },
	{ .name = "fd-receive",
	  .run = fd_receive,
	  .options = SL_TAIL_OPTIONS "fd",
	  .help = "receives a socket over the inherited channel --fd, sends when that ends" },
	{ 0 },
};
