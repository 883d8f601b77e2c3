// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/loop.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "event/consume.h"
#include "kernel/cgroup.h"
#include "run/left.h"
#include "run/mediate.h"
#include "run/signals.h"

/* With --wait-all: how often the cgroup is looked at once the command has ended. */
#define POPULATED_MS 50

struct loop {
	struct sl_run_world *world;
	struct sl_consumer consumer;
	struct sl_mediate *mediate; /* may be NULL */
	pid_t pid;
	int signal_fd;
	int status;
	bool ended;
};

static void take_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (read(loop->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			if (!loop->ended && waitpid(loop->pid, &loop->status, WNOHANG) == loop->pid)
				loop->ended = true;
			continue;
		}
		/* The terminal has sent its own to the command as well. */
		if (!loop->ended && info.ssi_code == SI_KERNEL &&
		    (info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT))
			continue;
		if (!loop->ended)
			kill(loop->pid, (int)info.ssi_signo);
		else
			sl_cgroup_kill(loop->world->cgroup);
	}
}

static bool populated(const struct loop *loop)
{
	bool value = false;

	return !sl_cgroup_populated(loop->world->cgroup, &value) && value;
}

/* Nobody would end, or answer, what goes on: it is killed, and the run has failed. */
static int look_at_agent(struct loop *loop, struct sl_err *err)
{
	int rc = loop->world->agent ? sl_run_agent_tick(loop->world->agent, err) : 0;

	if (rc)
		sl_cgroup_kill(loop->world->cgroup);
	return rc;
}

static int run_until_end(struct loop *loop, bool wait_all, struct sl_err *err)
{
	struct sl_run_agent *agent = loop->world->agent;
	struct pollfd fds[] = {
		{ .fd = agent ? sl_run_agent_fd(agent) : -1, .events = POLLIN },
		{ .fd = loop->signal_fd, .events = POLLIN },
		{ .fd = sl_ring_fd(loop->consumer.ring), .events = POLLIN },
		{ .fd = sl_event_stream_fd(loop->consumer.stream), .events = POLLIN },
	};
	int timeout, rc;

	while (!loop->ended || (wait_all && populated(loop))) {
		rc = sl_consume(&loop->consumer);
		if (rc)
			return sl_err_sys(err, -rc, "reading the ring buffer");
		rc = look_at_agent(loop, err);
		if (rc)
			return rc;
		timeout = sl_sooner_ms(sl_event_stream_pump(loop->consumer.stream),
				       sl_ring_arm(loop->consumer.ring));
		if (timeout)
			sl_event_stream_flush(loop->consumer.stream);
		timeout = sl_sooner_ms(timeout, loop->ended ? POPULATED_MS : SL_SWEEP_MS);
		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
			return sl_err_sys(err, errno, "following the command");
		take_signals(loop);
		if (loop->mediate)
			sl_mediate_tick(loop->mediate);
	}
	return 0;
}

/* What the kernel has counted since the last event of its kind. */
static int feed_untold(const struct sl_decision_key *key, const struct sl_decision_row *row,
		       void *arg)
{
	struct loop *loop = arg;
	struct sl_event_decision event = {
		.head = { .schema = SL_SCHEMA,
			  .kind = SL_EVENT_DECISION,
			  .size = sizeof(event),
			  .time_ns = row->last_ns },
	};

	sl_decision_untold(key, row, &event.decision);
	if (event.decision.count)
		sl_event_stream_feed(&event.head, loop->consumer.stream);
	return 0;
}

int sl_run_loop(struct sl_run_world *world, struct sl_ring *ring, struct sl_event_stream *stream,
		struct sl_mediate *mediate, pid_t pid, bool wait_all, int *status,
		struct sl_err *err)
{
	struct loop loop = {
		.world = world,
		.consumer = { .set = world->set,
			      .ring = ring,
			      .stream = stream,
			      .sandbox = world->agent ? world->sandbox : 0 },
		.mediate = mediate,
		.pid = pid,
		.signal_fd = -1,
	};
	sigset_t signals;
	int rc;

	sl_run_signals_passed(&signals);
	loop.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (loop.signal_fd < 0)
		return sl_err_sys(err, errno, "signalfd");
	rc = run_until_end(&loop, wait_all, err);
	close(loop.signal_fd);
	if (!rc && world->agent && WIFSIGNALED(loop.status) && WTERMSIG(loop.status) == SIGKILL)
		rc = sl_run_agent_check(world->agent, err);
	if (rc)
		return rc;
	sl_run_kill_left(world);
	rc = sl_consume(&loop.consumer);
	if (rc)
		return sl_err_sys(err, -rc, "reading the ring buffer");
	if (mediate)
		sl_mediate_tick(mediate);
	rc = sl_decisions_each(world->set, world->sandbox, feed_untold, &loop);
	if (rc)
		return sl_err_sys(err, -rc, "reading the decisions");
	sl_consume_packets(&loop.consumer);
	*status = loop.status;
	return 0;
}
