/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/watch.h"
#include "event/view_event.h"

struct decision_row {
	struct sl_view_decision decision;
	struct sl_view_process process;
};

static bool has_process(const void *record)
{
	return ((const struct decision_row *)record)->process.pid;
}

static const struct sl_field more_fields[] = {
	SL_FIELD_OBJECT(struct decision_row, process, "", sl_view_process_fields,
			.present = has_process),
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
	struct sl_array rows;
	struct sl_view_source *source;
};

static int add_decision(const struct sl_decision_key *key, const struct sl_decision_row *row,
			void *arg)
{
	struct listing *listing = arg;
	struct decision_row *slot = sl_array_add(&listing->rows);
	struct sl_decision_record record;

	if (!slot)
		return -ENOMEM;
	sl_decision_untold(key, row, &record);
	record.count = row->count;
	sl_view_decision_fill(&slot->decision, &record, listing->source);
	return sl_view_owner_fill(&slot->process, &record.owner, listing->source);
}

static int by_last(const void *a, const void *b)
{
	const struct decision_row *x = a, *y = b;

	return (x->decision.last_ns < y->decision.last_ns) -
	       (x->decision.last_ns > y->decision.last_ns);
}

static int decision_list(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct list_options *options = values;
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct listing listing = { .rows = SL_ARRAY(struct decision_row) };
	struct sl_field fields[32];
	unsigned int sandbox;
	int ret = sl_query_open(&query, cli);

	(void)argc;
	(void)argv;
	if (!ret)
		ret = sl_query_sandbox(&query, cli, options->sandbox, &sandbox);
	if (ret)
		return ret;
	listing.source = query.source;
	ret = sl_decisions_each(query.set, sandbox, add_decision, &listing);
	if (ret) {
		sl_err_sys(&cli->err, -ret, "reading the decisions of %s", cli->set_dir);
	} else {
		if (listing.rows.count)
			qsort(listing.rows.data, listing.rows.count, listing.rows.item, by_last);
		sl_fields_join(fields, ARRAY_SIZE(fields), sl_view_decision_fields, more_fields);
		ret = sl_query_print(cli, fields, &listing.rows);
	}
	sl_array_free(&listing.rows);
	return ret;
}

static const struct sl_option watch_options[] = {
	SL_WATCH_OPTIONS,
	SL_OPTION(FLAG, struct sl_watch_options, ocsf, "ocsf", 0, NULL,
		  "lines of JSON as OCSF Network Activity (class 4001)"),
	{ 0 },
};

static int decision_watch(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	struct sl_watch_options options = *(const struct sl_watch_options *)values;

	(void)argc;
	(void)argv;
	options.kinds = SL_EVENT_BIT(SL_EVENT_DECISION);
	return sl_watch_run(cli, &options);
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list what was denied, by kind, the latest first",
	.details =
		"Equal denials are one row, with the process that was denied first. The kernel keeps\n"
		"the rows, so nothing needs to run; rows of thousands of kinds push the oldest out,\n"
		"and `sluice counter list` still counts them.",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.run = decision_list,
};

static const struct sl_command watch = {
	.name = "watch",
	.summary = "print denials as they happen, until interrupted",
	.details =
		"Equal denials make one line a second at most; its count says how many there were\n"
		"since the line before, so that a sum over lines is a total.",
	.options = watch_options,
	.options_size = sizeof(struct sl_watch_options),
	.run = decision_watch,
};

const struct sl_command sl_cmd_decision = {
	.name = "decision",
	.summary = "what a policy has denied, or would have",
	.subcommands = (const struct sl_command *const[]){ &list, &watch, NULL },
};
