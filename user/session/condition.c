// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session/condition.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "control/params.h"

const char *const sl_condition_status_names[] = {
	[SL_CONDITION_UNKNOWN] = "Unknown",
	[SL_CONDITION_TRUE] = "True",
	[SL_CONDITION_FALSE] = "False",
};

const char *const sl_condition_level_names[] = {
	[SL_CONDITION_LEVEL_GOOD] = "good",
	[SL_CONDITION_LEVEL_NOTICE] = "notice",
	[SL_CONDITION_LEVEL_WARNING] = "warning",
	[SL_CONDITION_LEVEL_ERROR] = "error",
};

#define OF_CONDITION(kind, member, title, ...) \
	SL_FIELD_AS(kind, struct sl_condition_view, condition.member, #member, title, ##__VA_ARGS__)

const struct sl_field sl_condition_fields[] = {
	OF_CONDITION(STRING, type, "TYPE"),
	OF_CONDITION(ENUM, status, "STATUS", .words = sl_condition_status_names,
		     .word_count = SL_CONDITION_STATUS_MAX),
	OF_CONDITION(STRING, reason, "REASON"),
	OF_CONDITION(UINT, count, "COUNT"),
	SL_FIELD_TEXT(struct sl_condition_view, level, "LEVEL"),
	SL_FIELD_STRING(struct sl_condition_view, since, "SINCE"),
	SL_FIELD_STRING(struct sl_condition_view, last, NULL),
	OF_CONDITION(STRING, message, "MESSAGE", .flags = SL_FIELD_OPTIONAL | SL_FIELD_ELIDE),
	{ 0 },
};

static bool is_word(const char *text)
{
	size_t len = 0;

	for (; text && text[len]; len++) {
		bool letter = (text[len] >= 'A' && text[len] <= 'Z') ||
			      (text[len] >= 'a' && text[len] <= 'z');

		if (!letter && (!len || text[len] < '0' || text[len] > '9'))
			return false;
	}
	return len && len < SL_CONDITION_WORD;
}

const struct sl_condition *sl_conditions_find(const struct sl_conditions *conditions,
					      const char *type)
{
	for (uint32_t i = 0; i < conditions->count; i++) {
		if (!strcmp(conditions->list[i].type, type))
			return &conditions->list[i];
	}
	return NULL;
}

enum sl_condition_level sl_condition_level(const struct sl_condition *condition)
{
	if (condition->bad >= SL_CONDITION_ERROR)
		return SL_CONDITION_LEVEL_ERROR;
	if (condition->bad >= SL_CONDITION_WARN)
		return SL_CONDITION_LEVEL_WARNING;
	return condition->bad ? SL_CONDITION_LEVEL_NOTICE : SL_CONDITION_LEVEL_GOOD;
}

/* Rule 3. */
static struct sl_condition *place(struct sl_conditions *conditions)
{
	struct sl_condition *found = NULL;

	if (conditions->count < SL_CONDITIONS_MAX)
		return &conditions->list[conditions->count++];
	for (uint32_t i = 0; i < conditions->count; i++) {
		struct sl_condition *at = &conditions->list[i];

		if (!at->bad && (!found || at->last_ns < found->last_ns))
			found = at;
	}
	return found;
}

int sl_conditions_report(struct sl_conditions *conditions, const struct sl_condition_report *report,
			 uint64_t now_ns)
{
	struct sl_condition *at;
	enum sl_condition_level before;
	bool same;

	if (!is_word(report->type) || !is_word(report->reason) ||
	    report->status >= SL_CONDITION_STATUS_MAX)
		return -EINVAL;
	at = (struct sl_condition *)sl_conditions_find(conditions, report->type);
	if (!at) {
		at = place(conditions);
		if (!at) {
			conditions->dropped++;
			return -ENOSPC;
		}
		memset(at, 0, sizeof(*at));
		strcpy(at->type, report->type);
	}
	same = at->count && at->status == report->status && !strcmp(at->reason, report->reason);
	if (!at->count || at->status != report->status)
		at->since_ns = now_ns;
	before = sl_condition_level(at);
	strcpy(at->reason, report->reason);
	sl_utf8_copy(at->message, sizeof(at->message), report->message ?: "");
	at->status = report->status;
	at->count = same ? at->count + 1 : 1;
	at->bad = report->bad ? at->bad + 1 : 0;
	at->last_ns = now_ns;
	if (before && sl_condition_level(at) > before)
		return SL_CONDITION_RAISED;
	/* Bad again with the words of before, or good again: no less of a change. */
	return same && !before == !at->bad ? SL_CONDITION_SAME : SL_CONDITION_CHANGED;
}

int sl_conditions_end(struct sl_conditions *conditions, const char *reason, uint64_t now_ns)
{
	if (!reason || !reason[0])
		return -EINVAL;
	sl_utf8_copy(conditions->terminal, sizeof(conditions->terminal), reason);
	conditions->terminal_ns = now_ns;
	return 0;
}

void sl_condition_view(struct sl_condition_view *out, const struct sl_condition *condition)
{
	out->condition = *condition;
	out->level = sl_condition_level_names[sl_condition_level(condition)];
	sl_format_time(out->since, sizeof(out->since), condition->since_ns, 0);
	sl_format_time(out->last, sizeof(out->last), condition->last_ns, 0);
}

/* As it is stored: exact, and without what can be worked out. */
static const struct sl_field stored_fields[] = {
	SL_FIELD_STRING(struct sl_condition, reason, NULL),
	SL_FIELD_STRING(struct sl_condition, message, NULL),
	SL_FIELD_ENUM(struct sl_condition, status, NULL, sl_condition_status_names),
	SL_FIELD_ID(struct sl_condition, count, NULL),
	SL_FIELD_ID(struct sl_condition, bad, NULL),
	SL_FIELD_ID(struct sl_condition, since_ns, NULL),
	SL_FIELD_ID(struct sl_condition, last_ns, NULL),
	{ 0 },
};

static const struct sl_field stored_all_fields[] = {
	SL_FIELD_ID(struct sl_conditions, dropped, NULL),
	SL_FIELD_STRING(struct sl_conditions, terminal, NULL),
	SL_FIELD_ID(struct sl_conditions, terminal_ns, NULL),
	{ 0 },
};

static int add_types(struct json_object *json, const struct sl_conditions *conditions)
{
	struct json_object *types = json_object_new_object();
	int ret = sl_json_add(json, "types", types);

	for (uint32_t i = 0; i < conditions->count && !ret; i++) {
		struct json_object *one = NULL;

		ret = sl_object_json(&one, stored_fields, &conditions->list[i]);
		if (!ret)
			ret = sl_json_add(types, conditions->list[i].type, one);
	}
	return ret;
}

int sl_conditions_json(struct json_object **out, const struct sl_conditions *conditions)
{
	struct json_object *json = NULL;
	int ret = sl_object_json(&json, stored_all_fields, conditions);

	if (!ret)
		ret = add_types(json, conditions);
	if (ret)
		json_object_put(json);
	else
		*out = json;
	return ret;
}

struct stored {
	const char *reason, *message;
	unsigned int status;
	uint64_t count, bad, since_ns, last_ns;
};

static const struct sl_param stored_params[] = {
	SL_PARAM(STRING, struct stored, reason),
	SL_PARAM(STRING, struct stored, message, .max = SL_CONDITION_MESSAGE - 1),
	SL_PARAM_ENUM(struct stored, status, sl_condition_status_names),
	SL_PARAM(ID, struct stored, count),
	SL_PARAM(ID, struct stored, bad),
	SL_PARAM(ID, struct stored, since_ns),
	SL_PARAM(ID, struct stored, last_ns),
	{ 0 },
};

static int read_one(struct sl_condition *out, const char *type, struct json_object *json)
{
	struct stored stored;
	const char *bad;

	if (!json_object_is_type(json, json_type_object) ||
	    sl_params_read(&stored, stored_params, json, &bad) || !is_word(type) ||
	    !is_word(stored.reason) || !stored.count)
		return -EBADMSG;
	memset(out, 0, sizeof(*out));
	strcpy(out->type, type);
	strcpy(out->reason, stored.reason);
	sl_utf8_copy(out->message, sizeof(out->message), stored.message);
	out->status = (enum sl_condition_status)stored.status;
	out->count = stored.count;
	out->bad = stored.bad;
	out->since_ns = stored.since_ns;
	out->last_ns = stored.last_ns;
	return 0;
}

static int read_types(struct sl_conditions *out, struct json_object *json)
{
	json_object_object_foreach(json, type, value) {
		if (out->count == SL_CONDITIONS_MAX)
			return -EBADMSG;
		if (read_one(&out->list[out->count], type, value))
			return -EBADMSG;
		out->count++;
	}
	return 0;
}

struct stored_all {
	struct json_object *types;
	const char *terminal;
	uint64_t dropped, terminal_ns;
};

static const struct sl_param stored_all_params[] = {
	SL_PARAM(OBJECT, struct stored_all, types),
	SL_PARAM(STRING, struct stored_all, terminal, .max = SL_CONDITION_MESSAGE - 1),
	SL_PARAM(ID, struct stored_all, dropped),
	SL_PARAM(ID, struct stored_all, terminal_ns),
	{ 0 },
};

int sl_conditions_read(struct sl_conditions *out, struct json_object *json)
{
	_cleanup_free_ struct sl_conditions *read = calloc(1, sizeof(*read));
	struct stored_all stored;
	const char *bad;

	if (!read)
		return -ENOMEM;
	if (sl_params_read(&stored, stored_all_params, json, &bad) ||
	    read_types(read, stored.types) || !stored.terminal[0] != !stored.terminal_ns)
		return -EBADMSG;
	sl_utf8_copy(read->terminal, sizeof(read->terminal), stored.terminal);
	read->terminal_ns = stored.terminal_ns;
	read->dropped = stored.dropped;
	*out = *read;
	return 0;
}
