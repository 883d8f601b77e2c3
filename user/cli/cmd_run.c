// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sluice run: a command in a sandbox of its own, observed. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/filter.h"
#include "cli/commands.h"
#include "cli/reach_options.h"
#include "cli/set_options.h"
#include "event/watch.h"
#include "kernel/cgroup.h"
#include "kernel/feature.h"
#include "run/agent.h"
#include "run/child.h"
#include "run/enforce.h"
#include "run/loop.h"
#include "run/mediate.h"
#include "run/report.h"

/* Exit statuses of sluice's own, as env(1) has them. */
#define STATUS_SLUICE 125
#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND 127

struct run_options {
	const char *events;
	bool ocsf;
	const char *user;
	const char *policy;
	unsigned int mode;
	unsigned int hold;
	bool io_uring;
	bool pass_socket;
	bool watch;
	bool wait_all;
	struct sl_reach_options reach;
	struct sl_set_options set;
};

static const char *const mode_names[] = { "policy", "observe", "audit", "enforce", NULL };
/* By enum sl_run_hold. */
static const char *const hold_names[] = { "auto", "exec", "connect", NULL };

static const struct sl_option options[] = {
	SL_OPTION(TEXT, struct run_options, events, "events", 'e', "FILE",
		  "write each event as a line of JSON to FILE, - for stdout"),
	SL_OPTION(FLAG, struct run_options, ocsf, "ocsf", 0, NULL,
		  "with --events: denials only, as OCSF Network Activity (class 4001)"),
	SL_OPTION(TEXT, struct run_options, user, "user", 'u', "UID[:GID]",
		  "run the command as this user (default: who called sudo)"),
	SL_OPTION(TEXT, struct run_options, policy, "policy", 0, "FILE",
		  "decide by this policy which destinations may be reached"),
	SL_OPTION(CHOICE, struct run_options, mode, "mode", 0, NULL,
		  "what becomes of a denial (default: as the policy says, enforce)",
		  .choices = mode_names),
	SL_OPTION(CHOICE, struct run_options, hold, "hold", 0, NULL,
		  "which calls wait until user space has prepared their verdict (default: auto, "
		  "exec if the policy needs it; connect: sends with an address too, if it does)",
		  .choices = hold_names),
	SL_OPTION(FLAG, struct run_options, io_uring, "io-uring", 0, NULL,
		  "allow io_uring, whose sockets of unusual families nobody mediates"),
	SL_OPTION(FLAG, struct run_options, pass_socket, "pass-socket", 0, NULL,
		  "let the command keep internet sockets among its descriptors 0 to 2"),
	SL_OPTION(FLAG, struct run_options, watch, "watch", 'w', NULL,
		  "show events on stderr as they happen"),
	SL_OPTION(FLAG, struct run_options, wait_all, "wait-all", 0, NULL,
		  "wait for all that the command started, instead of killing it"),
	SL_REACH_OPTIONS(struct run_options),
	SL_SET_SIZES(struct run_options, "16384", "2048", "16384"),
	{ 0 },
};

struct run {
	const struct run_options *options;
	struct sl_cli *cli;
	struct sl_run_world world;
	struct sl_summary *summary; /* and the next two: NULL with --quiet */
	struct sl_denied *denied;
	struct sl_unreached *unreached;
	struct sl_event_stream *stream;
	char *policy;               /* its text; NULL: none */
	struct sl_run_agent *agent; /* NULL: without */
	struct sl_reach *reach;
	struct sl_enforce *enforce;
	struct sl_mediate *mediate;
	struct sl_ring *ring;
	FILE *json;
	struct sl_run_signals signals;
	bool started; /* the command was executed */
};

static int open_events(struct run *run)
{
	const char *name = run->options->events;

	if (!name && run->options->ocsf) {
		sl_err_set(&run->cli->err, EINVAL, "--ocsf without --events writes nothing");
		return sl_err_hint(&run->cli->err, "say where to: --events FILE, - for stdout");
	}
	if (!name)
		return 0;
	run->json = strcmp(name, "-") ? fopen(name, "we") : stdout;
	if (run->json)
		return 0;
	sl_err_sys(&run->cli->err, errno, "can't write events to '%s'", name);
	return sl_err_hint(&run->cli->err, "--events takes a file that can be made, or - for "
					   "stdout");
}

static int open_policy_file(struct run *run, struct sl_enforce_options *wanted)
{
	int rc = sl_policy_read(wanted->file, &run->policy, &wanted->len, &run->cli->err);

	wanted->text = run->policy;
	rc = rc ?: sl_reach_open(&run->reach, &run->options->reach, NULL, &run->cli->err);
	wanted->reach = run->reach;
	rc = rc ?: sl_enforce_open(&run->enforce, wanted, &run->cli->err);
	if (rc || !run->options->io_uring || !(sl_enforce_holds(run->enforce) & SL_HOLD_SEND))
		return rc;
	sl_err_set(&run->cli->err, EINVAL, "what io_uring sends and connects can't be held");
	return sl_err_hint(&run->cli->err, "use --hold exec, or not --io-uring");
}

static int open_policy(struct run *run)
{
	static const enum sl_guard_mode modes[] = { SL_GUARD_MODE_MAX, SL_GUARD_OBSERVE,
						    SL_GUARD_AUDIT, SL_GUARD_ENFORCE };
	struct sl_enforce_options wanted = {
		.file = run->options->policy,
		.mode = modes[run->options->mode],
		.hold = (enum sl_run_hold)run->options->hold,
	};

	if (wanted.file)
		return open_policy_file(run, &wanted);
	if (wanted.mode == SL_GUARD_AUDIT || wanted.mode == SL_GUARD_ENFORCE)
		sl_err_set(&run->cli->err, EINVAL, "--mode %s needs a policy",
			   sl_guard_mode_name(wanted.mode));
	else if (sl_reach_asked(&run->options->reach))
		sl_err_set(&run->cli->err, EINVAL, "how to reach things is a matter of a policy");
	else if (wanted.hold != SL_RUN_HOLD_AUTO)
		sl_err_set(&run->cli->err, EINVAL, "--hold %s needs a policy",
			   hold_names[wanted.hold]);
	else
		return 0;
	return sl_err_hint(&run->cli->err, "name one with --policy FILE");
}

static void take_event(const struct sl_view_event *event, void *arg)
{
	struct run *run = arg;

	sl_summary_add(event, run->summary);
	sl_denied_add(run->denied, event);
	sl_unreached_add(run->unreached, event);
}

static bool enforces(const struct run *run)
{
	return run->enforce && sl_enforce_mode(run->enforce) == SL_GUARD_ENFORCE;
}

/* In the agent's set the sandbox has a ring of its own: others read, and lose, what is theirs. */
static int start_ring(struct run *run)
{
	const struct sl_ring_own own = {
		.sandbox = run->world.sandbox,
		.bytes = sl_set_ring_bytes(&run->options->set),
		.events = sl_event_stream_wanted(run->stream),
	};
	unsigned int old;
	int rc;

	if (run->agent)
		return sl_ring_new_own(&run->ring, run->world.set, &own, sl_event_stream_feed,
				       run->stream, &run->cli->err);
	rc = sl_ring_new(&run->ring, run->world.set, sl_event_stream_feed, run->stream,
			 &run->cli->err);
	return rc ? rc : sl_event_mask_set(run->world.set, own.events, &old, &run->cli->err);
}

static int start_stream(struct run *run)
{
	struct sl_event_ops ops = sl_event_ops_of_set(run->world.set);
	struct sl_event_stream_options so = {
		.json = run->json,
		.ocsf = run->options->ocsf,
		.text = run->options->watch ? stderr : NULL,
		.digests = run->json != NULL,
		.fn = run->summary ? take_event : NULL,
		.arg = run,
	};
	struct sl_output terminal;
	int rc;

	sl_output_init(&terminal, stderr);
	so.width = terminal.width;
	if (run->agent)
		so.sandbox = run->world.sandbox;
	if (!run->json && !run->options->watch)
		so.kinds = SL_EVENT_BIT(SL_EVENT_CLOSE) | SL_EVENT_BIT(SL_EVENT_DECISION) |
			   SL_EVENT_BIT(SL_EVENT_UNREACHABLE);
	rc = sl_event_stream_new(&run->stream, &ops, &so);
	return rc ? sl_err_sys(&run->cli->err, -rc, "can't follow events") : start_ring(run);
}

/* Where the agent makes the sandbox: from here on it is recorded, and under its policy. */
static int attach(struct run *run, int listener)
{
	const struct sl_run_attach wanted = {
		.policy = run->policy,
		.mode = run->options->mode ? mode_names[run->options->mode] : NULL,
		.hold_connect = run->options->hold == SL_RUN_HOLD_CONNECT,
		.listener = listener,
		.egress = run->policy ? &run->options->reach : NULL,
		.netns = run->policy ? sl_reach_netns(run->reach) : -1,
	};
	int rc = sl_run_world_attach(&run->world, &wanted, &run->options->set, &run->cli->err);

	if (!rc && run->enforce)
		sl_enforce_borrow(run->enforce, run->world.set);
	return rc ? rc : start_stream(run);
}

/* Once its filter holds the command, which then joins the sandbox as it is. */
static int attach_late(void *ctx, int listener, pid_t child, struct sl_err *err)
{
	struct run *run = ctx;
	int rc = attach(run, listener);

	if (!rc)
		return sl_cgroup_enter(run->world.cgroup, child, err);
	*err = run->cli->err;
	return rc;
}

/* With an agent and a listener to give it, attach_late() does the same. */
static int start_world(struct run *run)
{
	int rc;

	if (run->agent)
		return enforces(run) ? 0 : attach(run, -1);
	rc = start_stream(run);
	return rc || !run->enforce ? rc
				   : sl_enforce_start(run->enforce, run->world.set,
						      run->world.sandbox, &run->cli->err);
}

/* Only where denials are meant: the filter knows no other answer. */
static int start_mediation(struct run *run, const struct sl_run_user *user)
{
	const char *lines[SL_CONTAIN_LINES];
	struct sl_mediate_options wanted = {
		.contain = { .change_user = user->change,
			     .uid = user->uid,
			     .gid = user->gid,
			     .name = user->name[0] ? user->name : NULL,
			     .pass_socket = run->options->pass_socket },
		.io_uring = run->options->io_uring,
		.set = run->world.set,
		.sandbox = run->world.sandbox,
		.attach = run->agent ? attach_late : NULL,
		.ctx = run,
	};
	unsigned int n;
	int rc;

	if (!enforces(run))
		return 0;
	wanted.hold = sl_enforce_holds(run->enforce);
	wanted.prepare = sl_enforce_needs_files(run->enforce);
	wanted.contain.strict = sl_enforce_strict(run->enforce);
	rc = sl_mediate_new(&run->mediate, &wanted, &run->cli->err);
	if (rc || run->cli->quiet)
		return rc;
	n = sl_mediate_lines(run->mediate, lines, SL_CONTAIN_LINES);
	for (unsigned int i = 0; i < n; i++)
		sl_log_notice("taken from the command: %s", lines[i]);
	return 0;
}

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Everything between the world's making and its end; the exit status or -errno. */
static int run_in_world(struct run *run, char **argv)
{
	struct sl_run_start start;
	struct sl_run_user user;
	bool exec_failed;
	int rc, status;
	pid_t pid;

	rc = sl_run_user_find(&user, run->options->user, &run->cli->err);
	rc = rc ?: start_world(run);
	rc = rc ?: start_mediation(run, &user);
	if (rc)
		return rc;
	/* Interrupted before there is a command: it never starts. */
	status = sl_run_signals_ending();
	if (status)
		return 128 + status;
	start = (struct sl_run_start){
		.cgroup = run->world.cgroup,
		.user = &user,
		.signals = &run->signals,
		.mediate = run->mediate,
		.files = run->enforce ? sl_enforce_files(run->enforce) : NULL,
		.reach = run->reach,
		.argv = argv,
	};
	rc = sl_run_child_start(&pid, &start, &exec_failed, &run->cli->err);
	if (rc && exec_failed) {
		sl_error_print(&run->cli->output, &run->cli->err);
		return run->cli->err.code == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
	}
	run->started = !rc;
	rc = rc
		     ?: sl_run_loop(&run->world, run->ring, run->stream, run->mediate, pid,
				    run->options->wait_all, &status, &run->cli->err);
	return rc ? rc : exit_status(status);
}

static void run_free(struct run *run)
{
	sl_ring_free(&run->ring);
	sl_event_stream_free(&run->stream);
	sl_summary_free(&run->summary);
	sl_denied_free(&run->denied);
	sl_unreached_free(&run->unreached);
	sl_mediate_free(&run->mediate);
	sl_reach_free(&run->reach);
	sl_enforce_free(&run->enforce);
	sl_run_agent_free(&run->agent);
	free(run->policy);
	if (run->json && run->json != stdout)
		fclose(run->json);
}

static int print_report(struct run *run, int status)
{
	struct sl_run_report report = {
		.set = run->world.set,
		.sandbox = run->world.sandbox,
		.shared = run->agent != NULL,
		.summary = run->summary,
		.denied = run->denied,
		.unreached = run->unreached,
		.status = status,
	};
	/* stdout is the command's. */
	struct sl_output output = run->cli->output;
	struct sl_event_stream_stats stats;

	output.file = stderr;
	sl_event_stream_stats(run->stream, &stats);
	report.dropped = stats.dropped;
	return sl_run_report_print(&report, &output);
}

/* A caller who closed stderr wants no table; base/start.h has opened it for reading. */
static bool stderr_wanted(void)
{
	int flags = fcntl(STDERR_FILENO, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

static void tell_reach(struct run *run)
{
	struct sl_egress_stats stats = { 0 };

	if (run->agent)
		sl_run_agent_egress(run->agent, &stats);
	else
		sl_reach_stats(run->reach, &stats);
	sl_reach_tell(&stats);
}

/*
 * The end of what was started: the rest of the events, the table, the world. An exec that
 * failed was no run: its message stands alone.
 */
static int finish(struct run *run, int status)
{
	int rc = run->stream ? sl_event_stream_finish(run->stream) : 0, reported = 0;

	if (run->reach && !run->cli->quiet)
		tell_reach(run);
	/* Before the set is gone. */
	sl_reach_free(&run->reach);
	if (run->summary && status >= 0 && run->started && stderr_wanted())
		reported = print_report(run, status);
	if (!run->agent)
		sl_ring_free(&run->ring);
	/* Else it goes with the sandbox, and the kernel waits for readers once. */
	sl_run_world_end(&run->world);
	sl_ring_free(&run->ring);
	sl_run_world_free(&run->world);
	if (!rc && !status && reported)
		return sl_err_sys(&run->cli->err, -reported, "can't print what was recorded");
	if (!rc || status < 0)
		return status;
	/* What is left in the buffer can't be written either: one message is enough. */
	if (run->json)
		clearerr(run->json);
	sl_err_sys(&run->cli->err, -rc, "events are missing: can't write them to '%s'",
		   run->options->events ? run->options->events : "stderr");
	if (!status)
		return rc;
	sl_error_print(&run->cli->output, &run->cli->err);
	return status;
}

static int run_command(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	struct run run = { .options = values, .cli = cli };
	int rc;

	(void)argc;
	rc = sl_feature_require(&cli->err);
	rc = rc ?: open_policy(&run);
	rc = rc ?: open_events(&run);
	if (!rc && !cli->quiet)
		rc = sl_summary_new(&run.summary);
	if (!rc && !cli->quiet)
		rc = sl_denied_new(&run.denied, run.enforce ? sl_enforce_advise : NULL,
				   run.enforce);
	if (!rc && !cli->quiet)
		rc = sl_unreached_new(&run.unreached);
	if (rc) {
		run_free(&run);
		return cli->err.code ? rc : sl_err_sys(&cli->err, -rc, "can't start");
	}
	sl_run_signals_take(&run.signals);
	rc = sl_run_agent_open(&run.agent, cli->agent, &cli->err);
	if (!rc && run.agent && run.options->reach.proxy_cgroup) {
		rc = sl_err_set(&cli->err, ENOTSUP,
				"--proxy-cgroup is for a run without the agent");
		sl_err_hint(&cli->err, "add --agent none, or attach it by `sluice proxy attach`");
	}
	if (!rc)
		rc = run.agent ? sl_run_world_make_with(&run.world, run.agent, &cli->err)
			       : sl_run_world_make(&run.world, NULL, &run.options->set, &cli->err);
	if (!rc)
		rc = finish(&run, run_in_world(&run, argv));
	run_free(&run);
	sl_run_signals_restore(&run.signals);
	return rc;
}

const struct sl_command sl_cmd_run = {
	.name = "run",
	.summary = "run a command in a sandbox of its own and show its connections",
	.synopsis = "-- COMMAND [ARGUMENT…]",
	.details =
		"Makes a cgroup, runs the command in it and records in the kernel which\n"
		"process and binary owns each socket. Prints a table at the end on stderr, with\n"
		"-j or -p a JSON document, with -q neither. Exits with the command's status,\n"
		"128 + N after signal N; 125 when sluice itself failed, 126 or 127 when the\n"
		"command can't be run or found. Where an agent listens it makes the sandbox, in\n"
		"a set that is loaded already; `--agent none` does without it.",
	.options = options,
	.options_size = sizeof(struct run_options),
	.run = run_command,
	.min_args = 1,
	.max_args = SL_ARGS_ANY,
	.flags = SL_COMMAND_EXEC,
	.usage_status = STATUS_SLUICE,
	.failure_status = STATUS_SLUICE,
};
