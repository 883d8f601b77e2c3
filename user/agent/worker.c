/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/service.h"

#define THREADS 4
#define TICK_MS 1000
#define LOOK_MS 10000 /* whether all that is attached still enforces */

/*
 * So many rounds of reading are enough for all that has arrived to be read once, whoever
 * goes on writing: one takes up to 64 of 1,024 clients, in turn.
 */
#define ROUNDS_MAX 32

/* --- what happens once in a while --- */

static void log_decisions(struct sl_agent *agent)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = NULL;

	if (!sl_agent_set(agent, &set, NULL))
		sl_decisions_log(agent->decisions, set->set);
}

/* Nothing here happens by itself while nobody is there. */
static bool idle(const struct sl_agent *agent)
{
	unsigned int at = 0, row;

	return !sl_server_clients(agent->server) && !sl_conns_untold(agent) &&
	       !sl_record_next(agent->records, &at, &row);
}

static void tick(struct sl_agent *agent, int64_t now_ms)
{
	if (now_ms < agent->tick_ms)
		return;
	agent->tick_ms = now_ms + TICK_MS;
	sl_server_tick(agent->server);
	sl_conns_log(agent);
	sl_held_tick(agent->held);
	log_decisions(agent);
	sl_agent_save_again(agent);
	sl_agent_remove_ended(agent);
	if (now_ms < agent->look_ms)
		return;
	/* Somebody may have detached one, or put another cgroup or policy in its place. */
	agent->look_ms = now_ms + LOOK_MS;
	sl_agent_sweep(agent);
	for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);)
		(void)sl_agent_enforced(agent, row);
	sl_agent_gone_look(agent);
}

/* --- the loop --- */

static void take_signals(struct sl_agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTERM) {
			agent->stop = true;
			continue;
		}
		sl_log_notice("policies are loaded anew");
		for (unsigned int at = 0, row; sl_record_next(agent->records, &at, &row);)
			sl_agent_reload(agent, row, true);
	}
}

/* Rule 7 of the model: everything that has arrived by now_ms is read. */
static void read_all(struct sl_agent *agent)
{
	struct pollfd fd = { .fd = sl_server_fd(agent->server), .events = POLLIN };

	for (int round = 0; round < ROUNDS_MAX && poll(&fd, 1, 0) > 0; round++)
		sl_server_run(agent->server);
}

static void conclude(struct sl_agent *agent, int64_t now_ms)
{
	struct sl_step step;

	sl_conns_heard(agent, now_ms);
	while (sl_sessions_expire(agent->sessions, now_ms, &step))
		sl_agent_do(agent, &step);
}

static int until(int64_t deadline_ms, int64_t now_ms)
{
	int64_t left = deadline_ms - now_ms;

	if (deadline_ms < 0)
		return -1;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static void round_of(struct sl_agent *agent, int *timeout)
{
	int64_t now_ms = sl_monotonic_ms(), drains_ms, refresh_ms;

	take_signals(agent);
	read_all(agent);
	sl_work_finish(agent->work);
	drains_ms = sl_agent_drains(agent, now_ms);
	refresh_ms = sl_agent_refresh(agent, now_ms);
	conclude(agent, now_ms);
	if (!idle(agent))
		tick(agent, now_ms);
	sl_keeper_beat(agent->link);
	now_ms = sl_monotonic_ms();
	*timeout = sl_sooner_ms(until(sl_sessions_deadline(agent->sessions), now_ms),
				sl_sooner_ms(until(drains_ms, now_ms), until(refresh_ms, now_ms)));
	if (!idle(agent))
		*timeout = sl_sooner_ms(*timeout, until(agent->tick_ms, now_ms));
	*timeout = sl_sooner_ms(*timeout, (int)agent->options->beat_ms);
}

static void loop(struct sl_agent *agent)
{
	struct epoll_event event;
	int timeout;

	while (!agent->stop) {
		round_of(agent, &timeout);
		/* What is ready is found by its owner: level-triggered, and never many. */
		if (!agent->stop)
			(void)epoll_wait(agent->epoll, &event, 1, timeout);
	}
}

/* --- start and end --- */

static int watch(struct sl_agent *agent, int fd, struct sl_err *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(agent->epoll, EPOLL_CTL_ADD, fd, &event)
		       ? sl_err_sys(err, errno, "can't set the loop up")
		       : 0;
}

static int open_parts(struct sl_agent *agent, struct sl_err *err)
{
	const struct sl_server_options server = {
		.listener = agent->options->listener,
		.interface = &sl_agent_interface,
		.ctx = agent,
		.product = "sluiced",
		.version = SL_VERSION,
		.gone = sl_agent_gone,
		.group = sl_agent_group,
		/* A policy as JSON: each of its bytes may be escaped. */
		.wire = { .message = 2 * SL_POLICY_FILE_MAX },
	};
	int ret = sl_htab_new(&agent->conns, sizeof(uint64_t), sizeof(struct sl_conn *));

	ret = ret ?: sl_work_new(&agent->work, THREADS);
	ret = ret ?: sl_decisions_new(&agent->decisions);
	if (ret)
		return sl_err_sys(err, -ret, "can't start");
	ret = sl_store_open(&agent->store, agent->options->state_dir, NULL, err);
	ret = ret ?: sl_copies_open(&agent->copies, agent->options->state_dir, err);
	ret = ret ?: sl_held_new(&agent->held, agent->link, err);
	return ret ?: sl_server_new(&agent->server, &server, err);
}

static int set_up(struct sl_agent *agent, struct sl_err *err)
{
	sigset_t signals;
	int ret;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	agent->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	agent->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (agent->signals < 0 || agent->epoll < 0)
		return sl_err_sys(err, errno, "can't set the loop up");
	ret = open_parts(agent, err);
	ret = ret ?: sl_agent_adopt(agent, err);
	ret = ret ?: watch(agent, agent->signals, err);
	ret = ret ?: watch(agent, sl_work_fd(agent->work), err);
	ret = ret ?: watch(agent, sl_held_fd(agent->held), err);
	return ret ?: watch(agent, sl_server_fd(agent->server), err);
}

static void tear_down(struct sl_agent *agent)
{
	agent->stop = true;
	/* What is being attached still is, and stored. */
	sl_work_free(&agent->work);
	sl_server_free(&agent->server);
	sl_held_free(&agent->held);
	for (unsigned int row = 0; row < SL_RECORDS_MAX; row++)
		sl_agent_box_drop(agent, row);
	if (agent->sessions)
		sl_sessions_free(&agent->sessions);
	sl_agent_set_put(&agent->set);
	sl_copies_free(&agent->copies);
	sl_store_free(&agent->store);
	sl_decisions_free(&agent->decisions);
	sl_htab_free(&agent->conns);
	sl_cleanup_fd(&agent->epoll);
	sl_cleanup_fd(&agent->signals);
	pthread_mutex_destroy(&agent->set_lock);
}

int sl_agent_worker(struct sl_keeper_link *link, void *options)
{
	struct sl_agent *agent = calloc(1, sizeof(*agent));
	struct sl_err err = { 0 };
	int ret = 0;

	if (!agent) {
		sl_log_error("no memory for the worker");
		return 1;
	}
	agent->options = options;
	agent->records = agent->options->records;
	agent->link = link;
	agent->epoll = agent->signals = -1;
	pthread_mutex_init(&agent->set_lock, NULL);
	if (set_up(agent, &err)) {
		sl_log_err(SL_LOG_ERROR, &err);
		ret = SL_KEEPER_GIVE_UP;
	} else {
		sl_log_info("worker %u serves '%s'", sl_keeper_generation(link),
			    agent->options->socket);
		sl_service_tell("READY=1");
		loop(agent);
		sl_service_tell("STOPPING=1");
	}
	tear_down(agent);
	free(agent);
	return ret;
}
