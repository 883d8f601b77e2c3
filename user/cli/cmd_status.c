/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/agent_view.h"
#include "cli/commands.h"
#include "kernel/live.h"

struct status_options {
	bool no_canary;
	uint64_t timeout_us;
};

static const struct sl_option status_options[] = {
	SL_OPTION(FLAG, struct status_options, no_canary, "no-canary", 0, NULL,
		  "only compare pins: start no process in the sandboxes"),
	SL_OPTION(DURATION_US, struct status_options, timeout_us, "timeout", 't', "TIME",
		  "for each sandbox's canary", .fallback = "2s"),
	{ 0 },
};

static const struct sl_field sandbox_fields[] = {
	SL_FIELD_AS(ID, struct sl_live_sandbox, row.id, "id", "ID"),
	SL_FIELD_AS(STRING, struct sl_live_sandbox, row.name, "name", "NAME"),
	SL_FIELD_AS(STRING, struct sl_live_sandbox, row.cgroup, "cgroup", "CGROUP",
		    .flags = SL_FIELD_ELIDE),
	SL_FIELD_UINT(struct sl_live_sandbox, processes, "PROCESSES"),
	SL_FIELD_UINT(struct sl_live_sandbox, sockets, "SOCKETS"),
	SL_FIELD_BOOL(struct sl_live_sandbox, live, "LIVE"),
	SL_FIELD_AS(TIME, struct sl_live_sandbox, row.attached_ns, "attached", NULL),
	{ 0 },
};

static const struct sl_field condition_fields[] = {
	SL_FIELD_ID(struct sl_condition, sandbox, "SANDBOX", .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_TEXT(struct sl_condition, type, "CONDITION"),
	SL_FIELD_ENUM(struct sl_condition, status, "STATUS", sl_condition_status_words),
	SL_FIELD_TEXT(struct sl_condition, reason, "REASON"),
	SL_FIELD_STRING(struct sl_condition, message, "MESSAGE"),
	{ 0 },
};

static const struct sl_field fault_fields[] = {
	SL_FIELD_TEXT(struct sl_live_fault, counter, "FAULT"),
	SL_FIELD_UINT(struct sl_live_fault, value, "COUNT"),
	SL_FIELD_TEXT(struct sl_live_fault, meaning, "MEANING"),
	SL_FIELD_TEXT(struct sl_live_fault, advice, "NEXT STEP"),
	{ 0 },
};

/* The whole as one object. */
struct status_record {
	const char *set;
	bool attached;
	bool live;
	const struct sl_agent_view *agent; /* NULL: there is none */
	struct sl_records sandboxes;
	struct sl_records conditions;
	struct sl_records faults;
};

static const struct sl_field status_fields[] = {
	SL_FIELD_TEXT(struct status_record, set, NULL),
	SL_FIELD_BOOL(struct status_record, attached, NULL),
	SL_FIELD_BOOL(struct status_record, live, NULL),
	SL_FIELD_OBJECT_PTR(struct status_record, agent, NULL, sl_agent_view_fields,
			    .flags = SL_FIELD_NULL),
	SL_FIELD_RECORDS(struct status_record, sandboxes, NULL, sandbox_fields),
	SL_FIELD_RECORDS(struct status_record, conditions, NULL, condition_fields),
	SL_FIELD_RECORDS(struct status_record, faults, NULL, fault_fields),
	{ 0 },
};

static struct sl_records records_of(const struct sl_array *array)
{
	struct sl_records records = {
		.data = array->data,
		.count = array->count,
		.stride = array->item,
	};

	return records;
}

/* As tables, an empty line before each but the first; an empty one is left out. */
static int print_tables(const struct sl_output *output, const struct status_record *status)
{
	const struct sl_records agent = { status->agent, status->agent != NULL,
					  sizeof(*status->agent) };
	const struct sl_records agent_conditions =
		status->agent ? records_of(&status->agent->condition_rows)
			      : (struct sl_records){ 0 };
	const struct {
		const struct sl_field *fields;
		const struct sl_records *records;
	} tables[] = {
		{ sl_agent_view_fields, &agent },
		{ sl_agent_condition_fields, &agent_conditions },
		{ sandbox_fields, &status->sandboxes },
		{ condition_fields, &status->conditions },
		{ fault_fields, &status->faults },
	};
	bool printed = false;
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && !ret; i++) {
		if (!tables[i].records->count)
			continue;
		if (printed)
			fputc('\n', output->file);
		printed = true;
		ret = sl_print_list(output, tables[i].fields, tables[i].records);
	}
	return ret;
}

static int status_print(struct sl_cli *cli, const struct sl_live *live,
			const struct sl_agent_view *agent)
{
	const struct status_record record = {
		.set = cli->set_dir,
		.attached = live->attached,
		.live = live->live,
		.agent = agent,
		.sandboxes = records_of(&live->sandboxes),
		.conditions = records_of(&live->conditions),
		.faults = records_of(&live->faults),
	};
	int ret;

	if (cli->output.json) {
		ret = sl_print_record(&cli->output, status_fields, &record);
	} else if (!live->attached) {
		if (agent)
			(void)print_tables(&cli->output, &record);
		fprintf(cli->output.file, "nothing is attached\n"
					  "next: 'sluice sandbox attach CGROUP' records a cgroup, "
					  "'sluice run -- CMD' a command\n");
		ret = ferror(cli->output.file) ? -EIO : 0;
	} else {
		ret = print_tables(&cli->output, &record);
	}
	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

static int status_run(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct status_options *options = values;
	const struct sl_live_options check = {
		.no_canary = options->no_canary,
		/* An hour is for ever here, and fits an int. */
		.timeout_ms = options->timeout_us < 3600000000ULL
				      ? (int)(options->timeout_us / 1000)
				      : 3600000,
	};
	_cleanup_(sl_agent_view_free) struct sl_agent_view *agent = NULL;
	_cleanup_(sl_live_free) struct sl_live live = { 0 };
	int ret;

	(void)argc;
	(void)argv;
	if (!options->timeout_us) {
		sl_err_set(&cli->err, EINVAL, "--timeout: no canary is done in no time");
		return sl_err_hint(&cli->err, "give it 1 ms or more; --no-canary starts none");
	}
	ret = sl_agent_view_open(&agent, cli);
	ret = ret ? ret : sl_live_check(&live, cli->set_dir, &check, &cli->err);
	ret = ret ? ret : status_print(cli, &live, agent);
	if (ret)
		return ret;
	return live.attached && !live.live;
}

const struct sl_command sl_cmd_status = {
	.name = "status",
	.summary = "what is attached, and proof that it records",
	.details =
		"Shows the agent, if there is one, and the conditions of its sessions. Compares all that\n"
		"is pinned with what must be. Then a canary process enters each\n"
		"sandbox's cgroup, connects over loopback and exits; its record must appear. Exits\n"
		"with 0 when nothing is attached or all is proven to record, else with 1: a condition\n"
		"that is False or Unknown says why. FaultFree is about records that were lost, and\n"
		"does not change the exit status. The canary ('sluice-canary') is recorded like any\n"
		"other process: in counters, events, and among the closed sockets.",
	.options = status_options,
	.options_size = sizeof(struct status_options),
	.run = status_run,
};
