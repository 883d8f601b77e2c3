/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/sandbox_policy.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "cli/agent_view.h"
#include "cli/query.h"
#include "cli/sandbox_find.h"
#include "kernel/shared.h"

const char *const sl_sandbox_modes[] = { "policy", "observe", "audit", "enforce", NULL };

static const enum sl_guard_mode mode_values[] = { SL_GUARD_MODE_MAX, SL_GUARD_OBSERVE,
						  SL_GUARD_AUDIT, SL_GUARD_ENFORCE };

_Static_assert(ARRAY_SIZE(sl_sandbox_modes) == ARRAY_SIZE(mode_values) + 1, "a value for each");

static int open_policy(struct sl_apply **out, struct sl_cli *cli, const char *file)
{
	const struct sl_apply_options options = { .file = file, .holder = SL_GUARD_HOLDS_NOTHING };
	_cleanup_(sl_apply_free) struct sl_apply *apply = NULL;
	int ret = sl_apply_open(&apply, &options, &cli->err);

	ret = ret ?: sl_apply_resolve(apply, &cli->err);
	if (ret)
		return ret;
	if (sl_apply_has_names(apply))
		sl_log_notice("names were looked up now, and are not again: load the policy anew "
			      "when addresses have changed");
	*out = TAKE_PTR(apply);
	return 0;
}

int sl_sandbox_policy_open(struct sl_apply **out, struct sl_cli *cli, const char *file,
			   unsigned int mode)
{
	if (file)
		return open_policy(out, cli, file);
	if (mode_values[mode] == SL_GUARD_MODE_MAX || mode_values[mode] == SL_GUARD_OBSERVE)
		return 0;
	sl_err_set(&cli->err, EINVAL, "--mode %s needs a policy", sl_sandbox_modes[mode]);
	return sl_err_hint(&cli->err, "name one with --policy FILE");
}

/* What a command does to a sandbox, with the set held against others. */
struct change {
	struct sl_cli *cli;
	unsigned int id;
	int (*fn)(const struct change *change, struct sl_set *set);
	struct sl_apply *apply;
	enum sl_guard_mode mode;
};

static int is_id(const struct sl_sandbox *sandbox, void *arg)
{
	return sandbox->id == *(unsigned int *)arg;
}

static int change_sandbox(const struct change *change)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	unsigned int id = change->id;
	int ret = sl_shared_lock(&set, &lock, change->cli->set_dir, &change->cli->err);

	if (ret)
		return ret;
	if (!sl_sandbox_each(set, is_id, &id))
		return sl_err_set(&change->cli->err, ENOENT, "sandbox %u was detached meanwhile",
				  id);
	return change->fn(change, set);
}

static int find_and_change(struct change *change, const char *word)
{
	struct sl_sandbox sandbox;
	struct sl_query query = { 0 };
	int ret = sl_query_open(&query, change->cli);

	ret = ret ? ret : sl_sandbox_find(&query, change->cli, word, &sandbox);
	sl_query_close(&query);
	if (ret)
		return ret;
	change->id = sandbox.id;
	return change_sandbox(change);
}

static int load(const struct change *change, struct sl_set *set)
{
	struct sl_cli *cli = change->cli;
	__u32 policy;
	int ret = sl_apply_load(change->apply, set, change->id, change->mode, &policy, &cli->err);

	if (!ret && !cli->quiet)
		sl_log_notice("sandbox %u has policy %u; socket families without hooks are not "
			      "mediated there",
			      change->id, policy);
	return ret;
}

int sl_sandbox_policy_load(struct sl_apply *apply, struct sl_cli *cli, unsigned int sandbox,
			   unsigned int mode)
{
	const struct change change = {
		.cli = cli, .id = sandbox, .fn = load, .apply = apply, .mode = mode_values[mode]
	};

	return change_sandbox(&change);
}

struct policy_options {
	unsigned int mode;
};

static const struct sl_option policy_options[] = {
	SL_OPTION(CHOICE, struct policy_options, mode, "mode", 0, NULL,
		  "what becomes of a denial (default: as before; at first, as the policy says)",
		  .choices = sl_sandbox_modes),
	{ 0 },
};

static int sandbox_policy(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct policy_options *options = values;
	_cleanup_(sl_apply_free) struct sl_apply *apply = NULL;
	struct change change = { .cli = cli, .fn = load, .mode = mode_values[options->mode] };
	int ret = open_policy(&apply, cli, argv[1]);

	(void)argc;
	change.apply = apply;
	return ret ? ret : find_and_change(&change, argv[0]);
}

static int set_mode(const struct change *change, struct sl_set *set)
{
	struct sl_guard guard;
	int ret;

	if (change->mode != SL_GUARD_FROZEN && !sl_guard_read(set, change->id, &guard) &&
	    guard.mode == SL_GUARD_FROZEN) {
		sl_err_set(&change->cli->err, EBUSY, "sandbox %u is frozen", change->id);
		return sl_err_hint(&change->cli->err, "'sluice sandbox thaw %u' first", change->id);
	}
	if (change->mode == SL_GUARD_ENFORCE && !sl_guard_read(set, change->id, &guard) &&
	    guard.mode != SL_GUARD_ENFORCE && guard.flags & SL_GUARD_STRICT) {
		sl_err_set(&change->cli->err, ENOTSUP,
			   "sandbox %u has `strict` binaries, and may have no filter", change->id);
		return sl_err_hint(&change->cli->err,
				   "start it anew with 'sluice run --mode enforce'");
	}
	ret = sl_guard_mode(set, change->id, change->mode, &change->cli->err);
	if (ret == -ENOENT)
		return sl_err_hint(&change->cli->err, "'sluice sandbox policy %u FILE' loads one",
				   change->id);
	return ret;
}

static int sandbox_mode(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	struct change change = { .cli = cli, .fn = set_mode };

	(void)values;
	(void)argc;
	for (size_t i = 1; i < ARRAY_SIZE(mode_values); i++) {
		if (strcmp(argv[1], sl_sandbox_modes[i]) != 0)
			continue;
		change.mode = mode_values[i];
		return find_and_change(&change, argv[0]);
	}
	sl_err_set(&cli->err, EINVAL, "no mode '%.40s'", argv[1]);
	return sl_err_hint(&cli->err, "modes: observe, audit, enforce; 'sluice sandbox freeze' "
				      "denies all");
}

/* By the agent, if that has a session of it; else as the change says. */
static int freeze_or_thaw(struct change *change, const char *word, bool freeze)
{
	_cleanup_(sl_agent_view_free) struct sl_agent_view *agent = NULL;
	const struct sl_agent_session *session;
	struct sl_query query = { 0 };
	struct sl_sandbox sandbox;
	int ret = sl_agent_view_open(&agent, change->cli);

	if (ret || !agent)
		return ret ? ret : find_and_change(change, word);
	ret = sl_query_open(&query, change->cli);
	ret = ret ? ret : sl_sandbox_find(&query, change->cli, word, &sandbox);
	sl_query_close(&query);
	if (ret)
		return ret;
	session = sl_agent_view_session(agent, sandbox.cgroup_id);
	if (session)
		return sl_agent_view_freeze(agent, change->cli, session, freeze);
	change->id = sandbox.id;
	return change_sandbox(change);
}

static int sandbox_freeze(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	struct change change = { .cli = cli, .fn = set_mode, .mode = SL_GUARD_FROZEN };

	(void)values;
	(void)argc;
	return freeze_or_thaw(&change, argv[0], true);
}

static int thaw(const struct change *change, struct sl_set *set)
{
	return sl_guard_thaw(set, change->id, &change->cli->err);
}

static int sandbox_thaw(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	struct change change = { .cli = cli, .fn = thaw };

	(void)values;
	(void)argc;
	return freeze_or_thaw(&change, argv[0], false);
}

const struct sl_command sl_cmd_sandbox_policy = {
	.name = "policy",
	.summary = "load a policy, or another one in its place, whole or not at all",
	.synopsis = "ID|NAME|CGROUP FILE",
	.details = SL_SANDBOX_POLICY_HELP,
	.options = policy_options,
	.options_size = sizeof(struct policy_options),
	.run = sandbox_policy,
	.min_args = 2,
	.max_args = 2,
};

const struct sl_command sl_cmd_sandbox_mode = {
	.name = "mode",
	.summary = "change what becomes of a denial: observe, audit, enforce",
	.synopsis = "ID|NAME|CGROUP MODE",
	.run = sandbox_mode,
	.min_args = 2,
	.max_args = 2,
};

const struct sl_command sl_cmd_sandbox_freeze = {
	.name = "freeze",
	.summary = "deny all, until it is thawed",
	.synopsis = "ID|NAME|CGROUP",
	.details =
		"Of a sandbox of the agent's the processes are frozen instead (cgroup.freeze), once\n"
		"their held calls are answered, and their connections stay.",
	.run = sandbox_freeze,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_sandbox_thaw = {
	.name = "thaw",
	.summary = "go back to the mode before the freeze",
	.synopsis = "ID|NAME|CGROUP",
	.run = sandbox_thaw,
	.min_args = 1,
	.max_args = 1,
};
