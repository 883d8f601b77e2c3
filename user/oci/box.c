// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "oci/box.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/notify.h"
#include "kernel/cgroup.h"

#define TIMEOUT_MS 20000 /* the first attach loads the programs */
#define SILENCE_MS 60000

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
		return sl_err_hint(err, "let the runtime make a cgroup for it; a second process "
					"(exec) can't be attached");
	}
	return found ? 0 : sl_err_set(err, ESRCH, "the container's process is gone");
}

static int attach(struct sl_oci_box *box, const struct sl_oci_process *process, const char *cgroup,
		  int listener, const struct sl_oci_options *options, struct sl_err *err)
{
	struct sl_runtime_attach wanted = SL_RUNTIME_ATTACH_INIT;
	_cleanup_free_ char *policy = NULL;
	char path[PATH_MAX];
	int ret = sl_oci_policy_read(&policy, path, sizeof(path), options->policy_dir,
				     process->policy, err);

	if (ret)
		return ret;
	wanted.cgroup = cgroup;
	wanted.name = process->container.id;
	wanted.policy = policy;
	wanted.policy_name = path;
	wanted.listener_fd = listener;
	wanted.mounts_of = process->pid;
	wanted.silence_ms = SILENCE_MS;
	/* A container is not its agent's: it goes on without us. */
	wanted.run_on_loss = true;
	wanted.end = SL_END_GO_ON;
	ret = sl_runtime_connect(box->rt, options->agent, TIMEOUT_MS);
	ret = ret ?: sl_runtime_attach(box->rt, &wanted);
	if (!ret)
		return 0;
	sl_err_set(err, -ret, "%s", sl_runtime_error(box->rt));
	return sl_err_hint(err, "%s", sl_runtime_hint(box->rt));
}

int sl_oci_box_new(struct sl_oci_box **out, const struct sl_oci_process *process, int listener,
		   const struct sl_oci_options *options, struct sl_err *err)
{
	_cleanup_(sl_oci_box_free) struct sl_oci_box *box = calloc(1, sizeof(*box));
	char cgroup[PATH_MAX], path[PATH_MAX + 16];
	int ret;

	if (!box || sl_runtime_new(&box->rt, "sluice-oci", SL_VERSION))
		return sl_err_sys(err, ENOMEM, "container %s", process->container.id);
	box->events = -1;
	strcpy(box->id, process->container.id);
	ret = sl_notify_is_listener(listener)
		      ? sl_cgroup_of(cgroup, sizeof(cgroup), process->pid, err)
		      : sl_err_set(err, EBADF, "what came in its place is no seccomp listener");
	ret = ret ?: check_alone(cgroup, process->pid, err);
	if (!ret) {
		snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
		box->events = open(path, O_RDONLY | O_CLOEXEC);
		if (box->events < 0)
			ret = sl_err_sys(err, errno, "'%s'", path);
	}
	ret = ret ?: attach(box, process, cgroup, listener, options, err);
	if (ret)
		return sl_err_prefix(err, "container %s is not started", box->id);
	*out = TAKE_PTR(box);
	return 0;
}

void sl_oci_box_free(struct sl_oci_box **box)
{
	if (!box || !*box)
		return;
	sl_runtime_free(&(*box)->rt);
	sl_cleanup_fd(&(*box)->events);
	free(*box);
	*box = NULL;
}

/* A cgroup that was removed can't be read any more. */
static bool is_empty(int events)
{
	char text[256];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return true;
	text[n] = '\0';
	return strstr(text, "populated 0") != NULL;
}

bool sl_oci_box_run(struct sl_oci_box *box, short events)
{
	bool was_over = sl_runtime_state(box->rt) == SL_RUNTIME_OVER;

	if (sl_runtime_dispatch(box->rt) && !was_over)
		sl_log_error("container %s: %s", box->id, sl_runtime_error(box->rt));
	if (!(events & (POLLPRI | POLLERR | POLLHUP)) || !is_empty(box->events))
		return true;
	if (sl_runtime_detach(box->rt, SL_DETACH_KILL))
		sl_log_error("container %s: %s", box->id, sl_runtime_error(box->rt));
	else
		sl_log_notice("container %s: gone", box->id);
	return false;
}
