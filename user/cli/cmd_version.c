/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/libbpf.h>

#include <sluice/abi.h>

#include "cli/commands.h"

struct version_record {
	const char *sluice;
	__u32 schema; /* of the layouts in pinned maps */
	const char *libbpf;
};

static const struct sl_field version_fields[] = {
	SL_FIELD_TEXT(struct version_record, sluice, NULL),
	SL_FIELD_UINT(struct version_record, schema, NULL),
	SL_FIELD_TEXT(struct version_record, libbpf, NULL),
	{ 0 },
};

static int version_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	const struct version_record record = {
		.sluice = SL_VERSION,
		.schema = SL_SCHEMA,
		.libbpf = libbpf_version_string(),
	};

	(void)options;
	(void)argc;
	(void)argv;
	return sl_print_record(&cli->output, version_fields, &record);
}

const struct sl_command sl_cmd_version = {
	.name = "version",
	.summary = "print the versions of sluice, its map layouts and libbpf",
	.run = version_run,
};
