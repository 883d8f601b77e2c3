/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parameters of a call, described by a table and read into a struct.
 *
 *	struct attach { const char *cgroup; uint64_t grace_ms; };
 *	static const struct sl_param params[] = {
 *		SL_PARAM(STRING, struct attach, cgroup),
 *		SL_PARAM(UINT, struct attach, grace_ms, .optional = true, .max = 3600000),
 *		{ 0 },
 *	};
 *	ret = sl_params_read(&attach, params, json, &bad);
 *
 * What is absent or null and optional leaves the struct as it was, so set defaults first.
 * Strings, objects and lists are borrowed from `json`.
 */
#ifndef SLUICE_USER_CONTROL_PARAMS_H
#define SLUICE_USER_CONTROL_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

enum sl_param_type {
	SL_PARAM_TYPE_NONE,   /* ends a table */
	SL_PARAM_TYPE_STRING, /* const char *: without NUL bytes, `max` bytes at most */
	SL_PARAM_TYPE_UINT,   /* uint64_t: 0 to `max` */
	SL_PARAM_TYPE_ID,     /* uint64_t: a decimal string */
	SL_PARAM_TYPE_BOOL,   /* bool */
	SL_PARAM_TYPE_ENUM,   /* unsigned int: index into `words` */
	SL_PARAM_TYPE_OBJECT, /* struct json_object * */
	SL_PARAM_TYPE_LIST,   /* struct json_object *: an array of `max` strings at most */
};

struct sl_param {
	const char *name;
	enum sl_param_type type;
	size_t offset;
	bool optional;
	uint64_t max; /* 0: 4095 bytes of a string, any number */
	const char *const *words;
	size_t word_count;
};

#define SL_PARAM(kind, record, member, ...)                                                        \
	{                                                                                          \
		.name = #member, .type = SL_PARAM_TYPE_##kind, .offset = offsetof(record, member), \
		##__VA_ARGS__                                                                      \
	}
#define SL_PARAM_ENUM(record, member, table, ...)        \
	SL_PARAM(ENUM, record, member, .words = (table), \
		 .word_count = sizeof(table) / sizeof((table)[0]), ##__VA_ARGS__)

/*
 * -EINVAL: *bad is the name of what is missing, of another type, out of range, or not known
 * (then it is borrowed from `json`); *out may be filled in part.
 */
int sl_params_read(void *out, const struct sl_param *params, struct json_object *json,
		   const char **bad);

#endif
