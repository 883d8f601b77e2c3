// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "oci/box.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/sandbox.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/notify.h"
#include "kernel/cgroup.h"

#define TIMEOUT_MS 20000 /* the first attach loads the programs */
#define SILENCE_MS 60000
#define GRACE_MS (24U * 60 * 60 * 1000) /* as long as a session may wait for who follows us */
#define RETRY_MS 1000

/* How often and how long it is waited for a policy that is being loaded. */
#define AGAIN_MS 10
#define AGAIN_TRIES 200

/* Rule 2: nobody but the container's process is in it. */
static int check_alone(const char *cgroup, pid_t pid, struct sl_err *err)
{
	char path[PATH_MAX + 16];
	_cleanup_file_ FILE *file = NULL;
	bool found = false;
	int member;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	file = fopen(path, "re");
	if (!file)
		return sl_err_sys(err, errno, "'%s'", path);
	while (fscanf(file, "%d", &member) == 1) {
		found |= member == pid;
		if (member == pid)
			continue;
		sl_err_set(err, EBUSY, "the cgroup '%s' is not the container's alone", cgroup);
		return sl_err_hint(err, "let the runtime make a cgroup for it");
	}
	return found ? 0 : sl_err_set(err, ESRCH, "the container's process is gone");
}

/* The cgroup, its id, and what tells of its end. */
static int open_cgroup(struct sl_oci_box *box, struct sl_err *err)
{
	_cleanup_fd_ int dir = -1;
	unsigned long long id;
	int ret = sl_cgroup_open(&dir, box->kept.cgroup, err);

	if (ret)
		return ret;
	ret = sl_cgroup_id(&id, dir);
	if (ret)
		return sl_err_sys(err, -ret, "'%s'", box->kept.cgroup);
	if (box->kept.cgroup_id && box->kept.cgroup_id != id)
		return sl_err_set(err, ESTALE, "'%s' is another cgroup", box->kept.cgroup);
	box->kept.cgroup_id = id;
	box->events = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return box->events < 0 ? sl_err_sys(err, errno, "'%s'", box->kept.cgroup) : 0;
}

static int agent_error(const struct sl_oci_box *box, int ret, struct sl_err *err)
{
	sl_err_set(err, -ret, "%s", sl_runtime_error(box->rt));
	return sl_err_hint(err, "%s", sl_runtime_hint(box->rt));
}

/* So that who follows us can take it up. */
static int note_token(struct sl_oci_box *box, struct sl_err *err)
{
	snprintf(box->kept.token, sizeof(box->kept.token), "%s", sl_runtime_token(box->rt));
	return sl_oci_keep_put(box->keep, &box->kept, err);
}

static int attach(struct sl_oci_box *box, const struct sl_oci_process *process, int listener,
		  struct sl_err *err)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;
	char path[PATH_MAX], name[SL_SANDBOX_NAME_MAX];
	_cleanup_free_ char *policy = NULL;
	int ret = sl_oci_policy_read(&policy, path, sizeof(path), box->options->policy_dir,
				     process->policy, err);

	ret = ret ?: sl_oci_keep_put(box->keep, &box->kept, err);
	if (ret)
		return ret;
	wanted.cgroup = box->kept.cgroup;
	/* An id may be longer than a name, and a number is none: then it is the cgroup's. */
	snprintf(name, sizeof(name), "%s", box->kept.id);
	if (name[strspn(name, "0123456789")])
		wanted.name = name;
	wanted.policy = policy;
	wanted.policy_name = path;
	wanted.listener_fd = listener;
	wanted.mounts_of = process->pid;
	wanted.silence_ms = SILENCE_MS;
	wanted.grace_ms = GRACE_MS;
	/* A container is not its agent's: it goes on without us. */
	wanted.run_on_loss = true;
	wanted.end = SL_END_GO_ON;
	ret = sl_runtime_connect(box->rt, box->options->agent, TIMEOUT_MS);
	ret = ret ?: sl_runtime_attach(box->rt, &wanted);
	box->attaching = sl_runtime_state(box->rt) == SL_RUNTIME_ATTACHING;
	if (box->attaching)
		return 0;
	return ret ? agent_error(box, ret, err) : note_token(box, err);
}

static int box_make(struct sl_oci_box **out, const struct sl_oci_options *options,
		    const struct sl_oci_keep *keep)
{
	_cleanup_(sl_oci_box_free) struct sl_oci_box *box = calloc(1, sizeof(*box));

	if (!box || sl_runtime_new(&box->rt, "sluice-oci", SL_VERSION))
		return -ENOMEM;
	box->options = options;
	box->keep = keep;
	box->events = -1;
	box->retry_at = -1;
	*out = TAKE_PTR(box);
	return 0;
}

/* What was begun of an attach that failed. */
static void give_up(struct sl_oci_box *box)
{
	if (sl_runtime_state(box->rt) == SL_RUNTIME_LIVE)
		(void)sl_runtime_detach(box->rt, SL_DETACH_KILL);
	/* Else it is not known, and for the next one to find out. */
	if (sl_runtime_state(box->rt) == SL_RUNTIME_NONE && box->kept.cgroup_id)
		sl_oci_keep_drop(box->keep, &box->kept);
}

int sl_oci_box_new(struct sl_oci_box **out, const struct sl_oci_process *process, int listener,
		   const struct sl_oci_options *options, const struct sl_oci_keep *keep,
		   struct sl_err *err)
{
	_cleanup_(sl_oci_box_free) struct sl_oci_box *box = NULL;
	int ret = box_make(&box, options, keep);

	if (ret)
		return sl_err_sys(err, -ret, "container %s", process->container.id);
	strcpy(box->kept.id, process->container.id);
	ret = sl_notify_is_listener(listener)
		      ? sl_cgroup_of(box->kept.cgroup, sizeof(box->kept.cgroup), process->pid, err)
		      : sl_err_set(err, EBADF, "what came in its place is no seccomp listener");
	ret = ret ?: check_alone(box->kept.cgroup, process->pid, err);
	ret = ret ?: open_cgroup(box, err);
	ret = ret ?: attach(box, process, listener, err);
	if (ret) {
		give_up(box);
		return sl_err_prefix(err, "container %s is not started", process->container.id);
	}
	*out = TAKE_PTR(box);
	return 0;
}

int sl_oci_box_take_up(struct sl_oci_box **out, const struct sl_oci_kept *kept,
		       const struct sl_oci_options *options, const struct sl_oci_keep *keep)
{
	struct sl_oci_box *box;
	int ret = box_make(&box, options, keep);

	if (ret)
		return ret;
	box->kept = *kept;
	box->empty = open_cgroup(box, NULL);
	box->retry_at = 0;
	*out = box;
	return 0;
}

void sl_oci_box_free(struct sl_oci_box **box)
{
	if (!box || !*box)
		return;
	sl_runtime_free(&(*box)->rt);
	sl_cleanup_fd(&(*box)->events);
	/* The token is a secret. */
	explicit_bzero(*box, sizeof(**box));
	free(*box);
	*box = NULL;
}

/* --- one more process --- */

/* A cgroup that was removed can't be read any more. */
static bool is_empty(const struct sl_oci_box *box)
{
	char text[256];
	ssize_t n = pread(box->events, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return true;
	text[n] = '\0';
	return strstr(text, "populated 0") != NULL;
}

bool sl_oci_box_has(const struct sl_oci_box *box, const struct sl_oci_process *process)
{
	size_t len = strlen(box->kept.cgroup);
	char cgroup[PATH_MAX];

	/* One that is empty is not what has its path by now. */
	return !strcmp(box->kept.id, process->container.id) && !is_empty(box) &&
	       !sl_cgroup_of(cgroup, sizeof(cgroup), process->pid, NULL) &&
	       !strncmp(cgroup, box->kept.cgroup, len) && (!cgroup[len] || cgroup[len] == '/');
}

int sl_oci_box_add(struct sl_oci_box *box, const struct sl_oci_process *process, int listener,
		   struct sl_err *err)
{
	int ret = -EAGAIN;

	if (!sl_notify_is_listener(listener)) {
		sl_err_set(err, EBADF, "what came in its place is no seccomp listener");
		return sl_err_prefix(err, "container %s", box->kept.id);
	}
	for (int i = 0; ret == -EAGAIN && i < AGAIN_TRIES; i++) {
		if (i)
			poll(NULL, 0, AGAIN_MS);
		ret = sl_runtime_add_listener(box->rt, listener);
	}
	if (!ret)
		return 0;
	agent_error(box, ret, err);
	return sl_err_prefix(err, "process %d of container %s is not started", process->pid,
			     box->kept.id);
}

/* --- until it ends --- */

int sl_oci_box_poll(struct sl_oci_box *box, struct pollfd *fds)
{
	int64_t left = box->retry_at - sl_monotonic_ms();

	box->poll = fds;
	fds[0] = (struct pollfd){ .fd = sl_runtime_fd(box->rt), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = box->empty ? -1 : box->events, .events = POLLPRI };
	if (box->retry_at < 0)
		return -1;
	return left > 0 ? (int)left : 0;
}

/* Said once, until it works. */
static void fail(struct sl_oci_box *box)
{
	if (box->retry_at <= 0)
		sl_log_error("container %s: %s", box->kept.id, sl_runtime_error(box->rt));
	box->retry_at = sl_monotonic_ms() + RETRY_MS;
}

/* Reaches the agent at the first use of a box that was taken up. */
static int reach(struct sl_oci_box *box)
{
	return sl_runtime_state(box->rt) == SL_RUNTIME_NONE
		       ? sl_runtime_connect(box->rt, box->options->agent, TIMEOUT_MS)
		       : 0;
}

static void resume(struct sl_oci_box *box)
{
	int ret = reach(box);

	if (ret) {
		fail(box);
		return;
	}
	ret = sl_runtime_resume(box->rt, box->kept.token, SILENCE_MS);
	if (!ret)
		sl_log_notice("container %s: sandbox %s, taken up", box->kept.id,
			      sl_runtime_sandbox(box->rt));
	else
		sl_log_error("container %s: %s", box->kept.id, sl_runtime_error(box->rt));
	box->retry_at = sl_runtime_state(box->rt) == SL_RUNTIME_NONE ? sl_monotonic_ms() + RETRY_MS
								     : -1;
}

static bool detach(struct sl_oci_box *box)
{
	int ret;

	/* What the agent has not answered is dispatch's, and waited for. */
	if (sl_runtime_state(box->rt) == SL_RUNTIME_LOST ||
	    sl_runtime_state(box->rt) == SL_RUNTIME_ATTACHING)
		return false;
	ret = sl_runtime_state(box->rt) == SL_RUNTIME_LIVE
		      ? sl_runtime_detach(box->rt, SL_DETACH_KILL)
		      : reach(box) ?: sl_runtime_detach_cgroup(box->rt, box->kept.cgroup_id,
							       SL_DETACH_KILL);
	if (ret) {
		fail(box);
		return false;
	}
	sl_log_notice("container %s: gone", box->kept.id);
	sl_oci_keep_drop(box->keep, &box->kept);
	return true;
}

/* What came of an attach that was not answered in time; false: nothing. */
static bool attached(struct sl_oci_box *box)
{
	struct sl_err err = { 0 };

	box->attaching = false;
	if (sl_runtime_state(box->rt) != SL_RUNTIME_LIVE) {
		sl_log_error("container %s is not started: %s", box->kept.id,
			     sl_runtime_error(box->rt));
		give_up(box);
		return false;
	}
	sl_log_notice("container %s: sandbox %s", box->kept.id, sl_runtime_sandbox(box->rt));
	if (note_token(box, &err)) {
		sl_err_prefix(&err, "container %s", box->kept.id);
		sl_log_err(SL_LOG_ERROR, &err);
	}
	return true;
}

bool sl_oci_box_run(struct sl_oci_box *box, bool look)
{
	bool was_over = sl_runtime_state(box->rt) == SL_RUNTIME_OVER;

	if (sl_runtime_dispatch(box->rt) && !was_over)
		sl_log_error("container %s: %s", box->kept.id, sl_runtime_error(box->rt));
	if (box->attaching && sl_runtime_state(box->rt) != SL_RUNTIME_ATTACHING && !attached(box))
		return false;
	if (look && !box->empty)
		box->empty = is_empty(box);
	if (sl_monotonic_ms() < box->retry_at)
		return true;
	if (box->empty)
		return !detach(box);
	if (sl_runtime_state(box->rt) == SL_RUNTIME_NONE && box->kept.token[0])
		resume(box);
	else
		box->retry_at = -1;
	return true;
}
