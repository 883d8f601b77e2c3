/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An explicit proxy's clients: what is asked for them, what reaches the server, and answers. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/cleanup.h"
#include "relay_world.h"

static void start(void)
{
	relay_start(SL_RELAY_PROXY, (struct sl_relay_options){ 0 });
}

TestSuite(relay_explicit, .init = start, .fini = relay_stop);

static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

/* The status, the document's reason and host, and what its hint has somewhere. */
static void expect_refusal_with(int client, int status, const char *reason, const char *host,
				const char *hint)
{
	char answer[4096];
	struct json_object *json, *value;
	const char *body;
	int got = 0;

	relay_read_all(client, answer, sizeof(answer));
	cr_assert_eq(sscanf(answer, "HTTP/1.1 %d ", &got), 1, "%s", answer);
	cr_assert_eq(got, status, "%s", answer);
	cr_assert_not_null(strstr(answer, "\r\nContent-Type: application/json\r\n"));
	body = strstr(answer, "\r\n\r\n");
	cr_assert_not_null(body);
	json = json_tokener_parse(body);
	cr_assert_not_null(json, "%s", body);
	cr_assert(json_object_object_get_ex(json, "reason", &value));
	cr_assert_str_eq(json_object_get_string(value), reason);
	cr_assert_eq(json_object_object_get_ex(json, "host", &value), host != NULL);
	if (host)
		cr_assert_str_eq(json_object_get_string(value), host);
	cr_assert(json_object_object_get_ex(json, "hint", &value));
	cr_assert_not_null(strstr(json_object_get_string(value), hint), "%s", body);
	json_object_put(json);
}

static void expect_refusal(int client, int status, const char *reason, const char *host)
{
	expect_refusal_with(client, status, reason, host, "");
}

Test(relay_explicit, http_connect)
{
	_cleanup_fd_ int client = relay_connect(), server = -1;

	/* What comes right behind the head is the tunnel's first. */
	relay_send_text(client, "CONNECT Name.Example:443 HTTP/1.1\r\nHost: name.example\r\n\r\n"
				"early");
	server = relay_accept();
	cr_assert_eq(relay_world.ask.way, SL_RELAY_WAY_CONNECT);
	cr_assert_str_eq(relay_world.host, "name.example");
	cr_assert_eq(relay_world.ask.port, 443);
	relay_expect_text(client, established);
	relay_expect_text(server, "early");
	relay_send_text(client, "later");
	relay_expect_text(server, "later");
	relay_send_text(server, "answer");
	relay_expect_text(client, "answer");
	sl_cleanup_fd(&server);
	relay_expect_eof(client);
	sl_cleanup_fd(&client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DONE);
	cr_assert_eq(relay_world.end.bytes_received, 6);
}

Test(relay_explicit, head_in_single_bytes)
{
	static const char text[] = "CONNECT [::1]:1 HTTP/1.0\r\nUser-Agent: slow\r\n\r\n";
	_cleanup_fd_ int client = relay_connect(), server = -1;

	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		cr_assert_eq(relay_world.asked, 0);
		relay_send(client, text + i, 1);
		for (unsigned int turn = 0; turn < 3; turn++)
			sl_relay_run(relay_world.relay, 0);
	}
	server = relay_accept();
	cr_assert_str_eq(relay_world.host, "::1");
	relay_expect_text(client, established);
}

/* Of the only request, all and no more reaches the server. */
Test(relay_explicit, absolute_form)
{
	_cleanup_fd_ int client = relay_connect(), server = -1;

	relay_send_text(client, "POST http://a.example/p HTTP/1.1\r\nHost: a.example\r\n"
				"Connection: keep-alive\r\nContent-Length: 8\r\n\r\nbod");
	server = relay_accept();
	cr_assert_eq(relay_world.ask.way, SL_RELAY_WAY_HTTP);
	cr_assert_eq(relay_world.ask.port, 80);
	relay_expect_text(server, "POST /p HTTP/1.1\r\nHost: a.example\r\nContent-Length: 8\r\n"
				  "Connection: close\r\n\r\nbod");
	relay_send_text(client, "y-endGET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n");
	relay_expect_text(server, "y-end");
	relay_send_text(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	relay_expect_text(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	cr_assert_eq(recv(server, (char[1]){ 0 }, 1, 0), -1);
	cr_assert_eq(errno, EAGAIN, "the second request, or an end, reached the first's server");
	sl_cleanup_fd(&server);
	/* An end, though what the client sent was not all read: no RST takes the answer away. */
	relay_expect_eof(client);
	sl_cleanup_fd(&client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.asked, 1);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DONE);
}

Test(relay_explicit, refused_and_serving_on)
{
	_cleanup_fd_ int first = relay_connect(), second = -1, server = -1;

	relay_world.policy = RELAY_REFUSE;
	relay_send_text(first,
			"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n");
	expect_refusal(first, 403, "endpoint", "evil.example");
	sl_cleanup_fd(&first);
	RELAY_UNTIL(relay_world.ended == 1);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_REFUSED);
	cr_assert_eq(relay_count(SL_RELAY_REFUSED), 1);
	relay_world.policy = RELAY_DIAL;
	second = relay_connect();
	relay_send_text(second, "CONNECT good.example:443 HTTP/1.0\r\n\r\n");
	server = relay_accept();
	relay_expect_text(second, established);
}

/* A body that nobody reads must not turn the answer into an RST. */
Test(relay_explicit, refused_with_a_body_under_way)
{
	static const char body[100000];
	_cleanup_fd_ int client = relay_connect();

	relay_world.policy = RELAY_REFUSE;
	relay_send_text(client, "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n"
				"Content-Length: 100000\r\n\r\n");
	relay_send(client, body, sizeof(body));
	expect_refusal(client, 403, "endpoint", "a.example");
}

Test(relay_explicit, bad_heads_are_answered)
{
	static const struct {
		const char *text;
		int status;
		enum sl_head_fault fault;
	} rows[] = {
		{ "nonsense\r\n\r\n", 400, SL_HEAD_REQUEST_LINE },
		{ "\x16\x03\x01", 400, SL_HEAD_TLS },
		{ "\x04\x01\x00\x50", 400, SL_HEAD_SOCKS4 },
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400, SL_HEAD_NOT_ABSOLUTE },
		{ "CONNECT a:65536 HTTP/1.1\r\nHost: a\r\n\r\n", 400, SL_HEAD_PORT },
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, SL_HEAD_VERSION },
		{ "PUT http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 411,
		  SL_HEAD_CHUNKED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_fd_ int client = relay_connect();

		relay_send_text(client, rows[i].text);
		expect_refusal_with(client, rows[i].status, sl_head_faults[rows[i].fault].word,
				    NULL, sl_head_faults[rows[i].fault].text);
		cr_assert_eq(relay_world.fault, rows[i].fault, "%zu", i);
	}
	RELAY_UNTIL(!relay_streams());
	cr_assert_eq(relay_count(SL_RELAY_MALFORMED), ARRAY_SIZE(rows));
	cr_assert_eq(relay_world.malformed, ARRAY_SIZE(rows));
	cr_assert_eq(relay_world.asked, 0);
	cr_assert_eq(relay_world.ended + relay_world.gone, 0);
}

Test(relay_explicit, head_that_does_not_end)
{
	_cleanup_fd_ int client = relay_connect();

	relay_send_text(client, "GET http://a.example/ HTTP/1.1\r\n");
	for (unsigned int i = 0; i < SL_RELAY_HEAD_MAX / 16; i++)
		relay_send_text(client, "X-Much: 1234567\r\n");
	expect_refusal(client, 431, "head-too-long", NULL);
	sl_cleanup_fd(&client);
	client = relay_connect();
	relay_send_text(client, "GET http://a.example/");
	for (unsigned int i = 0; i < SL_RELAY_HEAD_MAX / 16; i++)
		relay_send_text(client, "much12345678901/");
	expect_refusal(client, 414, "line-too-long", NULL);
	cr_assert_eq(relay_count(SL_RELAY_OVERSIZED), 2);
}

static uint16_t closed_port(void)
{
	uint16_t port;
	int fd = relay_listen_any(&port, 1);

	close(fd);
	return port;
}

Test(relay_explicit, target_that_refuses)
{
	_cleanup_fd_ int client = relay_connect();
	char hint[64];

	relay_world.target.port = closed_port();
	snprintf(hint, sizeof(hint), "127.0.0.1:%u: Connection refused", relay_world.target.port);
	relay_send_text(client, "CONNECT a.example:443 HTTP/1.0\r\n\r\n");
	expect_refusal_with(client, 502, "refused", "a.example", hint);
	/* Who has read the answer finds it told. */
	cr_assert_eq(relay_world.unmade, 1);
	cr_assert_eq(relay_world.ended, 0);
	cr_assert_eq(relay_world.unreachable.code, ECONNREFUSED);
	cr_assert_eq(relay_world.unreachable.port, relay_world.target.port);
	cr_assert_eq(relay_world.unreachable.address.be[3], relay_world.addresses[0].be[3]);
	sl_cleanup_fd(&client);
	RELAY_UNTIL(relay_world.ended);
	cr_assert_eq(relay_world.end.cause, SL_RELAY_CAUSE_DIAL);
	cr_assert_eq(relay_world.end.code, ECONNREFUSED);
	cr_assert_eq(relay_count(SL_RELAY_DIAL_FAILED), 1);
}

#define SOCKS_ASK              \
	"\x05\x01\x00\x03\x09" \
	"a.example"            \
	"\x01\xbb"

static int socks_client(const void *request, size_t size)
{
	int client = relay_connect();

	relay_send(client, "\x05\x02\x00\x02", 4);
	relay_expect(client, "\x05\x00", 2);
	relay_send(client, request, size);
	return client;
}

Test(relay_explicit, socks)
{
	_cleanup_fd_ int client = socks_client(SOCKS_ASK "early", sizeof(SOCKS_ASK) + 4);
	_cleanup_fd_ int server = relay_accept();

	cr_assert_eq(relay_world.ask.way, SL_RELAY_WAY_SOCKS5);
	cr_assert_str_eq(relay_world.host, "a.example");
	cr_assert_eq(relay_world.ask.port, 443);
	relay_expect(client, "\x05\x00\x00\x01\0\0\0\0\0\0", 10);
	relay_expect_text(server, "early");
	relay_send_text(server, "answer");
	relay_expect_text(client, "answer");
}

Test(relay_explicit, socks_in_one_piece)
{
	_cleanup_fd_ int client = relay_connect(), server = -1;

	relay_send(client, "\x05\x01\x00" SOCKS_ASK, 3 + sizeof(SOCKS_ASK) - 1);
	server = relay_accept();
	relay_expect(client, "\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0", 12);
}

Test(relay_explicit, socks_refusals)
{
	static const struct {
		const char *request;
		size_t size;
		uint8_t code;
	} rows[] = {
		{ "\x05\x03\x00\x01\0\0\0\0\0\0", 10, 7 }, /* UDP ASSOCIATE */
		{ "\x05\x02\x00\x01\0\0\0\0\0\0", 10, 7 }, /* BIND */
		{ "\x05\x01\x00\x09", 4, 8 },
		{ "\x05\x01\x00\x03\x01/\x00\x50", 8, 1 },
	};
	_cleanup_fd_ int client = -1;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint8_t want[10] = { 5, rows[i].code, 0, 1 };

		sl_cleanup_fd(&client);
		client = socks_client(rows[i].request, rows[i].size);
		relay_expect(client, want, sizeof(want));
		relay_expect_eof(client);
	}
	relay_world.policy = RELAY_REFUSE;
	sl_cleanup_fd(&client);
	client = socks_client(SOCKS_ASK, sizeof(SOCKS_ASK) - 1);
	relay_expect(client, "\x05\x02\x00\x01\0\0\0\0\0\0", 10);
	relay_world.policy = RELAY_DIAL;
	relay_world.target.port = closed_port();
	sl_cleanup_fd(&client);
	client = socks_client(SOCKS_ASK, sizeof(SOCKS_ASK) - 1);
	relay_expect(client, "\x05\x05\x00\x01\0\0\0\0\0\0", 10);
	sl_cleanup_fd(&client);
	client = relay_connect();
	relay_send(client, "\x05\x01\x02", 3);
	relay_expect(client, "\x05\xff", 2);
	relay_expect_eof(client);
}
