// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "relay/head.h"

#define METHOD_MAX 32
#define DEFAULT_PORT 80
#define LENGTH_DIGITS 19 /* any number of these fits 64 bits */

struct span {
	const char *at;
	size_t len;
};

/* What is known of the fields while they are read. */
struct fields {
	unsigned int hosts, lengths, codings;
	struct span connection; /* the last one that named fields */
};

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_token_char(text.at[i]))
			return false;
	return text.len;
}

static bool equals(struct span text, const char *word)
{
	return text.len == strlen(word) && !strncasecmp(text.at, word, text.len);
}

static struct span trim(struct span text)
{
	while (text.len && (text.at[0] == ' ' || text.at[0] == '\t'))
		text = (struct span){ text.at + 1, text.len - 1 };
	while (text.len && (text.at[text.len - 1] == ' ' || text.at[text.len - 1] == '\t'))
		text.len--;
	return text;
}

/* The next item of a list with commas; false at its end. */
static bool next_item(struct span *list, struct span *item)
{
	const char *comma;

	if (!list->len)
		return false;
	comma = memchr(list->at, ',', list->len);
	item->at = list->at;
	item->len = comma ? (size_t)(comma - list->at) : list->len;
	list->at += item->len + !!comma;
	list->len -= item->len + !!comma;
	*item = trim(*item);
	return true;
}

/*
 * The end of the head, after its empty line. A line ends with CR LF; either of them alone, and
 * any control byte but a tab, is refused, whatever a lenient reader makes of it.
 */
static int find_end(const char *text, size_t size, size_t *end)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' && (!i || text[i - 1] != '\r'))
			return SL_HEAD_LINE_END;
		if (i && text[i - 1] == '\r' && c != '\n')
			return SL_HEAD_LINE_END;
		if ((c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
			return SL_HEAD_CONTROL_BYTE;
		if (c == '\n' && i >= 3 && text[i - 2] == '\n') {
			*end = i + 1;
			return 0;
		}
	}
	return -EAGAIN;
}

/* Of a head whose end was found: the text is not terminated. */
static struct span line_at(const char *text, size_t at, const struct sl_http_head *head)
{
	const char *end = memchr(text + at, '\r', head->size - at);

	return (struct span){ text + at, (size_t)(end - (text + at)) };
}

static int parse_target(const char *text, struct span target, struct sl_http_head *out)
{
	const char *slash;
	size_t len;

	if (out->connect)
		return sl_head_authority(out->host, &out->port, target.at, target.len);
	if (!memmem(target.at, target.len, "://", 3))
		return SL_HEAD_NOT_ABSOLUTE;
	if (target.len < 7 || strncasecmp(target.at, "http://", 7))
		return target.at[0] == '/' ? SL_HEAD_NOT_ABSOLUTE : SL_HEAD_SCHEME;
	if (memchr(target.at, '#', target.len))
		return SL_HEAD_TARGET;
	target.at += 7;
	target.len -= 7;
	for (len = 0; len < target.len && target.at[len] != '/' && target.at[len] != '?';)
		len++;
	slash = target.at + len;
	out->port = DEFAULT_PORT;
	out->path = (size_t)(slash - text);
	out->path_len = target.len - len;
	return sl_head_authority(out->host, &out->port, target.at, len);
}

static int parse_request_line(const char *text, struct sl_http_head *out)
{
	struct span line = line_at(text, 0, out), method = { line.at, 0 }, target, version;
	const char *first = memchr(line.at, ' ', line.len), *second;

	if (!first)
		return SL_HEAD_REQUEST_LINE;
	method.len = (size_t)(first - line.at);
	target.at = first + 1;
	second = memchr(target.at, ' ', line.len - method.len - 1);
	if (!second)
		return SL_HEAD_REQUEST_LINE;
	target.len = (size_t)(second - target.at);
	version.at = second + 1;
	version.len = line.len - method.len - target.len - 2;
	if (!target.len || version.len != 8 || strncmp(version.at, "HTTP/", 5))
		return SL_HEAD_REQUEST_LINE;
	if (!is_token(method) || method.len > METHOD_MAX)
		return SL_HEAD_METHOD;
	for (size_t i = 0; i < target.len; i++)
		if (target.at[i] <= ' ' || (unsigned char)target.at[i] >= 0x7f)
			return SL_HEAD_TARGET;
	if (strncmp(version.at, "HTTP/1.1", 8) && strncmp(version.at, "HTTP/1.0", 8))
		return SL_HEAD_VERSION;
	out->method_len = method.len;
	out->version = (size_t)(version.at - text);
	out->fields = line.len + 2;
	out->connect = method.len == 7 && !memcmp(method.at, "CONNECT", 7);
	return parse_target(text, target, out);
}

/* A Host that says something else than the target would make two servers of one request. */
static int check_host(struct span value, const struct sl_http_head *head)
{
	char host[SL_RELAY_HOST_MAX];
	uint16_t port = head->connect ? head->port : DEFAULT_PORT;

	if (sl_head_authority(host, &port, value.at, value.len))
		return SL_HEAD_HOST_FIELD;
	return strcmp(host, head->host) || port != head->port ? SL_HEAD_HOST_CONFLICT : 0;
}

static int parse_length(struct span value, struct sl_http_head *head)
{
	char digits[LENGTH_DIGITS + 1];

	if (!value.len || value.len > LENGTH_DIGITS)
		return SL_HEAD_LENGTH;
	memcpy(digits, value.at, value.len);
	digits[value.len] = '\0';
	return sl_parse_u64(digits, 0, INT64_MAX, &head->body) ? SL_HEAD_LENGTH : 0;
}

/* "Connection: host" would have a field dropped that the request depends on. */
static int check_connection(struct span list)
{
	struct span item;

	while (next_item(&list, &item)) {
		if (item.len && !is_token(item))
			return SL_HEAD_CONNECTION;
		if (equals(item, "host") || equals(item, "content-length") ||
		    equals(item, "transfer-encoding"))
			return SL_HEAD_CONNECTION;
	}
	return 0;
}

static int parse_field(struct span line, struct sl_http_head *head, struct fields *fields)
{
	const char *colon = memchr(line.at, ':', line.len);
	struct span name = { line.at, colon ? (size_t)(colon - line.at) : 0 }, value;

	/* Neither a folded line nor a space before the colon makes a token. */
	if (!colon || !is_token(name))
		return SL_HEAD_FIELD;
	value = trim((struct span){ colon + 1, line.len - name.len - 1 });
	if (equals(name, "host"))
		return fields->hosts++ ? SL_HEAD_HOST_FIELDS : check_host(value, head);
	if (equals(name, "content-length"))
		return fields->lengths++ ? SL_HEAD_LENGTHS : parse_length(value, head);
	if (equals(name, "connection"))
		return check_connection(value);
	if (!equals(name, "transfer-encoding"))
		return 0;
	if (fields->codings++)
		return SL_HEAD_CODINGS;
	return equals(value, "chunked") ? 0 : SL_HEAD_CODING;
}

/* What only all fields together tell. */
static int check_fields(const struct sl_http_head *head, const struct fields *fields, bool old)
{
	if (!fields->hosts && !old)
		return SL_HEAD_NO_HOST_FIELD;
	if (fields->codings && fields->lengths)
		return SL_HEAD_LENGTH_CONFLICT;
	if (fields->codings)
		return head->connect || old ? SL_HEAD_CODING_PLACE : SL_HEAD_CHUNKED;
	/* What follows a CONNECT is the tunnel's, whoever believes in a length. */
	return head->connect && head->body ? SL_HEAD_CONNECT_BODY : 0;
}

int sl_http_parse(const char *text, size_t size, struct sl_http_head *out)
{
	struct sl_http_head head = { .size = 0 };
	struct fields fields = { .hosts = 0 };
	int ret = find_end(text, size, &head.size);

	if (!ret)
		ret = parse_request_line(text, &head);
	if (ret)
		return ret;
	for (size_t at = head.fields; at + 2 < head.size;) {
		struct span line = line_at(text, at, &head);

		ret = parse_field(line, &head, &fields);
		if (ret)
			return ret;
		at += line.len + 2;
	}
	ret = check_fields(&head, &fields, text[head.version + 7] == '0');
	if (!ret)
		*out = head;
	return ret;
}

/* Fields of one hop, and those that the rewriting sets. */
static const char *const dropped[] = {
	"host",
	"connection",
	"keep-alive",
	"proxy-connection",
	"proxy-authenticate",
	"proxy-authorization",
	"te",
	"trailer",
	"upgrade",
};

static bool is_dropped(const char *text, const struct sl_http_head *head, struct span name)
{
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		if (equals(name, dropped[i]))
			return true;
	for (size_t at = head->fields; at + 2 < head->size;) {
		struct span line = line_at(text, at, head), list = line, item;

		at += line.len + 2;
		if (line.len < 11 || strncasecmp(line.at, "connection:", 11))
			continue;
		list = (struct span){ line.at + 11, line.len - 11 };
		while (next_item(&list, &item))
			if (item.len == name.len && !strncasecmp(item.at, name.at, name.len))
				return true;
	}
	return false;
}

static size_t put(char *dst, const char *text, size_t len)
{
	memcpy(dst, text, len);
	return len;
}

size_t sl_http_rewrite(char *dst, const char *text, const struct sl_http_head *head)
{
	bool v6 = strchr(head->host, ':');
	size_t n = put(dst, text, head->method_len);

	n += put(dst + n, " /", !head->path_len || text[head->path] != '/' ? 2 : 1);
	n += put(dst + n, text + head->path, head->path_len);
	n += put(dst + n, " ", 1);
	n += put(dst + n, text + head->version, 8);
	n += (size_t)sprintf(dst + n, "\r\nHost: %s%s%s", v6 ? "[" : "", head->host, v6 ? "]" : "");
	if (head->port != DEFAULT_PORT)
		n += (size_t)sprintf(dst + n, ":%u", head->port);
	n += put(dst + n, "\r\n", 2);
	for (size_t at = head->fields; at + 2 < head->size;) {
		struct span line = line_at(text, at, head);
		const char *colon = memchr(line.at, ':', line.len);
		struct span name = { line.at, (size_t)(colon - line.at) };

		if (!is_dropped(text, head, name)) {
			n += put(dst + n, line.at, line.len);
			n += put(dst + n, "\r\n", 2);
		}
		at += line.len + 2;
	}
	return n + put(dst + n, "Connection: close\r\n\r\n", 21);
}
