/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A transparent proxy in the way of a sandbox that has a network to go out by: it gets each
 * connection that the policy allows, and where that was meant to go gets none.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sockaddr.h"
#include "guard/dns.h"
#include "kernel/cgroup.h"
#include "kernel/proxy.h"
#include "system/expect.h"
#include "system/guarded.h"

static struct sink proxy, proxy_v6;

static struct sl_endpoint end_of(const struct sink *sink)
{
	struct sl_endpoint end = { 0 };

	cr_assert(sl_sockaddr_endpoint(&end, &sink->addr));
	return end;
}

/* NULL: none for that family. */
static void proxied_by(const struct sink *v4, const struct sink *v6)
{
	struct sl_proxy row = { 0 };
	struct sl_err err = { 0 };

	if (v4)
		row.v4 = end_of(v4);
	if (v6)
		row.v6 = end_of(v6);
	cr_assert_eq(sl_guard_proxy(world.set, world.sandbox, &row, &err), 0, "%s", err.text);
}

static void proxied_up(void)
{
	guarded_up();
	sink_open(&proxy, false, "127.0.0.1", 0);
	sink_open(&proxy_v6, false, "::1", 0);
	proxied_by(&proxy, &proxy_v6);
}

static void proxied_down(void)
{
	close(proxy.fd);
	close(proxy_v6.fd);
	guarded_down();
}

TestSuite(proxied, .init = proxied_up, .fini = proxied_down, .timeout = 60);

/* errno of the last line; the program may lack what it needs (77). */
static void attempt(const char *words, const struct sink *to, const char *what, const char *want)
{
	const char *got;
	struct load load;

	load_start(&load, INSIDE, "%s%s", words, to->text);
	if (load_end(&load) == 77)
		cr_skip_test("the kernel lacks it: %s", load.text);
	got = last_errno(&load, what);
	cr_expect_str_eq(got, want, "%s%s: %s", words, to->text, got);
	load_free(&load);
}

/* What is allowed comes to the proxy and not to its target; what is denied to neither. */
static void expect_proxied(const char *words, const char *what, bool v6)
{
	struct sink *target = v6 ? &guarded.open_v6 : &guarded.open;
	struct sink *taker = v6 ? &proxy_v6 : &proxy;

	attempt(words, target, what, "0");
	cr_expect_eq(sink_take(taker), 1, "%s: nothing at the proxy", words);
	cr_expect_eq(sink_take(target), 0, "%s: went around the proxy", words);
	attempt(words, v6 ? &guarded.shut_v6 : &guarded.shut[OTHER_PORT], what, "EACCES");
	cr_expect_eq(sink_take(taker), 0, "%s: denied, and at the proxy", words);
	cr_expect_eq(guarded_leaks(), 0);
}

Test(proxied, every_way_to_connect)
{
	static const char *const ways[] = {
		"tcp-send",
		"tcp-send --connect nonblock",
		"tcp-send --mapped",
		"tcp-send --mptcp",
		"tcp-send --via fastopen",
		"tcp-send --via fastopen-sendmsg",
		"tcp-send --via fastopen-connect",
		"tcp-send --via fastopen --mapped",
		"tcp-send --mptcp --via fastopen",
	};
	static const char *const uring[] = { "inline", "async", "sqpoll" };
	char words[128];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		snprintf(words, sizeof(words), "%s --server ", ways[i]);
		expect_proxied(words, "sock", false);
	}
	for (size_t i = 0; i < ARRAY_SIZE(uring); i++) {
		snprintf(words, sizeof(words), "do --uring %s socket=tcp uring-connect=", uring[i]);
		expect_proxied(words, "did", false);
	}
	expect_proxied("tcp-send --v6 --server ", "sock", true);
	expect_proxied("tcp-send --v6 --via fastopen --server ", "sock", true);
	expect_no_faults();
}

/* UDP is none of its business, nor what members serve each other. */
Test(proxied, what_is_not_for_it)
{
	struct load server, load;
	char address[64];
	unsigned int port;

	attempt("udp-send --server ", &guarded.open_udp, "sock", "0");
	cr_expect_eq(sink_take(&guarded.open_udp), 1);
	port = server_start_at(&server, INSIDE, "tcp-server", "127.0.0.1:0");
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	load_run(&load, INSIDE, "tcp-send --server %s", address);
	load_free(&load);
	load_end(&server);
	cr_expect_eq(fact_u64(fact_next(&server, NULL, "total"), "accepted"), 1);
	load_free(&server);
	cr_expect_eq(sink_take(&proxy), 0);
}

/* --- what the application is told, and what is recorded --- */

static void expect_record(const char *words, const struct sink *to, const struct sink *by)
{
	struct sl_endpoint asked = end_of(to), taken = end_of(by);
	struct sl_sock_more more;
	struct sl_sock sock;
	struct load load;
	const char *line;
	char peer[80];

	load_run(&load, INSIDE, "%s --server %s", words, to->text);
	line = fact_next(&load, NULL, "sock");
	cr_assert(line && fact_text(line, "remote", peer, sizeof(peer)));
	cr_expect_str_eq(peer, to->text, "%s: %s", words, peer);
	sock = closed_sock(fact_u64(line, "cookie"));
	cr_expect(!memcmp(&sock.remote, &taken, sizeof(taken)), "%s: who took it", words);
	cr_assert_eq(sl_sock_more_read(world.set, &sock, &more), 0);
	cr_expect(!memcmp(&more.original, &asked, sizeof(asked)), "%s: what was asked", words);
	load_free(&load);
}

Test(proxied, records)
{
	expect_record("tcp-send", &guarded.open, &proxy);
	expect_record("tcp-send --v6", &guarded.open_v6, &proxy_v6);
}

/* --- what it can't take --- */

Test(proxied, a_family_without)
{
	proxied_by(&proxy, NULL);
	attempt("tcp-send --v6 --server ", &guarded.open_v6, "sock", "EACCES");
	cr_expect_eq(sink_take(&guarded.open_v6), 0);
	cr_expect_eq(counters().denied[SL_REASON_PROXY], 1);
	proxied_by(NULL, &proxy_v6);
	attempt("tcp-send --server ", &guarded.open, "sock", "EACCES");
	attempt("tcp-send --mapped --server ", &guarded.open, "sock", "EACCES");
	cr_expect_eq(sink_take(&guarded.open), 0);
	cr_expect_eq(counters().denied[SL_REASON_PROXY], 3);
}

/* Out of its cgroup a member's connection has no record that would tell the proxy. */
Test(proxied, a_member_elsewhere)
{
	char mount[64], words[128];

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(words, sizeof(words), "do cgroup=%s socket=tcp connect=", mount);
	attempt(words, &guarded.open, "did", "EACCES");
	cr_expect_eq(sink_take(&guarded.open), 0);
	cr_expect_eq(sink_take(&proxy), 0);
	cr_expect_eq(counters().denied[SL_REASON_PROXY], 1);
}

/* --- modes, reloads --- */

Test(proxied, on_and_off)
{
	struct sl_err err = { 0 };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sandbox/%u/on_getpeername4", world.dir, world.sandbox);
	cr_expect_eq(access(path, F_OK), 0);
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_OBSERVE, &err), 0);
	attempt("tcp-send --server ", &guarded.open, "sock", "0");
	cr_expect_eq(sink_take(&guarded.open), 1, "observe only observes");
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_AUDIT, &err), 0);
	attempt("tcp-send --server ", &guarded.open, "sock", "0");
	cr_expect_eq(sink_take(&proxy), 1, "audit does what enforce does");
	attempt("tcp-send --server ", &guarded.shut[OTHER_PORT], "sock", "0");
	cr_expect_eq(sink_take(&guarded.shut[OTHER_PORT]), 1, "and lets the rest pass");
	cr_assert_eq(sl_guard_mode(world.set, world.sandbox, SL_GUARD_ENFORCE, &err), 0);
	/* What is loaded meanwhile leaves it as it is. */
	guarded_load_more("");
	expect_proxied("tcp-send --server ", "sock", false);
	cr_assert_eq(sl_guard_proxy(world.set, world.sandbox, NULL, &err), 0, "%s", err.text);
	cr_expect_neq(access(path, F_OK), 0);
	attempt("tcp-send --server ", &guarded.open, "sock", "0");
	cr_expect_eq(sink_take(&guarded.open), 1);
	cr_expect_eq(sink_take(&proxy), 0);
}

static bool revoked(void *arg)
{
	(void)arg;
	return counter(SL_COUNTER_REVOKED) > 0;
}

/* A later policy decides on what was asked for, and not on who took it. */
Test(proxied, a_reload)
{
	struct load load;
	char text[512];

	load_start(&load, INSIDE, "do --until-eof socket=tcp connect=%s send", guarded.open.text);
	load_await(&load, "did", 3);
	guarded_load_more("");
	do_more(&load, "send");
	cr_expect_str_eq(did_errno(&load, "send", 1), "0");
	cr_expect_eq(counter(SL_COUNTER_REVOKED), 0, "still allowed");
	/* Not even if it names the proxy. */
	snprintf(text, sizeof(text),
		 "version: 1\n"
		 "network_policies:\n"
		 "  proxy:\n"
		 "    endpoints: [{ cidr: 127.0.0.1/32, port: %u, allow_reserved: true }]\n"
		 "    binaries: [{ path: %s }]\n",
		 proxy.port, getenv("SL_LOAD"));
	guarded_load(text);
	do_more(&load, "send");
	cr_expect(eventually(revoked, NULL), "nothing was revoked");
	load_end(&load);
	load_free(&load);
}

/*
 * The proxy's address in a member's hands: it gets what was allowed to elsewhere, and nobody
 * gets anywhere else by that; what is revoked has not become the sandbox's own.
 */
Test(proxied, a_member_at_its_address)
{
	struct sink mine = { 0 };
	struct load server, load;

	mine.port = server_start_at(&server, INSIDE, "tcp-server", "127.0.0.1:0");
	mine.addr = guarded.open.addr;
	((struct sockaddr_in *)&mine.addr)->sin_port = htons((uint16_t)mine.port);
	proxied_by(&mine, NULL);
	attempt("tcp-send --server ", &guarded.shut[OTHER_PORT], "sock", "EACCES");
	load_start(&load, INSIDE, "do --until-eof socket=tcp connect=%s send", guarded.open.text);
	load_await(&load, "did", 3);
	cr_expect_str_eq(did_errno(&load, "connect", 0), "0");
	guarded_load("version: 1\nnetwork_policies: {}\n");
	do_more(&load, "send");
	cr_expect(eventually(revoked, NULL), "taken for the sandbox's own");
	/* So that the server hears of its end. */
	guarded_load_more("");
	load_end(&load);
	load_free(&load);
	load_end(&server);
	load_free(&server);
	cr_expect_eq(sink_take(&guarded.open), 0);
	cr_expect_eq(guarded_leaks(), 0);
}

/* --- the proxy asks --- */

#define SO_ORIGINAL_DST 80

static char proxy_cgroup[PATH_MAX], home[PATH_MAX];

/* This process is the proxy: in a cgroup of its own, with listeners that were made there. */
static void become_proxy(struct sink *v4, struct sink *v6)
{
	char mount[64], rest[PATH_MAX - 64];
	struct sl_err err = { 0 };

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), &err), 0, "%s", err.text);
	cr_assert_eq(sl_cgroup_self(rest, sizeof(rest), &err), 0, "%s", err.text);
	snprintf(home, sizeof(home), "%s", rest);
	snprintf(proxy_cgroup, sizeof(proxy_cgroup), "%.*s-proxy", PATH_MAX - 8, world.cgroup);
	cr_assert_eq(sl_cgroup_create(proxy_cgroup, &err), 0, "%s", err.text);
	cr_assert_eq(sl_cgroup_enter(proxy_cgroup, 0, &err), 0, "%s", err.text);
	sink_open(v4, false, "127.0.0.1", 0);
	sink_open(v6, false, "::1", 0);
	proxied_by(v4, v6);
}

static void be_no_proxy(const struct sink *v4, const struct sink *v6)
{
	struct sl_err err = { 0 };

	close(v4->fd);
	close(v6->fd);
	cr_expect_eq(sl_cgroup_enter(home, 0, &err), 0, "%s", err.text);
	cr_expect_eq(sl_cgroup_destroy(proxy_cgroup, 1000), 0);
}

/* As a proxy asks; the errno, or 0 with what it is told. */
static int ask(int fd, int level, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	return getsockopt(fd, level, SO_ORIGINAL_DST, out, &len) ? errno : 0;
}

/* Of the next connection: what the proxy is told on each level. */
static void expect_told(struct sink *listener, const struct sink *asked, int none)
{
	_cleanup_fd_ int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	bool v6 = asked && asked->addr.ss_family == AF_INET6;
	int level = v6 ? SOL_IPV6 : SOL_IP, type = 0;
	struct sockaddr_storage told;
	char large[8192];
	socklen_t len = sizeof(large);

	cr_assert_geq(fd, 0);
	cr_expect_eq(ask(fd, level, &told), asked ? 0 : none);
	if (asked)
		cr_expect(!memcmp(&told, &asked->addr,
				  v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)));
	/* All else is the kernel's: what does not fit a program's copy, too. */
	cr_expect_eq(getsockopt(fd, IPPROTO_TCP, TCP_INFO, large, &len), 0, "%s", strerror(errno));
	cr_expect(len > 100 && len < sizeof(large), "%u", len);
	len = sizeof(type);
	cr_expect_eq(getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len), 0);
	cr_expect_eq(type, SOCK_STREAM);
	len = 3;
	cr_expect_eq(getsockopt(fd, level, SO_ORIGINAL_DST, large, &len), -1, "no room for it");
}

static void expect_asked(struct sink *listener, struct sink *to, const char *words)
{
	struct load load;

	load_start(&load, INSIDE, "%s --server %s", words, to->text);
	expect_told(listener, to, 0);
	load_end(&load);
	load_free(&load);
}

static int note_state(const struct sl_proxy_info *info, void *arg)
{
	int *states = arg;

	states[info->state]++;
	cr_expect_str_eq(info->cgroup, info->state == SL_PROXY_GONE ? "" : proxy_cgroup);
	return 0;
}

Test(proxied, original_dst)
{
	int states[SL_PROXY_STATE_MAX] = { 0 }, none;
	struct sockaddr_storage told;
	struct sl_err err = { 0 };
	struct sink v4, v6;
	int fd;

	become_proxy(&v4, &v6);
	/* What the kernel says of what was not redirected depends on its modules. */
	none = ask(v4.fd, SOL_IP, &told);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&v4.addr, sizeof(v4.addr)), 0);
	none = ask(fd, SOL_IP, &told) ?: none;
	cr_assert_eq(sl_proxy_attach(world.set, proxy_cgroup, &err), 0, "%s", err.text);
	cr_expect_eq(sl_proxy_attach(world.set, proxy_cgroup, &err), -EEXIST);
	expect_told(&v4, NULL, none);
	close(fd);
	expect_asked(&v4, &guarded.open, "tcp-send");
	expect_asked(&v4, &guarded.open, "tcp-idle");
	expect_asked(&v6, &guarded.open_v6, "tcp-idle --v6");
	cr_assert_eq(sl_proxy_each(world.set, note_state, states), 0);
	cr_expect_eq(states[SL_PROXY_ATTACHED], 1);
	be_no_proxy(&v4, &v6);
	cr_assert_eq(sl_proxy_each(world.set, note_state, states), 0);
	cr_expect_eq(states[SL_PROXY_GONE], 1);
	cr_expect_eq(sl_proxy_detach(world.set, 1, &err), -ENOENT);
}
