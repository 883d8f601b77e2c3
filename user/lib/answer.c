// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Errors and members of answers, members of calls. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/object.h"
#include "base/utf8.h"
#include "lib/private.h"

#define ERRNO_LAST 133 /* EHWPOISON, the last of Linux */

/* Errors without texts of their own. */
static const struct {
	const char *name;
	int code;
	const char *text;
} errors[] = {
	{ "io.sluice.NoHello", EPROTO, "the agent says that no Hello was said" },
	{ "io.sluice.IncompatibleVersion", EPROTONOSUPPORT,
	  "no version of the protocol in common" },
	{ "io.sluice.StaleEpoch", ESTALE, "the agent has seen a later epoch of the session" },
	{ "io.sluice.Again", EAGAIN, "the session is just being made, or taken back" },
	{ "io.sluice.UnknownToken", EKEYREJECTED, "the agent knows no such session" },
	{ "io.sluice.SessionOver", ESHUTDOWN, "the session is over" },
	{ "io.sluice.NotTheSession", ENOTCONN, "this connection is not the session's any more" },
	{ "io.sluice.NoSandbox", ENOENT, "there is no such sandbox" },
	{ "io.sluice.Busy", EBUSY, "processes are left in the sandbox" },
	{ "org.varlink.service.PermissionDenied", EPERM, "the agent does not let this user" },
	{ "org.varlink.service.InvalidParameter", EINVAL, "the agent refuses a parameter" },
	{ "org.varlink.service.MethodNotFound", ENOSYS, "the agent has no such method" },
	{ "org.varlink.service.InterfaceNotFound", ENOSYS, "who answers is no agent of sluice" },
};

const char *answer_text(struct json_object *json, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(json, key, &value) &&
			       json_object_is_type(value, json_type_string)
		       ? json_object_get_string(value)
		       : NULL;
}

uint64_t answer_number(struct json_object *json, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(json, key, &value) &&
			       json_object_is_type(value, json_type_int)
		       ? json_object_get_uint64(value)
		       : 0;
}

bool answer_bool(struct json_object *json, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(json, key, &value) &&
	       json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

struct json_object *answer_object(struct json_object *json, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(json, key, &value) &&
			       json_object_is_type(value, json_type_object)
		       ? value
		       : NULL;
}

static int code_of(const char *name)
{
	for (int code = 1; name && code <= ERRNO_LAST; code++) {
		const char *known = strerrorname_np(code);

		if (known && !strcmp(known, name))
			return code;
	}
	return EREMOTEIO;
}

/* The agent's own words, which may have a workload's in them. */
static void take_texts(struct sl_err *err, struct json_object *reply)
{
	const char *text = answer_text(reply, "text") ?: answer_text(reply, "reason");
	const char *hint = answer_text(reply, "hint");
	const char *parameter = answer_text(reply, "parameter");
	char words[sizeof(err->hint)];

	if (parameter) {
		sl_escape_again(words, sizeof(words), parameter, strlen(parameter));
		sl_err_set(err, err->code, "the agent refuses the parameter '%s'", words);
	}
	if (text)
		sl_escape_again(err->text, sizeof(err->text), text, strlen(text));
	if (hint)
		sl_escape_again(err->hint, sizeof(err->hint), hint, strlen(hint));
}

int answer_error(struct sl_runtime *rt, struct json_object *reply)
{
	const char *name = sl_control_error(rt->control);
	char shown[64];

	if (!strcmp(name, "io.sluice.Refused")) {
		sl_err_set(&rt->err, code_of(answer_text(reply, "code")), "the agent refuses");
		take_texts(&rt->err, reply);
		return -rt->err.code;
	}
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (strcmp(name, errors[i].name) != 0)
			continue;
		sl_err_set(&rt->err, errors[i].code, "%s", errors[i].text);
		take_texts(&rt->err, reply);
		return -rt->err.code;
	}
	sl_escape_text(shown, sizeof(shown), name);
	return sl_err_set(&rt->err, EREMOTEIO, "the agent answered %s", shown);
}

int ask_text(struct json_object *json, const char *key, const char *text)
{
	if (!text)
		return 0;
	/* The agent would end the connection. */
	if (!sl_utf8_valid(text, strlen(text)))
		return -EILSEQ;
	return sl_json_add(json, key, json_object_new_string(text));
}
