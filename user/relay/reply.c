// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/object.h"
#include "relay/head.h"

#define HINT_MAX 1024

const struct sl_reply sl_reply_refusals[SL_RELAY_REFUSAL_MAX] = {
	[SL_RELAY_DENIED] = { .status = 403, .code = SL_SOCKS_DENIED, .reason = "denied" },
	[SL_RELAY_UNRESOLVED] = { .status = 502, .code = SL_SOCKS_HOST, .reason = "unresolved" },
	[SL_RELAY_BUSY] = { .status = 503, .code = SL_SOCKS_FAILURE, .reason = "busy" },
};

static const struct {
	unsigned int status;
	const char *phrase;
} phrases[] = {
	{ 400, "Bad Request" },
	{ 403, "Forbidden" },
	{ 408, "Request Timeout" },
	{ 411, "Length Required" },
	{ 414, "URI Too Long" },
	{ 431, "Request Header Fields Too Large" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

static const char *phrase_of(unsigned int status)
{
	for (size_t i = 0; i < ARRAY_SIZE(phrases); i++)
		if (phrases[i].status == status)
			return phrases[i].phrase;
	return "Error";
}

static struct json_object *text_of(const char *text, size_t max)
{
	return sl_json_string(text, strnlen(text, max));
}

static int make_document(const struct sl_reply *reply, const char *host, uint16_t port,
			 struct json_object **out)
{
	struct json_object *json = json_object_new_object();
	int ret;

	if (!json)
		return -ENOMEM;
	ret = sl_json_add(json, "reason", text_of(reply->reason, HINT_MAX));
	if (!ret && host)
		ret = sl_json_add(json, "host", text_of(host, SL_RELAY_HOST_MAX));
	if (!ret && host)
		ret = sl_json_add(json, "port", json_object_new_int(port));
	if (!ret && reply->error)
		ret = sl_json_add(json, "error", text_of(reply->error, HINT_MAX));
	if (!ret && reply->hint)
		ret = sl_json_add(json, "hint", text_of(reply->hint, HINT_MAX));
	if (ret)
		json_object_put(json);
	else
		*out = json;
	return ret;
}

int sl_reply_http(const struct sl_reply *reply, const char *host, uint16_t port, char **out)
{
	struct json_object *json;
	const char *body;
	int ret = make_document(reply, host, port, &json);

	if (ret)
		return ret;
	body = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!body || asprintf(out,
			      "HTTP/1.1 %u %s\r\n"
			      "Content-Type: application/json\r\n"
			      "Content-Length: %zu\r\n"
			      "Cache-Control: no-store\r\n"
			      "Connection: close\r\n"
			      "\r\n"
			      "%s\n",
			      reply->status, phrase_of(reply->status), strlen(body) + 1, body) < 0)
		ret = -ENOMEM;
	json_object_put(json);
	return ret;
}

void sl_reply_socks(uint8_t dst[SL_REPLY_SOCKS_SIZE], uint8_t code)
{
	const uint8_t reply[SL_REPLY_SOCKS_SIZE] = { 5, code, 0, 1 };

	memcpy(dst, reply, sizeof(reply));
}

struct sl_reply sl_reply_of_dial(int code)
{
	switch (code) {
	case ETIMEDOUT:
		return (struct sl_reply){ .status = 504,
					  .code = SL_SOCKS_HOST,
					  .reason = "timeout" };
	case ECONNREFUSED:
		return (struct sl_reply){ .status = 502,
					  .code = SL_SOCKS_REFUSED,
					  .reason = "refused" };
	case ENETUNREACH:
		return (struct sl_reply){ .status = 502,
					  .code = SL_SOCKS_NETWORK,
					  .reason = "unreachable" };
	case EHOSTUNREACH:
		return (struct sl_reply){ .status = 502,
					  .code = SL_SOCKS_HOST,
					  .reason = "unreachable" };
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case ENOBUFS:
		return sl_reply_refusals[SL_RELAY_BUSY];
	default:
		return (struct sl_reply){ .status = 502,
					  .code = SL_SOCKS_FAILURE,
					  .reason = "unreachable" };
	}
}
