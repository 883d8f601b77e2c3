/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/place.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "base/escape.h"
#include "kernel/bpffs.h"
#include "kernel/set.h"
#include "kernel/shared.h"

#define BACKLOG 512

/* A worker dies a moment after its keeper, and holds the locks until then. */
#define LOCK_TRIES 50
#define LOCK_PAUSE_MS 10

static int lock(int fd, const char *what, const char *path, struct sl_err *err)
{
	char safe[SL_ESCAPE_MAX(256)];

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return sl_err_sys(err, errno, "can't lock '%s'", path);
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	sl_escape_text(safe, sizeof(safe), path);
	sl_err_set(err, EBUSY, "another agent has the %s '%s'", what, safe);
	return sl_err_hint(err, "there is one agent a host; end the other, or give this one a "
				"socket, state directory and set of its own");
}

/* The directory of a file, made if it is missing. */
static int make_parent(const char *path, struct sl_err *err)
{
	char parent[PATH_MAX];
	char *slash;

	snprintf(parent, sizeof(parent), "%s", path);
	slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return 0;
	*slash = '\0';
	return mkdir(parent, 0755) && errno != EEXIST
		       ? sl_err_sys(err, errno, "can't make '%s'", parent)
		       : 0;
}

static int take_socket_lock(struct sl_place *place, struct sl_err *err)
{
	const char *socket = place->names.socket;
	char path[PATH_MAX];
	int ret;

	if (socket[0] != '/' || strlen(socket) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		sl_err_set(err, EINVAL, "--socket: '%.80s' can't be a socket's path", socket);
		return sl_err_hint(err, "it is absolute, and no longer than 107 bytes");
	}
	ret = make_parent(socket, err);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s.lock", socket);
	place->socket_lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (place->socket_lock < 0)
		return sl_err_sys(err, errno, "can't open '%s'", path);
	return lock(place->socket_lock, "socket", socket, err);
}

static int take_state_lock(struct sl_place *place, struct sl_err *err)
{
	const char *dir = place->names.state_dir;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return sl_err_sys(err, errno, "can't make '%s'", dir);
	place->state_lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place->state_lock < 0)
		return sl_err_sys(err, errno, "can't open '%s'", dir);
	return lock(place->state_lock, "state directory", dir, err);
}

static int take_set_lock(struct sl_place *place, struct sl_err *err)
{
	const char *dir = place->names.set_dir;
	int ret;

	if (strncmp(dir, SL_BPFFS "/", strlen(SL_BPFFS "/")) != 0 || !dir[strlen(SL_BPFFS "/")]) {
		sl_err_set(err, EINVAL, "'%.80s' names no directory below " SL_BPFFS, dir);
		return sl_err_hint(err, "the default is " SL_SET_DEFAULT);
	}
	if (sl_shared_mark(place->mark, dir))
		return sl_err_sys(err, ENAMETOOLONG, "'%.80s'", dir);
	ret = sl_bpffs_mount(err);
	for (int i = 0; !ret && i < LOCK_TRIES; i++) {
		sl_cleanup_fd(&place->set_lock);
		ret = sl_bpffs_mkdirs(place->mark, err);
		if (ret)
			break;
		place->set_lock = open(place->mark, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Else an agent that ended has just removed it. */
		if (place->set_lock < 0)
			continue;
		ret = lock(place->set_lock, "set", dir, err);
		if (ret || sl_bpffs_is(place->set_lock, place->mark))
			return ret;
	}
	return ret ? ret : sl_err_set(err, EBUSY, "'%s' is removed as often as it is made", dir);
}

static int listen_at(struct sl_place *place, struct sl_err *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int ret;

	strcpy(at.sun_path, place->names.socket);
	/* Nobody listens there: the lock is ours. */
	ret = sl_socket_unlink(at.sun_path, err);
	if (ret)
		return ret;
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) ||
	    chmod(at.sun_path, 0666) || listen(fd, BACKLOG))
		return sl_err_sys(err, errno, "can't listen at '%s'", place->names.socket);
	place->listener = TAKE_FD(fd);
	return 0;
}

int sl_place_take(struct sl_place *out, const struct sl_place_names *names, struct sl_err *err)
{
	struct sl_place place = {
		.names = *names, .socket_lock = -1, .state_lock = -1, .set_lock = -1, .listener = -1
	};
	int ret = take_socket_lock(&place, err);

	ret = ret ?: take_state_lock(&place, err);
	ret = ret ?: take_set_lock(&place, err);
	ret = ret ?: listen_at(&place, err);
	if (!ret) {
		*out = place;
		return 0;
	}
	sl_cleanup_fd(&place.set_lock);
	sl_cleanup_fd(&place.state_lock);
	sl_cleanup_fd(&place.socket_lock);
	return ret;
}

void sl_place_leave(struct sl_place *place)
{
	/* While the locks are held: what is removed is ours. */
	(void)unlink(place->names.socket);
	(void)sl_bpffs_remove(place->mark, NULL);
	sl_cleanup_fd(&place->listener);
	sl_cleanup_fd(&place->set_lock);
	sl_cleanup_fd(&place->state_lock);
	sl_cleanup_fd(&place->socket_lock);
}
