/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "kernel/feature.h"

static const struct sl_field feature_fields[] = {
	SL_FIELD_TEXT(struct sl_feature, name, "FEATURE"),
	SL_FIELD_ENUM(struct sl_feature, need, "NEED", sl_feature_need_words),
	SL_FIELD_ENUM(struct sl_feature, state, "STATE", sl_feature_state_words),
	SL_FIELD_STRING(struct sl_feature, value, "VALUE", .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_TEXT(struct sl_feature, consequence, "CONSEQUENCE", .flags = SL_FIELD_ELIDE),
	SL_FIELD_TEXT(struct sl_feature, next_step, "NEXT STEP", .flags = SL_FIELD_ELIDE),
	{ 0 },
};

static int feature_probe(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	size_t count = sl_feature_count();
	_cleanup_free_ struct sl_feature *rows = calloc(count, sizeof(*rows));
	const struct sl_records records = {
		.data = rows,
		.count = count,
		.stride = sizeof(*rows),
	};
	int ret;

	(void)options;
	(void)argc;
	(void)argv;
	if (!rows)
		return sl_err_sys(&cli->err, ENOMEM, "probing features");
	sl_feature_probe(&sl_feature_env_host, rows);
	ret = sl_print_list(&cli->output, feature_fields, &records);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "printing");
	return sl_feature_missing(rows, count);
}

static const struct sl_command probe = {
	.name = "probe",
	.summary = "try what sluice uses of this kernel",
	.details =
		"Every feature is tried, nothing of it stays. Required: nothing works without it.\n"
		"Optional: used when there. Later: recording does not use it. Consequence and next\n"
		"step are told of what is missing. Exits with 1 when a required one is missing or\n"
		"could not be tried.",
	.run = feature_probe,
};

const struct sl_command sl_cmd_feature = {
	.name = "feature",
	.summary = "what this kernel offers, and what follows",
	.subcommands = (const struct sl_command *const[]){ &probe, NULL },
};
