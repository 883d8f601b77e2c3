/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records as plain text, and the choice between that and JSON. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <sluice/sock.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/format.h"
#include "base/object.h"
#include "base/parse.h"

/* A value that is longer ends with an ellipsis: an escaped path of PATH_MAX fits. */
#define CELL_MAX SL_ESCAPE_MAX(SL_PATH_MAX)

#define ABSENT "-"

/* An elided column keeps at least so many columns. */
#define ELIDE_MIN 12

#define COLUMN_MAX 32
#define COLUMN_GAP 2

struct column {
	const struct sl_field *field;
	size_t width; /* 0: left out */
	bool elide;
	bool filled; /* some record has a value */
};

struct table {
	const struct sl_output *output;
	struct column columns[COLUMN_MAX];
	size_t count;
	size_t at; /* column of the cell that is handled */
};

static void append(char *dst, size_t *used, const char *text)
{
	*used += sl_escape(dst + *used, CELL_MAX - *used, text, strlen(text));
}

static void cell_flags(char *dst, const struct sl_field *field, unsigned long long value)
{
	size_t used = 0;

	dst[0] = '\0';
	for (unsigned int i = 0; i < 64; i++) {
		const char *word = i < field->word_count ? field->words[i] : NULL;
		char text[8];

		if (!(value >> i & 1))
			continue;
		snprintf(text, sizeof(text), "bit%u", i);
		if (used)
			append(dst, &used, ",");
		append(dst, &used, word ? word : text);
	}
	if (!used)
		append(dst, &used, "-");
}

static void cell_list(char *dst, const struct sl_strings *list)
{
	size_t used = 0;

	dst[0] = '\0';
	for (size_t i = 0; i < list->count; i++) {
		if (i)
			append(dst, &used, ",");
		append(dst, &used, list->items[i]);
	}
	if (!used)
		append(dst, &used, "-");
}

static void cell_text(char *dst, const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	size_t len;

	if (field->type == SL_FIELD_TYPE_TEXT) {
		at = *(const char *const *)at;
		len = strlen(at);
	} else {
		len = strnlen(at, field->size);
	}
	/* An empty cell would be taken for a missing column. */
	if (len)
		sl_escape(dst, CELL_MAX, at, len);
	else
		snprintf(dst, CELL_MAX, "-");
}

/* The text of a value into `dst`, CELL_MAX bytes. */
static void cell(char *dst, const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	unsigned long long value = sl_field_uint(field, record);

	switch (field->type) {
	case SL_FIELD_TYPE_BOOL:
		snprintf(dst, CELL_MAX, "%s", value ? "yes" : "no");
		break;
	case SL_FIELD_TYPE_INT:
		snprintf(dst, CELL_MAX, "%lld", sl_field_int(field, record));
		break;
	case SL_FIELD_TYPE_UINT:
	case SL_FIELD_TYPE_ID:
		snprintf(dst, CELL_MAX, "%llu", value);
		break;
	case SL_FIELD_TYPE_BYTES:
		sl_format_bytes(dst, CELL_MAX, value);
		break;
	case SL_FIELD_TYPE_DURATION_US:
		sl_format_duration_us(dst, CELL_MAX, value);
		break;
	case SL_FIELD_TYPE_TIME:
		sl_format_time(dst, CELL_MAX, value, sl_realtime_offset_ns());
		break;
	case SL_FIELD_TYPE_ENDPOINT:
		sl_format_endpoint(dst, CELL_MAX, (const struct sl_endpoint *)at);
		break;
	case SL_FIELD_TYPE_ENUM:
		if (value < field->word_count && field->words[value])
			snprintf(dst, CELL_MAX, "%s", field->words[value]);
		else
			snprintf(dst, CELL_MAX, "%llu", value);
		break;
	case SL_FIELD_TYPE_FLAGS:
		cell_flags(dst, field, value);
		break;
	case SL_FIELD_TYPE_LIST:
		cell_list(dst, (const struct sl_strings *)at);
		break;
	case SL_FIELD_TYPE_RECORDS:
		snprintf(dst, CELL_MAX, "%zu", ((const struct sl_records *)at)->count);
		break;
	default:
		cell_text(dst, field, record);
		break;
	}
}

static bool is_object(const struct sl_field *field)
{
	return field->type == SL_FIELD_TYPE_OBJECT || field->type == SL_FIELD_TYPE_OBJECT_PTR;
}

static bool is_number(const struct sl_field *field)
{
	switch (field->type) {
	case SL_FIELD_TYPE_INT:
	case SL_FIELD_TYPE_UINT:
	case SL_FIELD_TYPE_BYTES:
	case SL_FIELD_TYPE_DURATION_US:
	case SL_FIELD_TYPE_RECORDS:
		return true;
	default:
		return false;
	}
}

static bool in_table(const struct sl_field *field)
{
	return field->heading && !(field->flags & SL_FIELD_JSON_ONLY);
}

static void collect_columns(struct table *table, const struct sl_field *fields)
{
	for (const struct sl_field *field = fields; field->type; field++) {
		if (!in_table(field))
			continue;
		if (is_object(field)) {
			collect_columns(table, field->fields);
		} else if (table->count < COLUMN_MAX) {
			table->columns[table->count++] = (struct column){
				.field = field,
				.width = sl_utf8_width(field->heading),
				.elide = field->flags & SL_FIELD_ELIDE,
			};
		}
	}
}

/* Calls `fn` for the text of each cell of a row, left to right. NULL record: all absent. */
static void walk_row(struct table *table, const struct sl_field *fields, const void *record,
		     void (*fn)(struct table *table, const char *text))
{
	char text[CELL_MAX];

	for (const struct sl_field *field = fields; field->type; field++) {
		if (!in_table(field))
			continue;
		if (is_object(field)) {
			walk_row(table, field->fields,
				 record ? sl_field_object(field, record) : NULL, fn);
			continue;
		}
		if (table->at == table->count)
			return;
		if (record && !sl_field_absent(field, record))
			cell(text, field, record);
		else
			snprintf(text, sizeof(text), ABSENT);
		fn(table, text);
		table->at++;
	}
}

static void measure(struct table *table, const char *text)
{
	struct column *column = &table->columns[table->at];
	size_t width = sl_utf8_width(text);

	if (strcmp(text, ABSENT) != 0)
		column->filled = true;
	if (width > column->width)
		column->width = width;
}

static void put(struct table *table, const char *text)
{
	const struct column *column = &table->columns[table->at];
	bool last = table->at + 1 == table->count;
	char shown[CELL_MAX + 4];
	FILE *file = table->output->file;
	int pad;

	if (!column->width)
		return;
	pad = (int)(column->width - sl_elide(shown, sizeof(shown), text, column->width));
	if (is_number(column->field))
		fprintf(file, "%*s%s", pad, "", shown);
	else if (last)
		fputs(shown, file);
	else
		fprintf(file, "%s%*s", shown, pad, "");
	fprintf(file, last ? "\n" : "%*s", COLUMN_GAP, "");
}

/*
 * Until all fits: leaves out columns in which there is nothing, then shortens the widest of
 * those that may be.
 */
static void fit(struct table *table)
{
	size_t total = 0;
	bool marked = false;

	for (size_t i = 0; i < table->count; i++) {
		total += table->columns[i].width + (i ? COLUMN_GAP : 0);
		marked |= table->columns[i].elide;
	}
	if (!marked && table->count > 0)
		table->columns[table->count - 1].elide = true;
	/* The last one stays: it ends the line. */
	for (size_t i = 0; i + 1 < table->count; i++) {
		struct column *column = &table->columns[i];

		if (!table->output->width || total <= table->output->width || column->filled)
			continue;
		total -= column->width + COLUMN_GAP;
		column->width = 0;
	}
	while (table->output->width && total > table->output->width) {
		struct column *widest = NULL;

		for (size_t i = 0; i < table->count; i++) {
			struct column *column = &table->columns[i];

			if (column->elide && column->width > ELIDE_MIN &&
			    (!widest || column->width > widest->width))
				widest = column;
		}
		if (!widest)
			return;
		widest->width--;
		total--;
	}
}

static void print_table(const struct sl_output *output, const struct sl_field *fields,
			const struct sl_records *records)
{
	struct table table = { .output = output };

	collect_columns(&table, fields);
	for (size_t i = 0; i < records->count; i++) {
		const char *record = (const char *)records->data + i * records->stride;

		table.at = 0;
		walk_row(&table, fields, record, measure);
	}
	fit(&table);
	for (table.at = 0; table.at < table.count; table.at++)
		put(&table, table.columns[table.at].field->heading);
	for (size_t i = 0; i < records->count; i++) {
		const char *record = (const char *)records->data + i * records->stride;

		table.at = 0;
		walk_row(&table, fields, record, put);
	}
}

static void print_lines(FILE *file, const char *prefix, const struct sl_field *fields,
			const void *record)
{
	char text[CELL_MAX];

	for (const struct sl_field *field = fields; field->type; field++) {
		char name[128];

		if ((field->flags & SL_FIELD_JSON_ONLY) || sl_field_absent(field, record))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", field->name);
		if (is_object(field)) {
			print_lines(file, name, field->fields, sl_field_object(field, record));
			continue;
		}
		if (field->type == SL_FIELD_TYPE_RECORDS) {
			const struct sl_records *records =
				(const void *)((const char *)record + field->offset);

			for (size_t i = 0; i < records->count; i++) {
				char each[160];

				snprintf(each, sizeof(each), "%s[%zu]", name, i);
				print_lines(file, each, field->fields,
					    (const char *)records->data + i * records->stride);
			}
			continue;
		}
		cell(text, field, record);
		fprintf(file, "%s: %s\n", name, text);
	}
}

void sl_output_init(struct sl_output *output, FILE *file)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	uint32_t width = 0;

	*output = (struct sl_output){ .file = file };
	if (isatty(fileno(file)) && !ioctl(fileno(file), TIOCGWINSZ, &size) && size.ws_col)
		width = size.ws_col;
	else if (columns)
		(void)sl_parse_u32(columns, 1, 10000, &width);
	output->width = width;
}

int sl_print_list(const struct sl_output *output, const struct sl_field *fields,
		  const struct sl_records *records)
{
	struct json_object *json = NULL;
	int ret;

	if (!output->json) {
		errno = 0;
		print_table(output, fields, records);
		return ferror(output->file) ? -(errno ? errno : EIO) : 0;
	}
	ret = sl_records_json(&json, fields, records);
	if (!ret)
		ret = sl_json_print(output->file, json, output->pretty);
	json_object_put(json);
	return ret;
}

int sl_print_record(const struct sl_output *output, const struct sl_field *fields,
		    const void *record)
{
	struct json_object *json = NULL;
	int ret;

	if (!output->json) {
		errno = 0;
		print_lines(output->file, "", fields, record);
		return ferror(output->file) ? -(errno ? errno : EIO) : 0;
	}
	ret = sl_object_json(&json, fields, record);
	if (!ret)
		ret = sl_json_print(output->file, json, output->pretty);
	json_object_put(json);
	return ret;
}
