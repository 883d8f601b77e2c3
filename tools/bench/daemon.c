/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/probe.h"
#include "control/client.h"
#include "proc.h"
#include "program.h"

#define START_MS 10000
#define END_MS 20000

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct start {
	const struct sl_daemon *daemon;
	const char *program;
};

static int start_main(void *arg)
{
	const struct start *start = arg;
	const struct sl_daemon *d = start->daemon;
	int log = open(d->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	/* In order: what it has attached is the benchmark's to remove. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	signal(SIGINT, SIG_DFL);
	if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
		return 1;
	execl(start->program, start->program, "--socket", d->socket, "--state-dir", d->state,
	      "--set", d->set_dir, NULL);
	return 127;
}

static int await(struct sl_daemon *d, struct sl_err *err)
{
	int64_t end_ms = sl_monotonic_ms() + START_MS;
	struct sl_control *control = NULL;
	int status;

	while (sl_control_connect(&control, d->socket, START_MS, err)) {
		if (!sl_child_wait(&d->keeper, 10, &status))
			return sl_err_set(err, EIO, "the agent ended at its start: see '%s'",
					  d->log);
		if (sl_monotonic_ms() > end_ms || sl_world_stopped())
			return -ETIMEDOUT;
	}
	sl_control_free(&control);
	*err = (struct sl_err){ 0 };
	return 0;
}

int sl_daemon_start(struct sl_daemon *d, const struct sl_world *world, struct sl_err *err)
{
	char program[PATH_MAX];
	struct start start = { d, program };
	const char *why;
	const struct sl_child_spec spec = { .cpu = -1, .run = start_main, .arg = &start };
	int rc = sl_program_find(program, "sluiced", "SLUICED", err);

	if (rc)
		return rc;
	d->set_dir = world->set_dir;
	/* Takes some processes to find out. */
	sl_probe_listener_flags(&d->listener_flags, &why);
	snprintf(d->dir, sizeof(d->dir), "/tmp/sluice-bench-%d", getpid());
	snprintf(d->socket, sizeof(d->socket), "%s/control.sock", d->dir);
	snprintf(d->state, sizeof(d->state), "%s/state", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	remove_tree(d->dir);
	if (mkdir(d->dir, 0755))
		return sl_err_sys(err, errno, "can't make '%s'", d->dir);
	rc = sl_child_start(&d->keeper, &spec, err);
	return rc ?: await(d, err);
}

pid_t sl_daemon_worker(const struct sl_daemon *d)
{
	return d->keeper.pid ? sl_proc_child(d->keeper.pid) : 0;
}

void sl_daemon_stop(struct sl_daemon *d)
{
	int status;

	if (d->keeper.pid) {
		kill(d->keeper.pid, SIGTERM);
		if (sl_child_wait(&d->keeper, END_MS, &status))
			sl_child_stop(&d->keeper);
	}
	if (d->dir[0]) {
		(void)sl_set_destroy(d->set_dir, NULL);
		remove_tree(d->dir);
	}
	*d = (struct sl_daemon){ 0 };
}
