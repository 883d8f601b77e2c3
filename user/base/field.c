/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a field says about a member of a record. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <sluice/sock.h>

#include "base/object.h"

unsigned long long sl_field_uint(const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;

	switch (field->size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	case 8:
		return *(const uint64_t *)at;
	default:
		return 0;
	}
}

long long sl_field_int(const struct sl_field *field, const void *record)
{
	unsigned long long value = sl_field_uint(field, record);

	switch (field->size) {
	case 1:
		return (int8_t)value;
	case 2:
		return (int16_t)value;
	case 4:
		return (int32_t)value;
	default:
		return (int64_t)value;
	}
}

const void *sl_field_object(const struct sl_field *field, const void *record)
{
	const char *at = (const char *)record + field->offset;

	if (sl_field_absent(field, record))
		return NULL;
	return field->type == SL_FIELD_TYPE_OBJECT_PTR ? *(const void *const *)at : at;
}

static bool is_zero(const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i])
			return false;
	}
	return true;
}

bool sl_field_absent(const struct sl_field *field, const void *record)
{
	bool optional = field->flags & (SL_FIELD_OPTIONAL | SL_FIELD_NULL);
	const char *at = (const char *)record + field->offset;

	if (field->present && !field->present(record))
		return true;
	switch (field->type) {
	case SL_FIELD_TYPE_TEXT: {
		const char *text = *(const char *const *)at;

		return !text || (optional && !*text);
	}
	case SL_FIELD_TYPE_TIME:
		return sl_field_uint(field, record) == 0;
	case SL_FIELD_TYPE_OBJECT_PTR:
		return !*(const void *const *)at;
	case SL_FIELD_TYPE_STRING:
		return optional && !*at;
	case SL_FIELD_TYPE_LIST:
		return optional && ((const struct sl_strings *)at)->count == 0;
	case SL_FIELD_TYPE_RECORDS:
		return optional && ((const struct sl_records *)at)->count == 0;
	default:
		/* A struct counts as empty when all of it is zero. */
		return optional && is_zero(at, field->size);
	}
}

static bool size_fits(const struct sl_field *field)
{
	switch (field->type) {
	case SL_FIELD_TYPE_BOOL:
	case SL_FIELD_TYPE_INT:
	case SL_FIELD_TYPE_UINT:
	case SL_FIELD_TYPE_ID:
	case SL_FIELD_TYPE_BYTES:
	case SL_FIELD_TYPE_DURATION_US:
	case SL_FIELD_TYPE_ENUM:
	case SL_FIELD_TYPE_FLAGS:
		return field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8;
	case SL_FIELD_TYPE_TIME:
		return field->size == sizeof(uint64_t);
	case SL_FIELD_TYPE_TEXT:
	case SL_FIELD_TYPE_OBJECT_PTR:
		return field->size == sizeof(void *);
	case SL_FIELD_TYPE_ENDPOINT:
		return field->size == sizeof(struct sl_endpoint);
	case SL_FIELD_TYPE_LIST:
		return field->size == sizeof(struct sl_strings);
	case SL_FIELD_TYPE_RECORDS:
		return field->size == sizeof(struct sl_records);
	case SL_FIELD_TYPE_STRING:
	case SL_FIELD_TYPE_OBJECT:
		return field->size > 0;
	default:
		return false;
	}
}

static bool parts_fit(const struct sl_field *field, const char **bad)
{
	switch (field->type) {
	case SL_FIELD_TYPE_ENUM:
	case SL_FIELD_TYPE_FLAGS:
		return field->words && field->word_count > 0;
	case SL_FIELD_TYPE_OBJECT:
	case SL_FIELD_TYPE_OBJECT_PTR:
	case SL_FIELD_TYPE_RECORDS:
		return field->fields && !sl_fields_check(field->fields, bad);
	default:
		return true;
	}
}

int sl_fields_check(const struct sl_field *fields, const char **bad)
{
	const unsigned int one_form = SL_FIELD_JSON_ONLY | SL_FIELD_PLAIN_ONLY;

	for (const struct sl_field *field = fields; field->type; field++) {
		bool good = field->name && *field->name && size_fits(field) &&
			    (field->flags & one_form) != one_form;

		if (bad)
			*bad = field->name ? field->name : "(no name)";
		/* A name may be there twice if one is for JSON and the other for people. */
		for (const struct sl_field *other = fields; good && other != field; other++)
			good = strcmp(other->name, field->name) != 0 ||
			       ((other->flags | field->flags) & one_form) == one_form;
		if (!good || !parts_fit(field, bad))
			return -EINVAL;
	}
	return 0;
}
