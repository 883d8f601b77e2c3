// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of a store's file. */
#include "session/store.h"

#include <errno.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/hex.h"
#include "control/params.h"

#define SCHEMA 1
#define DEPTH 8

static void put_json(struct json_object **json)
{
	json_object_put(*json);
	*json = NULL;
}
#define _cleanup_json_ _cleanup_(put_json)

/* The members of a session, as JSON has them: written and read by the same struct. */
struct stored {
	const char *key, *token, *cgroup, *policy, *policy_sha256, *cause, *reason;
	uint64_t epoch, cgroup_id, version, listener, holds, sandbox, silence_ms, grace_ms;
	unsigned int state, end_if_lost, end;
	bool freeze_asked, freeze_on_loss;
	struct json_object *conditions;
};

static const struct sl_field fields[] = {
	SL_FIELD_TEXT(struct stored, key, NULL),
	SL_FIELD_TEXT(struct stored, token, NULL),
	SL_FIELD_ENUM(struct stored, state, NULL, sl_record_state_names),
	SL_FIELD_ID(struct stored, epoch, NULL),
	SL_FIELD_UINT(struct stored, version, NULL),
	SL_FIELD_ID(struct stored, listener, NULL),
	SL_FIELD_UINT(struct stored, holds, NULL),
	SL_FIELD_TEXT(struct stored, cgroup, NULL),
	SL_FIELD_ID(struct stored, cgroup_id, NULL),
	SL_FIELD_UINT(struct stored, sandbox, NULL),
	SL_FIELD_TEXT(struct stored, policy, NULL),
	SL_FIELD_TEXT(struct stored, policy_sha256, NULL),
	SL_FIELD_BOOL(struct stored, freeze_on_loss, NULL),
	SL_FIELD_UINT(struct stored, silence_ms, NULL),
	SL_FIELD_UINT(struct stored, grace_ms, NULL),
	SL_FIELD_ENUM(struct stored, end_if_lost, NULL, sl_session_end_names),
	SL_FIELD_BOOL(struct stored, freeze_asked, NULL),
	SL_FIELD_TEXT(struct stored, cause, NULL),
	SL_FIELD_TEXT(struct stored, reason, NULL),
	SL_FIELD_ENUM(struct stored, end, NULL, sl_session_end_names),
	{ 0 },
};

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct stored, key),
	SL_PARAM(STRING, struct stored, token),
	SL_PARAM_ENUM(struct stored, state, sl_record_state_names),
	SL_PARAM(ID, struct stored, epoch),
	SL_PARAM(UINT, struct stored, version, .max = UINT32_MAX),
	SL_PARAM(ID, struct stored, listener),
	SL_PARAM(UINT, struct stored, holds, .max = UINT32_MAX),
	SL_PARAM(STRING, struct stored, cgroup, .max = PATH_MAX - 1),
	SL_PARAM(ID, struct stored, cgroup_id),
	SL_PARAM(UINT, struct stored, sandbox, .max = UINT32_MAX),
	SL_PARAM(STRING, struct stored, policy, .max = PATH_MAX - 1),
	SL_PARAM(STRING, struct stored, policy_sha256),
	SL_PARAM(BOOL, struct stored, freeze_on_loss),
	SL_PARAM(UINT, struct stored, silence_ms, .max = UINT32_MAX),
	SL_PARAM(UINT, struct stored, grace_ms, .max = UINT32_MAX),
	SL_PARAM_ENUM(struct stored, end_if_lost, sl_session_end_names),
	SL_PARAM(BOOL, struct stored, freeze_asked),
	SL_PARAM(STRING, struct stored, cause, .max = SL_SESSION_TEXT - 1),
	SL_PARAM(STRING, struct stored, reason, .max = SL_SESSION_TEXT - 1),
	SL_PARAM_ENUM(struct stored, end, sl_session_end_names),
	SL_PARAM(OBJECT, struct stored, conditions),
	{ 0 },
};

static int session_json(struct json_object **out, const struct sl_store_entry *entry)
{
	const struct sl_record *record = &entry->session.record;
	char key[2 * SL_SESSION_KEY + 1], token[2 * SL_SESSION_TOKEN + 1];
	char sha256[2 * SL_SHA256_LEN + 1];
	struct stored stored = {
		.key = key,
		.token = token,
		.state = entry->session.state,
		.epoch = entry->session.epoch,
		.version = record->version,
		.listener = record->listener,
		.holds = record->holds,
		.cgroup = record->cgroup,
		.cgroup_id = record->cgroup_id,
		.sandbox = record->sandbox,
		.policy = record->policy[0].path,
		.policy_sha256 = sha256,
		.freeze_on_loss = record->options.freeze_on_loss,
		.silence_ms = record->options.silence_ms,
		.grace_ms = record->options.grace_ms,
		.end_if_lost = record->options.end,
		.freeze_asked = entry->session.freeze_asked,
		.cause = record->cause,
		.reason = record->reason,
		.end = record->end,
	};
	_cleanup_json_ struct json_object *json = NULL;
	struct json_object *conditions = NULL;
	int ret;

	sl_hex(key, record->key, sizeof(record->key));
	sl_hex(token, record->token, sizeof(record->token));
	sl_hex(sha256, record->policy[0].sha256, SL_SHA256_LEN);
	ret = sl_object_json(&json, fields, &stored);
	if (!ret)
		ret = sl_conditions_json(&conditions, &entry->conditions);
	if (!ret)
		ret = sl_json_add(json, "conditions", conditions);
	if (!ret)
		*out = TAKE_PTR(json);
	return ret;
}

/* Of the session's text, as json-c writes it: the same from what was read as when written. */
static int digest_of(char hex[2 * SL_SHA256_LEN + 1], struct json_object *session)
{
	size_t len = 0;
	const char *text = json_object_to_json_string_length(session, JSON_C_TO_STRING_PLAIN, &len);
	unsigned char sha256[SL_SHA256_LEN];

	if (!text)
		return -ENOMEM;
	if (!EVP_Digest(text, len, sha256, NULL, EVP_sha256(), NULL))
		return -EIO;
	sl_hex(hex, sha256, sizeof(sha256));
	return 0;
}

static int add_parts(struct json_object *json, struct json_object *session)
{
	char hex[2 * SL_SHA256_LEN + 1];
	int ret = digest_of(hex, session);

	if (ret) {
		json_object_put(session);
		return ret;
	}
	ret = sl_json_add(json, "session", session);
	if (!ret)
		ret = sl_json_add(json, "schema", json_object_new_int(SCHEMA));
	if (!ret)
		ret = sl_json_add(json, "sha256", json_object_new_string(hex));
	return ret;
}

int sl_store_print(char **text, size_t *len, const struct sl_store_entry *entry)
{
	_cleanup_json_ struct json_object *json = json_object_new_object();
	struct json_object *session = NULL;
	const char *printed;
	int ret = json ? session_json(&session, entry) : -ENOMEM;

	if (!ret)
		ret = add_parts(json, session);
	if (ret)
		return ret;
	printed = json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, len);
	*text = printed ? malloc(*len + 1) : NULL;
	if (!*text)
		return -ENOMEM;
	memcpy(*text, printed, *len);
	(*text)[(*len)++] = '\n';
	return 0;
}

static int damaged(struct sl_err *err, const char *what)
{
	char safe[64];

	sl_escape_text(safe, sizeof(safe), what);
	return sl_err_set(err, EBADMSG, "%s is missing or not as it was written", safe);
}

static int parse_json(struct json_object **out, const char *text, size_t len, struct sl_err *err)
{
	struct json_tokener *tok = json_tokener_new_ex(DEPTH);
	_cleanup_json_ struct json_object *json = NULL;

	if (!tok)
		return sl_err_sys(err, ENOMEM, "can't read a session's state");
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	if (len && len <= SL_STORE_FILE_MAX && text[len - 1] == '\n')
		json = json_tokener_parse_ex(tok, text, (int)len - 1);
	if (json && json_tokener_get_parse_end(tok) == len - 1 &&
	    json_object_is_type(json, json_type_object))
		*out = TAKE_PTR(json);
	json_tokener_free(tok);
	return *out ? 0 : damaged(err, "the JSON object");
}

struct parts {
	uint64_t schema;
	const char *sha256;
	struct json_object *session;
};

static const struct sl_param part_params[] = {
	SL_PARAM(UINT, struct parts, schema, .max = UINT32_MAX),
	SL_PARAM(STRING, struct parts, sha256),
	SL_PARAM(OBJECT, struct parts, session),
	{ 0 },
};

static int read_parts(struct json_object **session, struct json_object *json, struct sl_err *err)
{
	char hex[2 * SL_SHA256_LEN + 1];
	struct parts parts = { 0 };
	const char *bad;
	int ret;

	if (sl_params_read(&parts, part_params, json, &bad))
		return damaged(err, bad);
	if (parts.schema != SCHEMA)
		return sl_err_set(err, EBADMSG,
				  "another version of the agent wrote it (schema %llu, here %d)",
				  (unsigned long long)parts.schema, SCHEMA);
	ret = digest_of(hex, parts.session);
	if (ret)
		return sl_err_sys(err, -ret, "can't check a session's state");
	*session = parts.session;
	return strcmp(hex, parts.sha256) ? damaged(err, "sha256") : 0;
}

static int read_record(struct sl_record_copy *out, const struct stored *stored, struct sl_err *err)
{
	struct sl_record *record = &out->record;

	out->state = (enum sl_record_state)stored->state;
	out->epoch = stored->epoch;
	out->freeze_asked = stored->freeze_asked;
	record->version = (uint32_t)stored->version;
	record->listener = stored->listener;
	record->holds = (uint32_t)stored->holds;
	record->cgroup_id = stored->cgroup_id;
	record->sandbox = (uint32_t)stored->sandbox;
	record->options.freeze_on_loss = stored->freeze_on_loss;
	record->options.silence_ms = (uint32_t)stored->silence_ms;
	record->options.grace_ms = (uint32_t)stored->grace_ms;
	record->options.end = (enum sl_session_end)stored->end_if_lost;
	record->end = (enum sl_session_end)stored->end;
	/* Their lengths were checked: params. */
	strcpy(record->cgroup, stored->cgroup);
	strcpy(record->policy[0].path, stored->policy);
	strcpy(record->cause, stored->cause);
	strcpy(record->reason, stored->reason);
	if (sl_hex_parse(stored->key, record->key, sizeof(record->key)))
		return damaged(err, "key");
	if (sl_hex_parse(stored->token, record->token, sizeof(record->token)))
		return damaged(err, "token");
	if (sl_hex_parse(stored->policy_sha256, record->policy[0].sha256, SL_SHA256_LEN))
		return damaged(err, "policy_sha256");
	return sl_record_whole(out) ? 0 : damaged(err, "what the state relies on");
}

int sl_store_parse(struct sl_store_entry *out, const char *text, size_t len, struct sl_err *err)
{
	_cleanup_json_ struct json_object *json = NULL;
	_cleanup_free_ struct sl_store_entry *read = calloc(1, sizeof(*read));
	struct stored stored = { 0 };
	struct json_object *session = NULL;
	const char *bad;
	int ret;

	if (!read)
		return sl_err_sys(err, ENOMEM, "can't read a session's state");
	ret = parse_json(&json, text, len, err);
	if (!ret)
		ret = read_parts(&session, json, err);
	if (ret)
		return ret;
	if (sl_params_read(&stored, params, session, &bad))
		return damaged(err, bad);
	ret = read_record(&read->session, &stored, err);
	if (ret)
		return ret;
	ret = sl_conditions_read(&read->conditions, stored.conditions);
	if (ret)
		return ret == -EBADMSG ? damaged(err, "conditions")
				       : sl_err_sys(err, -ret, "can't read a session's state");
	*out = *read;
	return 0;
}
