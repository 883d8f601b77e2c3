/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs as people have them reach by name what a policy names, directly and by a relay. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/reach.h"

#define BOTH_NETS(net) for (enum reach_net net = REACH_DIRECT; net <= REACH_RELAY; net++)

TestSuite(reach, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char web[] =
	"  web:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: six.reach.test, port: 8080, allowed_ips: ['2001:db8::/32'] }\n"
	"      - { host: hosted.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: app.search.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: meta.reach.test, port: 8080 }\n"
	"      - { host: loop.reach.test, port: 8080 }\n"
	"      - { host: '*.wild.test', port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"    binaries: [{ path: /usr/bin/curl }, { path: /usr/bin/python3 }]\n";

/* Every line is what a client printed, behind what it was for. */
static const char clients[] =
	"get() { echo \"$1: $(curl -sS -m 20 http://$2:8080/ 2>&1)\"; }\n"
	"get name one.reach.test\n"
	"get v6 six.reach.test\n"
	"get hosts hosted.reach.test\n"
	"get search app\n"
	"get wildcard a.wild.test\n"
	"get mixed mixed.wild.test\n"
	"echo \"python: $(/usr/bin/python3 -c 'import urllib.request as r\n"
	"print(r.urlopen(\"http://one.reach.test:8080/\").read().decode().strip())' 2>&1)\"\n"
	/* It ends in the address that it has asked, as it sees it. */
	"echo \"udp: $(dig +short +identify one.reach.test)\"\n"
	"echo \"tcp: $(dig +short +identify +tcp @192.0.2.99 one.reach.test)\"\n"
	"echo \"v6 server: $(dig +short +identify @2001:db8::99 one.reach.test)\"\n"
	"echo ready; read x < " REACH_DIR "/go\n";

/* The port of policy DNS: of the one UDP socket of 127.0.0.1 here. 0: there is none. */
static unsigned int dns_port(void)
{
	_cleanup_file_ FILE *file = fopen("/proc/self/net/udp", "re");
	unsigned int port = 0;
	char line[256];

	while (!port && fgets(line, sizeof(line), file))
		if (sscanf(line, " %*u: 0100007F:%x ", &port) != 1)
			port = 0;
	return port;
}

/* Who is no member is answered nothing, though the listener is on the host's loopback. */
static void expect_stranger_refused(void)
{
	char port[16];
	struct cli dig;

	snprintf(port, sizeof(port), "%u", dns_port());
	cr_assert_str_neq(port, "0");
	for (int tcp = 0; tcp < 2; tcp++) {
		cli_start(&dig, NULL,
			  (const char *const[]){ "/usr/bin/dig", "@127.0.0.1", "-p", port,
						 tcp ? "+tcp" : "+notcp", "other.wild.test",
						 NULL });
		cli_end(&dig);
		cr_expect_not_null(strstr(dig.out, "status: REFUSED"), "%s", dig.out);
		cli_free(&dig);
	}
	cr_expect_not(reach_asked("other.wild.test"));
}

/* What is leased while it runs. */
static void expect_leased(pid_t run, enum reach_net net)
{
	struct cli list;
	char set[64];

	snprintf(set, sizeof(set), SL_SET_ROOT "/run-%d", run);
	CLI(&list, "--set", set, "name", "list");
	cr_expect_not_null(strstr(list.out, "one.reach.test"), "%s%s", list.out, list.err);
	cr_expect_not_null(strstr(list.out, net == REACH_RELAY ? " 198.18.0." : " 192.0.2.10"),
			   "%s", list.out);
	cli_free(&list);
}

static void expect_close_of(const char *name, const char *exe)
{
	struct json_object *event = reach_event("close", "name", name);

	cr_expect_not_null(event, "no connection is told by the name %s", name);
	cr_expect_str_eq(json_text(event, "process.exe.path"), exe);
	json_object_put(event);
}

Test(reach, clients)
{
	struct cli cli;

	reach_policy(web);
	cr_assert_eq(mkfifo(REACH_DIR "/go", 0644), 0);
	BOTH_NETS(net)
	{
		reach_start(&cli, net, NULL, clients);
		cli_await(&cli, "ready\n");
		expect_leased(cli.pid, net);
		if (net == REACH_DIRECT)
			expect_stranger_refused();
		reach_file("go", "\n", 0644);
		cli_end(&cli);
		reach_expect(&cli, "name: hello from 192.0.2.10");
		reach_expect(&cli, "v6: hello from 2001:db8::10");
		reach_expect(&cli, "hosts: hello from 192.0.2.11");
		reach_expect(&cli, "search: hello from 192.0.2.10");
		reach_expect(&cli, "wildcard: hello from 192.0.2.10");
		reach_expect(&cli, "mixed: hello from 192.0.2.10");
		reach_expect(&cli, "python: hello from 192.0.2.10");
		cr_expect_not_null(strstr(cli.out, " from server 192.0.2.53 in "), "%s", cli.out);
		cr_expect_not_null(strstr(cli.out, " from server 192.0.2.99 in "), "%s", cli.out);
		cr_expect_not_null(strstr(cli.out, " from server 2001:db8::99 in "), "%s", cli.out);
		cr_expect_null(strstr(cli.err, "denied"), "%s", cli.err);
		expect_close_of("one.reach.test", "/usr/bin/curl");
		expect_close_of("a.wild.test", "/usr/bin/curl");
		expect_close_of("hosted.reach.test", "/usr/bin/curl");
		cli_free(&cli);
	}
}

/* Where what is denied would have arrived. */
static struct sink private, meta, loop;

static void sinks_open(void)
{
	sink_open(&private, false, "10.0.0.5", 8080);
	sink_open(&meta, false, "169.254.169.254", 8080);
	sink_open(&loop, false, "127.0.0.1", 8080);
}

static void expect_decision(const char *name, const char *proto, const char *reason)
{
	struct json_object *event = reach_event("decision", "name", name);

	cr_expect_not_null(event, "no decision on %s", name);
	cr_expect_str_eq(json_text(event, "proto"), proto);
	cr_expect_str_eq(json_text(event, "reason"), reason);
	cr_expect_str_eq(json_text(event, "process.exe.path"), "/usr/bin/curl");
	json_object_put(event);
}

/* 6: it has no address. 7: no connection. By the relay it is looked at before one is made up. */
static void expect_no_address(const struct cli *cli)
{
	reach_expect(cli, "private.wild: 6, ");
	reach_expect(cli, "meta.reach: 6, ");
	reach_expect(cli, "loop.reach: 6, ");
	reach_expect(cli, "address: 7");
	cr_expect_eq(sink_take(&private) + sink_take(&meta) + sink_take(&loop), 0);
}

/*
 * What no rule names is asked of nobody, and told with what to add. A name that a rule has is
 * asked for, but has not the addresses that no name may have.
 */
Test(reach, refused)
{
	static const char script[] =
		"curl -sS -m 20 http://two.reach.test:8080/ 2>&1\n"
		"dig +tries=1 two.reach.test | grep -o 'status: [A-Z]*'\n"
		"dig +tcp b.c.wild.test | grep -o 'status: [A-Z]*'\n"
		"for n in private.wild meta.reach loop.reach; do\n"
		"	curl -sS -m 20 http://$n.test:8080/ 2>/dev/null\n"
		"	echo \"$n: $?, $(dig +short $n.test)\"\n"
		"done\n"
		"curl -sS -m 20 http://10.0.0.5:8080/ 2>/dev/null || echo address: $?\n";
	struct cli cli;

	sinks_open();
	reach_policy(web);
	BOTH_NETS(net)
	{
		reach_run(&cli, net, script);
		cr_expect_not_null(strstr(cli.out, "Could not resolve host"), "%s", cli.out);
		cr_expect_eq(text_count(cli.out, "status: REFUSED"), 2, "%s", cli.out);
		expect_decision("two.reach.test", "dns", "endpoint");
		cr_expect_not_null(strstr(cli.err, "add to 'web': endpoints: "
						   "[{host: two.reach.test, port: 443}]\n"),
				   "%s", cli.err);
		cr_expect_not_null(strstr(cli.err,
					  "add an entry: {endpoints: [{host: b.c.wild.test, "
					  "port: 443}], binaries: [{path: /usr/bin/dig}]}\n"),
				   "%s", cli.err);
		expect_no_address(&cli);
		cli_free(&cli);
	}
	cr_expect_not(reach_asked("two.reach.test"));
	cr_expect_not(reach_asked("b.c.wild.test"));
	cr_expect(reach_asked("meta.reach.test"));
}

/* Two names of one address: what is shown is what the one who connects asked for. */
Test(reach, shared_address)
{
	static const char shared[] =
		"  left:\n"
		"    endpoints: [{ host: left.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }]\n"
		"    binaries: [{ path: /usr/bin/curl }]\n"
		"  right:\n"
		"    endpoints: [{ host: right.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }]\n"
		"    binaries: [{ path: /usr/bin/python3 }]\n";
	/* The other one's address is asked for before each of them connects. */
	static const char script[] =
		"get='import urllib.request as r; r.urlopen(\"http://right.reach.test:8080/\")'\n"
		"ask='import socket; socket.getaddrinfo(\"right.reach.test\", 8080)'\n"
		"/usr/bin/python3 -c \"$ask\"\n"
		"curl -sS -m 20 http://left.reach.test:8080/ >/dev/null || echo left\n"
		"getent hosts left.reach.test >/dev/null\n"
		"/usr/bin/python3 -c \"$get\" || echo right\n"
		"echo \"other: $(curl -sS -m 20 http://right.reach.test:8080/ 2>/dev/null)\"\n";
	struct cli cli;

	reach_policy(shared);
	BOTH_NETS(net)
	{
		reach_run(&cli, net, script);
		/* Of a real address any name will do, the relay's own have one each. */
		cr_expect_str_eq(cli.out,
				 net == REACH_RELAY ? "other: \n"
						    : "other: hello from 192.0.2.10\n",
				 "%s%s", cli.out, cli.err);
		expect_close_of("left.reach.test", "/usr/bin/curl");
		expect_close_of("right.reach.test", "/usr/bin/python3.11");
		cli_free(&cli);
	}
}
