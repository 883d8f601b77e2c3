/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "event/view_event.h"
#include "policy/words.h"

static const char *const class_words[] = { "flow", "race", "fault", NULL };

_Static_assert(ARRAY_SIZE(class_words) == SL_COUNTER_CLASS_MAX + 1, "a word for each class");

struct counter_row {
	char name[32];
	enum sl_counter_class class;
	__u64 value;
	const char *help;
};

static const struct sl_field counter_fields[] = {
	SL_FIELD_STRING(struct counter_row, name, "NAME"),
	SL_FIELD_ENUM(struct counter_row, class, "CLASS", class_words),
	SL_FIELD_UINT(struct counter_row, value, "VALUE"),
	SL_FIELD_TEXT(struct counter_row, help, "MEANING"),
	{ 0 },
};

static const struct {
	const char *name;
	enum sl_counter_class class;
	const char *help;
} counters[] = {
#define X(id, counter_class, text, meaning) { text, SL_COUNTER_##counter_class, meaning },
	SL_COUNTERS(X)
#undef X
};

struct counter_options {
	const char *sandbox;
	bool all;
	unsigned int class; /* the class, plus 1; 0: each */
};

static const char *const class_choices[] = { "any", "flow", "race", "fault", NULL };

static const struct sl_option counter_options[] = {
	SL_OPTION(TEXT, struct counter_options, sandbox, "sandbox", 's', "ID|NAME",
		  "of this sandbox only"),
	SL_OPTION(FLAG, struct counter_options, all, "all", 'a', NULL, "also those that are zero"),
	SL_OPTION(CHOICE, struct counter_options, class, "class", 'c', "CLASS",
		  "of this class only", .choices = class_choices, .fallback = "any"),
	{ 0 },
};

static int add_row(struct sl_array *rows, const struct counter_row *row,
		   const struct counter_options *options)
{
	struct counter_row *slot;

	if ((!row->value && !options->all) ||
	    (options->class && options->class - 1 != (unsigned int)row->class))
		return 0;
	slot = sl_array_add(rows);
	if (!slot)
		return -ENOMEM;
	*slot = *row;
	return 0;
}

static int add_rows(struct sl_array *rows, const struct sl_counters *values,
		    const struct counter_options *options)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counters) && !ret; i++) {
		struct counter_row row = {
			.class = counters[i].class,
			.value = values->n[i],
			.help = counters[i].help,
		};

		snprintf(row.name, sizeof(row.name), "%s", counters[i].name);
		ret = add_row(rows, &row, options);
	}
	for (unsigned int i = SL_EVENT_ENTER; i < SL_EVENT_KIND_MAX && !ret; i++) {
		struct counter_row row = {
			.class = SL_COUNTER_FAULT,
			.value = values->event_lost[i],
			.help = "of event_lost, events of this kind",
		};

		snprintf(row.name, sizeof(row.name), "event_lost.%s", sl_event_kind_name(i));
		ret = add_row(rows, &row, options);
	}
	for (unsigned int i = SL_REASON_NONE + 1; i < SL_REASON_MAX && !ret; i++) {
		struct counter_row row = {
			.class = SL_COUNTER_FLOW,
			.value = values->denied[i],
			.help = sl_reason_help(i),
		};

		snprintf(row.name, sizeof(row.name), "denied.%s", sl_reason_name(i));
		ret = add_row(rows, &row, options);
	}
	return ret;
}

static int counter_list(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct counter_options *options = values;
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_array_ struct sl_array rows = SL_ARRAY(struct counter_row);
	struct sl_counters sums;
	unsigned int sandbox;
	int ret = sl_query_open(&query, cli);

	(void)argc;
	(void)argv;
	if (!ret)
		ret = sl_query_sandbox(&query, cli, options->sandbox, &sandbox);
	if (ret)
		return ret;
	if (options->sandbox)
		ret = sl_counters_read(query.set, sandbox, &sums);
	else
		ret = sl_counters_total(query.set, &sums);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the counters of %s", cli->set_dir);
	ret = add_rows(&rows, &sums, options);
	return ret ? ret : sl_query_print(cli, counter_fields, &rows);
}

static const struct sl_command list = {
	.name = "list",
	.summary = "list the counters of a set",
	.details = "Classes: flow is ordinary work, race is expected and harmless, fault deserves\n"
		   "a look. Without --sandbox, values are sums over all sandboxes and the rest.",
	.options = counter_options,
	.options_size = sizeof(struct counter_options),
	.run = counter_list,
};

const struct sl_command sl_cmd_counter = {
	.name = "counter",
	.summary = "counters of the kernel side",
	.subcommands = (const struct sl_command *const[]){ &list, NULL },
};
