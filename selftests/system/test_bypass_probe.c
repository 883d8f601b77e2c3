/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * O8: a UDP socket that is connected to where only TCP may go, as getaddrinfo() does to sort
 * addresses. That is no denial; what such a socket then sends is one.
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/cgroup.h"
#include "system/guarded.h"

static struct sink probed, probed_v6; /* UDP, on ports that TCP may reach */

static void up(void)
{
	guarded_up();
	sink_open(&probed, true, "127.0.0.1", guarded.open.port);
	sink_open(&probed_v6, true, "::1", guarded.open_v6.port);
}

TestSuite(bypass_probe, .init = up, .fini = guarded_down, .timeout = 60);

static int add_count(const struct sl_decision_key *key, const struct sl_decision_row *row,
		     void *arg)
{
	(void)key;
	*(uint64_t *)arg += row->count;
	return 0;
}

static uint64_t decisions(void)
{
	uint64_t n = 0;

	cr_assert_eq(sl_decisions_each(world.set, world.sandbox, add_count, &n), 0);
	return n;
}

static void run(struct load *load, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void run(struct load *load, const char *fmt, ...)
{
	char words[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words, sizeof(words), fmt, ap);
	va_end(ap);
	load_run(load, INSIDE, "do %s", words);
}

static void expect_nothing_sent(void)
{
	cr_expect_eq(sink_take(&probed) + sink_take(&probed_v6), 0);
	cr_expect_eq(guarded_leaks(), 0);
}

/* What getaddrinfo() does: one socket, one address after the other, with a port or none. */
Test(bypass_probe, connecting_is_no_denial)
{
	struct load load;

	run(&load, "socket=udp connect=%s disconnect connect=127.0.0.2:0 socket=udp6 connect=%s",
	    probed.text, probed_v6.text);
	for (unsigned int i = 0; i < 3; i++)
		cr_expect_str_eq(did_errno(&load, "connect", i), "0");
	load_free(&load);
	cr_expect_eq(decisions(), 0);
	expect_nothing_sent();
}

Test(bypass_probe, sending_is)
{
	const char *const to[] = { probed.text, probed_v6.text, "127.0.0.1:0" };
	char mapped[64];
	struct load load;

	for (unsigned int i = 0; i < 3; i++) {
		run(&load, "socket=%s connect=%s send send", i == 1 ? "udp6" : "udp", to[i]);
		cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
		cr_expect_str_eq(did_errno(&load, "send", 0), "EPERM", "to %s", to[i]);
		cr_expect_str_eq(did_errno(&load, "send", 1), "EPERM", "to %s", to[i]);
		load_free(&load);
		cr_expect_eq(decisions(), 2 * (i + 1));
	}
	/* IPv6 hands these on with the peer as their name: the hook of messages sees them. */
	snprintf(mapped, sizeof(mapped), "[::ffff:127.0.0.1]:%u", probed.port);
	run(&load, "socket=udp6 connect=%s send", mapped);
	cr_expect_str_eq(did_errno(&load, "send", 0), "EACCES");
	load_free(&load);
	cr_expect_eq(decisions(), 7);
	expect_nothing_sent();
}

/* The same socket goes on to what is allowed, and back. */
Test(bypass_probe, each_datagram_by_its_own_destination)
{
	struct load load;

	run(&load, "socket=udp connect=%s sendto=%s connect=%s send connect=%s send", probed.text,
	    guarded.open_udp.text, guarded.open_udp.text, probed.text);
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "0");
	cr_expect_str_eq(did_errno(&load, "send", 0), "0");
	cr_expect_str_eq(did_errno(&load, "send", 1), "EPERM");
	load_free(&load);
	cr_expect_eq(sink_take(&guarded.open_udp), 2);
	expect_nothing_sent();
}

/* A connect() that is allowed and then fails leaves the peer of the one before. */
Test(bypass_probe, the_peer_of_a_failed_connect)
{
	char more[256];
	struct load load;

	snprintf(more, sizeof(more),
		 "  nowhere:\n"
		 "    endpoints: [{ cidr: 192.0.2.1/32, port: 9, transport: udp }]\n"
		 "    binaries: [{ path: %s }]\n",
		 getenv("SL_LOAD"));
	guarded_load_more(more);
	run(&load, "socket=udp connect=%s connect=192.0.2.1:9 send", probed.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "connect", 1), "ENETUNREACH");
	cr_expect_str_eq(did_errno(&load, "send", 0), "EPERM");
	load_free(&load);
	expect_nothing_sent();
}

/* A policy that comes later allows it, and one after that takes it back. */
Test(bypass_probe, reload)
{
	struct load load;
	char more[256];

	snprintf(more, sizeof(more),
		 "  also:\n"
		 "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, transport: udp, "
		 "allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 probed.port, getenv("SL_LOAD"));
	load_start(&load, INSIDE, "do --until-eof socket=udp connect=%s send", probed.text);
	load_await(&load, "did", 3);
	guarded_load_more(more);
	cr_assert_eq(write(load.in, "send\n", 5), 5);
	load_await(&load, "did", 4);
	guarded_load_more("");
	cr_assert_eq(write(load.in, "send\n", 5), 5);
	cr_expect_eq(load_end(&load), 0);
	cr_expect_str_eq(did_errno(&load, "send", 0), "EPERM");
	cr_expect_str_eq(did_errno(&load, "send", 1), "0");
	cr_expect_str_eq(did_errno(&load, "send", 2), "EPERM");
	load_free(&load);
	cr_expect_eq(sink_take(&probed), 1);
}

/* Where no guard sees the packets, the connect() is refused: a socket made outside. */
Test(bypass_probe, socket_of_another_cgroup)
{
	char cgroup[64];
	struct load load;

	cr_assert_eq(sl_cgroup_mount(cgroup, sizeof(cgroup), NULL), 0);
	run(&load, "cgroup=%s socket=udp connect=%s send", cgroup, probed.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES");
	load_free(&load);
	run(&load, "socket=udp cgroup=%s connect=%s send", cgroup, probed.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	cr_expect_str_eq(did_errno(&load, "send", 0), "EPERM");
	load_free(&load);
	expect_nothing_sent();
}

/* A sandbox that only observes has hooks, but no guard on packets. */
Test(bypass_probe, socket_of_another_sandbox)
{
	struct sl_err err = { 0 };
	char cgroup[PATH_MAX];
	unsigned int other;
	struct load load;

	snprintf(cgroup, sizeof(cgroup), "%.*s-other", PATH_MAX - 8, world.cgroup);
	cr_assert_eq(sl_cgroup_create(cgroup, &err), 0, "%s", err.text);
	cr_assert_eq(sl_sandbox_attach(world.set, cgroup, "other", &other, &err), 0, "%s",
		     err.text);
	run(&load, "cgroup=%s socket=udp connect=%s send", cgroup, probed.text);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES");
	load_free(&load);
	expect_nothing_sent();
	cr_assert_eq(sl_sandbox_detach(world.set, other, &err), 0, "%s", err.text);
	cr_assert_eq(sl_cgroup_destroy(cgroup, 5000), 0);
}
