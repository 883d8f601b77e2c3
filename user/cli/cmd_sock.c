/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/sock_query.h"

struct list_options {
	bool all;
	bool closed;
	const char *sandbox;
};

static const struct sl_option list_options[] = {
	SL_OPTION(FLAG, struct list_options, closed, "closed", 'c', NULL,
		  "those that were closed lately, not the open ones"),
	SL_OPTION(FLAG, struct list_options, all, "all", 'a', NULL, "open and closed ones"),
	SL_OPTION(TEXT, struct list_options, sandbox, "sandbox", 's', "ID|NAME",
		  "of this sandbox only"),
	{ 0 },
};

struct sock_list {
	struct sl_view_source *source;
	struct sl_array rows; /* struct sl_view_sock */
	unsigned int sandbox; /* 0: each */
};

static int add_sock(const struct sl_sock *sock, void *arg)
{
	struct sock_list *list = arg;
	struct sl_view_sock *row;

	if (list->sandbox && sock->owner.sandbox != list->sandbox)
		return 0;
	row = sl_array_add(&list->rows);
	return row ? sl_view_sock_fill(row, sock, NULL, list->source) : -ENOMEM;
}

/* Oldest first; the cookie decides between equal times. */
static int by_age(const void *a, const void *b)
{
	const struct sl_view_sock *x = a, *y = b;

	if (x->since_ns != y->since_ns)
		return x->since_ns < y->since_ns ? -1 : 1;
	return (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

static int sock_list(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct list_options *options = values;
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct sock_list list = { .rows = SL_ARRAY(struct sl_view_sock) };
	int ret = sl_query_open(&query, cli);

	(void)argc;
	(void)argv;
	list.source = query.source;
	if (!ret)
		ret = sl_query_sandbox(&query, cli, options->sandbox, &list.sandbox);
	if (ret)
		return ret;
	if (options->closed || options->all)
		ret = sl_closed_each(query.set, add_sock, &list);
	if (!ret && (options->all || !options->closed))
		ret = sl_socks_each(query.set, add_sock, &list);
	if (ret)
		sl_err_sys(&cli->err, -ret, "reading the sockets of %s", cli->set_dir);
	if (!ret && list.rows.count)
		qsort(list.rows.data, list.rows.count, list.rows.item, by_age);
	if (!ret)
		ret = sl_query_print(cli, sl_view_sock_fields, &list.rows);
	sl_array_free(&list.rows);
	return ret;
}

struct holder_row {
	struct sl_view_process process;
	__u32 fd;
};

static const struct sl_field holder_fd_fields[] = {
	SL_FIELD_UINT(struct holder_row, fd, NULL),
	{ 0 },
};

struct show_record {
	struct sl_view_sock sock;
	struct sl_records holders;
};

struct show_search {
	struct sl_view_source *source;
	__u64 cookie;
	struct sl_sock sock;
	bool found;
	struct sl_array holders; /* struct holder_row */
};

static int add_holder(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	struct show_search *search = arg;
	struct sl_owner owner = {
		.start_ns = holder->holder.start_ns,
		.tgid = holder->holder.tgid,
		.ns_pid = holder->holder_ns_pid,
		.sandbox = holder->holder_sandbox,
		.lineage = holder->holder_lineage,
		.exe = holder->holder_exe,
		.script = holder->holder_script,
		.uid = holder->holder_uid,
	};
	struct holder_row *row;

	if (sock->cookie != search->cookie)
		return 0;
	search->sock = *sock;
	search->found = true;
	row = sl_array_add(&search->holders);
	if (!row)
		return -ENOMEM;
	row->fd = holder->fd;
	memcpy(owner.comm, holder->holder_comm, sizeof(owner.comm));
	return sl_view_owner_fill(&row->process, &owner, search->source);
}

static int print_sock(struct sl_cli *cli, struct show_search *search)
{
	struct sl_field fields[64], holder_fields[48];
	struct show_record record = {
		.holders = {
			.data = search->holders.data,
			.count = search->holders.count,
			.stride = sizeof(struct holder_row),
		},
	};
	const struct sl_field more[] = {
		SL_FIELD_RECORDS(struct show_record, holders, NULL, holder_fields),
		{ 0 },
	};
	int ret = sl_view_sock_fill(&record.sock, &search->sock, NULL, search->source);

	if (ret)
		return ret;
	sl_fields_join(holder_fields, ARRAY_SIZE(holder_fields), sl_view_process_fields,
		       holder_fd_fields);
	sl_fields_join(fields, ARRAY_SIZE(fields), sl_view_sock_fields, more);
	return sl_print_record(&cli->output, fields, &record);
}

static int sock_show(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct show_search search = { .holders = SL_ARRAY(struct holder_row) };
	uint64_t cookie;
	int ret;

	(void)options;
	(void)argc;
	if (sl_parse_u64(argv[0], 1, UINT64_MAX, &cookie)) {
		sl_err_set(&cli->err, EINVAL, "'%s' is no socket cookie", argv[0]);
		return sl_err_hint(&cli->err, "'sluice sock list' shows those that are known");
	}
	ret = sl_query_open(&query, cli);
	if (ret)
		return ret;
	search.source = query.source;
	search.cookie = cookie;
	sl_query_digests(&query);
	ret = sl_holders_each(query.set, add_holder, &search);
	if (!ret && !search.found) {
		ret = sl_sock_by_cookie(query.set, cookie, &search.sock);
		search.found = !ret;
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (ret) {
		sl_err_sys(&cli->err, -ret, "reading the sockets of %s", cli->set_dir);
	} else if (!search.found) {
		sl_err_set(&cli->err, ENOENT, "no socket of cookie %s, open or closed lately",
			   argv[0]);
		ret = sl_err_hint(&cli->err, "'sluice sock list --all' lists those that are known");
	} else {
		ret = print_sock(cli, &search);
	}
	sl_array_free(&search.holders);
	return ret;
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list sockets and who owns them",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.run = sock_list,
};

static const struct sl_command show = {
	.name = "show",
	.summary = "show all about one socket, and who holds it",
	.synopsis = "COOKIE",
	.run = sock_show,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_sock = {
	.name = "sock",
	.summary = "sockets and who owns them",
	.subcommands =
		(const struct sl_command *const[]){ &list, &show, &sl_cmd_sock_resolve, NULL },
};
