/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* B1 to B5, B11, B12: each way to a destination is decided like connect() and sendto(). */
#include <criterion/criterion.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/guarded.h"

TestSuite(bypass_ways, .init = guarded_up, .fini = guarded_down, .timeout = 60);

/* B11 as well: the denied receivers differ by the port or by the address alone. */
Test(bypass_ways, connect)
{
	guarded_expect(false, 1, "tcp-send");
	guarded_expect(false, 1, "tcp-send --connect nonblock");
	guarded_expect(false, 1, "tcp-send --mapped");
	guarded_expect(true, 1, "udp-send --connected");
	guarded_expect(true, 1, "udp-send --connected --mapped");
	guarded_expect(true, 1, "udp-send --connected --v4-on-v6");
	guarded_expect_v6("tcp-send --v6");
}

/* B1 */
Test(bypass_ways, fastopen)
{
	guarded_expect(false, 1, "tcp-send --via fastopen");
	guarded_expect(false, 1, "tcp-send --via fastopen-sendmsg");
	guarded_expect(false, 1, "tcp-send --via fastopen-connect");
	guarded_expect(false, 1, "tcp-send --via fastopen --mapped");
	guarded_expect_v6("tcp-send --via fastopen --v6");
}

/* B2: no filter here, so that io_uring works */
static void uring(const char *mode)
{
	static const char *const ways[][2] = {
		{ "socket=tcp", "uring-connect" },
		{ "uring-socket=2.1.0", "connect" },
		{ "uring-socket=2.1.0", "uring-connect" },
	};
	char words[128];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		snprintf(words, sizeof(words), "--uring %s %s", mode, ways[i][0]);
		guarded_expect_do(false, words, ways[i][1]);
	}
	snprintf(words, sizeof(words), "--uring %s socket=udp", mode);
	guarded_expect_do(true, words, "uring-sendto");
}

Test(bypass_ways, uring_inline)
{
	uring("inline");
}

Test(bypass_ways, uring_async)
{
	uring("async");
}

Test(bypass_ways, uring_sqpoll)
{
	uring("sqpoll");
}

/* B3 */
Test(bypass_ways, int80)
{
	guarded_expect_do(false, "int80-socket=tcp", "int80-connect");
	guarded_expect_do(false, "socket=tcp", "int80-connect");
	guarded_expect_do(false, "socket=tcp", "socketcall-connect");
	guarded_expect_do(true, "socket=udp", "int80-sendto");
}

Test(bypass_ways, x32)
{
	char words[128];
	struct load load;
	bool has;

	snprintf(words, sizeof(words), "do socket=tcp x32-connect=%s", guarded.open.text);
	load_run(&load, OUTSIDE, "%s", words);
	has = !strcmp(did_errno(&load, "x32-connect", 0), "0");
	load_free(&load);
	if (!has)
		cr_skip_test("this kernel has no x32 entry");
	sink_take(&guarded.open);
	guarded_expect_do(false, "socket=tcp", "x32-connect");
}

/* B4 */
Test(bypass_ways, mptcp)
{
	guarded_expect(false, 1, "tcp-send --mptcp");
	guarded_expect(false, 1, "tcp-send --mptcp --via fastopen");
}

/* B5 */
Test(bypass_ways, datagrams)
{
	static const char *const ways[] = {
		"sendto", "send", "sendmsg", "sendmmsg", "gso", "splice", "sendfile", "uring",
	};
	char words[64];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		snprintf(words, sizeof(words), "udp-send --count 3 --via %s", ways[i]);
		guarded_expect(true, 3, words);
	}
	guarded_expect(true, 1, "udp-send --mapped");
	guarded_expect(true, 1, "udp-send --v4-on-v6");
	guarded_expect(true, 1, "udp-send --via sendmsg --v4-on-v6");
}

/* B5: sendmmsg() stops at the one that is denied, and says how many went out. */
Test(bypass_ways, sendmmsg_stops)
{
	struct load load;
	const char *line;

	load_start(&load, INSIDE, "udp-send --via sendmmsg --count 5 --server %s --server %s",
		   guarded.open_udp.text, guarded.shut_udp[OTHER_PORT].text);
	cr_expect_eq(load_end(&load), 1);
	line = fact_next(&load, NULL, "sock");
	cr_expect_eq(fact_u64(line, "datagrams"), 1);
	cr_expect_str_eq(last_errno(&load, "sock"), "EACCES");
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	cr_expect_eq(guarded_leaks(), 0);
	load_free(&load);
}

/* B12 */
Test(bypass_ways, control_message_without_name)
{
	guarded_expect(true, 3, "udp-send --connected --cmsg --via sendmsg --count 3");
	guarded_expect(true, 3, "udp-send --connected --cmsg --via sendmmsg --count 3");
	guarded_expect(true, 1, "udp-send --connected --cmsg --via sendmsg --mapped");
	guarded_expect(true, 3, "udp-send --cmsg --via sendmsg --count 3");
}
