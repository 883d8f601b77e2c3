/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Output records. A table of fields describes a struct once; plain text (aligned columns,
 * or "name: value" lines) and JSON are both made from it, so they can't drift.
 *
 *	static const struct sl_field fields[] = {
 *		SL_FIELD_ID(struct row, cookie, "COOKIE"),
 *		SL_FIELD_BYTES(struct row, bytes_sent, "SENT"),
 *		SL_FIELD_STRING(struct row, path, "PATH", .flags = SL_FIELD_ELIDE),
 *		{ 0 },
 *	};
 *
 * Rules
 * 1. The heading makes a column. A field with no heading is not in tables; it is in
 *    lines and in JSON. SL_FIELD_JSON_ONLY and SL_FIELD_PLAIN_ONLY narrow that.
 * 2. Absence. A field with SL_FIELD_OPTIONAL is absent when its value is zero, empty or
 *    NULL; SL_FIELD_NULL is the same. A TIME of 0, a NULL TEXT and a NULL OBJECT_PTR are
 *    always absent. Absent is: "-" in a table, no line in lines, no key in JSON; with
 *    SL_FIELD_NULL the key is there and null.
 * 3. JSON. Numbers are numbers, except ID, a decimal string (it may exceed 2^53). TIME is
 *    RFC 3339 with nanoseconds, DURATION_US a number of microseconds (call it *_us), BYTES
 *    a number, ENDPOINT {"addr", "port"}, FLAGS an array of words. Strings are valid UTF-8:
 *    a byte of no character is the text \xHH, and in a string that has one, or had that
 *    text, each backslash is doubled; all other strings are exact.
 * 4. Plain text is escaped, one line a value. In a sub-object, names are joined with '.';
 *    its columns appear if the sub-object itself has a heading ("" will do).
 * 5. Records are borrowed for the call only. Times are CLOCK_BOOTTIME nanoseconds.
 */
#ifndef SLUICE_USER_OBJECT_H
#define SLUICE_USER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <json-c/json.h>

enum sl_field_type {
	SL_FIELD_TYPE_NONE, /* ends a table */
	SL_FIELD_TYPE_BOOL,
	SL_FIELD_TYPE_INT,         /* signed, 1, 2, 4 or 8 bytes */
	SL_FIELD_TYPE_UINT,        /* unsigned, 1, 2, 4 or 8 bytes */
	SL_FIELD_TYPE_ID,          /* unsigned, 4 or 8 bytes */
	SL_FIELD_TYPE_BYTES,       /* unsigned */
	SL_FIELD_TYPE_DURATION_US, /* unsigned */
	SL_FIELD_TYPE_TIME,        /* __u64, boottime ns */
	SL_FIELD_TYPE_STRING,      /* char[], terminated or full */
	SL_FIELD_TYPE_TEXT,        /* const char * */
	SL_FIELD_TYPE_ENDPOINT,    /* struct sl_endpoint */
	SL_FIELD_TYPE_ENUM,        /* unsigned; its word, or the number when it has none */
	SL_FIELD_TYPE_FLAGS,       /* unsigned; bit i is words[i], or "bit<i>" */
	SL_FIELD_TYPE_LIST,        /* struct sl_strings */
	SL_FIELD_TYPE_OBJECT,      /* embedded struct, described by `fields` */
	SL_FIELD_TYPE_OBJECT_PTR,  /* pointer to such a struct */
	SL_FIELD_TYPE_RECORDS,     /* struct sl_records of `fields`; in plain their number */
	SL_FIELD_TYPE_MAX
};

enum sl_field_flag {
	SL_FIELD_OPTIONAL = 1 << 0,
	SL_FIELD_NULL = 1 << 1,
	SL_FIELD_JSON_ONLY = 1 << 2,
	SL_FIELD_PLAIN_ONLY = 1 << 3,
	SL_FIELD_ELIDE = 1 << 4, /* column to shorten first when the terminal is narrow */
};

struct sl_strings {
	const char *const *items;
	size_t count;
};

struct sl_records {
	const void *data; /* `count` structs, `stride` bytes apart */
	size_t count;
	size_t stride;
};

struct sl_field {
	const char *name;    /* JSON key, and label of a line */
	const char *heading; /* of the column; NULL: no column */
	enum sl_field_type type;
	unsigned int flags; /* enum sl_field_flag */
	size_t offset;
	size_t size; /* of the member, bytes */
	const char *const *words;
	size_t word_count;
	const struct sl_field *fields;
	bool (*present)(const void *record); /* false: absent; NULL: rule 2 alone */
};

#define SL_FIELD_AS(kind, record, member, text, title, ...)                                \
	{                                                                                  \
		.name = (text), .heading = (title), .type = SL_FIELD_TYPE_##kind,          \
		.offset = offsetof(record, member), .size = sizeof(((record *)0)->member), \
		__VA_ARGS__                                                                \
	}
/* The name is the member's; use SL_FIELD_AS for another. Further initializers may follow. */
#define SL_FIELD(kind, record, member, title, ...) \
	SL_FIELD_AS(kind, record, member, #member, title, ##__VA_ARGS__)

#define SL_FIELD_BOOL(record, member, ...) SL_FIELD(BOOL, record, member, __VA_ARGS__)
#define SL_FIELD_INT(record, member, ...) SL_FIELD(INT, record, member, __VA_ARGS__)
#define SL_FIELD_UINT(record, member, ...) SL_FIELD(UINT, record, member, __VA_ARGS__)
#define SL_FIELD_ID(record, member, ...) SL_FIELD(ID, record, member, __VA_ARGS__)
#define SL_FIELD_BYTES(record, member, ...) SL_FIELD(BYTES, record, member, __VA_ARGS__)
#define SL_FIELD_DURATION_US(record, member, ...) SL_FIELD(DURATION_US, record, member, __VA_ARGS__)
#define SL_FIELD_TIME(record, member, ...) SL_FIELD(TIME, record, member, __VA_ARGS__)
#define SL_FIELD_STRING(record, member, ...) SL_FIELD(STRING, record, member, __VA_ARGS__)
#define SL_FIELD_TEXT(record, member, ...) SL_FIELD(TEXT, record, member, __VA_ARGS__)
#define SL_FIELD_ENDPOINT(record, member, ...) SL_FIELD(ENDPOINT, record, member, __VA_ARGS__)
#define SL_FIELD_LIST(record, member, ...) SL_FIELD(LIST, record, member, __VA_ARGS__)

/* `table` is an array of words (its length is taken) or of fields. */
#define SL_FIELD_ENUM(record, member, title, table, ...)        \
	SL_FIELD(ENUM, record, member, title, .words = (table), \
		 .word_count = sizeof(table) / sizeof((table)[0]), ##__VA_ARGS__)
#define SL_FIELD_FLAGS(record, member, title, table, ...)        \
	SL_FIELD(FLAGS, record, member, title, .words = (table), \
		 .word_count = sizeof(table) / sizeof((table)[0]), ##__VA_ARGS__)
#define SL_FIELD_OBJECT(record, member, title, table, ...) \
	SL_FIELD(OBJECT, record, member, title, .fields = (table), ##__VA_ARGS__)
#define SL_FIELD_OBJECT_PTR(record, member, title, table, ...) \
	SL_FIELD(OBJECT_PTR, record, member, title, .fields = (table), ##__VA_ARGS__)
#define SL_FIELD_RECORDS(record, member, title, table, ...) \
	SL_FIELD(RECORDS, record, member, title, .fields = (table), ##__VA_ARGS__)

/* Where output goes and in which form. */
struct sl_output {
	FILE *file;
	bool json;
	bool pretty;        /* with json */
	unsigned int width; /* of the terminal in columns; 0: nothing is shortened */
};

/*
 * Plain output to `file`: the width is the terminal's; for what is no terminal, COLUMNS
 * when it is set, else 0, so that pipes get whole values.
 */
void sl_output_init(struct sl_output *output, FILE *file);

/* A table with its header, or one JSON array. 0, -ENOMEM, or -errno of a failed write. */
int sl_print_list(const struct sl_output *output, const struct sl_field *fields,
		  const struct sl_records *records);

/* "name: value" lines, or one JSON object. Errors as above. */
int sl_print_record(const struct sl_output *output, const struct sl_field *fields,
		    const void *record);

/* One compact JSON object and a newline: an event line. Errors as above. */
int sl_print_line(FILE *file, const struct sl_field *fields, const void *record);

/* The record as JSON. The caller owns *out (json_object_put). -ENOMEM. */
int sl_object_json(struct json_object **out, const struct sl_field *fields, const void *record);

/* All records as a JSON array; ownership and errors as above. */
int sl_records_json(struct json_object **out, const struct sl_field *fields,
		    const struct sl_records *records);

/*
 * Writes a document and a newline. Besides what JSON demands, characters that a terminal
 * acts on or hides (DEL, C1, marks of direction, …) are written as \uXXXX: the value is
 * the same, the output is safe to look at. Does not take over `json`.
 */
int sl_json_print(FILE *file, struct json_object *json, bool pretty);

/* A JSON string of `len` bytes, made valid as in rule 3. NULL: no memory. */
struct json_object *sl_json_string(const char *text, size_t len);

/* Adds and takes over `value`, also on failure. -ENOMEM when it is NULL or can't be added. */
int sl_json_add(struct json_object *object, const char *key, struct json_object *value);

/* One member's value, for who walks a table himself: as a number, unsigned or signed. */
unsigned long long sl_field_uint(const struct sl_field *field, const void *record);
long long sl_field_int(const struct sl_field *field, const void *record);

/* Rule 2. */
bool sl_field_absent(const struct sl_field *field, const void *record);

/* The record that a sub-object's fields describe; NULL when it is absent. */
const void *sl_field_object(const struct sl_field *field, const void *record);

/*
 * Checks a table for what a compiler can't see: missing or double names, a size that does
 * not go with the type, missing words or fields. 0 or -EINVAL, *bad (may be NULL) names
 * the field. For unit tests.
 */
int sl_fields_check(const struct sl_field *fields, const char **bad);

#endif
