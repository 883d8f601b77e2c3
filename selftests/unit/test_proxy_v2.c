/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The head of the PROXY protocol, read back as its specification says. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "relay/proxy_v2.h"
#include "relay/relay.h"

static const uint8_t signature[] = "\r\n\r\n\0\r\nQUIT\n";

struct value {
	const uint8_t *data; /* NULL: not there */
	size_t size;
};

/* Values by type; checks everything around them. */
static void decode(const uint8_t *head, size_t size, uint8_t family, struct value values[256])
{
	static const size_t ends[] = { [0x00] = 0, [0x11] = 12, [0x21] = 36 };
	size_t at = 16 + ends[family];

	memset(values, 0, 256 * sizeof(values[0]));
	cr_assert_geq(size, 16);
	cr_assert_arr_eq(head, signature, 12);
	cr_assert_eq(head[12], 0x21);
	cr_assert_eq(head[13], family);
	cr_assert_eq((size_t)head[14] << 8 | head[15], size - 16);
	while (at < size) {
		struct value *value = &values[head[at]];

		cr_assert_leq(at + 3, size);
		cr_assert_null(value->data);
		value->size = (size_t)head[at + 1] << 8 | head[at + 2];
		value->data = head + at + 3;
		at += 3 + value->size;
	}
	cr_assert_eq(at, size);
}

static bool is_text(struct value value, const char *text)
{
	return value.data && value.size == strlen(text) && !memcmp(value.data, text, value.size);
}

static void set_v4(struct sockaddr_storage *addr, const char *text, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)addr;

	v4->sin_family = AF_INET;
	v4->sin_port = htons(port);
	inet_pton(AF_INET, text, &v4->sin_addr);
}

static void set_v6(struct sockaddr_storage *addr, const char *text, uint16_t port)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)addr;

	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	inet_pton(AF_INET6, text, &v6->sin6_addr);
}

Test(proxy_v2, all_values)
{
	struct sl_proxy_v2 what = { .authority = "a.example",
				    .sandbox = "box",
				    .pid = 4711,
				    .start_ns = 0x0102030405060708,
				    .lineage_id = 9,
				    .exe = "/usr/bin/curl",
				    .lineage = "/usr/bin/bash\n/usr/sbin/init" };
	static const uint8_t ends[] = { 192, 0, 2, 1, 198, 51, 100, 7, 0x9c, 0x40, 0x01, 0xbb };
	uint8_t head[SL_PROXY_V2_MAX];
	struct value values[256];
	int n;

	set_v4(&what.source, "192.0.2.1", 40000);
	set_v4(&what.destination, "198.51.100.7", 443);
	n = sl_proxy_v2_encode(head, sizeof(head), &what);
	cr_assert_gt(n, 0);
	decode(head, (size_t)n, 0x11, values);
	cr_assert_arr_eq(head + 16, ends, sizeof(ends));
	cr_assert(is_text(values[0x02], "a.example"));
	cr_assert(is_text(values[0x05], "box:4711:72623859790382856:9"));
	cr_assert(is_text(values[0xe0], "box"));
	cr_assert_eq(values[0xe1].size, 4);
	cr_assert_arr_eq(values[0xe1].data, ((uint8_t[]){ 0, 0, 0x12, 0x67 }), 4);
	cr_assert_eq(values[0xe2].size, 8);
	cr_assert_arr_eq(values[0xe2].data, ((uint8_t[]){ 1, 2, 3, 4, 5, 6, 7, 8 }), 8);
	cr_assert(is_text(values[0xe3], "/usr/bin/curl"));
	cr_assert(is_text(values[0xe4], "/usr/bin/bash\n/usr/sbin/init"));
	for (int size = 0; size < n; size++)
		cr_assert_eq(sl_proxy_v2_encode(head, (size_t)size, &what), -ENOSPC);
}

Test(proxy_v2, v6_and_nothing_else)
{
	struct sl_proxy_v2 what = { 0 };
	uint8_t head[SL_PROXY_V2_MAX];
	struct value values[256];

	set_v6(&what.source, "2001:db8::1", 1);
	set_v6(&what.destination, "2001:db8::2", 2);
	cr_assert_eq(sl_proxy_v2_encode(head, sizeof(head), &what), 16 + 36);
	decode(head, 16 + 36, 0x21, values);
	cr_assert_arr_eq(head + 48, ((uint8_t[]){ 0, 1, 0, 2 }), 4);
	/* Two families have no common form: the values are told all the same. */
	set_v4(&what.source, "192.0.2.1", 1);
	what.authority = "a";
	cr_assert_eq(sl_proxy_v2_encode(head, sizeof(head), &what), 16 + 4);
	decode(head, 16 + 4, 0x00, values);
	cr_assert(is_text(values[0x02], "a"));
}

/* At its bound a text is told, beyond it is not, and the largest head fits a target's. */
Test(proxy_v2, bounds)
{
	static char exe[SL_PROXY_V2_EXE_MAX + 2], lineage[SL_PROXY_V2_LINEAGE_MAX + 2];
	static char sandbox[SL_PROXY_V2_SANDBOX_MAX + 2], authority[SL_PROXY_V2_AUTHORITY_MAX + 2];
	struct sl_proxy_v2 what = {
		.authority = authority, .sandbox = sandbox, .pid = 1, .exe = exe, .lineage = lineage
	};
	uint8_t head[SL_PROXY_V2_MAX];
	struct value values[256];
	int n;

	memset(exe, 'x', SL_PROXY_V2_EXE_MAX);
	memset(lineage, 'x', SL_PROXY_V2_LINEAGE_MAX);
	memset(sandbox, 'x', SL_PROXY_V2_SANDBOX_MAX);
	memset(authority, 'x', SL_PROXY_V2_AUTHORITY_MAX);
	set_v6(&what.source, "::1", 1);
	set_v6(&what.destination, "::1", 2);
	n = sl_proxy_v2_encode(head, sizeof(head), &what);
	cr_assert_gt(n, 0);
	decode(head, (size_t)n, 0x21, values);
	cr_assert(is_text(values[0xe3], exe));
	cr_assert(is_text(values[0xe4], lineage));
	cr_assert(is_text(values[0xe0], sandbox));
	cr_assert(is_text(values[0x02], authority));
	cr_assert_null(values[0x05].data, "an id that was cut is another's");
	cr_assert_leq(SL_PROXY_V2_MAX, SL_RELAY_FIRST_MAX);

	exe[SL_PROXY_V2_EXE_MAX] = lineage[SL_PROXY_V2_LINEAGE_MAX] = 'x';
	sandbox[SL_PROXY_V2_SANDBOX_MAX] = authority[SL_PROXY_V2_AUTHORITY_MAX] = 'x';
	n = sl_proxy_v2_encode(head, sizeof(head), &what);
	decode(head, (size_t)n, 0x21, values);
	cr_assert_null(values[0xe3].data);
	cr_assert_null(values[0xe4].data);
	cr_assert_null(values[0xe0].data);
	cr_assert_null(values[0x02].data);
	cr_assert_not_null(values[0xe1].data);
}
