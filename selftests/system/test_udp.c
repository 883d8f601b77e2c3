/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UDP, raw, ping and packet sockets: peers, probes, bytes. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "system/expect.h"

TestSuite(udp, .init = world_up, .fini = world_down, .timeout = 60);

static struct sl_sock recorded(const struct load *load)
{
	const char *line = fact_next(load, NULL, "sock");
	struct sl_sock sock;

	cr_assert_not_null(line);
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.bytes_sent, fact_u64(line, "sent"), "sent %llu: %.500s",
		     (unsigned long long)sock.bytes_sent, line);
	return sock;
}

static void expect_remote(const struct sl_sock *sock, unsigned int port)
{
	cr_expect_eq(ntohs(sock->remote.port_be), port);
	cr_expect_eq(sock->remote.addr_be[2], htonl(0xffff));
	cr_expect_eq(sock->remote.addr_be[3], htonl(INADDR_LOOPBACK));
}

static void sends(const char *options)
{
	struct load server, client;
	unsigned int port = server_start(&server, "udp-server --echo --count 1000000");
	const char *line;
	struct sl_sock sock;

	load_run(&client, INSIDE, "udp-send --server 127.0.0.1:%u --bytes 100 --count 5 %s", port,
		 options);
	line = fact_next(&client, NULL, "sock");
	sock = recorded(&client);
	expect_remote(&sock, port);
	cr_expect(sock.flags & SL_SOCK_SENT);
	cr_expect_eq(fact_u64(line, "sent"), 500);
	cr_expect_eq(sock.bytes_received, fact_u64(line, "received"), "received %llu: %.500s",
		     (unsigned long long)sock.bytes_received, line);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&client);
}

#define SENDS(name, options)    \
	Test(udp, name)         \
	{                       \
		sends(options); \
	}

SENDS(sendto, "--via sendto --recv recvfrom")
SENDS(sendmsg, "--via sendmsg --recv recvfrom")
SENDS(sendmmsg, "--via sendmmsg --recv recvmmsg")
SENDS(send_connected, "--via send --recv recvfrom")
SENDS(splice, "--via splice")
SENDS(uring, "--via uring")
SENDS(mapped, "--mapped --recv recvfrom")
SENDS(v4_on_v6, "--v4-on-v6 --recv recvfrom")

/* O7: the process is gone before anybody can look. */
Test(udp, one_datagram_then_exit)
{
	struct load server, client;
	unsigned int port = server_start(&server, "udp-server --count 1");
	const char *line;
	struct sl_sock sock;

	load_run(&client, INSIDE, "udp-send --server 127.0.0.1:%u --bytes 33 --exit-at-once", port);
	cr_assert_eq(load_end(&server), 0);
	line = fact_next(&client, NULL, "sock");
	cr_assert_not_null(line);
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	expect_remote(&sock, port);
	cr_expect_eq(sock.bytes_sent, 33);
	expect_conserved(0);
	expect_no_faults();
	load_free(&server);
	load_free(&client);
}

/* O8: a probe for the source address sends nothing and is told apart. */
Test(udp, probe)
{
	struct load client;
	struct sl_sock sock;

	load_run(&client, INSIDE, "udp-connect --server 127.0.0.1:9");
	sock = recorded(&client);
	expect_remote(&sock, 9);
	cr_expect(sock.flags & SL_SOCK_CONNECTED);
	cr_expect_not(sock.flags & SL_SOCK_SENT);
	cr_expect_eq(sock.bytes_sent, 0);
	expect_conserved(0);
	expect_no_faults();
	load_free(&client);
}

/* Its port was chosen by the first send, after the last hook that saw the socket. */
static void never_bound(const char *options, const char *any, const char *to)
{
	const char *set = world.dir;
	struct load client, resolve;
	char local[64], ends[64];
	const char *line;
	struct sl_sock sock;

	load_start(&client, INSIDE, "udp-send --server %s --hold %s", to, options);
	load_await(&client, "open", 1);
	line = fact_next(&client, NULL, "open");
	cr_assert(fact_text(line, "local", local, sizeof(local)));
	cr_assert(live_sock(fact_u64(line, "cookie"), &sock));
	snprintf(ends, sizeof(ends), "%s:%u", any, ntohs(sock.local.port_be));
	cr_expect_str_eq(ends, local);

	load_exec(&resolve, OUTSIDE,
		  (char *[]){ getenv("SLUICE"), "-j", "--set", (char *)set, "sock", "resolve",
			      "udp", local, (char *)to, NULL });
	cr_expect_eq(load_end(&resolve), 0, "%s to %s is not found", local, to);
	snprintf(ends, sizeof(ends), "\"cookie\":\"%llu\"", (unsigned long long)sock.cookie);
	cr_expect_not_null(strstr(resolve.text, ends), "no %s in %s", ends, resolve.text);

	cr_expect_eq(load_end(&client), 0);
	expect_conserved(0);
	expect_no_faults();
	load_free(&client);
	load_free(&resolve);
}

Test(udp, never_bound)
{
	never_bound("", "0.0.0.0", "127.0.0.1:9");
}

Test(udp, never_bound_v6)
{
	never_bound("--v6", "[::]", "[::1]:9");
}

Test(udp, raw_bytes)
{
	struct load client;
	struct sl_sock sock;

	load_run(&client, INSIDE, "raw-send --server 127.0.0.1:0 --bytes 40 --count 3");
	sock = recorded(&client);
	cr_expect_eq(sock.type, SOCK_RAW);
	cr_expect_eq(sock.local.port_be, 0, "its protocol is no port");
	cr_expect_eq(sock.bytes_sent, 120);
	load_free(&client);
}

Test(udp, ping_bytes)
{
	struct load client;
	struct sl_sock sock;

	load_run(&client, INSIDE, "ping-send --own-netns --server 127.0.0.1:0 --count 3");
	sock = recorded(&client);
	cr_expect_eq(sock.bytes_received, fact_u64(fact_next(&client, NULL, "sock"), "received"));
	load_free(&client);
}

static int find_packet(const struct sl_sock *sock, void *arg)
{
	struct sl_sock *want = arg;

	if (sock->cookie == want->cookie)
		*want = *sock;
	return 0;
}

Test(udp, packet_bytes)
{
	struct sl_sock sock = {};
	struct load client;
	const char *line;

	load_run(&client, INSIDE, "packet-send --count 4 --bytes 50");
	line = fact_next(&client, NULL, "sock");
	cr_assert_not_null(line);
	sock.cookie = fact_u64(line, "cookie");
	cr_assert_geq(sl_packets_sweep(world.set, 0, find_packet, &sock), 1);
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.family, AF_PACKET);
	cr_expect_eq(sock.bytes_sent, fact_u64(line, "sent"), "sent %llu",
		     (unsigned long long)sock.bytes_sent);
	load_free(&client);
}
