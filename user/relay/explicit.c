// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Clients that name where they want to go: the first byte tells SOCKS5 from HTTP. What was
 * read beyond the head goes first when bytes flow.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "relay/head.h"
#include "relay/relay_private.h"
#include "relay/reply.h"

#define BUFFER_FIRST 1024
#define SOCKS_VERSION 5
/* First bytes of what is taken for this kind of proxy: of a TLS record (RFC 8446, 5.1), SOCKS4. */
#define TLS_HANDSHAKE 22
#define SOCKS4_VERSION 4

struct sl_request {
	char *data;
	size_t size, room;
	size_t used; /* bytes of `data` that are done with */
	bool greeted;
	char host[SL_RELAY_HOST_MAX]; /* "": not known yet */
	uint16_t port;
	struct sl_http_head http;
};

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

void sl_explicit_free(struct sl_request **request)
{
	if (*request)
		free((*request)->data);
	free(*request);
	*request = NULL;
}

static bool is_socks(const struct sl_request *request)
{
	return request->size && request->data[0] == SOCKS_VERSION;
}

static int add_reply(struct sl_relay_stream *stream, const struct sl_reply *reply)
{
	struct sl_request *request = stream->request;
	_cleanup_free_ char *text = NULL;
	uint8_t socks[SL_REPLY_SOCKS_SIZE];
	uint8_t method[] = { SOCKS_VERSION, SL_SOCKS_NO_METHOD };
	int ret;

	if (request && is_socks(request)) {
		if (!request->greeted)
			return sl_pump_first(&stream->down, method, sizeof(method));
		sl_reply_socks(socks, reply->code);
		return sl_pump_first(&stream->down, socks, sizeof(socks));
	}
	ret = sl_reply_http(reply, request && request->host[0] ? request->host : NULL,
			    request ? request->port : 0, &text);
	return ret ?: sl_pump_first(&stream->down, text, strlen(text));
}

void sl_explicit_refuse(struct sl_relay_stream *stream, const struct sl_reply *reply)
{
	if (add_reply(stream, reply)) {
		sl_stream_end(stream);
		return;
	}
	sl_explicit_free(&stream->request);
	stream->told = true;
	stream->state = SL_STREAM_REPLYING;
	sl_timer_set(&stream->phase, &stream->relay->lingers, sl_relay_now_ms(stream->relay));
	sl_stream_queue(stream);
}

void sl_explicit_unreachable(struct sl_relay_stream *stream, int code)
{
	struct sl_reply reply = sl_reply_of_dial(code);
	struct sl_endpoint to = { .port_be = htons(stream->end.port) };
	char text[SL_FORMAT_MAX], hint[SL_FORMAT_MAX + 128];

	memcpy(to.addr_be, stream->end.address.be, sizeof(to.addr_be));
	sl_format_endpoint(text, sizeof(text), &to);
	snprintf(hint, sizeof(hint), "%s: %s", text, strerrordesc_np(code) ?: "it failed");
	reply.error = strerrorname_np(code);
	reply.hint = hint;
	sl_explicit_refuse(stream, &reply);
}

static void tell_fault(struct sl_relay_stream *stream, enum sl_head_fault fault)
{
	const struct sl_head_fault_text *text = &sl_head_faults[fault];
	const struct sl_reply reply = {
		.status = text->status, .code = text->code, .reason = text->word, .hint = text->text
	};
	const struct sl_relay_options *options = &stream->relay->options;

	if (options->ops->malformed)
		options->ops->malformed(options->arg, stream->listener_arg, fault);
	sl_explicit_refuse(stream, &reply);
}

void sl_explicit_slow(struct sl_relay_stream *stream)
{
	/* Who has said nothing is told nothing. */
	if (stream->request)
		tell_fault(stream, SL_HEAD_SLOW);
	else
		sl_stream_end(stream);
}

static void malformed(struct sl_relay_stream *stream, enum sl_head_fault fault)
{
	bool oversized = fault == SL_HEAD_HEAD_LONG || fault == SL_HEAD_LINE_LONG;

	stream->relay->counts[oversized ? SL_RELAY_OVERSIZED : SL_RELAY_MALFORMED]++;
	sl_stream_fail(stream, SL_RELAY_CAUSE_MALFORMED, 0);
	tell_fault(stream, fault);
}

static int grow(struct sl_request *request)
{
	size_t room = request->room ? 2 * request->room : BUFFER_FIRST;
	char *data;

	if (request->size < request->room)
		return 0;
	if (request->room == SL_RELAY_HEAD_MAX)
		return -E2BIG;
	data = realloc(request->data, room);
	if (!data)
		return -ENOMEM;
	request->data = data;
	request->room = room;
	return 0;
}

static void ask(struct sl_relay_stream *stream, enum sl_relay_way way)
{
	stream->way = way;
	sl_stream_ask(stream, stream->request->host, stream->request->port);
}

static int parse_http(struct sl_relay_stream *stream)
{
	struct sl_request *request = stream->request;
	int ret;

	if (request->data[0] == TLS_HANDSHAKE || request->data[0] == SOCKS4_VERSION) {
		malformed(stream, request->data[0] == TLS_HANDSHAKE ? SL_HEAD_TLS : SL_HEAD_SOCKS4);
		return 0;
	}
	ret = sl_http_parse(request->data, request->size, &request->http);
	if (ret == -EAGAIN)
		return ret;
	if (ret) {
		malformed(stream, (enum sl_head_fault)ret);
		return 0;
	}
	request->used = request->http.size;
	strcpy(request->host, request->http.host);
	request->port = request->http.port;
	ask(stream, request->http.connect ? SL_RELAY_WAY_CONNECT : SL_RELAY_WAY_HTTP);
	return 0;
}

static int parse_socks(struct sl_relay_stream *stream)
{
	static const uint8_t chosen[] = { SOCKS_VERSION, 0 };
	struct sl_request *request = stream->request;
	const uint8_t *data = (const uint8_t *)request->data;
	struct sl_socks_head head;
	int ret = 0;

	stream->way = SL_RELAY_WAY_SOCKS5;
	if (!request->greeted) {
		ret = sl_socks_greeting(data, request->size, &request->used);
		request->greeted = !ret;
		if (!ret)
			ret = sl_pump_first(&stream->down, chosen, sizeof(chosen));
		if (!ret)
			sl_pump_run(&stream->down, &stream->relay->pump);
	}
	if (!ret)
		ret = sl_socks_request(data + request->used, request->size - request->used, &head);
	if (ret < 0)
		return ret;
	if (ret) {
		malformed(stream, (enum sl_head_fault)ret);
		return 0;
	}
	request->used += head.size;
	strcpy(request->host, head.host);
	request->port = head.port;
	ask(stream, SL_RELAY_WAY_SOCKS5);
	return 0;
}

static void give_up(struct sl_relay_stream *stream, enum sl_relay_cause cause, int code)
{
	sl_stream_fail(stream, cause, code);
	sl_stream_end(stream);
}

/* One piece of the head. True: there may be another. */
static bool read_some(struct sl_relay_stream *stream)
{
	struct sl_request *request = stream->request;
	int ret = grow(request);
	ssize_t n;

	if (ret == -E2BIG) {
		malformed(stream, memchr(request->data, '\n', request->size) ? SL_HEAD_HEAD_LONG
									     : SL_HEAD_LINE_LONG);
		return false;
	}
	if (ret) {
		give_up(stream, SL_RELAY_CAUSE_MEMORY, -ret);
		return false;
	}
	n = recv(stream->client.side.fd, request->data + request->size,
		 request->room - request->size, MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return true;
	if (n < 0 && errno == EAGAIN) {
		stream->client.side.readable = false;
		return false;
	}
	if (n <= 0) {
		give_up(stream, SL_RELAY_CAUSE_CLIENT, n ? errno : 0);
		return false;
	}
	request->size += (size_t)n;
	ret = is_socks(request) ? parse_socks(stream) : parse_http(stream);
	if (ret && ret != -EAGAIN)
		give_up(stream, SL_RELAY_CAUSE_MEMORY, -ret);
	return ret == -EAGAIN;
}

void sl_explicit_read(struct sl_relay_stream *stream)
{
	if (!stream->request)
		stream->request = calloc(1, sizeof(*stream->request));
	if (!stream->request) {
		give_up(stream, SL_RELAY_CAUSE_MEMORY, ENOMEM);
		return;
	}
	while (read_some(stream))
		;
}

/* The only request of the connection: no byte beyond its body reaches the server. */
static int send_request(struct sl_relay_stream *stream)
{
	struct sl_request *request = stream->request;
	size_t rest = request->size - request->used;
	uint64_t body = request->http.body;
	_cleanup_free_ char *head = malloc(SL_HTTP_REWRITE_MAX(request->http.size));
	int ret;

	if (!head)
		return -ENOMEM;
	if (rest > body)
		rest = (size_t)body;
	ret = sl_pump_first(&stream->up, head,
			    sl_http_rewrite(head, request->data, &request->http));
	if (!ret)
		ret = sl_pump_first(&stream->up, request->data + request->used, rest);
	stream->up.limited = true;
	stream->up.left = body - rest;
	return ret;
}

int sl_explicit_connected(struct sl_relay_stream *stream)
{
	struct sl_request *request = stream->request;
	uint8_t socks[SL_REPLY_SOCKS_SIZE];
	int ret;

	if (stream->way == SL_RELAY_WAY_HTTP) {
		ret = send_request(stream);
	} else {
		ret = sl_pump_first(&stream->up, request->data + request->used,
				    request->size - request->used);
		sl_reply_socks(socks, 0);
		if (!ret && stream->way == SL_RELAY_WAY_SOCKS5)
			ret = sl_pump_first(&stream->down, socks, sizeof(socks));
		else if (!ret)
			ret = sl_pump_first(&stream->down, established, strlen(established));
	}
	sl_explicit_free(&stream->request);
	return ret;
}
