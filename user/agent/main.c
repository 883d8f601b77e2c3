/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluiced, the agent: takes its places, then is the keeper (broker/keeper.h) of its worker. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/confine.h"
#include "agent/place.h"
#include "agent/worker.h"
#include "base/log.h"
#include "base/service.h"
#include "base/start.h"
#include "broker/caps.h"
#include "cli/command.h"
#include "kernel/feature.h"
#include "kernel/shared.h"

#define RESTART_MAX_MS 5000
/* How long the loop of a worker may stand still, unless systemd says so; at least. */
#define HUNG_MS 30000
#define HUNG_MIN_MS 2000
#define SLOTS 33 /* of calls in hand: one for each of the broker's threads, and one */

struct options {
	const char *socket, *state_dir;
};

static const struct sl_option options[] = {
	SL_OPTION(TEXT, struct options, socket, "socket", 0, "PATH", "control socket",
		  .fallback = "/run/sluice/control.sock"),
	SL_OPTION(TEXT, struct options, state_dir, "state-dir", 0, "DIR",
		  "where sessions and policies are kept over restarts",
		  .fallback = "/var/lib/sluice"),
	{ 0 },
};

static void crashed(void *ctx, int status, unsigned int pause_ms)
{
	(void)ctx;
	if (status == -1)
		sl_log_error("no worker could be started; again in %u ms", pause_ms);
	else if (WIFSIGNALED(status))
		sl_log_error("the worker was ended by signal %d (%s); the next one in %u ms",
			     WTERMSIG(status), sigabbrev_np(WTERMSIG(status)) ?: "?", pause_ms);
	else
		sl_log_error("the worker ended with status %d; the next one in %u ms",
			     WEXITSTATUS(status), pause_ms);
}

static void hung(void *ctx, unsigned int hung_ms)
{
	(void)ctx;
	sl_log_error("the worker has done nothing for %u ms: it is killed", hung_ms);
}

/*
 * Says that the keeper is there, whatever becomes of its workers: it follows them up by
 * itself, and a restart of all would cost the listeners of all sandboxes.
 */
static void alive(void *ctx)
{
	(void)ctx;
	sl_service_tell("WATCHDOG=1");
}

static unsigned int hung_ms(void)
{
	uint32_t watchdog_ms = 2 * sl_service_watchdog_ms();

	if (!watchdog_ms)
		return HUNG_MS;
	return watchdog_ms < HUNG_MIN_MS ? HUNG_MIN_MS : watchdog_ms;
}

static int keep(struct sl_agent_options *wanted, struct sl_err *err)
{
	const struct sl_keeper_options keeper = {
		.worker = sl_agent_worker,
		.ctx = wanted,
		.crashed = crashed,
		.hung = hung,
		.hung_ms = hung_ms(),
		.alive = alive,
		.alive_ms = sl_service_watchdog_ms(),
		.restart_max_ms = RESTART_MAX_MS,
		.slots = SLOTS,
	};
	sigset_t signals;
	int ret = sl_record_table_new(&wanted->records, 0);

	if (ret)
		return sl_err_sys(err, -ret, "can't make the table of sessions");
	wanted->beat_ms = keeper.hung_ms / 3;
	/* The worker reads them by a descriptor: it has none at its start. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	ret = sl_keeper_run(&keeper, err);
	sl_record_table_free(&wanted->records);
	if (ret == -ECANCELED && !err->code)
		sl_err_set(err, ECANCELED, "the worker could not start, see above");
	return ret;
}

static int run(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct options *given = values;
	const struct sl_place_names names = { given->socket, given->state_dir, cli->set_dir };
	struct sl_agent_options wanted = { given->socket, given->state_dir,
					   cli->set_dir,  -1,
					   NULL,          0 };
	struct sl_place place;
	int ret = sl_feature_require(&cli->err);

	(void)argc;
	(void)argv;
	ret = ret ?: sl_place_take(&place, &names, &cli->err);
	if (ret)
		return ret;
	wanted.listener = place.listener;
	/* One that is there has to be of this schema; loading takes a while, attaching need not. */
	ret = sl_shared_make(cli->set_dir, NULL, &cli->err);
	/* From here on, of the keeper and its workers: nothing is mounted or made any more. */
	ret = ret ?: sl_caps_keep(sl_caps_mediating(), &cli->err);
	ret = ret ?: sl_confine(&cli->err);
	ret = ret ?: keep(&wanted, &cli->err);
	sl_place_leave(&place);
	/* Without sandboxes nobody needs it; what goes wrong here is the next agent's to tell. */
	(void)sl_shared_drop(cli->set_dir, NULL);
	if (!ret)
		sl_log_notice("ended; what is attached stays, and its policies in force");
	return ret;
}

static const struct sl_command root = {
	.name = "sluiced",
	.summary = "the agent: sandboxes of runtimes, their policies and held calls",
	.details =
		"Serves the varlink interface io.sluice at its control socket, in the foreground.\n"
		"SIGHUP loads policies anew whose files have changed, SIGTERM ends it: what is\n"
		"attached stays attached, and the kernel goes on deciding; held calls fail until\n"
		"the workload is started anew.",
	.options = options,
	.options_size = sizeof(struct options),
	.run = run,
};

int main(int argc, char **argv)
{
	/* Threads that allocate little and seldom: an arena for each costs more than it spares. */
	(void)mallopt(M_ARENA_MAX, 1);
	sl_start_descriptors();
	sl_start_raise_files();
	return sl_cli_main(&root, argc, argv);
}
