/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "print.h"

#include <stdbool.h>
#include <string.h>

/* Text of a value that goes into a table cell. Names and numbers only: all safe. */
static const char *cell(struct json_object *value)
{
	if (json_object_is_type(value, json_type_boolean))
		return json_object_get_boolean(value) ? "yes" : "no";
	return json_object_get_string(value);
}

static size_t column_width(struct json_object *rows, const char *key)
{
	size_t width = strlen(key), len;
	struct json_object *value;

	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		if (!json_object_object_get_ex(json_object_array_get_idx(rows, i), key, &value))
			continue;
		len = strlen(cell(value));
		width = len > width ? len : width;
	}
	return width;
}

static void print_cell(FILE *file, const char *text, size_t width, bool left)
{
	fprintf(file, left ? "%-*s" : "  %*s", (int)width, text);
}

/* The first row names the columns. */
static void print_table(FILE *file, struct json_object *rows)
{
	struct json_object *first = json_object_array_get_idx(rows, 0), *row, *found;

	if (!first)
		return;
	json_object_object_foreach(first, key, value) {
		if (!json_object_is_type(value, json_type_array))
			print_cell(file, key, column_width(rows, key), !strcmp(key, "name"));
	}
	fputc('\n', file);
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		row = json_object_array_get_idx(rows, i);
		json_object_object_foreach(first, name, ignored) {
			if (json_object_is_type(ignored, json_type_array))
				continue;
			found = NULL;
			json_object_object_get_ex(row, name, &found);
			print_cell(file, found ? cell(found) : "-", column_width(rows, name),
				   !strcmp(name, "name"));
		}
		fputc('\n', file);
	}
}

static const char *member(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? cell(value) : "-";
}

static void print_checks(FILE *file, struct json_object *checks)
{
	for (size_t i = 0; i < json_object_array_length(checks); i++) {
		struct json_object *check = json_object_array_get_idx(checks, i);
		bool pass = !strcmp(member(check, "pass"), "yes");
		bool budget = strcmp(member(check, "kind"), "must be");

		/* cell() may hand out a value's own buffer: one value a call. */
		fprintf(file, "%-6s ", pass ? "ok" : budget ? "over" : "WRONG");
		fprintf(file, "%s: ", member(check, "name"));
		fprintf(file, "%s, ", member(check, "value"));
		fprintf(file, "%s ", member(check, "kind"));
		fprintf(file, "%s\n", member(check, "limit"));
	}
}

void sl_result_print(FILE *file, struct json_object *doc)
{
	struct json_object *part;

	fprintf(file, "%s: ", member(doc, "benchmark"));
	fprintf(file, "sluice %s, ", member(doc, "version"));
	fprintf(file, "kernel %s, ", member(doc, "kernel"));
	fprintf(file, "%s CPUs", member(doc, "cpus"));
	fprintf(file, "%s", strcmp(member(doc, "quick"), "yes") ? "" : ", quick");
	fprintf(file, "%s\n", strcmp(member(doc, "complete"), "yes") ? ", interrupted" : "");
	if (json_object_object_get_ex(doc, "results", &part)) {
		json_object_object_foreach(part, name, rows) {
			fprintf(file, "\n%s\n", name);
			print_table(file, rows);
		}
	}
	fputc('\n', file);
	if (json_object_object_get_ex(doc, "checks", &part))
		print_checks(file, part);
	if (json_object_object_get_ex(doc, "notes", &part)) {
		for (size_t i = 0; i < json_object_array_length(part); i++)
			fprintf(file, "note: %s\n",
				json_object_get_string(json_object_array_get_idx(part, i)));
	}
	fputc('\n', file);
}
