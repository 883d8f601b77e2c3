// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/params.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

#define STRING_MAX 4095

static bool read_string(const char **out, const struct sl_param *param, struct json_object *value)
{
	size_t max = param->max ?: STRING_MAX;
	size_t len = (size_t)json_object_get_string_len(value);
	const char *text = json_object_get_string(value);

	if (!json_object_is_type(value, json_type_string) || len > max || strlen(text) != len)
		return false;
	*out = text;
	return true;
}

static bool read_uint(uint64_t *out, const struct sl_param *param, struct json_object *value)
{
	uint64_t number = json_object_get_uint64(value);

	if (!json_object_is_type(value, json_type_int) ||
	    (json_object_get_int64(value) < 0 && number <= INT64_MAX) ||
	    (param->max && number > param->max))
		return false;
	*out = number;
	return true;
}

static bool read_word(unsigned int *out, const struct sl_param *param, struct json_object *value)
{
	const char *text;

	if (!read_string(&text, param, value))
		return false;
	for (size_t i = 0; i < param->word_count; i++) {
		if (param->words[i] && !strcmp(text, param->words[i])) {
			*out = (unsigned int)i;
			return true;
		}
	}
	return false;
}

static bool read_list(struct json_object **out, const struct sl_param *param,
		      struct json_object *value)
{
	const struct sl_param item = { .type = SL_PARAM_TYPE_STRING };
	const char *text;

	if (!json_object_is_type(value, json_type_array) ||
	    json_object_array_length(value) > param->max)
		return false;
	for (size_t i = 0; i < json_object_array_length(value); i++)
		if (!read_string(&text, &item, json_object_array_get_idx(value, i)))
			return false;
	*out = value;
	return true;
}

static bool read_one(void *out, const struct sl_param *param, struct json_object *value)
{
	void *member = (char *)out + param->offset;
	const char *text;

	switch (param->type) {
	case SL_PARAM_TYPE_STRING:
		return read_string(member, param, value);
	case SL_PARAM_TYPE_UINT:
		return read_uint(member, param, value);
	case SL_PARAM_TYPE_ID:
		return read_string(&text, param, value) &&
		       !sl_parse_u64(text, 0, UINT64_MAX, member);
	case SL_PARAM_TYPE_BOOL:
		if (!json_object_is_type(value, json_type_boolean))
			return false;
		*(bool *)member = json_object_get_boolean(value);
		return true;
	case SL_PARAM_TYPE_ENUM:
		return read_word(member, param, value);
	case SL_PARAM_TYPE_OBJECT:
		if (!json_object_is_type(value, json_type_object))
			return false;
		*(struct json_object **)member = value;
		return true;
	case SL_PARAM_TYPE_LIST:
		return read_list(member, param, value);
	case SL_PARAM_TYPE_NONE:
		break;
	}
	return false;
}

static bool is_known(const struct sl_param *params, const char *name)
{
	for (; params->type; params++) {
		if (!strcmp(params->name, name))
			return true;
	}
	return false;
}

int sl_params_read(void *out, const struct sl_param *params, struct json_object *json,
		   const char **bad)
{
	/* A key that is not known would be an option that is silently not obeyed. */
	json_object_object_foreach(json, key, value) {
		(void)value;
		if (!is_known(params, key)) {
			*bad = key;
			return -EINVAL;
		}
	}
	for (; params->type; params++) {
		struct json_object *found = NULL;

		json_object_object_get_ex(json, params->name, &found);
		if (found ? read_one(out, params, found) : params->optional)
			continue;
		*bad = params->name;
		return -EINVAL;
	}
	return 0;
}
