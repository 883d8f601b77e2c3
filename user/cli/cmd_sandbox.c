/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/parse.h"
#include "cli/agent_view.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/sandbox_find.h"
#include "cli/sandbox_policy.h"
#include "cli/set_options.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"

struct sandbox_row {
	struct sl_sandbox sandbox;
	const char *state; /* of the cgroup; NULL: can't be told */
	const char *mode;
	__u32 policy;
	const struct sl_agent_session *session; /* NULL: it has none */
};

static const struct sl_field sandbox_fields[] = {
	SL_FIELD_AS(ID, struct sandbox_row, sandbox.id, "id", "ID"),
	SL_FIELD_AS(STRING, struct sandbox_row, sandbox.name, "name", "NAME"),
	SL_FIELD_TEXT(struct sandbox_row, state, "STATE"),
	SL_FIELD_TEXT(struct sandbox_row, mode, "MODE"),
	SL_FIELD_ID(struct sandbox_row, policy, "POLICY", .flags = SL_FIELD_NULL),
	SL_FIELD_AS(STRING, struct sandbox_row, sandbox.cgroup, "cgroup", "CGROUP",
		    .flags = SL_FIELD_ELIDE),
	SL_FIELD_AS(ID, struct sandbox_row, sandbox.cgroup_id, "cgroup_id", NULL),
	SL_FIELD_AS(TIME, struct sandbox_row, sandbox.attached_ns, "attached", "ATTACHED"),
	{ 0 },
};

/* Where there is an agent. */
static const struct sl_field session_fields[] = {
	SL_FIELD_OBJECT_PTR(struct sandbox_row, session, "", sl_agent_session_fields,
			    .flags = SL_FIELD_NULL),
	{ 0 },
};

#define FIELDS_MAX (ARRAY_SIZE(sandbox_fields) + ARRAY_SIZE(session_fields))

static void choose_fields(struct sl_field fields[FIELDS_MAX], const struct sl_agent_view *agent)
{
	static const struct sl_field none[] = { { 0 } };

	sl_fields_join(fields, FIELDS_MAX, sandbox_fields, agent ? session_fields : none);
}

/* --- attach --- */

struct attach_options {
	const char *name;
	bool force_root;
	const char *policy;
	unsigned int mode;
	struct sl_set_options set;
};

static const struct sl_option attach_options[] = {
	SL_OPTION(TEXT, struct attach_options, name, "name", 'n', "NAME",
		  "name of the sandbox (default: the cgroup's last component)"),
	SL_OPTION(FLAG, struct attach_options, force_root, "force-root", 0, NULL,
		  "allow the root cgroup, which is all there is"),
	SL_OPTION(TEXT, struct attach_options, policy, "policy", 0, "FILE",
		  "decide by this policy which destinations may be reached"),
	SL_OPTION(CHOICE, struct attach_options, mode, "mode", 0, NULL,
		  "what becomes of a denial (default: as the policy says, enforce)",
		  .choices = sl_sandbox_modes),
	SL_SET_SIZES(struct attach_options, "32768", "4096", "65536"),
	SL_SET_SIZE(struct attach_options, set.max_sandboxes, "max-sandboxes", SL_SANDBOX_MAX - 1,
		    "sandboxes (default: 1023)"),
	{ 0 },
};

/* Adds to an error about a cgroup what a person would have to find out next. */
static int explain_cgroup(struct sl_cli *cli, const char *word, int rc)
{
	char mount[PATH_MAX];
	struct statfs fs;

	if (sl_cgroup_mount(mount, sizeof(mount), NULL))
		return rc;
	if (rc == -EXDEV && word[0] == '/' && !statfs(word, &fs) &&
	    fs.f_type == CGROUP_SUPER_MAGIC) {
		sl_err_set(&cli->err, EXDEV, "'%s' is a cgroup of version 1, which has no programs",
			   word);
		return sl_err_hint(&cli->err, "name one of cgroup2, below %s", mount);
	}
	if (rc == -ENOTDIR)
		return sl_err_hint(&cli->err, "a cgroup is a directory below %s", mount);
	if (rc == -ENOENT && word[0] == '/')
		return sl_err_hint(&cli->err, "it was removed, or never made; cgroup2 is at %s",
				   mount);
	if (rc == -ENOENT)
		return sl_err_hint(&cli->err, "names are relative to %s", mount);
	return rc;
}

static int refuse_root(struct sl_cli *cli)
{
	sl_err_set(&cli->err, EINVAL,
		   "the root of the cgroup hierarchy is no sandbox: every process there is would "
		   "be a member, and no other sandbox could be attached");
	return sl_err_hint(&cli->err,
			   "name a cgroup below it; --force-root if that is what you want");
}

/* Shown as it is typed: nothing in it would be escaped. */
static bool printable(const char *name)
{
	char shown[SL_ESCAPE_MAX(SL_SANDBOX_NAME_MAX)];

	sl_escape_text(shown, sizeof(shown), name);
	return !strcmp(shown, name);
}

static int check_name(struct sl_cli *cli, const char *name)
{
	if (!name)
		return 0;
	/* A number would be taken for an id, a '/' for a path. */
	if (*name && strlen(name) < SL_SANDBOX_NAME_MAX &&
	    strspn(name, "0123456789") < strlen(name) && !strchr(name, '/') && printable(name))
		return 0;
	sl_err_set(&cli->err, EINVAL, "--name: '%.80s' can't be a sandbox's name", name);
	return sl_err_hint(&cli->err,
			   "1 to %d printable bytes are expected, no number, no '/', no '\\'",
			   SL_SANDBOX_NAME_MAX - 1);
}

static int sandbox_print(struct sl_cli *cli, const struct sl_agent_view *agent,
			 struct sandbox_row *row)
{
	struct sl_field fields[FIELDS_MAX];
	int ret;

	choose_fields(fields, agent);
	row->session = sl_agent_view_session(agent, row->sandbox.cgroup_id);
	ret = sl_print_record(&cli->output, fields, row);
	if (!ret && row->session && !cli->output.json && row->session->conditions.count) {
		fputc('\n', cli->output.file);
		ret = sl_print_list(&cli->output, sl_agent_condition_fields,
				    &row->session->conditions);
	}

	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

/* What is recorded hangs on the cgroup itself, not on its path. */
static const char *cgroup_state(const struct sl_sandbox *sandbox)
{
	char mount[PATH_MAX], path[2 * PATH_MAX];
	_cleanup_fd_ int fd = -1;
	unsigned long long id;
	int ret = sl_cgroup_mount(mount, sizeof(mount), NULL);

	if (ret)
		return NULL;
	snprintf(path, sizeof(path), "%s%s", mount, sandbox->cgroup);
	ret = sl_cgroup_open(&fd, path, NULL);
	if (ret == -ENOENT)
		return "gone";
	if (ret || sl_cgroup_id(&id, fd))
		return NULL;
	return id == sandbox->cgroup_id ? "recorded" : "replaced";
}

static void row_fill(struct sandbox_row *row, struct sl_set *set)
{
	struct sl_guard guard;

	row->state = cgroup_state(&row->sandbox);
	row->mode = NULL;
	row->policy = 0;
	if (sl_guard_read(set, row->sandbox.id, &guard))
		return;
	row->mode = sl_guard_mode_name(guard.mode);
	row->policy = guard.policy;
}

/* Closes the set again: the last detach removes it, and nobody should have it open then. */
static int find_one(struct sl_cli *cli, const char *word, struct sandbox_row *row)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	int ret = sl_query_open(&query, cli);

	ret = ret ? ret : sl_sandbox_find(&query, cli, word, &row->sandbox);
	if (!ret)
		row_fill(row, query.set);
	return ret;
}

/* Reads back what was attached, to print it. */
static int print_attached(struct sl_cli *cli, unsigned int id)
{
	struct sandbox_row row;
	char word[16];
	int ret;

	snprintf(word, sizeof(word), "%u", id);
	ret = find_one(cli, word, &row);
	return ret ? ret : sandbox_print(cli, NULL, &row);
}

static int sandbox_attach(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct attach_options *options = values;
	_cleanup_(sl_apply_free) struct sl_apply *policy = NULL;
	char path[PATH_MAX], mount[PATH_MAX];
	unsigned int id;
	int ret;

	(void)argc;
	ret = check_name(cli, options->name);
	if (!ret)
		ret = sl_sandbox_policy_open(&policy, cli, options->policy, options->mode);
	if (ret)
		return ret;
	ret = sl_cgroup_resolve(path, sizeof(path), argv[0], &cli->err);
	if (ret)
		return explain_cgroup(cli, argv[0], ret);
	ret = sl_cgroup_mount(mount, sizeof(mount), &cli->err);
	if (ret)
		return ret;
	if (!options->force_root && !strcmp(sl_cgroup_relative(path, mount), "/"))
		return refuse_root(cli);
	ret = sl_shared_attach(cli->set_dir, path, options->name, &options->set, &id, &cli->err);
	if (ret)
		return explain_cgroup(cli, path, ret);
	ret = policy ? sl_sandbox_policy_load(policy, cli, id, options->mode) : 0;
	if (ret) {
		(void)sl_shared_detach(cli->set_dir, id, sl_guard_forget, NULL);
		return ret;
	}
	return cli->quiet ? 0 : print_attached(cli, id);
}

/* --- list, show, detach --- */

static int add_sandbox(const struct sl_sandbox *sandbox, void *arg)
{
	struct sandbox_row *row = sl_array_add(arg);

	if (!row)
		return -ENOMEM;
	row->sandbox = *sandbox;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct sandbox_row *x = a, *y = b;

	return (x->sandbox.id > y->sandbox.id) - (x->sandbox.id < y->sandbox.id);
}

static int sandbox_list(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_array_ struct sl_array rows = SL_ARRAY(struct sandbox_row);
	_cleanup_(sl_agent_view_free) struct sl_agent_view *agent = NULL;
	struct sl_field fields[FIELDS_MAX];
	int ret = sl_agent_view_open(&agent, cli);

	if (ret)
		return ret;
	choose_fields(fields, agent);
	ret = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	(void)argv;
	/* That there is none is an answer to "which are there". */
	if (ret == -ENOENT && access(cli->set_dir, F_OK)) {
		cli->err = (struct sl_err){ 0 };
		return sl_query_print(cli, fields, &rows);
	}
	if (ret)
		return ret;
	ret = sl_sandbox_each(query.set, add_sandbox, &rows);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the sandboxes of %s", cli->set_dir);
	for (size_t i = 0; i < rows.count; i++) {
		struct sandbox_row *row = sl_array_at(&rows, i);

		row_fill(row, query.set);
		row->session = sl_agent_view_session(agent, row->sandbox.cgroup_id);
	}
	if (rows.count)
		qsort(rows.data, rows.count, rows.item, by_id);
	return sl_query_print(cli, fields, &rows);
}

static int sandbox_show(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_agent_view_free) struct sl_agent_view *agent = NULL;
	struct sandbox_row row;
	int ret = sl_agent_view_open(&agent, cli);

	(void)options;
	(void)argc;
	ret = ret ? ret : find_one(cli, argv[0], &row);
	return ret ? ret : sandbox_print(cli, agent, &row);
}

static int sandbox_detach(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	struct sandbox_row row;
	int ret = find_one(cli, argv[0], &row);

	(void)options;
	(void)argc;
	return ret ? ret
		   : sl_shared_detach(cli->set_dir, row.sandbox.id, sl_guard_forget, &cli->err);
}

static const struct sl_command attach = {
	.name = "attach",
	.summary = "record a cgroup and all that runs in it, until it is detached",
	.synopsis = "CGROUP",
	.details =
		"CGROUP is a directory of cgroup2, absolute or relative to where that is mounted. What\n"
		"runs there already is recorded too. The sandbox stays after this command has ended.\n"
		"Sizes count when the first sandbox is attached; a later one must not ask for more.\n"
		"\n" SL_SANDBOX_POLICY_HELP,
	.options = attach_options,
	.options_size = sizeof(struct attach_options),
	.run = sandbox_attach,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command list = {
	.name = "list",
	.summary = "list the sandboxes",
	.details =
		"A cgroup that was removed is 'gone'; 'replaced' if there is another one of its\n"
		"name, which is not recorded: detach the sandbox and attach again. Where there is an\n"
		"agent, its sessions are shown as well.",
	.run = sandbox_list,
};

static const struct sl_command show = {
	.name = "show",
	.summary = "show one sandbox",
	.synopsis = "ID|NAME|CGROUP",
	.run = sandbox_show,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command detach = {
	.name = "detach",
	.summary = "end a sandbox; what runs in it goes on, unrecorded",
	.synopsis = "ID|NAME|CGROUP",
	.details = "The programs are unloaded with the last sandbox. A cgroup that is gone can be\n"
		   "named as well.",
	.run = sandbox_detach,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_sandbox = {
	.name = "sandbox",
	.summary = "cgroups that are recorded, and their policies",
	.subcommands =
		(const struct sl_command *const[]){
			&attach, &list, &show, &detach, &sl_cmd_sandbox_policy,
			&sl_cmd_sandbox_mode, &sl_cmd_sandbox_freeze, &sl_cmd_sandbox_thaw, NULL },
};
