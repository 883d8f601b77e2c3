/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/query.h"

/* Levels that a tree indents; deeper ones are shown at the last. */
#define INDENT_MAX 20

struct list_options {
	const char *sandbox;
};

static const struct sl_option list_options[] = {
	SL_OPTION(TEXT, struct list_options, sandbox, "sandbox", 's', "ID|NAME",
		  "of this sandbox only"),
	{ 0 },
};

struct proc_row {
	struct sl_view_process process; /* first: its table of fields is used for rows too */
	struct sl_process_key parent;
	/* Of a tree; rows by their index plus 1, 0: there is none. */
	size_t up, first, next;
	__u32 depth;
	char label[2 * INDENT_MAX + SL_COMM_LEN];
};

struct proc_list {
	struct sl_view_source *source;
	struct sl_array rows; /* struct proc_row */
	unsigned int sandbox; /* 0: each */
	unsigned int pid;     /* 0: each */
};

static int add_proc(const struct sl_process *process, void *arg)
{
	struct proc_list *list = arg;
	struct proc_row *row;

	if ((list->sandbox && process->sandbox != list->sandbox) ||
	    (list->pid && process->key.tgid != list->pid))
		return 0;
	row = sl_array_add(&list->rows);
	if (!row)
		return -ENOMEM;
	row->parent = process->parent;
	return sl_view_process_fill(&row->process, process, list->source);
}

static int by_pid(const void *a, const void *b)
{
	const struct sl_view_process *x = &((const struct proc_row *)a)->process;
	const struct sl_view_process *y = &((const struct proc_row *)b)->process;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Opens the set and fills list->rows, sorted by pid. */
static int collect(struct sl_query *query, struct sl_cli *cli, const struct list_options *options,
		   struct proc_list *list)
{
	int ret = sl_query_open(query, cli);

	list->source = query->source;
	if (!ret)
		ret = sl_query_sandbox(query, cli, options->sandbox, &list->sandbox);
	if (ret)
		return ret;
	ret = sl_procs_each(query->set, add_proc, list);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the processes of %s", cli->set_dir);
	if (list->rows.count)
		qsort(list->rows.data, list->rows.count, list->rows.item, by_pid);
	return 0;
}

static int proc_list(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct proc_list list = { .rows = SL_ARRAY(struct proc_row) };
	int ret = collect(&query, cli, values, &list);

	(void)argc;
	(void)argv;
	if (!ret)
		ret = sl_query_print(cli, sl_view_process_list_fields, &list.rows);
	sl_array_free(&list.rows);
	return ret;
}

/* The process of that key among `rows`, which are sorted by pid; NULL: it is no member. */
static struct proc_row *find_row(const struct sl_array *rows, const struct sl_process_key *key)
{
	const struct proc_row wanted = {
		.process = { .pid = key->tgid, .start_ns = key->start_ns },
	};

	if (!rows->count)
		return NULL;
	return bsearch(&wanted, rows->data, rows->count, rows->item, by_pid);
}

/* Makes a tree of rows that are sorted by pid; returns its first root (index plus 1). */
static size_t link_rows(struct sl_array *rows)
{
	struct proc_row *all = rows->data;
	size_t roots = 0;

	/* Each is put before its siblings, so the last one first. */
	for (size_t i = rows->count; i > 0; i--) {
		struct proc_row *up = find_row(rows, &all[i - 1].parent);
		size_t *list = up ? &up->first : &roots;

		all[i - 1].up = up ? (size_t)(up - all) + 1 : 0;
		all[i - 1].next = *list;
		*list = i;
	}
	return roots;
}

static void fill_label(struct proc_row *row)
{
	int indent = (int)(row->depth < INDENT_MAX ? row->depth : INDENT_MAX);

	/* Escaped when it is printed, as all that is. */
	snprintf(row->label, sizeof(row->label), "%*s%s", 2 * indent, "", row->process.comm);
}

/* Copies the rows below `at` to `tree`, parents before their children, with labels. */
static int walk_rows(struct sl_array *tree, struct sl_array *rows, size_t at)
{
	struct proc_row *all = rows->data;
	__u32 depth = 0;

	while (at) {
		struct proc_row *row = &all[at - 1], *copy = sl_array_add(tree);

		if (!copy)
			return -ENOMEM;
		row->depth = depth;
		fill_label(row);
		*copy = *row;
		if (row->first) {
			at = row->first;
			depth++;
			continue;
		}
		for (; at && !all[at - 1].next; at = all[at - 1].up)
			depth--;
		at = at ? all[at - 1].next : 0;
	}
	return 0;
}

static const struct sl_field tree_fields[] = {
	SL_FIELD_AS(UINT, struct proc_row, process.pid, "pid", "PID"),
	SL_FIELD_AS(UINT, struct proc_row, process.uid, "uid", "UID"),
	SL_FIELD_AS(STRING, struct proc_row, label, "tree", "PROCESS",
		    .flags = SL_FIELD_PLAIN_ONLY),
	SL_FIELD_UINT(struct proc_row, depth, NULL),
	SL_FIELD_OBJECT(struct proc_row, process, "", sl_view_process_fields,
			.flags = SL_FIELD_JSON_ONLY),
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the member is the pointer */
	SL_FIELD_AS(OBJECT_PTR, struct proc_row, process.exe, "exe", "",
		    .flags = SL_FIELD_PLAIN_ONLY, .fields = sl_view_exe_fields),
	{ 0 },
};

static int proc_tree(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct proc_list list = { .rows = SL_ARRAY(struct proc_row) };
	_cleanup_array_ struct sl_array tree = SL_ARRAY(struct proc_row);
	int ret = collect(&query, cli, values, &list);

	(void)argc;
	(void)argv;
	if (!ret)
		ret = walk_rows(&tree, &list.rows, link_rows(&list.rows));
	if (!ret)
		ret = sl_query_print(cli, tree_fields, &tree);
	sl_array_free(&list.rows);
	return ret;
}

struct held_sock {
	struct sl_view_sock sock;
	__u32 fd;
};

static const struct sl_field held_sock_fields[] = {
	SL_FIELD_UINT(struct held_sock, fd, NULL),
	SL_FIELD_AS(ID, struct held_sock, sock.cookie, "cookie", NULL),
	SL_FIELD_AS(STRING, struct held_sock, sock.proto, "proto", NULL),
	SL_FIELD_AS(ENDPOINT, struct held_sock, sock.local, "local", NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_AS(ENDPOINT, struct held_sock, sock.remote, "remote", NULL,
		    .flags = SL_FIELD_NULL),
	SL_FIELD_AS(BYTES, struct held_sock, sock.bytes_sent, "bytes_sent", NULL),
	SL_FIELD_AS(BYTES, struct held_sock, sock.bytes_received, "bytes_received", NULL),
	{ 0 },
};

struct show_record {
	struct sl_view_process process;
	struct sl_records sockets;
};

static const struct sl_field show_more_fields[] = {
	SL_FIELD_RECORDS(struct show_record, sockets, NULL, held_sock_fields),
	{ 0 },
};

struct held_search {
	struct sl_view_source *source;
	const struct sl_view_process *holder;
	struct sl_array socks; /* struct held_sock */
};

static int add_held(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	struct held_search *search = arg;
	struct held_sock *row;

	if (holder->holder.tgid != search->holder->pid ||
	    holder->holder.start_ns != search->holder->start_ns)
		return 0;
	row = sl_array_add(&search->socks);
	if (!row)
		return -ENOMEM;
	row->fd = holder->fd;
	return sl_view_sock_fill(&row->sock, sock, NULL, search->source);
}

static int print_process(struct sl_cli *cli, struct sl_query *query,
			 const struct sl_view_process *process)
{
	struct held_search search = {
		.source = query->source,
		.holder = process,
		.socks = SL_ARRAY(struct held_sock),
	};
	struct show_record record = { .process = *process };
	struct sl_field fields[48];
	int ret = sl_holders_each(query->set, add_held, &search);

	if (ret) {
		sl_err_sys(&cli->err, -ret, "reading the sockets of %s", cli->set_dir);
	} else {
		record.sockets = (struct sl_records){
			.data = search.socks.data,
			.count = search.socks.count,
			.stride = sizeof(struct held_sock),
		};
		sl_fields_join(fields, ARRAY_SIZE(fields), sl_view_process_fields,
			       show_more_fields);
		ret = sl_print_record(&cli->output, fields, &record);
	}
	sl_array_free(&search.socks);
	return ret;
}

static int proc_show(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	static const struct list_options each = { 0 };
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct proc_list list = { .rows = SL_ARRAY(struct proc_row) };
	const struct proc_row *row;
	int ret;

	(void)values;
	(void)argc;
	if (sl_parse_u32(argv[0], 1, INT32_MAX, &list.pid)) {
		sl_err_set(&cli->err, EINVAL, "'%s' is no pid", argv[0]);
		return sl_err_hint(&cli->err, "'sluice proc list' lists those that are known");
	}
	ret = collect(&query, cli, &each, &list);
	/* One process has a pid at a time; a row that outlived its process comes before it. */
	row = ret || !list.rows.count ? NULL : sl_array_at(&list.rows, list.rows.count - 1);
	if (row) {
		struct sl_view_process process = row->process;
		struct sl_digest digest;

		if (process.exe) {
			struct sl_view_exe exe = *process.exe;

			sl_query_digest(&query, exe.id, process.pid, &digest);
			sl_view_exe_digest(&exe, &digest);
			process.exe = &exe;
			ret = print_process(cli, &query, &process);
		} else {
			ret = print_process(cli, &query, &process);
		}
	} else if (!ret) {
		sl_err_set(&cli->err, ENOENT, "process %s is no member of a sandbox", argv[0]);
		ret = sl_err_hint(&cli->err, "'sluice proc list' lists those that are");
	}
	sl_array_free(&list.rows);
	return ret;
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list the processes of sandboxes",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.run = proc_list,
};

static const struct sl_command tree = {
	.name = "tree",
	.summary = "show the processes of sandboxes below their parents",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.run = proc_tree,
};

static const struct sl_command show = {
	.name = "show",
	.summary = "show a process, its images and the sockets it holds",
	.synopsis = "PID",
	.details = "PID is a pid of the initial pid namespace.",
	.run = proc_show,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_proc = {
	.name = "proc",
	.summary = "processes of sandboxes",
	.subcommands = (const struct sl_command *const[]){ &list, &tree, &show, NULL },
};
