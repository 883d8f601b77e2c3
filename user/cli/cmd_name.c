/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/htab.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "kernel/name.h"

/* A name with one of its addresses, for one process or for all others. */
struct name_row {
	const char *sandbox; /* its name, NULL: not known */
	__u32 sandbox_id;
	__u32 id;
	char name[SL_NAME_MAX];
	bool denied;
	char address[SL_FORMAT_MAX];
	__u32 pid;
	__u64 since_ns;
};

static const struct sl_field name_fields[] = {
	SL_FIELD_TEXT(struct name_row, sandbox, "SANDBOX", .flags = SL_FIELD_NULL),
	SL_FIELD_ID(struct name_row, sandbox_id, NULL),
	SL_FIELD_ID(struct name_row, id, NULL),
	SL_FIELD_STRING(struct name_row, name, "NAME", .flags = SL_FIELD_ELIDE),
	SL_FIELD(BOOL, struct name_row, denied, "DENIED"),
	SL_FIELD_STRING(struct name_row, address, "ADDRESS", .flags = SL_FIELD_NULL),
	SL_FIELD_UINT(struct name_row, pid, "PID", .flags = SL_FIELD_NULL),
	SL_FIELD_AS(TIME, struct name_row, since_ns, "since", NULL),
	{ 0 },
};

struct list_options {
	const char *sandbox;
};

static const struct sl_option list_options[] = {
	SL_OPTION(TEXT, struct list_options, sandbox, "sandbox", 's', "ID|NAME",
		  "of this sandbox only"),
	{ 0 },
};

struct listing {
	struct sl_query query;
	struct sl_array rows;
	struct sl_htab *found; /* ids of names that have a row: __u32 */
};

static int add_row(struct listing *listing, __u32 id, const struct sl_name *name,
		   struct name_row **out)
{
	struct name_row *row = sl_array_add(&listing->rows);

	if (!row)
		return -ENOMEM;
	row->sandbox = sl_view_source_sandbox(listing->query.source, name->sandbox);
	row->sandbox_id = name->sandbox;
	row->id = id;
	row->denied = name->flags & SL_NAME_DENIED;
	row->since_ns = name->since_ns;
	memcpy(row->name, name->text, sizeof(row->name));
	*out = row;
	return 0;
}

static int add_named(const struct sl_named *named, __u32 id, void *arg)
{
	struct listing *listing = arg;
	struct name_row *row;
	struct sl_name name;
	int rc;

	/* Forgotten meanwhile, or longer ago than the address. */
	if (sl_name_read(listing->query.set, id, &name))
		return 0;
	rc = add_row(listing, id, &name, &row);
	if (rc)
		return rc;
	row->pid = named->tgid;
	sl_format_addr(row->address, sizeof(row->address), named->addr_be);
	return sl_htab_add(listing->found, &id, NULL) ? 0 : -ENOMEM;
}

static int add_lone(__u32 id, const struct sl_name *name, void *arg)
{
	struct listing *listing = arg;
	struct name_row *row;

	return sl_htab_get(listing->found, &id) ? 0 : add_row(listing, id, name, &row);
}

static int by_name(const void *a, const void *b)
{
	const struct name_row *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (x->sandbox_id != y->sandbox_id)
		return x->sandbox_id < y->sandbox_id ? -1 : 1;
	if (!order)
		order = strcmp(x->address, y->address);
	return order ? order : (x->pid > y->pid) - (x->pid < y->pid);
}

static int collect(struct listing *listing, unsigned int sandbox)
{
	int rc = sl_htab_new(&listing->found, sizeof(__u32), 0);

	rc = rc ?: sl_named_each(listing->query.set, sandbox, add_named, listing);
	rc = rc ?: sl_name_each(listing->query.set, sandbox, add_lone, listing);
	sl_htab_free(&listing->found);
	if (!rc && listing->rows.count)
		qsort(listing->rows.data, listing->rows.count, listing->rows.item, by_name);
	return rc;
}

static int name_list(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct list_options *options = values;
	struct listing listing = { .rows = SL_ARRAY(struct name_row) };
	unsigned int sandbox;
	int ret = sl_query_open(&listing.query, cli);

	(void)argc;
	(void)argv;
	ret = ret ?: sl_query_sandbox(&listing.query, cli, options->sandbox, &sandbox);
	if (!ret) {
		ret = collect(&listing, sandbox);
		ret = ret ? sl_err_sys(&cli->err, -ret, "reading the names of %s", cli->set_dir)
			  : sl_query_print(cli, name_fields, &listing.rows);
	}
	sl_array_free(&listing.rows);
	sl_query_close(&listing.query);
	return ret;
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list the names that sandboxes asked for, with their addresses",
	.details =
		"A row is an address as one process looked it up, or, without PID, as all others of\n"
		"the sandbox see it. Denied names were asked for, and nobody was asked for them. The\n"
		"kernel keeps the rows, so nothing needs to run; the latest of each kind stay.",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.run = name_list,
};

const struct sl_command sl_cmd_name = {
	.name = "name",
	.summary = "names that sandboxes with policy DNS asked for",
	.subcommands = (const struct sl_command *const[]){ &list, NULL },
};
