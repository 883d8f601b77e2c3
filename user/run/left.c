// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/left.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/pidns.h"
#include "kernel/cgroup.h"

/* Rounds of 1 ms that killed processes get to be gone. */
#define KILL_ROUNDS 5000

/* Processes that are named when they are killed. */
#define NAMED_MAX 10

struct left {
	const struct sl_run_world *world;
	bool pids_ours; /* pids of records are pids of this process too */
	bool name;      /* say who is killed */
	unsigned int alive;
};

static bool still_alive(const struct left *left, const struct sl_process_key *key)
{
	struct sl_process row;

	return !bpf_map_lookup_elem(sl_set_map_fd(left->world->set, SL_MAP_PROCS), key, &row) &&
	       !(row.flags & SL_PROC_EXITED);
}

/*
 * A record that does not say "exited" after the descriptor was opened: so the pid has not
 * been given away, and the descriptor is this process.
 */
static int kill_one(const struct sl_process *process, void *arg)
{
	struct left *left = arg;
	char comm[SL_ESCAPE_MAX(SL_COMM_LEN)];
	_cleanup_fd_ int fd = -1;

	if (process->flags & SL_PROC_EXITED || process->sandbox != left->world->sandbox)
		return 0;
	if (left->pids_ours) {
		fd = (int)syscall(SYS_pidfd_open, process->key.tgid, 0);
		if (!still_alive(left, &process->key))
			return 0;
		if (fd >= 0)
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	}
	left->alive++;
	if (left->name && left->alive <= NAMED_MAX) {
		sl_escape(comm, sizeof(comm), process->comm, strnlen(process->comm, SL_COMM_LEN));
		sl_log_notice("killed %u (%s), which the command had left running",
			      process->key.tgid, comm);
	}
	return 0;
}

static bool populated(const struct sl_run_world *world)
{
	bool value = false;

	return !sl_cgroup_populated(world->cgroup, &value) && value;
}

void sl_run_kill_left(struct sl_run_world *world)
{
	struct left left = { .world = world, .name = true };
	struct stat st;

	left.pids_ours = sl_in_first_pid_ns();
	if (stat(world->cgroup, &st) && errno == ENOENT)
		sl_log_warning("the command's cgroup was removed while it ran: what moved out of "
			       "it was not recorded");
	for (int i = 0; i < KILL_ROUNDS; i++) {
		left.alive = 0;
		sl_procs_each(world->set, kill_one, &left);
		if (left.name && left.alive > NAMED_MAX)
			sl_log_notice("killed %u more", left.alive - NAMED_MAX);
		left.name = false;
		if (!left.alive && !populated(world))
			return;
		sl_cgroup_kill(world->cgroup);
		poll(NULL, 0, 1);
	}
}
