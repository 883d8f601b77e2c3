/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/sandbox_find.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"

static const struct sl_field sandbox_fields[] = {
	SL_FIELD_AS(ID, struct sl_sandbox, id, "id", "ID"),
	SL_FIELD_STRING(struct sl_sandbox, name, "NAME"),
	SL_FIELD_STRING(struct sl_sandbox, cgroup, "CGROUP", .flags = SL_FIELD_ELIDE),
	SL_FIELD_ID(struct sl_sandbox, cgroup_id, "CGROUP ID"),
	SL_FIELD_AS(TIME, struct sl_sandbox, attached_ns, "attached", "ATTACHED"),
	{ 0 },
};

/* --- attach --- */

struct attach_options {
	const char *name;
	bool force_root;
	struct sl_set_options set;
	uint64_t ring_bytes;
};

#define SIZE_OPTION(member, text, largest, meaning)                                            \
	SL_OPTION(U32, struct attach_options, set.member, text, 0, "COUNT", meaning, .min = 1, \
		  .max = (largest))

static const struct sl_option attach_options[] = {
	SL_OPTION(TEXT, struct attach_options, name, "name", 'n', "NAME",
		  "name of the sandbox (default: the cgroup's last component)"),
	SL_OPTION(FLAG, struct attach_options, force_root, "force-root", 0, NULL,
		  "allow the root cgroup, which is all there is"),
	SIZE_OPTION(max_procs, "max-procs", 1U << 22, "processes that are known at once"),
	SIZE_OPTION(max_exes, "max-exes", 1U << 20, "executables that are known"),
	SIZE_OPTION(max_lineages, "max-lineages", 1U << 22, "chains of executables"),
	SIZE_OPTION(max_closed, "max-closed", 1U << 22, "sockets remembered, open or closed"),
	SIZE_OPTION(max_socks, "max-socks", 1U << 24, "open sockets beyond that"),
	SIZE_OPTION(max_sandboxes, "max-sandboxes", SL_SANDBOX_MAX - 1, "sandboxes"),
	SL_OPTION(SIZE, struct attach_options, ring_bytes, "ring-bytes", 0, "BYTES",
		  "size of the ring buffer of events"),
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

static int check_name(struct sl_cli *cli, const char *name)
{
	if (!name)
		return 0;
	/* A number would be taken for an id, a '/' for a path. */
	if (*name && strlen(name) < SL_SANDBOX_NAME_MAX &&
	    strspn(name, "0123456789") < strlen(name) && !strchr(name, '/'))
		return 0;
	sl_err_set(&cli->err, EINVAL, "--name: '%.80s' can't be a sandbox's name", name);
	return sl_err_hint(&cli->err, "1 to %d bytes are expected, no number, no '/'",
			   SL_SANDBOX_NAME_MAX - 1);
}

static int sandbox_print(struct sl_cli *cli, const struct sl_sandbox *sandbox)
{
	int ret = sl_print_record(&cli->output, sandbox_fields, sandbox);

	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

/* Closes the set again: the last detach removes it, and nobody should have it open then. */
static int find_one(struct sl_cli *cli, const char *word, struct sl_sandbox *sandbox)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	int ret = sl_query_open(&query, cli);

	return ret ? ret : sl_sandbox_find(&query, cli, word, sandbox);
}

/* Reads back what was attached, to print it. */
static int print_attached(struct sl_cli *cli, unsigned int id)
{
	struct sl_sandbox sandbox;
	char word[16];
	int ret;

	snprintf(word, sizeof(word), "%u", id);
	ret = find_one(cli, word, &sandbox);
	return ret ? ret : sandbox_print(cli, &sandbox);
}

static int sandbox_attach(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct attach_options *options = values;
	struct sl_set_options set = options->set;
	char path[PATH_MAX], mount[PATH_MAX];
	unsigned int id;
	int ret;

	(void)argc;
	if (options->ring_bytes > 1U << 30) {
		sl_err_set(&cli->err, ERANGE, "--ring-bytes: the size is out of range");
		return sl_err_hint(&cli->err, "1G is the largest");
	}
	set.ring_bytes = (unsigned int)options->ring_bytes;
	ret = check_name(cli, options->name);
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
	ret = sl_shared_attach(cli->set_dir, path, options->name, &set, &id, &cli->err);
	if (ret)
		return explain_cgroup(cli, path, ret);
	return cli->quiet ? 0 : print_attached(cli, id);
}

/* --- list, show, detach --- */

static int add_sandbox(const struct sl_sandbox *sandbox, void *arg)
{
	struct sl_sandbox *row = sl_array_add(arg);

	if (!row)
		return -ENOMEM;
	*row = *sandbox;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct sl_sandbox *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int sandbox_list(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_array_ struct sl_array rows = SL_ARRAY(struct sl_sandbox);
	int ret = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	(void)argv;
	/* That there is none is an answer to "which are there". */
	if (ret == -ENOENT && access(cli->set_dir, F_OK)) {
		cli->err = (struct sl_err){ 0 };
		return sl_query_print(cli, sandbox_fields, &rows);
	}
	if (ret)
		return ret;
	ret = sl_sandbox_each(query.set, add_sandbox, &rows);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the sandboxes of %s", cli->set_dir);
	if (rows.count)
		qsort(rows.data, rows.count, rows.item, by_id);
	return sl_query_print(cli, sandbox_fields, &rows);
}

static int sandbox_show(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	struct sl_sandbox sandbox;
	int ret = find_one(cli, argv[0], &sandbox);

	(void)options;
	(void)argc;
	return ret ? ret : sandbox_print(cli, &sandbox);
}

static int sandbox_detach(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	struct sl_sandbox sandbox;
	int ret = find_one(cli, argv[0], &sandbox);

	(void)options;
	(void)argc;
	return ret ? ret : sl_shared_detach(cli->set_dir, sandbox.id, &cli->err);
}

static const struct sl_command attach = {
	.name = "attach",
	.summary = "record a cgroup and all that runs in it, until it is detached",
	.synopsis = "CGROUP",
	.details =
		"CGROUP is a directory of cgroup2, absolute or relative to where that is mounted. What\n"
		"runs there already is recorded too. The sandbox stays after this command has ended.\n"
		"Sizes count when the first sandbox is attached; a later one must not ask for more.",
	.options = attach_options,
	.options_size = sizeof(struct attach_options),
	.run = sandbox_attach,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command list = {
	.name = "list",
	.summary = "list the sandboxes",
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
	.summary = "cgroups that are recorded",
	.subcommands = (const struct sl_command *const[]){ &attach, &list, &show, &detach, NULL },
};
