/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/sock.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/format.h"
#include "base/object.h"

static void cleanup_json(struct json_object **json)
{
	json_object_put(*json);
}

#define _cleanup_json_ _cleanup_(cleanup_json)

struct json_object *sl_json_string(const char *text, size_t len)
{
	_cleanup_free_ char *clean = NULL;

	if (len > INT_MAX / 8)
		return NULL;
	if (!sl_utf8_unclean(text, len))
		return json_object_new_string_len(text, (int)len);
	clean = malloc(SL_ESCAPE_MAX(len));
	if (!clean)
		return NULL;
	len = sl_utf8_clean(clean, SL_ESCAPE_MAX(len), text, len);
	return json_object_new_string_len(clean, (int)len);
}

int sl_json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (!value)
		return -ENOMEM;
	if (json_object_object_add(object, key, value)) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

/* As sl_json_add, at the end of an array. */
static int array_add(struct json_object *array, struct json_object *value)
{
	if (!value)
		return -ENOMEM;
	if (json_object_array_add(array, value)) {
		json_object_put(value);
		return -ENOMEM;
	}
	return 0;
}

static struct json_object *json_endpoint(const struct sl_endpoint *endpoint)
{
	_cleanup_json_ struct json_object *json = json_object_new_object();
	char text[SL_FORMAT_MAX];

	if (!json)
		return NULL;
	sl_format_addr(text, sizeof(text), endpoint->addr_be);
	if (sl_json_add(json, "addr", json_object_new_string(text)) ||
	    sl_json_add(json, "port", json_object_new_int(ntohs(endpoint->port_be))))
		return NULL;
	return TAKE_PTR(json);
}

static struct json_object *json_flags(const struct sl_field *field, unsigned long long value)
{
	_cleanup_json_ struct json_object *json = json_object_new_array();

	if (!json)
		return NULL;
	for (unsigned int i = 0; i < 64; i++) {
		char text[8];
		const char *word = i < field->word_count ? field->words[i] : NULL;

		if (!(value >> i & 1))
			continue;
		snprintf(text, sizeof(text), "bit%u", i);
		if (array_add(json, json_object_new_string(word ? word : text)))
			return NULL;
	}
	return TAKE_PTR(json);
}

static struct json_object *json_list(const struct sl_strings *list)
{
	_cleanup_json_ struct json_object *json = json_object_new_array();

	if (!json)
		return NULL;
	for (size_t i = 0; i < list->count; i++) {
		if (array_add(json, sl_json_string(list->items[i], strlen(list->items[i]))))
			return NULL;
	}
	return TAKE_PTR(json);
}

static struct json_object *json_text_of(const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	unsigned long long value = sl_field_uint(field, record);
	char text[SL_FORMAT_MAX];

	switch (field->type) {
	case SL_FIELD_TYPE_ID:
		snprintf(text, sizeof(text), "%llu", value);
		return json_object_new_string(text);
	case SL_FIELD_TYPE_TIME:
		sl_format_time(text, sizeof(text), value, sl_realtime_offset_ns());
		return json_object_new_string(text);
	case SL_FIELD_TYPE_STRING:
		return sl_json_string(at, strnlen(at, field->size));
	default:
		at = *(const char *const *)at;
		return sl_json_string(at, strlen(at));
	}
}

/* The JSON of a value that is not absent; NULL when there is no memory. */
static struct json_object *json_value(const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;
	unsigned long long value = sl_field_uint(field, record);
	struct json_object *json = NULL;

	switch (field->type) {
	case SL_FIELD_TYPE_BOOL:
		return json_object_new_boolean(value != 0);
	case SL_FIELD_TYPE_INT:
		return json_object_new_int64(sl_field_int(field, record));
	case SL_FIELD_TYPE_UINT:
	case SL_FIELD_TYPE_BYTES:
	case SL_FIELD_TYPE_DURATION_US:
		return json_object_new_uint64(value);
	case SL_FIELD_TYPE_ID:
	case SL_FIELD_TYPE_TIME:
	case SL_FIELD_TYPE_STRING:
	case SL_FIELD_TYPE_TEXT:
		return json_text_of(field, record);
	case SL_FIELD_TYPE_ENDPOINT:
		return json_endpoint((const struct sl_endpoint *)at);
	case SL_FIELD_TYPE_ENUM:
		if (value < field->word_count && field->words[value])
			return json_object_new_string(field->words[value]);
		return json_object_new_uint64(value);
	case SL_FIELD_TYPE_FLAGS:
		return json_flags(field, value);
	case SL_FIELD_TYPE_LIST:
		return json_list((const struct sl_strings *)at);
	case SL_FIELD_TYPE_OBJECT:
	case SL_FIELD_TYPE_OBJECT_PTR:
		sl_object_json(&json, field->fields, sl_field_object(field, record));
		return json;
	case SL_FIELD_TYPE_RECORDS:
		sl_records_json(&json, field->fields, (const struct sl_records *)at);
		return json;
	default:
		return NULL;
	}
}

int sl_object_json(struct json_object **out, const struct sl_field *fields, const void *record)
{
	_cleanup_json_ struct json_object *json = json_object_new_object();

	if (!json)
		return -ENOMEM;
	for (const struct sl_field *field = fields; field->type; field++) {
		if (field->flags & SL_FIELD_PLAIN_ONLY)
			continue;
		if (!sl_field_absent(field, record)) {
			if (sl_json_add(json, field->name, json_value(field, record)))
				return -ENOMEM;
		} else if (field->flags & SL_FIELD_NULL) {
			if (json_object_object_add(json, field->name, NULL))
				return -ENOMEM;
		}
	}
	*out = TAKE_PTR(json);
	return 0;
}

int sl_records_json(struct json_object **out, const struct sl_field *fields,
		    const struct sl_records *records)
{
	_cleanup_json_ struct json_object *json = json_object_new_array();

	if (!json)
		return -ENOMEM;
	for (size_t i = 0; i < records->count; i++) {
		const char *record = (const char *)records->data + i * records->stride;
		struct json_object *object = NULL;

		if (sl_object_json(&object, fields, record) || array_add(json, object))
			return -ENOMEM;
	}
	*out = TAKE_PTR(json);
	return 0;
}

/* Writes `text`, characters that are not safe as \uXXXX (they occur in strings only). */
static void write_safe(FILE *file, const char *text, size_t len)
{
	size_t start = 0;

	for (size_t at = 0; at < len;) {
		uint32_t code = 0;
		size_t n = sl_utf8_decode(text + at, len - at, &code);

		n = n > 0 ? n : 1;
		if (code < 0x7f || sl_utf8_safe(code)) {
			at += n;
			continue;
		}
		fwrite(text + start, 1, at - start, file);
		if (code > 0xffff)
			fprintf(file, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10),
				0xdc00 + (code & 0x3ff));
		else
			fprintf(file, "\\u%04x", code);
		at += n;
		start = at;
	}
	fwrite(text + start, 1, len - start, file);
}

int sl_json_print(FILE *file, struct json_object *json, bool pretty)
{
	int form = JSON_C_TO_STRING_NOSLASHESCAPE;
	const char *text;
	size_t len;

	form |= pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED : JSON_C_TO_STRING_PLAIN;
	text = json_object_to_json_string_length(json, form, &len);
	if (!text)
		return -ENOMEM;
	errno = 0;
	write_safe(file, text, len);
	fputc('\n', file);
	return ferror(file) ? -(errno ? errno : EIO) : 0;
}

int sl_print_line(FILE *file, const struct sl_field *fields, const void *record)
{
	_cleanup_json_ struct json_object *json = NULL;
	int ret = sl_object_json(&json, fields, record);

	return ret ? ret : sl_json_print(file, json, false);
}
