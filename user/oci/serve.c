// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "oci/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "base/log.h"
#include "control/wire.h"
#include "oci/box.h"
#include "oci/state.h"

#define CONNS_MAX 64
#define MESSAGE_MS 10000 /* for one that was begun */

struct conn {
	TAILQ_ENTRY(conn) entry;
	struct pollfd *poll;
	int fd;
	int64_t until;
	struct sl_fds fds;
	char *data;
	size_t used;
};

struct serve {
	const struct sl_oci_options *options;
	struct sl_oci_keep keep;
	int listener;
	TAILQ_HEAD(, conn) conns;
	unsigned int conn_count;
	TAILQ_HEAD(, sl_oci_box) boxes;
	unsigned int box_count;
};

static void conn_end(struct serve *s, struct conn *conn)
{
	TAILQ_REMOVE(&s->conns, conn, entry);
	s->conn_count--;
	sl_fds_close(&conn->fds);
	close(conn->fd);
	free(conn->data);
	free(conn);
}

static void drop_box(struct serve *s, struct sl_oci_box *box)
{
	TAILQ_REMOVE(&s->boxes, box, entry);
	s->box_count--;
	sl_oci_box_free(&box);
}

static void add_box(struct serve *s, struct sl_oci_box *box)
{
	TAILQ_INSERT_TAIL(&s->boxes, box, entry);
	s->box_count++;
}

/* One that had this name has ended, and was not looked at yet. */
static void end_before(struct serve *s, const char *id)
{
	struct sl_oci_box *box, *next;

	for (box = TAILQ_FIRST(&s->boxes); box; box = next) {
		next = TAILQ_NEXT(box, entry);
		if (!strcmp(box->kept.id, id) && !sl_oci_box_run(box, true))
			drop_box(s, box);
	}
}

static int take_new(struct serve *s, const struct sl_oci_process *process, int listener,
		    struct sl_err *err)
{
	struct sl_oci_box *box;
	int ret;

	end_before(s, process->container.id);
	ret = sl_oci_box_new(&box, process, listener, s->options, &s->keep, err);
	if (ret)
		return ret;
	add_box(s, box);
	if (box->attaching)
		sl_log_warning("container %s: the agent does not answer, it is waited for",
			       process->container.id);
	else
		sl_log_notice("container %s: sandbox %s, policy '%s'", process->container.id,
			      sl_runtime_sandbox(box->rt), process->policy);
	return 0;
}

static int take_more(struct serve *s, const struct sl_oci_process *process, int listener,
		     struct sl_err *err)
{
	struct sl_oci_box *box;
	int ret;

	TAILQ_FOREACH(box, &s->boxes, entry)
	{
		if (!sl_oci_box_has(box, process))
			continue;
		ret = sl_oci_box_add(box, process, listener, err);
		if (!ret)
			sl_log_notice("container %s: process %d joins", process->container.id,
				      process->pid);
		return ret;
	}
	return sl_err_set(err, ENOENT,
			  "process %d is not started: it is in no cgroup that was attached for it",
			  process->pid);
}

/* The message is whole. */
static void take(struct serve *s, struct conn *conn)
{
	_cleanup_fd_ int listener = -1;
	struct sl_oci_process process = { 0 };
	struct sl_err err = { 0 };
	int ret;

	/* crun 1.8.1 connects without a word when it fails elsewhere. */
	if (!conn->used && !conn->fds.count)
		return;
	ret = sl_oci_process_parse(&process, conn->data ?: "", conn->used, conn->fds.count, &err);
	if (!ret) {
		listener = sl_fds_take(&conn->fds, process.listener);
		ret = process.container.running ? take_more(s, &process, listener, &err)
						: take_new(s, &process, listener, &err);
	}
	if (!ret)
		return;
	/* Whose it is can't be told of what can't be read. */
	if (process.container.id[0])
		sl_err_prefix(&err, "container %s", process.container.id);
	sl_log_err(SL_LOG_ERROR, &err);
}

/* runc leaves the connection open until the container runs, so its end is not waited for. */
static bool is_whole(const struct conn *conn)
{
	struct json_object *json;

	/* Most pieces end elsewhere. */
	if (conn->data[conn->used - 1] != '}' || sl_wire_parse(&json, conn->data, conn->used))
		return false;
	json_object_put(json);
	return true;
}

/* False: it is over with. */
static bool conn_read(struct serve *s, struct conn *conn)
{
	struct sl_fds fds = { .count = 0 };
	char piece[4096], *more;
	ssize_t n = sl_fds_receive(conn->fd, piece, sizeof(piece), &fds);

	if (n == -EAGAIN)
		return true;
	if (!n)
		take(s, conn);
	if (n < 0)
		sl_log_error("what a runtime sent can't be received: %s", strerror((int)-n));
	if (n <= 0) {
		sl_fds_close(&fds);
		return false;
	}
	if (fds.count && conn->fds.count) {
		sl_fds_close(&fds);
		sl_log_error("a runtime sent descriptors twice");
		return false;
	}
	if (fds.count)
		conn->fds = fds;
	more = conn->used + (size_t)n > SL_OCI_STATE_MAX
		       ? NULL
		       : realloc(conn->data, conn->used + (size_t)n);
	if (!more) {
		sl_log_error("a runtime sent more than %u bytes", SL_OCI_STATE_MAX);
		return false;
	}
	conn->data = more;
	memcpy(conn->data + conn->used, piece, (size_t)n);
	conn->used += (size_t)n;
	if (!is_whole(conn))
		return true;
	take(s, conn);
	return false;
}

static void accept_one(struct serve *s)
{
	_cleanup_fd_ int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	socklen_t len = sizeof(struct ucred);
	struct ucred peer;
	struct conn *conn;

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return;
	if (peer.uid) {
		sl_log_warning("user %u is no runtime", peer.uid);
		return;
	}
	conn = calloc(1, sizeof(*conn));
	if (!conn)
		return;
	conn->fd = TAKE_FD(fd);
	conn->until = sl_monotonic_ms() + MESSAGE_MS;
	TAILQ_INSERT_TAIL(&s->conns, conn, entry);
	s->conn_count++;
}

/* What to wait for, in the order of the lists; the caller frees it. */
static struct pollfd *poll_set(struct serve *s, nfds_t *count, int *timeout_ms)
{
	size_t n = 1 + s->conn_count + SL_OCI_BOX_FDS * (size_t)s->box_count;
	struct pollfd *fds = calloc(n, sizeof(*fds)), *at = fds;
	struct sl_oci_box *box;
	struct conn *conn;

	if (!fds)
		return NULL;
	*timeout_ms = -1;
	*at++ = (struct pollfd){ .fd = s->conn_count < CONNS_MAX ? s->listener : -1,
				 .events = POLLIN };
	TAILQ_FOREACH(conn, &s->conns, entry)
	{
		int64_t left = conn->until - sl_monotonic_ms();

		conn->poll = at;
		*at++ = (struct pollfd){ .fd = conn->fd, .events = POLLIN };
		*timeout_ms = sl_sooner_ms(*timeout_ms, left > 0 ? (int)left : 0);
	}
	TAILQ_FOREACH(box, &s->boxes, entry)
	{
		*timeout_ms = sl_sooner_ms(*timeout_ms, sl_oci_box_poll(box, at));
		at += SL_OCI_BOX_FDS;
	}
	*count = (nfds_t)n;
	return fds;
}

static void run_boxes(struct serve *s)
{
	struct sl_oci_box *box, *next;

	for (box = TAILQ_FIRST(&s->boxes); box; box = next) {
		next = TAILQ_NEXT(box, entry);
		/* One that was just made is not in the set. */
		if (!sl_oci_box_run(box, box->poll && box->poll[1].revents))
			drop_box(s, box);
	}
}

static void work(struct serve *s, const struct pollfd *fds)
{
	struct conn *conn, *next;

	for (conn = TAILQ_FIRST(&s->conns); conn; conn = next) {
		next = TAILQ_NEXT(conn, entry);
		if (conn->poll->revents && !conn_read(s, conn)) {
			conn_end(s, conn);
		} else if (sl_monotonic_ms() >= conn->until) {
			sl_log_error("a runtime began a message and did not end it");
			conn_end(s, conn);
		}
	}
	run_boxes(s);
	if (fds[0].revents)
		accept_one(s);
}

static int open_listener(int *out, const char *path, struct sl_err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1, probe = -1;

	if (strlen(path) >= sizeof(addr.sun_path))
		return sl_err_set(err, ENAMETOOLONG, "the socket's path '%s' is too long", path);
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || probe < 0)
		return sl_err_sys(err, errno, "can't make a socket");
	if (!connect(probe, (struct sockaddr *)&addr, sizeof(addr)) || errno == EAGAIN)
		return sl_err_set(err, EADDRINUSE, "somebody listens at '%s' already", path);
	if (errno == ECONNREFUSED && sl_socket_unlink(path, err))
		return -err->code;
	/* The runtimes are root's; so nobody else has to get as far as our check. */
	fchmod(fd, 0600);
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 128))
		return sl_err_sys(err, errno, "can't listen at '%s'", path);
	*out = TAKE_FD(fd);
	return 0;
}

static void take_up(void *ctx, const struct sl_oci_kept *kept)
{
	struct serve *s = ctx;
	struct sl_oci_box *box;

	if (sl_oci_box_take_up(&box, kept, s->options, &s->keep))
		sl_log_error("no memory for container %s", kept->id);
	else
		add_box(s, box);
}

static int loop(struct serve *s, struct sl_err *err)
{
	for (;;) {
		int timeout_ms;
		nfds_t count;
		struct pollfd *fds = poll_set(s, &count, &timeout_ms);

		if (!fds)
			return sl_err_sys(err, ENOMEM, "can't go on");
		if (poll(fds, count, timeout_ms) >= 0)
			work(s, fds);
		free(fds);
	}
}

int sl_oci_serve(const struct sl_oci_options *options, struct sl_err *err)
{
	struct serve s = { .options = options, .keep = { -1 }, .listener = -1 };
	int ret;

	TAILQ_INIT(&s.conns);
	TAILQ_INIT(&s.boxes);
	ret = sl_oci_keep_open(&s.keep, options->state_dir, err);
	ret = ret ?: open_listener(&s.listener, options->listen, err);
	ret = ret ?: sl_oci_keep_load(&s.keep, take_up, &s, err);
	if (!ret) {
		/* Before any process that is added to one of them. */
		run_boxes(&s);
		sl_log_notice("containers at '%s'", options->listen);
		ret = loop(&s, err);
	}
	while (!TAILQ_EMPTY(&s.boxes))
		drop_box(&s, TAILQ_FIRST(&s.boxes));
	sl_cleanup_fd(&s.listener);
	sl_oci_keep_close(&s.keep);
	return ret;
}
