/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is taken for a request of an explicit proxy, and what is not. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "relay/head.h"

#define HOST "Host: a.org\r\n"
#define GET "GET http://a.org/ HTTP/1.1\r\n"

Test(relay_head, requests)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
		bool connect;
		uint64_t body;
	} rows[] = {
		{ GET HOST "\r\n", "a.org", 80, false, 0 },
		{ "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\n\r\n", "a.org", 443, true, 0 },
		{ "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org\r\n\r\n", "a.org", 443, true, 0 },
		{ "CONNECT a.org:443 HTTP/1.0\r\n\r\n", "a.org", 443, true, 0 },
		{ "CONNECT [2001:db8::1]:443 HTTP/1.0\r\n\r\n", "2001:db8::1", 443, true, 0 },
		{ "CONNECT [2001:DB8:0::1]:443 HTTP/1.0\r\n\r\n", "2001:db8::1", 443, true, 0 },
		{ "CONNECT 192.0.2.1:1 HTTP/1.0\r\n\r\n", "192.0.2.1", 1, true, 0 },
		{ "GET http://A.Org.:8080?q HTTP/1.1\r\nhost:\ta.ORG:8080 \r\n\r\n", "a.org", 8080,
		  false, 0 },
		{ "POST HTTP://a.org HTTP/1.0\r\nContent-Length: 12\r\n\r\n", "a.org", 80, false,
		  12 },
		{ "GET http://[::1]/ HTTP/1.1\r\nHost: [::1]\r\n\r\n", "::1", 80, false, 0 },
		{ "GET http://a.org:80/ HTTP/1.1\r\nHost: a.org\r\n\r\n", "a.org", 80, false, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t size = strlen(rows[i].text);
		struct sl_http_head head;

		for (size_t n = 0; n < size; n++)
			cr_assert_eq(sl_http_parse(rows[i].text, n, &head), -EAGAIN, "%zu: %zu", i,
				     n);
		cr_assert_eq(sl_http_parse(rows[i].text, size, &head), 0, "%zu", i);
		cr_assert_str_eq(head.host, rows[i].host);
		cr_assert_eq(head.port, rows[i].port, "%zu", i);
		cr_assert_eq(head.connect, rows[i].connect, "%zu", i);
		cr_assert_eq(head.body, rows[i].body, "%zu", i);
		cr_assert_eq(head.size, size);
	}
}

struct bad_head {
	const char *text;
	enum sl_head_fault fault;
};

static void expect_faults(const struct bad_head *rows, size_t count)
{
	struct sl_http_head head;

	for (size_t i = 0; i < count; i++)
		cr_expect_eq(sl_http_parse(rows[i].text, strlen(rows[i].text), &head),
			     rows[i].fault, "%zu: %s", i, rows[i].text);
}

/* Lines, and bytes that are none of them. */
Test(relay_head, bad_lines)
{
	static const struct bad_head rows[] = {
		{ "\r\n\r\n", SL_HEAD_REQUEST_LINE },
		{ GET HOST "A: b\n\r\n", SL_HEAD_LINE_END },
		{ GET HOST "A: b\rC: d\r\n\r\n", SL_HEAD_LINE_END },
		{ GET HOST "A: \x01\r\n\r\n", SL_HEAD_CONTROL_BYTE },
		{ GET HOST "A: \x7f\r\n\r\n", SL_HEAD_CONTROL_BYTE },
		{ GET HOST "A: b\r\n folded\r\n\r\n", SL_HEAD_FIELD },
		{ GET HOST "A: b\r\n\tfolded\r\n\r\n", SL_HEAD_FIELD },
		{ GET HOST "A : b\r\n\r\n", SL_HEAD_FIELD },
		{ GET " A: b\r\n" HOST "\r\n", SL_HEAD_FIELD },
		{ GET HOST "no colon\r\n\r\n", SL_HEAD_FIELD },
		{ GET HOST ": no name\r\n\r\n", SL_HEAD_FIELD },
		{ "GET\r\n\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET http://a.org/\r\n\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET  http://a.org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET http://a.org/ a HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET http://a.org/ http/1.1\r\n" HOST "\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET http://a.org/ HTTP/1.1 \r\n" HOST "\r\n", SL_HEAD_REQUEST_LINE },
		{ "GET http://a.org/ HTTP/2.0\r\n" HOST "\r\n", SL_HEAD_VERSION },
		{ "G(T http://a.org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_METHOD },
		{ "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG http://a.org/ HTTP/1.1\r\n" HOST "\r\n",
		  SL_HEAD_METHOD },
	};
	static const char nul[] = GET HOST "A: \0\r\n\r\n";
	struct sl_http_head head;

	expect_faults(rows, ARRAY_SIZE(rows));
	cr_expect_eq(sl_http_parse(nul, sizeof(nul) - 1, &head), SL_HEAD_CONTROL_BYTE);
}

Test(relay_head, bad_targets)
{
	static const struct bad_head rows[] = {
		{ "GET / HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NOT_ABSOLUTE },
		{ "GET /?u=http://a.org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NOT_ABSOLUTE },
		{ "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NOT_ABSOLUTE },
		{ "GET https://a.org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_SCHEME },
		{ "GET http:/// HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NO_HOST },
		{ "GET http://:80/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NO_HOST },
		{ "GET http://u@a.org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_HOST },
		{ "GET http://a.org/#x HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_TARGET },
		{ "GET http://a..org/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_HOST },
		{ "GET http://a.org:0/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "GET http://a.org:/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "GET http://a.org\x80/ HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_TARGET },
		{ "CONNECT a.org HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NO_PORT },
		{ "CONNECT a.org:65536 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "CONNECT a.org:+1 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "CONNECT a.org:000080 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "CONNECT http://a.org:443 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_PORT },
		{ "CONNECT [::1:443 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_HOST },
		{ "CONNECT [::1]443 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_HOST },
		{ "CONNECT [a.org]:443 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_HOST },
		{ "CONNECT ::1:443 HTTP/1.1\r\n" HOST "\r\n", SL_HEAD_NO_HOST },
	};

	expect_faults(rows, ARRAY_SIZE(rows));
}

/* The Host field, and what would be dropped with the hop. */
Test(relay_head, bad_hosts)
{
	static const struct bad_head rows[] = {
		{ GET "\r\n", SL_HEAD_NO_HOST_FIELD },
		{ GET HOST HOST "\r\n", SL_HEAD_HOST_FIELDS },
		{ GET "Host: b.org\r\n\r\n", SL_HEAD_HOST_CONFLICT },
		{ GET "Host: a.org:81\r\n\r\n", SL_HEAD_HOST_CONFLICT },
		{ GET "Host: a.org, b.org\r\n\r\n", SL_HEAD_HOST_FIELD },
		{ GET "Host:\r\n\r\n", SL_HEAD_HOST_FIELD },
		{ "CONNECT a.org:443 HTTP/1.1\r\nHost: b.org\r\n\r\n", SL_HEAD_HOST_CONFLICT },
		{ GET HOST "Connection: close, Host\r\n\r\n", SL_HEAD_CONNECTION },
		{ GET HOST "Connection: content-length\r\n\r\n", SL_HEAD_CONNECTION },
		{ GET HOST "Connection: a b\r\n\r\n", SL_HEAD_CONNECTION },
	};

	expect_faults(rows, ARRAY_SIZE(rows));
}

/* Where the body ends. */
Test(relay_head, bad_bodies)
{
#define LENGTH(value) "Content-Length:" value "\r\n"
#define CODING(value) "Transfer-Encoding: " value "\r\n"
	static const struct bad_head rows[] = {
		{ GET HOST LENGTH(" 1") LENGTH(" 1") "\r\n", SL_HEAD_LENGTHS },
		{ GET HOST LENGTH(" 1, 1") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH(" +1") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH(" 0x1") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH("") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH(" 9223372036854775808") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH(" 99999999999999999999") "\r\n", SL_HEAD_LENGTH },
		{ GET HOST LENGTH(" 1") CODING("chunked") "\r\n", SL_HEAD_LENGTH_CONFLICT },
		{ GET HOST CODING("chunked") CODING("chunked") "\r\n", SL_HEAD_CODINGS },
		{ GET HOST CODING("gzip, chunked") "\r\n", SL_HEAD_CODING },
		{ GET HOST CODING("xchunked") "\r\n", SL_HEAD_CODING },
		{ GET HOST CODING("chunked") "\r\n", SL_HEAD_CHUNKED },
		{ "POST http://a.org/ HTTP/1.0\r\n" CODING("chunked") "\r\n",
		  SL_HEAD_CODING_PLACE },
		{ "CONNECT a.org:443 HTTP/1.1\r\n" HOST LENGTH(" 4") "\r\n", SL_HEAD_CONNECT_BODY },
		{ "CONNECT a.org:443 HTTP/1.1\r\n" HOST CODING("chunked") "\r\n",
		  SL_HEAD_CODING_PLACE },
	};

	expect_faults(rows, ARRAY_SIZE(rows));
}

/* Who is told one of them can tell it from all others. */
Test(relay_head, faults_have_texts)
{
	for (int i = SL_HEAD_GOOD + 1; i < SL_HEAD_FAULT_MAX; i++) {
		const struct sl_head_fault_text *text = &sl_head_faults[i];

		cr_expect(text->status >= 400 && text->status < 600, "%d", i);
		cr_expect_geq(strlen(text->text), 10, "%d", i);
		cr_expect_eq(strspn(text->word, "abcdefghijklmnopqrstuvwxyz0123456789-"),
			     strlen(text->word), "%s", text->word);
		for (int j = SL_HEAD_GOOD + 1; j < i; j++)
			cr_expect_str_neq(text->word, sl_head_faults[j].word);
	}
}

Test(relay_head, rewritten)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ GET HOST "A: b\r\n\r\n",
		  "GET / HTTP/1.1\r\nHost: a.org\r\nA: b\r\nConnection: close\r\n\r\n" },
		{ "POST http://A.org:81?x=/ HTTP/1.0\r\nContent-Length: 3\r\n\r\n",
		  "POST /?x=/ HTTP/1.0\r\nHost: a.org:81\r\nContent-Length: 3\r\n"
		  "Connection: close\r\n\r\n" },
		{ "GET http://[::1]:81/p HTTP/1.1\r\nHost: [::1]:81\r\n\r\n",
		  "GET /p HTTP/1.1\r\nHost: [::1]:81\r\nConnection: close\r\n\r\n" },
		{ GET HOST "Proxy-Authorization: secret\r\nProxy-Connection: keep-alive\r\n"
			   "TE: trailers\r\nUpgrade: x\r\nX-Hop: 1\r\nkeep-alive: 5\r\n"
			   "connection: X-HOP , keep-alive\r\nX-Hops: 2\r\n\r\n",
		  "GET / HTTP/1.1\r\nHost: a.org\r\nX-Hops: 2\r\nConnection: close\r\n\r\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[1024];
		struct sl_http_head head;
		size_t n;

		cr_assert_eq(sl_http_parse(rows[i].from, strlen(rows[i].from), &head), 0);
		n = sl_http_rewrite(out, rows[i].from, &head);
		cr_assert_leq(n, SL_HTTP_REWRITE_MAX(head.size));
		out[n] = '\0';
		cr_assert_str_eq(out, rows[i].to);
	}
}

Test(relay_head, hosts)
{
	static const char *const good[] = { "a", "A-b_c.d.", "1.2.3.4", "xn--a.b" };
	static const char *const bad[] = { "",    ".",   "a..b",  ".a",       "a/b", "a b",
					   "a%b", "a:b", "[::1]", "\xc3\xa4", "a\\" };
	char host[SL_RELAY_HOST_MAX], label[300];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		cr_assert_eq(sl_head_host(host, good[i], strlen(good[i]), false), 0, "%s", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(sl_head_host(host, bad[i], strlen(bad[i]), false), -EINVAL, "%s",
			     bad[i]);
	memset(label, 'a', sizeof(label));
	cr_assert_eq(sl_head_host(host, label, 63, false), 0);
	cr_assert_eq(sl_head_host(host, label, 64, false), -EINVAL);
	for (size_t i = 50; i < sizeof(label); i += 50)
		label[i] = '.';
	cr_assert_eq(sl_head_host(host, label, 253, false), 0);
	cr_assert_eq(sl_head_host(host, label, 254, false), -EINVAL);
}

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

Test(relay_head, socks)
{
	struct sl_socks_head head;
	size_t size = 0;

	cr_assert_eq(sl_socks_greeting(BYTES("\x05"), &size), -EAGAIN);
	cr_assert_eq(sl_socks_greeting(BYTES("\x05\x02\x02"), &size), -EAGAIN);
	cr_assert_eq(sl_socks_greeting(BYTES("\x05\x02\x02\x00rest"), &size), 0);
	cr_assert_eq(size, 4);
	cr_assert_eq(sl_socks_greeting(BYTES("\x05\x01\x02"), &size), SL_HEAD_SOCKS_METHOD);
	cr_assert_eq(sl_socks_greeting(BYTES("\x05\x00"), &size), SL_HEAD_SOCKS_METHOD);
	cr_assert_eq(sl_socks_greeting(BYTES("\x04\x01"), &size), SL_HEAD_SOCKS_VERSION);

	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb"), &head), 0);
	cr_assert_str_eq(head.host, "192.0.2.1");
	cr_assert_eq(head.port, 443);
	cr_assert_eq(head.size, 10);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x03\x05"
					    "A.org\x00\x50rest"),
				      &head),
		     0);
	cr_assert_str_eq(head.host, "a.org");
	cr_assert_eq(head.port, 80);
	cr_assert_eq(head.size, 12);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
					    "\x01\x00\x50"),
				      &head),
		     0);
	cr_assert_str_eq(head.host, "2001:db8::1");
}

Test(relay_head, bad_socks)
{
	static const uint8_t whole[] = "\x05\x01\x00\x03\x05"
				       "a.org\x00\x50";
	struct sl_socks_head head;

	for (size_t n = 0; n < sizeof(whole) - 1; n++)
		cr_assert_eq(sl_socks_request(whole, n, &head), -EAGAIN, "%zu", n);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x02\x00\x01"), &head), SL_HEAD_SOCKS_COMMAND);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x03\x00\x01"), &head), SL_HEAD_SOCKS_COMMAND);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x02"), &head), SL_HEAD_SOCKS_ADDRESS);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x01\x01"), &head), SL_HEAD_SOCKS_REQUEST);
	cr_assert_eq(sl_socks_request(BYTES("\x04\x01"), &head), SL_HEAD_SOCKS_REQUEST);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x03\x00\x00\x50"), &head),
		     SL_HEAD_SOCKS_HOST);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x03\x03"
					    "a\0b\x00\x50"),
				      &head),
		     SL_HEAD_SOCKS_HOST);
	cr_assert_eq(sl_socks_request(BYTES("\x05\x01\x00\x01\x7f\0\0\x01\x00\x00"), &head),
		     SL_HEAD_SOCKS_PORT);
}
