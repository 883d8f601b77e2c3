/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "kernel/cgroup.h"
#include "kernel/proxy.h"

struct proxy_row {
	__u64 cgroup_id;
	const char *state;
	char cgroup[PATH_MAX];
};

static const struct sl_field proxy_fields[] = {
	SL_FIELD_AS(ID, struct proxy_row, cgroup_id, "cgroup_id", "ID"),
	SL_FIELD_TEXT(struct proxy_row, state, "STATE"),
	SL_FIELD_STRING(struct proxy_row, cgroup, "CGROUP",
			.flags = SL_FIELD_NULL | SL_FIELD_ELIDE),
	{ 0 },
};

static int add_row(const struct sl_proxy_info *info, void *arg)
{
	struct proxy_row *row = sl_array_add(arg);

	if (!row)
		return -ENOMEM;
	row->cgroup_id = info->cgroup_id;
	row->state = sl_proxy_state_names[info->state];
	memcpy(row->cgroup, info->cgroup, sizeof(row->cgroup));
	return 0;
}

static int proxy_list(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_array_ struct sl_array rows = SL_ARRAY(struct proxy_row);
	int rc = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	(void)argv;
	if (rc)
		return rc;
	rc = sl_proxy_each(query.set, add_row, &rows);
	if (rc)
		return sl_err_sys(&cli->err, -rc, "reading the proxies of %s", cli->set_dir);
	return sl_query_print(cli, proxy_fields, &rows);
}

static int proxy_attach(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	int rc = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	return rc ? rc : sl_proxy_attach(query.set, argv[0], &cli->err);
}

/* A number is an id: the cgroup may be gone. */
static int find_id(struct sl_cli *cli, const char *word, uint64_t *id)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long found;
	char path[PATH_MAX];
	int rc;

	if (!sl_parse_u64(word, 1, UINT64_MAX, id))
		return 0;
	rc = sl_cgroup_resolve(path, sizeof(path), word, &cli->err);
	rc = rc ?: sl_cgroup_open(&fd, path, &cli->err);
	if (rc)
		return rc;
	rc = sl_cgroup_id(&found, fd);
	if (rc)
		return sl_err_sys(&cli->err, -rc, "can't tell the id of cgroup '%s'", path);
	*id = found;
	return 0;
}

static int proxy_detach(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	uint64_t id = 0;
	int rc = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	rc = rc ?: find_id(cli, argv[0], &id);
	return rc ?: sl_proxy_detach(query.set, id, &cli->err);
}

static const struct sl_command attach = {
	.name = "attach",
	.summary = "tell the processes of a cgroup where connections to them were meant to go",
	.synopsis = "CGROUP",
	.details =
		"What a process in CGROUP accepts from a member of a sandbox is answered by\n"
		"getsockopt(SO_ORIGINAL_DST), as if netfilter had redirected it. It needs no option\n"
		"of the proxy's but the one that makes it transparent. The proxy has to listen after\n"
		"this, or in this cgroup already, and in the members' network namespace. It stays\n"
		"until it is detached, or the last sandbox is.",
	.run = proxy_attach,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command list = {
	.name = "list",
	.summary = "list the cgroups of proxies",
	.details = "A cgroup that was removed is 'gone'. 'other': what is pinned answers nobody.",
	.run = proxy_list,
};

static const struct sl_command detach = {
	.name = "detach",
	.summary = "leave the sockets of a cgroup alone again",
	.synopsis = "ID|CGROUP",
	.run = proxy_detach,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_proxy = {
	.name = "proxy",
	.summary = "transparent proxies outside of the sandboxes",
	.subcommands = (const struct sl_command *const[]){ &attach, &list, &detach, NULL },
};
