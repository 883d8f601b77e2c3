/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What only a relay has: streams and flows through it, its explicit proxy, and its end. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/expect.h"
#include "system/guarded.h"
#include "system/reach.h"
#include "system/scale.h"

TestSuite(reach_relay, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char everybody[] =
	"  relayed:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, ports: [8080, 8081, 7000], "
	"allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: one.reach.test, port: 5353, transport: udp, "
	"allowed_ips: [192.0.2.0/24] }\n"
	"      - { cidr: 192.0.2.11/32, port: 8080 }\n"
	"      - { host: '*.wild.test', port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: meta.reach.test, port: 8080 }\n"
	"    binaries: [{ path: /usr/bin/** }]\n";

/* Requests to a proxy, and what it answers to others. */
Test(reach_relay, explicit_proxy)
{
	static const char script[] =
		"p=127.0.0.1:3128\n"
		"get() { echo \"$1: $(shift; curl -sS -m 20 \"$@\" 2>&1)\"; }\n"
		"get absolute -x http://$p http://one.reach.test:8080/\n"
		"get connect -p -x http://$p http://one.reach.test:8080/\n"
		"get socks --socks5-hostname $p http://one.reach.test:8080/\n"
		"get cidr -x http://$p http://192.0.2.11:8080/\n"
		"get denied -x http://$p -w ' %{http_code} %{content_type}' "
		"http://two.reach.test:8080/\n"
		"get address -p -x http://$p http://10.0.0.5:8080/\n"
		"code='-o /dev/null -w %{http_code}'\n"
		"get private -x http://$p $code http://private.wild.test:8080/\n"
		"get meta -x http://$p $code http://meta.reach.test:8080/\n"
		"get mixed -x http://$p http://mixed.wild.test:8080/\n"
		"get denied_socks --socks5-hostname $p http://two.reach.test:8080/\n"
		"echo \"malformed: $(printf 'GET\\r\\n\\r\\n' | socat -t 20 - TCP:$p | head -n 1 | "
		"tr -d '\\r')\"\n";
	struct sink private, meta;
	struct cli cli;

	sink_open(&private, false, "10.0.0.5", 8080);
	sink_open(&meta, false, "169.254.169.254", 8080);
	reach_policy(everybody);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "absolute: hello from 192.0.2.10");
	reach_expect(&cli, "connect: hello from 192.0.2.10");
	reach_expect(&cli, "socks: hello from 192.0.2.10");
	reach_expect(&cli, "cidr: hello from 192.0.2.11");
	reach_expect(&cli, "malformed: HTTP/1.1 400 Bad Request");
	cr_expect_not_null(strstr(cli.out, "denied: {\"reason\":\"endpoint\","), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "\n 403 application/json\n"), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "denied_socks: curl: (97) "), "%s", cli.out);
	cr_expect_not_null(strstr(cli.out, "address: curl: (56) "), "%s", cli.out);
	cr_expect_not_null(strstr(cli.err, "two.reach.test"), "%s", cli.err);
	/* The proxy has looked these up, and dials none that its name may not have. */
	reach_expect(&cli, "private: 403");
	reach_expect(&cli, "meta: 403");
	reach_expect(&cli, "mixed: hello from 192.0.2.10");
	cr_expect_eq(sink_take(&private) + sink_take(&meta), 0);
	cr_expect_not(reach_asked("two.reach.test"));
	cli_free(&cli);
}

/* What is not HTTP: addresses of a rule, datagrams, half-closed streams, refusals. */
Test(reach_relay, streams_and_flows)
{
	static const char script[] =
		"echo \"cidr: $(curl -sS -m 20 http://192.0.2.11:8080/ 2>&1)\"\n"
		"echo \"half: $(head -c 300000 /dev/zero | socat -t 20 - "
		"TCP:one.reach.test:7000)\"\n"
		"/usr/bin/python3 - <<'END'\n"
		"import socket\n"
		"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
		"s.settimeout(20)\n"
		"to = (socket.gethostbyname('one.reach.test'), 5353)\n"
		"for n in range(3):\n"
		"    s.sendto(b'datagram %d' % n, to)\n"
		"    data, sender = s.recvfrom(100)\n"
		"    print('flow:', data.decode(), sender == to)\n"
		"s = socket.create_connection(('one.reach.test', 8081))\n"
		"try: print('nobody listens:', s.recv(1))\n"
		"except ConnectionResetError: print('nobody listens: reset')\n"
		"END\n";
	struct json_object *event;
	struct cli cli;

	reach_policy(everybody);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "cidr: hello from 192.0.2.11");
	reach_expect(&cli, "half: 300000");
	reach_expect(&cli, "flow: datagram 0 True");
	reach_expect(&cli, "flow: datagram 2 True");
	reach_expect(&cli, "nobody listens: reset");
	cli_free(&cli);
	event = reach_event("close", "name", "one.reach.test");
	cr_expect_not_null(event);
	json_object_put(event);
}

/* One reader that stalls delays none of the others, and gets all of it in the end. */
Test(reach_relay, one_stalled_of_many)
{
	static const char script[] =
		"/usr/bin/python3 - <<'END' &\n"
		"import socket\n"
		"s = socket.create_connection(('one.reach.test', 8080))\n"
		"s.sendall(b'GET /8000000 HTTP/1.0\\r\\n\\r\\n')\n"
		"n = len(s.recv(1))\n"
		"open('" REACH_DIR "/stalled', 'w').close()\n"
		"open('" REACH_DIR "/go').close()\n"
		"while d := s.recv(65536): n += len(d)\n"
		"print('stalled:', n > 8000000, flush=True)\n"
		"END\n"
		"read x < " REACH_DIR "/stalled\n"
		"curl -sS -m 60 --parallel --parallel-max 200 -w '%{size_download}\\n' -o /dev/null "
		"\"http://one.reach.test:8080/20000?[1-$N]\" | sort | uniq -c | tr -s ' '\n"
		": > " REACH_DIR "/go\n"
		"wait\n";
	char text[sizeof(script) + 32], wanted[32];
	struct cli cli;

	reach_policy(everybody);
	cr_assert_eq(mkfifo(REACH_DIR "/go", 0644), 0);
	cr_assert_eq(mkfifo(REACH_DIR "/stalled", 0644), 0);
	snprintf(text, sizeof(text), "N=%d\n%s", SCALED(200), script);
	reach_run(&cli, REACH_RELAY, text);
	snprintf(wanted, sizeof(wanted), " %d 20000", SCALED(200));
	reach_expect(&cli, wanted);
	reach_expect(&cli, "stalled: True");
	cli_free(&cli);
}

/* The links of a network namespace, in the kernel: 0 once nobody has it. */
static unsigned int links_of(__u32 netns)
{
	unsigned int n = 0;
	__u32 id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		_cleanup_fd_ int fd = bpf_link_get_fd_by_id(id);
		struct bpf_link_info info = { 0 };
		__u32 len = sizeof(info);

		n += fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &len) &&
		     info.type == BPF_LINK_TYPE_NETNS && info.netns.netns_ino == netns;
	}
	return n;
}

static bool links_gone(void *arg)
{
	return !links_of(*(__u32 *)arg);
}

static bool left_nothing(void *arg)
{
	return run_left_nothing(*(pid_t *)arg);
}

/* Whether it ends by itself or is killed. */
static void expect_gone(bool killed)
{
	static const char script[] = "readlink /proc/self/ns/net\n"
				     "curl -sS -m 20 http://one.reach.test:8080/\n"
				     "echo ready; read x < " REACH_DIR "/go\n";
	struct cli cli;
	__u32 netns;
	pid_t pid;

	reach_start(&cli, REACH_RELAY, NULL, script);
	cli_await(&cli, "ready\n");
	pid = cli.pid;
	cr_assert_eq(sscanf(cli.out, "net:[%u]", &netns), 1, "%s", cli.out);
	cr_expect_eq(links_of(netns), 1);
	if (killed)
		cr_assert_eq(kill(pid, SIGKILL), 0);
	else
		reach_file("go", "\n", 0644);
	cli_end(&cli);
	cr_expect_eq(cli.status, killed ? 128 + SIGKILL : 0, "%d: %s", cli.status, cli.err);
	cr_expect(eventually(left_nothing, &pid));
	cr_expect(eventually(links_gone, &netns));
	cli_free(&cli);
}

Test(reach_relay, leaves_nothing)
{
	reach_policy(everybody);
	cr_assert_eq(mkfifo(REACH_DIR "/go", 0644), 0);
	expect_gone(false);
	expect_gone(true);
}

static void expect_unmapped(void)
{
	struct json_object *event = reach_event("decision", "remote.addr", "198.18.7.7");

	cr_expect_not_null(event, "no decision on an address of no name");
	cr_expect_str_eq(json_text(event, "reason"), "unmapped-name");
	cr_expect_str_eq(json_text(event, "proto"), "tcp");
	json_object_put(event);
}

/* A relay's own addresses are names': one that stands for none is no destination. */
Test(reach_relay, addresses_of_no_name)
{
	static const char script[] =
		"curl -sS -m 20 http://198.18.7.7:8080/ 2>/dev/null || echo none\n"
		"curl -sS -m 20 http://one.reach.test:9999/ 2>/dev/null\n";
	static const char wide[] = "  web:\n"
				   "    endpoints: [{ cidr: 198.18.0.0/16, port: 8080 }]\n"
				   "    binaries: [{ path: /usr/bin/curl }]\n";
	struct json_object *event;
	struct cli cli;

	reach_policy(everybody);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "none");
	expect_unmapped();
	cr_expect_null(strstr(cli.err, "cidr: \"198.18"), "%s", cli.err);
	/* That of a name is one, whatever the port. */
	event = reach_event("decision", "name", "one.reach.test");
	cr_expect_not_null(event, "%s", cli.err);
	cr_expect_str_eq(json_text(event, "reason"), "endpoint");
	json_object_put(event);
	cli_free(&cli);
	/* A rule for them, too, which is told. */
	reach_policy(wide);
	reach_run(&cli, REACH_RELAY, script);
	reach_expect(&cli, "none");
	expect_unmapped();
	cr_expect_not_null(strstr(cli.err, "'198.18.0.0/16' lies in 198.18.0.0/15"), "%s", cli.err);
	cli_free(&cli);
	reach_run(&cli, REACH_DIRECT, "true");
	cr_expect_null(strstr(cli.err, "198.18.0.0/15"), "%s", cli.err);
	cli_free(&cli);
}
