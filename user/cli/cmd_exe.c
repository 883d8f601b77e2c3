/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/words.h"
#include "kernel/sweep.h"

struct exe_list {
	struct sl_view_source *source;
	struct sl_array rows; /* struct sl_view_exe, borrowing from the source */
	const char *path;     /* NULL: each */
};

static int add_exe(const struct sl_exe *exe, void *arg)
{
	struct exe_list *list = arg;
	const struct sl_view_exe *view;
	struct sl_view_exe *row;
	int ret = sl_view_source_exe(list->source, exe->id, &view);

	if (ret || !view)
		return ret;
	if (list->path && strcmp(list->path, view->path) != 0 &&
	    (!view->global_path || strcmp(list->path, view->global_path) != 0))
		return 0;
	row = sl_array_add(&list->rows);
	if (!row)
		return -ENOMEM;
	*row = *view;
	return 0;
}

/* Fills list->rows, in the order of ids. */
static int collect(struct sl_query *query, struct sl_cli *cli, struct exe_list *list)
{
	int ret;

	list->source = query->source;
	ret = sl_exes_each(query->set, add_exe, list);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the executables of %s", cli->set_dir);
	return 0;
}

static int exe_list(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct exe_list list = { .rows = SL_ARRAY(struct sl_view_exe) };
	int ret = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	(void)argv;
	if (!ret)
		ret = collect(&query, cli, &list);
	if (!ret)
		ret = sl_query_print(cli, sl_view_exe_list_fields, &list.rows);
	sl_array_free(&list.rows);
	return ret;
}

static int not_unique(struct sl_cli *cli, const struct sl_array *rows, const char *path)
{
	struct sl_words ids = { 0 };

	for (size_t i = 0; i < rows->count; i++) {
		const struct sl_view_exe *row = sl_array_at(rows, i);
		char id[16];

		snprintf(id, sizeof(id), "%u", row->id);
		sl_words_add(&ids, id);
	}
	sl_err_set(&cli->err, ENOTUNIQ, "%zu executables had the path %s", rows->count, path);
	return sl_err_hint(&cli->err, "name one by its id: %s", ids.text);
}

/* The id that the word is, or the executable that has it for a path. */
static int find_exe(struct sl_query *query, struct sl_cli *cli, const char *word, __u32 *id)
{
	struct exe_list list = { .rows = SL_ARRAY(struct sl_view_exe), .path = word };
	int ret;

	if (!sl_parse_u32(word, 1, UINT32_MAX, id))
		return 0;
	ret = collect(query, cli, &list);
	if (!ret && list.rows.count > 1)
		ret = not_unique(cli, &list.rows, word);
	if (!ret && list.rows.count == 1)
		*id = ((const struct sl_view_exe *)list.rows.data)->id;
	if (!ret && !list.rows.count) {
		sl_err_set(&cli->err, ENOENT, "no executable '%s' in %s", word, cli->set_dir);
		ret = sl_err_hint(&cli->err, "'sluice exe list' lists those that are known");
	}
	sl_array_free(&list.rows);
	return ret;
}

static int exe_show(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	const struct sl_view_exe *view;
	__u32 id = 0;
	int ret = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	if (!ret)
		ret = find_exe(&query, cli, argv[0], &id);
	if (ret)
		return ret;
	sl_query_digests(&query);
	ret = sl_view_source_exe(query.source, id, &view);
	if (!ret && !view) {
		sl_err_set(&cli->err, ENOENT, "no executable of id %u in %s", id, cli->set_dir);
		return sl_err_hint(&cli->err, "'sluice exe list' lists those that are known");
	}
	return ret ? ret : sl_print_record(&cli->output, sl_view_exe_list_fields, view);
}

static const struct sl_field swept_fields[] = {
	SL_FIELD_UINT(struct sl_swept, exes, "EXECUTABLES"),
	SL_FIELD_UINT(struct sl_swept, lineages, "LINEAGES"),
	{ 0 },
};

static int sweep_failed(struct sl_cli *cli, int code)
{
	sl_err_sys(&cli->err, code, "sweeping %s", cli->set_dir);
	if (code == EAGAIN)
		return sl_err_hint(&cli->err, "a recorded socket waits to be accepted or is in "
					      "flight, and nobody can tell what it refers to: try "
					      "again later");
	if (code == EBUSY)
		return sl_err_hint(&cli->err, "another sluice sweeps it just now");
	if (code == EOPNOTSUPP)
		return sl_err_hint(&cli->err, "the kernel's membarrier(2) has no global command: "
					      "it does without with nohz_full");
	return -code;
}

static int exe_sweep(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct sl_swept swept;
	int ret = sl_query_open(&query, cli);

	(void)options;
	(void)argc;
	(void)argv;
	if (ret)
		return ret;
	ret = sl_sweep(query.set, NULL, &swept);
	return ret ? sweep_failed(cli, -ret) : sl_print_record(&cli->output, swept_fields, &swept);
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list the executables that members of sandboxes ran",
	.run = exe_list,
};

static const struct sl_command show = {
	.name = "show",
	.summary = "show an executable with its SHA-256",
	.synopsis = "ID|PATH",
	.details = "The file is hashed now, and only if it still is the one the kernel executed:\n"
		   "sha256_error says why not.",
	.run = exe_show,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command sweep = {
	.name = "sweep",
	.summary = "forget executables and lineages that nothing refers to any more",
	.details = "'run' and 'event watch' do that by themselves when it is due. A set that none\n"
		   "of them reads has only this.",
	.run = exe_sweep,
};

const struct sl_command sl_cmd_exe = {
	.name = "exe",
	.summary = "executables",
	.subcommands = (const struct sl_command *const[]){ &list, &show, &sl_cmd_exe_accept, &sweep,
							   NULL },
};
