/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP: who, where to, and every byte, by every way to send and to receive. */
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "system/expect.h"

TestSuite(tcp, .init = world_up, .fini = world_down, .timeout = 60);

static void expect_closed(const struct load *load, const char *line)
{
	struct sl_sock sock = closed_sock(fact_u64(line, "cookie"));
	struct sl_owner opener;

	(void)load;
	expect_owner(&sock.owner, line, "owner");
	opener = opener_of(&sock);
	expect_owner(&opener, line, "opener");
	cr_expect_eq(sock.owner.sandbox, world.sandbox);
	cr_expect_eq(sock.bytes_sent, fact_u64(line, "sent"), "sent %llu: %.500s",
		     (unsigned long long)sock.bytes_sent, line);
	cr_expect_eq(sock.bytes_received, fact_u64(line, "received"), "received %llu: %.500s",
		     (unsigned long long)sock.bytes_received, line);
	cr_expect_eq(sock.family, fact_u64(line, "family"));
	cr_expect_eq(sock.type, fact_u64(line, "type"));
	cr_expect_eq(sock.protocol, fact_u64(line, "protocol"));
}

static void bytes_by(const char *via, const char *recv)
{
	struct load server, client;
	unsigned int port = server_start(&server, "tcp-server --echo --count 100");
	const char *line;

	load_run(&client, INSIDE,
		 "tcp-send --server 127.0.0.1:%u --bytes 5000 --count 7 --via %s --recv %s", port,
		 via, recv);
	line = fact_next(&client, NULL, "sock");
	cr_assert_not_null(line);
	cr_expect_eq(fact_u64(line, "sent"), 35000);
	cr_expect_eq(fact_u64(line, "received"), 35000);
	expect_closed(&client, line);
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(&client);
}

#define BY(name, via, recv)          \
	Test(tcp, name)              \
	{                            \
		bytes_by(via, recv); \
	}

BY(send, "send", "recv")
BY(write, "write", "read")
BY(writev, "writev", "read")
BY(sendmsg, "sendmsg", "recv")
BY(sendmmsg, "sendmmsg", "recvmmsg")
BY(sendfile, "sendfile", "splice")
BY(splice, "splice", "splice")
BY(vmsplice, "vmsplice", "recv")
BY(uring_send, "uring-send", "uring-recv")
BY(uring_sendmsg, "uring-sendmsg", "uring-recv")
BY(uring_sendzc, "uring-sendzc", "uring-recv")
BY(msg_zerocopy, "msg-zerocopy", "recv")
BY(fastopen_connect, "fastopen-connect", "recv")
BY(peek, "send", "peek")

Test(tcp, close_fields)
{
	struct load server, client;
	unsigned int port = server_start(&server, "tcp-server --count 100");
	struct sl_sock sock;
	const char *line;

	load_run(&client, INSIDE, "tcp-send --server 127.0.0.1:%u --bytes 100 --count 1", port);
	line = fact_next(&client, NULL, "sock");
	sock = closed_sock(fact_u64(line, "cookie"));
	cr_expect_eq(ntohs(sock.remote.port_be), port);
	cr_expect_eq(sock.remote.addr_be[2], htonl(0xffff));
	cr_expect_eq(sock.remote.addr_be[3], htonl(INADDR_LOOPBACK));
	cr_expect_neq(sock.local.port_be, 0);
	cr_expect_neq(sock.netns_cookie, 0);
	cr_expect(sock.since_ns && sock.since_ns <= sock.closed_ns, "times out of order");
	cr_expect(sock.flags & SL_SOCK_CONNECTED);
	cr_expect(sock.flags & SL_SOCK_ESTABLISHED);
	cr_expect(sock.flags & SL_SOCK_RELEASED);
	cr_expect_not(sock.flags & (SL_SOCK_ACCEPTED | SL_SOCK_LISTENING | SL_SOCK_FOREIGN |
				    SL_SOCK_PREEXISTING | SL_SOCK_INHERITED));
	cr_expect_eq(sock.error, 0);
	load_end(&server);
	load_free(&server);
	load_free(&client);
}

Test(tcp, accepted_by_a_member)
{
	struct load server, client;
	unsigned int port =
		server_start_at(&server, INSIDE, "tcp-server --count 100", "127.0.0.1:0");
	const char *listen = fact_next(&server, NULL, "listen"), *peer, *line;
	struct sl_sock sock;

	load_run(&client, INSIDE, "tcp-send --server 127.0.0.1:%u --bytes 1000 --count 3", port);
	cr_assert_eq(load_end(&server), 0);
	line = fact_next(&client, NULL, "sock");
	peer = fact_next(&server, NULL, "peer");
	cr_assert_not_null(peer);
	sock = closed_sock(fact_u64(peer, "cookie"));
	expect_owner(&sock.owner, listen, "owner of the accepted one");
	cr_expect(sock.flags & SL_SOCK_ACCEPTED);
	cr_expect_eq(sock.bytes_received, 3000);
	cr_expect(sock.flags & SL_SOCK_PEER_KNOWN);
	expect_owner(&sock.peer, line, "peer");
	cr_expect_eq(counter(SL_COUNTER_SOCK_ACCEPT), 1);
	cr_expect_eq(counter(SL_COUNTER_SOCK_PEER_KNOWN), 1);
	expect_conserved(0);
	expect_no_faults();
	load_free(&server);
	load_free(&client);
}

/* connect(AF_UNSPEC), then elsewhere: the record follows, and says that it did. */
Test(tcp, connected_anew)
{
	struct load first, second, client;
	unsigned int port = server_start(&first, "tcp-server --count 100");
	unsigned int then = server_start(&second, "tcp-server --count 100");
	const char *line;
	struct sl_sock sock;

	load_run(&client, INSIDE,
		 "tcp-send --server 127.0.0.1:%u --bytes 100 --disconnect --then 127.0.0.1:%u",
		 port, then);
	line = fact_next(&client, NULL, "sock");
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.generation, 1);
	cr_expect(endpoint_is(&sock.remote, INADDR_LOOPBACK, then));
	cr_expect(sock.flags & SL_SOCK_ESTABLISHED);
	cr_expect_leq(sock.since_ns, sock.closed_ns);
	/* Those of the latest connection: the kernel forgets the counts of the one before. */
	cr_expect_eq(sock.bytes_sent, 100);
	cr_expect_eq(sock.error, 0);
	cr_expect_eq(counter(SL_COUNTER_SOCK_CONNECT), 2);
	cr_expect_eq(counter(SL_COUNTER_SOCK_DISCONNECT), 1);
	cr_expect_eq(counter(SL_COUNTER_TUPLE_CREATED), 2);
	expect_conserved(0);
	expect_no_faults();
	load_end(&first);
	load_end(&second);
	load_free(&first);
	load_free(&second);
	load_free(&client);
}
