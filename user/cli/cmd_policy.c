/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policy files: checked, shown and explained. Needs neither root nor a kernel part. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/format.h"
#include "base/hex.h"
#include "cli/commands.h"
#include "cli/policy_explain.h"

int sl_policy_open(struct sl_policy_open *open, struct sl_cli *cli, const char *file)
{
	int ret = sl_policy_load_file(&open->policy, file, &cli->err);

	return ret ? ret : sl_compiled_new(&open->compiled, open->policy, &cli->err);
}

void sl_policy_close(struct sl_policy_open *open)
{
	sl_compiled_free(&open->compiled);
	sl_policy_free(&open->policy);
}

const char *sl_prefixes_text(char *dst, size_t size, const struct sl_prefixes *prefixes)
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < prefixes->count && used < size; i++) {
		char text[SL_PREFIX_TEXT];

		used += (size_t)snprintf(dst + used, size - used, "%s%s", i ? "," : "",
					 sl_prefix_format(text, sizeof(text), &prefixes->items[i]));
	}
	return dst;
}

const char *sl_policy_endpoint_text(char *dst, size_t size,
				    const struct sl_policy_endpoint *endpoint)
{
	char addresses[256], ports[128];

	snprintf(dst, size, "%s port %s %s",
		 endpoint->host
			 ? endpoint->host
			 : sl_prefixes_text(addresses, sizeof(addresses), &endpoint->addresses),
		 sl_ports_format(ports, sizeof(ports), &endpoint->ports),
		 sl_transport_names[endpoint->transport]);
	return dst;
}

/* What narrows a binary, beyond its path. */
static const char *narrowed(char *dst, size_t size, const struct sl_policy_binary *binary)
{
	char digest[2 * SL_SHA256_LEN + 1] = "";

	if (binary->sha256)
		sl_hex(digest, binary->sha256, SL_SHA256_LEN);
	snprintf(dst, size, "%s%s%s%s%s%s", binary->script ? " script " : "",
		 binary->script ? binary->script : "", binary->sha256 ? " sha256 " : "", digest,
		 binary->descendants ? "" : " without descendants",
		 binary->strict ? " strict" : "");
	return dst;
}

const char *sl_policy_binary_text(char *dst, size_t size, const struct sl_policy_binary *binary)
{
	char more[SL_POLICY_TEXT];

	snprintf(dst, size, "%s%s", binary->path, narrowed(more, sizeof(more), binary));
	return dst;
}

struct note_row {
	const char *kind, *text;
	uint32_t line, column;
};

static const struct sl_field note_fields[] = {
	SL_FIELD_TEXT(struct note_row, kind, "NOTE"),
	SL_FIELD_UINT(struct note_row, line, "LINE"),
	SL_FIELD_UINT(struct note_row, column, "COLUMN"),
	SL_FIELD_TEXT(struct note_row, text, "TEXT"),
	{ 0 },
};

struct check_record {
	const char *file, *mode, *established, *integrity;
	uint64_t entries, endpoints, binaries, binary_classes, destination_classes;
	uint64_t notes_dropped;
	struct sl_records notes;
};

static const struct sl_field check_fields[] = {
	SL_FIELD_TEXT(struct check_record, file, NULL),
	SL_FIELD_TEXT(struct check_record, mode, NULL),
	SL_FIELD_TEXT(struct check_record, established, NULL),
	SL_FIELD_TEXT(struct check_record, integrity, NULL),
	SL_FIELD_UINT(struct check_record, entries, NULL),
	SL_FIELD_UINT(struct check_record, endpoints, NULL),
	SL_FIELD_UINT(struct check_record, binaries, NULL),
	SL_FIELD_UINT(struct check_record, binary_classes, NULL),
	SL_FIELD_UINT(struct check_record, destination_classes, NULL),
	SL_FIELD_UINT(struct check_record, notes_dropped, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_RECORDS(struct check_record, notes, NULL, note_fields,
			 .flags = SL_FIELD_JSON_ONLY),
	{ 0 },
};

static int print_check(struct sl_cli *cli, const struct check_record *record)
{
	int ret = sl_print_record(&cli->output, check_fields, record);

	if (!ret && record->notes.count && !cli->output.json) {
		fputc('\n', cli->output.file);
		ret = sl_print_list(&cli->output, note_fields, &record->notes);
	}
	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

static int policy_check(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_policy_close) struct sl_policy_open open = { 0 };
	struct note_row rows[SL_POLICY_NOTES_MAX];
	struct check_record record = { .notes = { .data = rows, .stride = sizeof(rows[0]) } };
	const struct sl_policy *policy;
	int ret = sl_policy_open(&open, cli, argv[0]);

	(void)options;
	(void)argc;
	if (ret)
		return ret;
	policy = open.policy;
	record.file = policy->file;
	record.mode = sl_policy_mode_names[policy->mode];
	record.established = policy->keep_established ? "keep" : "close";
	record.integrity = policy->first_use ? "first-use" : "pins";
	record.entries = policy->entry_count;
	for (size_t i = 0; i < policy->entry_count; i++) {
		record.endpoints += policy->entries[i].endpoint_count;
		record.binaries += policy->entries[i].binary_count;
	}
	record.binary_classes = sl_compiled_bit_count(open.compiled);
	record.destination_classes = sl_compiled_class_count(open.compiled) - 1;
	record.notes_dropped = policy->notes_dropped;
	record.notes.count = policy->note_count;
	for (size_t i = 0; i < policy->note_count; i++) {
		const struct sl_policy_note *note = &policy->notes[i];

		rows[i] = (struct note_row){ sl_note_kind_names[note->kind], note->text,
					     note->at.line, note->at.column };
	}
	return print_check(cli, &record);
}

/* A part of an entry, in normal form. */
struct part_row {
	const char *entry, *part, *what, *ports, *transport, *condition;
	uint32_t line;
};

static const struct sl_field part_fields[] = {
	SL_FIELD_TEXT(struct part_row, entry, "ENTRY"),
	SL_FIELD_UINT(struct part_row, line, "LINE"),
	SL_FIELD_TEXT(struct part_row, part, "PART"),
	SL_FIELD_TEXT(struct part_row, what, "WHAT", .flags = SL_FIELD_ELIDE),
	SL_FIELD_TEXT(struct part_row, ports, "PORTS"),
	SL_FIELD_TEXT(struct part_row, transport, "TRANSPORT"),
	SL_FIELD_TEXT(struct part_row, condition, "CONDITION"),
	{ 0 },
};

struct show {
	struct sl_array rows;   /* struct part_row */
	struct sl_arena *arena; /* of their texts */
};

/* NULL stays NULL, and so does what there is no memory for: the row then lacks it. */
static const char *keep(struct show *show, const char *text)
{
	return text && *text ? sl_arena_text(show->arena, text, strlen(text)) : NULL;
}

static struct part_row *add_part(struct show *show, const struct sl_policy_entry *entry,
				 const char *part, struct sl_position at)
{
	struct part_row *row = sl_array_add(&show->rows);

	if (row) {
		row->entry = entry->key;
		row->part = part;
		row->line = at.line;
	}
	return row;
}

static int show_endpoint(struct show *show, const struct sl_policy_entry *entry,
			 const struct sl_policy_endpoint *endpoint)
{
	struct part_row *row = add_part(show, entry, "endpoint", endpoint->at);
	char text[4096], condition[4096];

	if (!row)
		return -ENOMEM;
	row->what =
		endpoint->host
			? endpoint->host
			: keep(show, sl_prefixes_text(text, sizeof(text), &endpoint->addresses));
	row->ports = keep(show, sl_ports_format(text, sizeof(text), &endpoint->ports));
	row->transport = sl_transport_names[endpoint->transport];
	if (endpoint->allow_reserved)
		row->condition = "reserved, allowed";
	if (endpoint->allowed.count) {
		snprintf(condition, sizeof(condition), "only %s",
			 sl_prefixes_text(text, sizeof(text) - sizeof("only "),
					  &endpoint->allowed));
		row->condition = keep(show, condition);
	}
	return 0;
}

static int show_entry(struct show *show, const struct sl_policy_entry *entry)
{
	char text[4096 + SL_POLICY_PATH_MAX];
	struct part_row *row;
	int ret = 0;

	for (size_t i = 0; i < entry->endpoint_count && !ret; i++)
		ret = show_endpoint(show, entry, &entry->endpoints[i]);
	for (size_t i = 0; i < entry->listen_count && !ret; i++) {
		const struct sl_policy_listen *listen = &entry->listens[i];

		row = add_part(show, entry, "listen", listen->at);
		if (!row)
			return -ENOMEM;
		row->ports = keep(show, sl_ports_format(text, sizeof(text), &listen->ports));
		row->transport = sl_transport_names[listen->transport];
	}
	for (size_t i = 0; i < entry->binary_count && !ret; i++) {
		row = add_part(show, entry, "binary", entry->binaries[i].at);
		if (!row)
			return -ENOMEM;
		row->what = entry->binaries[i].path;
		narrowed(text, sizeof(text), &entry->binaries[i]);
		row->condition = keep(show, text[0] ? text + 1 : text);
	}
	return ret;
}

static int policy_show(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	_cleanup_(sl_policy_close) struct sl_policy_open open = { 0 };
	struct show show = { .rows = SL_ARRAY(struct part_row) };
	int ret = sl_policy_open(&open, cli, argv[0]);

	(void)options;
	(void)argc;
	if (ret)
		return ret;
	ret = sl_arena_new(&show.arena);
	for (size_t i = 0; i < open.policy->entry_count && !ret; i++)
		ret = show_entry(&show, &open.policy->entries[i]);
	if (!ret) {
		const struct sl_records records = { show.rows.data, show.rows.count,
						    show.rows.item };

		ret = sl_print_list(&cli->output, part_fields, &records);
	}
	sl_arena_free(&show.arena);
	sl_array_free(&show.rows);
	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

static const struct sl_command check = {
	.name = "check",
	.summary = "check a policy file",
	.synopsis = "FILE",
	.details =
		"Exits with 1 when the file can't be used, and says where and why. Notices tell\n"
		"of keys that are left alone, warnings of rules that can't be meant so. The file -\n"
		"is the standard input.\n"
		"\n"
		"`integrity: first-use` trusts the bytes that a path held when it was first executed\n"
		"in the sandbox; other ones are denied until `sluice exe accept`. The default, pins,\n"
		"checks binaries with a `sha256` only.\n"
		"\n"
		"`strict: true` narrows a binary: it has the rule only if it was started without\n"
		"variables of the loader (LD_*, GCONV_PATH, GLIBC_TUNABLES), what it starts likewise,\n"
		"and only on sockets that were opened by a program that has the rule. While a policy\n"
		"has such a binary, nobody in the sandbox may trace, read or write the memory of, or\n"
		"take descriptors from, another process, nor write to /proc. It does not keep a binary\n"
		"from what its arguments and files tell it to do, nor from handing on its sockets.",
	.run = policy_check,
	.min_args = 1,
	.max_args = 1,
};

static const struct sl_command show_command = {
	.name = "show",
	.summary = "show a policy file in normal form",
	.synopsis = "FILE",
	.run = policy_show,
	.min_args = 1,
	.max_args = 1,
};

const struct sl_command sl_cmd_policy = {
	.name = "policy",
	.summary = "policy files: which binary may go where",
	.subcommands = (const struct sl_command *const[]){ &check, &sl_cmd_policy_explain,
							   &show_command, NULL },
};
