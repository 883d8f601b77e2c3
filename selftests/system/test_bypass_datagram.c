/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a member's UDP socket receives: answers, what a `listen` entry lets in, and its own
 * sandbox's datagrams. The member says what it got; what was dropped is counted.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/scale.h"

TestSuite(bypass_datagram, .init = guarded_up, .fini = guarded_down, .timeout = 100);

/* A member with a UDP socket: its `sl-load do`, the socket's port. */
struct receiver {
	struct load load;
	unsigned int port;
	unsigned int asked; /* verbs `drain` so far */
};

static void receiver_start(struct receiver *r, const char *kind, const char *bind)
{
	*r = (struct receiver){ 0 };
	load_start(&r->load, INSIDE, "do --until-eof socket=%s bind=%s port", kind, bind);
	load_await(&r->load, "did", 3);
	cr_assert_str_eq(did_errno(&r->load, "bind", 0), "0");
	r->port = (unsigned int)fact_u64(did_line(&r->load, "port", 0), "result");
}

/* Waits for one datagram, and takes it. */
static void receiver_await(struct receiver *r)
{
	do_more(&r->load, "await-end");
}

/* How many wait there now. */
static unsigned int receiver_drain(struct receiver *r)
{
	do_more(&r->load, "drain");
	return (unsigned int)fact_u64(did_line(&r->load, "drain", r->asked++), "result");
}

static void receiver_end(struct receiver *r)
{
	cr_expect_eq(load_end(&r->load), 0);
	load_free(&r->load);
}

/* From a socket of the test's, which is outside, to a port on loopback. */
static void send_from(const struct sink *from, unsigned int port)
{
	const struct sockaddr_in in = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
					  .sin6_port = htons((uint16_t)port),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	bool v6 = from->addr.ss_family == AF_INET6;

	cr_assert_eq(sendto(from->fd, "x", 1, 0,
			    v6 ? (const struct sockaddr *)&in6 : (const struct sockaddr *)&in,
			    v6 ? sizeof(in6) : sizeof(in)),
		     1);
}

static bool dropped_are(void *arg)
{
	return counter(SL_COUNTER_UNSOLICITED) == *(unsigned int *)arg;
}

/* Fails unless so many datagrams were dropped, all in all, and none waits for `r`. */
static void expect_dropped(struct receiver *r, unsigned int n)
{
	cr_expect(eventually(dropped_are, &n), "%llu dropped, not %u",
		  (unsigned long long)counter(SL_COUNTER_UNSOLICITED), n);
	cr_expect_eq(receiver_drain(r), 0, "what nobody asked for has arrived");
}

Test(bypass_datagram, unsolicited)
{
	struct receiver r;
	struct sink v6;

	receiver_start(&r, "udp", "0.0.0.0:0");
	for (int i = 0; i < 3; i++)
		send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	expect_dropped(&r, 3);
	cr_expect_eq(counters().denied[SL_REASON_LISTEN], 3);
	receiver_end(&r);
	/* One that was never bound gets its port with the first datagram it sends. */
	load_start(&r.load, INSIDE, "do --until-eof socket=udp sendto=%s port",
		   guarded.open_udp.text);
	load_await(&r.load, "did", 3);
	r.port = (unsigned int)fact_u64(did_line(&r.load, "port", 0), "result");
	r.asked = 0;
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	expect_dropped(&r, 4);
	receiver_end(&r);
	sink_open(&v6, true, "::1", 0);
	receiver_start(&r, "udp6", "[::]:0");
	send_from(&v6, r.port);
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	expect_dropped(&r, 6);
	receiver_end(&r);
	close(v6.fd);
}

Test(bypass_datagram, audit_drops_nothing)
{
	struct receiver r;

	guarded_mode(SL_GUARD_AUDIT);
	guarded_load_more("");
	receiver_start(&r, "udp", "0.0.0.0:0");
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	receiver_await(&r);
	expect_dropped(&r, 0);
	cr_expect_eq(counter(SL_COUNTER_AUDITED), 1);
	receiver_end(&r);
}

/* The address and the port that was asked may answer, and nothing that differs in one. */
Test(bypass_datagram, answers)
{
	struct receiver r;
	struct load load;

	receiver_start(&r, "udp", "0.0.0.0:0");
	do_more(&r.load, "sendto=%s", guarded.open_udp.text);
	for (int i = 0; i < SHUT_MAX; i++)
		send_from(&guarded.shut_udp[i], r.port);
	expect_dropped(&r, SHUT_MAX);
	send_from(&guarded.open_udp, r.port);
	receiver_await(&r);
	/* What was denied is no question. */
	do_more(&r.load, "sendto=%s", guarded.shut_udp[OTHER_PORT].text);
	cr_expect_str_eq(did_errno(&r.load, "sendto", 1), "EACCES");
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	expect_dropped(&r, SHUT_MAX + 1);
	receiver_end(&r);
	/* Connected, and after that a late answer. */
	load_start(&load, INSIDE, "do --until-eof socket=udp connect=%s send port",
		   guarded.open_udp.text);
	load_await(&load, "did", 4);
	r.port = (unsigned int)fact_u64(did_line(&load, "port", 0), "result");
	send_from(&guarded.open_udp, r.port);
	do_more(&load, "await-end");
	do_more(&load, "disconnect");
	do_more(&load, "bind=0.0.0.0:%u", r.port);
	send_from(&guarded.open_udp, r.port);
	do_more(&load, "await-end");
	cr_expect_str_eq(did_errno(&load, "await-end", 1), "0");
	cr_expect_eq(load_end(&load), 0);
	load_free(&load);
	cr_expect_eq(counter(SL_COUNTER_UNSOLICITED), SHUT_MAX + 1);
	cr_expect_eq(sink_take(&guarded.open_udp), 2);
	cr_expect_eq(guarded_leaks(), 0);
}

/* The error that nobody serves the port is no datagram. */
Test(bypass_datagram, icmp_errors)
{
	struct sink closed;
	struct load load;
	char more[256];

	sink_open(&closed, true, "127.0.0.1", 0);
	close(closed.fd);
	snprintf(more, sizeof(more),
		 "  closed:\n"
		 "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, transport: udp, "
		 "allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 closed.port, getenv("SL_LOAD"));
	guarded_load_more(more);
	load_run(&load, INSIDE, "do socket=udp connect=%s send await-end", closed.text);
	cr_expect_str_eq(did_errno(&load, "send", 0), "0");
	cr_expect_str_eq(did_errno(&load, "await-end", 0), "ECONNREFUSED");
	load_free(&load);
}

/* A wider network that the member may ask, and its first address as a receiver. */
static void many_up(struct sink *first)
{
	char more[256];

	sink_open(first, true, "127.1.0.1", 0);
	snprintf(more, sizeof(more),
		 "  many:\n"
		 "    endpoints: [{ cidr: 127.1.0.0/16, port: %u, transport: udp, "
		 "allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 first->port, getenv("SL_LOAD"));
	guarded_load_more(more);
}

static void ask(struct receiver *r, unsigned int first, unsigned int last, unsigned int port)
{
	for (unsigned int i = first; i <= last; i++)
		do_more(&r->load, "sendto=127.1.%u.%u:%u", i >> 8, i & 255, port);
}

/* More than a record holds: all may answer. */
#define MANY 12

Test(bypass_datagram, many_answers)
{
	struct sink sinks[MANY + 1];
	struct receiver r;
	char addr[32];

	many_up(&sinks[1]);
	for (unsigned int i = 2; i <= MANY; i++) {
		snprintf(addr, sizeof(addr), "127.1.0.%u", i);
		sink_open(&sinks[i], true, addr, sinks[1].port);
	}
	receiver_start(&r, "udp", "0.0.0.0:0");
	for (int round = 0; round < 2; round++) {
		ask(&r, 1, MANY - 1, sinks[1].port);
		for (unsigned int i = 1; i < MANY; i++) {
			send_from(&sinks[i], r.port);
			receiver_await(&r);
		}
	}
	send_from(&sinks[MANY], r.port);
	expect_dropped(&r, 1);
	receiver_end(&r);
	for (unsigned int i = 1; i <= MANY; i++)
		close(sinks[i].fd);
}

/* A map that is full forgets who was asked, which lets nobody in, until it is asked again. */
#define PEERS_MAX 64
#define PEERS_ASKED 400

static void few_peers(void)
{
	const struct sl_set_options options = { .max_socks = PEERS_MAX };

	guarded_make(&options);
}

Test(bypass_datagram_full, earlier_ends_are_forgotten, .init = few_peers, .fini = guarded_down,
     .timeout = 100)
{
	struct sink first;
	struct receiver r;

	many_up(&first);
	receiver_start(&r, "udp", "0.0.0.0:0");
	ask(&r, 1, PEERS_ASKED, first.port);
	cr_expect_leq(map_rows(SL_MAP_PEERS), PEERS_MAX);
	send_from(&first, r.port);
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	expect_dropped(&r, 2);
	ask(&r, 1, 1, first.port);
	send_from(&first, r.port);
	receiver_await(&r);
	expect_dropped(&r, 2);
	receiver_end(&r);
	expect_no_faults();
	close(first.fd);
}

/* As for TCP: what is bound to loopback serves the host, unless it may not be reached. */
Test(bypass_datagram, bound_to_loopback)
{
	struct receiver r;

	receiver_start(&r, "udp", "127.0.0.1:0");
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	receiver_await(&r);
	expect_dropped(&r, 0);
	receiver_end(&r);
}

/* Members among themselves, and their answers, with no rule at all for these ports. */
static void own(const char *kind, const char *any, const char *loopback)
{
	struct receiver server, client;
	char to[64];

	receiver_start(&server, kind, any);
	snprintf(to, sizeof(to), "%s:%u", loopback, server.port);
	load_run(&client.load, INSIDE, "do socket=%s sendto=%s", kind, to);
	cr_expect_str_eq(did_errno(&client.load, "sendto", 0), "0", "to %s", to);
	load_free(&client.load);
	receiver_await(&server);
	/* Answered, when the client is connected and when it is not. */
	receiver_start(&client, kind, any);
	for (int i = 0; i < 2; i++) {
		do_more(&client.load, "%s=%s", i ? "connect" : "sendto", to);
		if (i)
			do_more(&client.load, "send");
		receiver_await(&server);
		do_more(&server.load, "sendto=%s:%u", loopback, client.port);
		cr_expect_str_eq(did_errno(&server.load, "sendto", (unsigned int)i), "0");
		receiver_await(&client);
	}
	receiver_end(&client);
	receiver_end(&server);
	cr_expect_eq(counter(SL_COUNTER_UNSOLICITED), 0);
	cr_expect_eq(counter(SL_COUNTER_DENIED), 0);
}

Test(bypass_datagram, own_loopback)
{
	own("udp", "0.0.0.0:0", "127.0.0.1");
	own("udp6", "[::]:0", "[::1]");
}

/* Somebody else's socket there is not the sandbox's own, whatever its port was before. */
Test(bypass_datagram, loopback_of_others)
{
	struct load load;

	load_run(&load, INSIDE, "do socket=udp sendto=%s connect=%s",
		 guarded.shut_udp[OTHER_PORT].text, guarded.shut_udp[OTHER_PORT].text);
	cr_expect_str_eq(did_errno(&load, "sendto", 0), "EACCES");
	cr_expect_str_eq(did_errno(&load, "connect", 0), "EACCES");
	load_free(&load);
	cr_expect_eq(guarded_leaks(), 0);
}

/* Senders that are gone at once: their datagrams arrive as a socket's that is there do. */
#define SENDERS 50

Test(bypass_datagram, own_loopback_of_senders_that_exit)
{
	struct load server;
	unsigned int port =
		server_start_at(&server, INSIDE, "udp-server --count 1000000", "0.0.0.0:0");
	struct load client;

	for (int i = 0; i < SCALED(SENDERS); i++) {
		load_run(&client, INSIDE, "udp-send --server 127.0.0.1:%u --exit-at-once", port);
		load_free(&client);
	}
	cr_expect_eq(load_end(&server), 0);
	cr_expect_eq(fact_u64(fact_next(&server, NULL, "total"), "datagrams"), SCALED(SENDERS));
	load_free(&server);
}

/* An entry lets in what comes for its port and transport, to its binary. */
static void listener(const char *entry, const char *binary, bool open, unsigned int dropped)
{
	struct receiver r;
	struct sink other;
	char more[PATH_MAX + 256];

	/* A port that is free, so that the policy can name it. */
	sink_open(&other, true, "127.0.0.1", 0);
	close(other.fd);
	snprintf(more, sizeof(more),
		 "  served:\n    listen: [{ port: %u%s }]\n    binaries: [{ path: %s }]\n",
		 other.port, entry, binary);
	guarded_load_more(more);
	snprintf(more, sizeof(more), "0.0.0.0:%u", other.port);
	receiver_start(&r, "udp", more);
	send_from(&guarded.shut_udp[OTHER_PORT], r.port);
	if (open)
		receiver_await(&r);
	expect_dropped(&r, dropped);
	receiver_end(&r);
}

Test(bypass_datagram, listen_entries)
{
	listener(", transport: udp", getenv("SL_LOAD"), true, 0);
	listener("", getenv("SL_LOAD"), false, 1);
	listener(", transport: udp", "/usr/bin/true", false, 2);
}
