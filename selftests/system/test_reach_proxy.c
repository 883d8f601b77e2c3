/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Relayed connections handed to proxies, who are told whose they are. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/guarded.h"
#include "system/reach.h"

#define PROXY "192.0.2.11:9000"
#define RUN(...) CLI_ARGV("run", "--policy", REACH_POLICY, __VA_ARGS__, "--", "true")

static struct load proxy;

/* Tells each head as a fact, answers the request itself. Written from the specification. */
static const char proxy_code[] =
	"import socket, struct, sys, threading\n"
	"names = {2: 'authority', 5: 'unique', 0xe0: 'sandbox', 0xe1: 'pid', 0xe2: 'start',\n"
	"         0xe3: 'exe', 0xe4: 'lineage'}\n"
	"def serve(c):\n"
	"    f = c.makefile('rb')\n"
	"    magic, command, family, size = struct.unpack('!12sBBH', f.read(16))\n"
	"    body = f.read(size)\n"
	"    n = {0x11: 4, 0x21: 16}[family]\n"
	"    af = socket.AF_INET if n == 4 else socket.AF_INET6\n"
	"    facts = ['what=head', 'magic=%d' % (magic == b'\\r\\n\\r\\n\\0\\r\\nQUIT\\n'),\n"
	"             'command=%d' % command, 'dst=' + socket.inet_ntop(af, body[n:2 * n]),\n"
	"             'port=%d' % struct.unpack('!H', body[2 * n + 2:2 * n + 4])]\n"
	"    at = 2 * n + 4\n"
	"    while at < len(body):\n"
	"        kind, length = struct.unpack('!BH', body[at:at + 3])\n"
	"        value = body[at + 3:at + 3 + length]\n"
	"        at += 3 + length\n"
	"        value = int.from_bytes(value, 'big') if kind in (0xe1, 0xe2) else value.decode()\n"
	"        facts.append('%s=%s' % (names[kind], str(value).replace('\\n', ',')))\n"
	"    facts.append('request=' + f.readline().decode().split()[1])\n"
	"    print(*facts, flush=True)\n"
	"    c.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nproxied\\n')\n"
	"    c.close()\n"
	"s = socket.create_server(('192.0.2.11', 9000))\n"
	"def run():\n"
	"    while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n"
	"threading.Thread(target=run, daemon=True).start()\n"
	"print('what=listening', flush=True)\n"
	"sys.stdin.read()\n";

static void up(void)
{
	char *argv[] = { "/usr/bin/python3", "-c", (char *)proxy_code, NULL };

	reach_up();
	load_exec(&proxy, OUTSIDE, argv);
	load_await(&proxy, "listening", 1);
}

static void down(void)
{
	if (proxy.pid) {
		load_end(&proxy);
		load_free(&proxy);
	}
	reach_down();
}

TestSuite(reach_proxy, .init = up, .fini = down, .timeout = 120);

static const char plain[] =
	"  web:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: two.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { cidr: 192.0.2.10/32, port: 8080 }\n"
	"    binaries: [{ path: /usr/bin/curl }]\n";

static const char rules[] =
	"  web:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - host: two.reach.test\n"
	"        port: 8080\n"
	"        allowed_ips: [192.0.2.0/24]\n"
	"        protocol: rest\n"
	"        rules: [{ allow: { method: GET, path: /seen } }]\n"
	"    binaries: [{ path: /usr/bin/curl }]\n";

/* The process tells itself who it is; when it started the kernel counts in hundredths. */
static const char script[] =
	"echo \"what=self pid=$$ ticks=$(cut -d ' ' -f 22 /proc/$$/stat)\"\n"
	"exec curl -sS -m 20 http://one.reach.test:8080/first --next http://192.0.2.10:8080/second\n";

static void expect_text(const char *line, const char *key, const char *wanted)
{
	char value[512] = "";

	cr_expect(fact_text(line, key, value, sizeof(value)), "no %s in: %s", key, line);
	cr_expect_str_eq(value, wanted, "%s is '%s'", key, value);
}

static void expect_head(const char *line, const struct cli *cli, const char *request)
{
	struct load self = { .text = cli->out, .len = strlen(cli->out) };
	const char *who = fact_next(&self, NULL, "self");
	char value[512] = "", wanted[512], sandbox[128] = "";

	cr_assert_not_null(who, "%s", cli->out);
	cr_assert_not_null(line, "no head for %s", request);
	cr_expect_eq(fact_u64(line, "magic"), 1);
	cr_expect_eq(fact_u64(line, "command"), 0x21);
	cr_expect_eq(fact_u64(line, "port"), 8080);
	cr_expect_eq(fact_u64(line, "pid"), fact_u64(who, "pid"));
	cr_expect_eq(fact_u64(line, "start") / 10000000, fact_u64(who, "ticks"), "%s", line);
	expect_text(line, "exe", "/usr/bin/curl");
	cr_expect(fact_text(line, "sandbox", sandbox, sizeof(sandbox)));
	cr_expect_eq(strncmp(sandbox, "sluice-run-", 11), 0, "%s", sandbox);
	/* Not what ran before the sandbox was entered. */
	expect_text(line, "lineage", "/usr/bin/dash");
	snprintf(wanted, sizeof(wanted), "%s:%llu:%llu:", sandbox,
		 (unsigned long long)fact_u64(line, "pid"),
		 (unsigned long long)fact_u64(line, "start"));
	cr_expect(fact_text(line, "unique", value, sizeof(value)));
	cr_expect_eq(strncmp(value, wanted, strlen(wanted)), 0, "%s, not %s", value, wanted);
	expect_text(line, "request", request);
}

Test(reach_proxy, identity)
{
	const char *line;
	struct cli cli;

	reach_policy(plain);
	reach_start(&cli, REACH_RELAY, REACH_WITH("--proxy", PROXY), script);
	cli_end(&cli);
	cr_expect_eq(text_count(cli.out, "proxied\n"), 2, "%s%s", cli.out, cli.err);
	load_await(&proxy, "head", 2);
	line = fact_next(&proxy, NULL, "head");
	expect_head(line, &cli, "/first");
	expect_text(line, "authority", "one.reach.test");
	line = fact_next(&proxy, line, "head");
	expect_head(line, &cli, "/second");
	expect_text(line, "dst", "192.0.2.10");
	cli_free(&cli);
}

/* Endpoints with rules on requests go to who inspects them, others do not. */
Test(reach_proxy, inspection)
{
	static const char both[] = "for n in one two; do\n"
				   "	echo $n: $(curl -sS -m 20 http://$n.reach.test:8080/seen)\n"
				   "done\n";
	const char *line;
	struct cli cli;

	reach_policy(rules);
	reach_start(&cli, REACH_RELAY, REACH_WITH("--inspect", PROXY), both);
	cli_end(&cli);
	reach_expect(&cli, "one: hello from 192.0.2.10");
	reach_expect(&cli, "two: proxied");
	cli_free(&cli);
	load_await(&proxy, "head", 1);
	line = fact_next(&proxy, NULL, "head");
	expect_text(line, "authority", "two.reach.test");
	expect_text(line, "exe", "/usr/bin/curl");
	expect_text(line, "request", "/seen");
	cr_expect_null(fact_next(&proxy, line, "head"));
	/* Nobody who inspects: the policy is refused, not weaker. */
	reach_start(&cli, REACH_RELAY, NULL, both);
	cli_end(&cli);
	cli_expect_error(&cli, 125, "'rules'");
	cli_free(&cli);
}

static void expect_refused(const char *const argv[], const char *text)
{
	struct cli cli;

	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	cli_expect_error(&cli, 125, text);
	cli_free(&cli);
}

Test(reach_proxy, options_that_make_no_sense)
{
	reach_policy(plain);
	expect_refused(RUN("--upstream", "here"), "--upstream: 'here'");
	expect_refused(RUN("--upstream", "192.0.2.53:0"), "192.0.2.53:0");
	expect_refused(RUN("--upstream", "192.0.2.53,"), "--upstream: ''");
	expect_refused(RUN("--upstream", "192.0.2.53", "--dns", "host"), "--upstream");
	expect_refused(RUN("--net", "relay", "--dns", "host"), "policy DNS");
	expect_refused(RUN("--proxy-cgroup", "/"), "--proxy-cgroup");
	expect_refused(RUN("--proxy", PROXY "," PROXY), "second address");
	expect_refused(RUN("--inspect", PROXY), "--inspect");
	expect_refused(RUN("--net", "relay", "--proxy", "192.0.2.1"), "192.0.2.1");
	expect_refused(RUN("--net", "relay", "--inspect", "x:1"), "x:1");
	expect_refused(CLI_ARGV("run", "--net", "relay", "--", "true"), "policy");
}

static void need(const char *program, const char *why)
{
	if (access(program, X_OK)) {
		fprintf(stderr, "no %s here%s\n", program, why);
		cr_skip_test("no %s", program);
	}
}

/* Squid decides on requests, as examples/squid.conf sets it up: it is told by whom they are. */
Test(reach_proxy, squid)
{
	static const char requests[] =
		"u=http://two.reach.test:8080/seen\n"
		"echo \"get: $(curl -sS -m 20 $u)\"\n"
		"echo \"post: $(curl -sS -m 20 -o /dev/null -w '%{http_code}' -d x $u)\"\n";
	static const char *const seen[] = {
		" /usr/bin/curl 200 GET http://two.reach.test:8080/seen\n",
		" /usr/bin/curl 403 POST http://two.reach.test:8080/seen\n",
	};
	_cleanup_free_ char *log = NULL;
	struct cli cli, squid;

	need("/usr/sbin/squid", ", whose Debian package starts a service");
	reach_policy(rules);
	/* Its user may write there. */
	cr_assert_eq(mount("reach", "/var/log/squid", "tmpfs", 0, "mode=1777"), 0);
	cli_start(&squid, NULL,
		  (const char *const[]){ "/bin/sh", "-c",
					 "exec /usr/sbin/squid -N -d 1 -f examples/squid.conf 2>&1",
					 NULL });
	cli_await(&squid, "Accepting reverse-proxy");
	reach_start(&cli, REACH_RELAY, REACH_WITH("--inspect", "127.0.0.1:3130"), requests);
	cli_end(&cli);
	reach_expect(&cli, "get: hello from 192.0.2.11");
	reach_expect(&cli, "post: 403");
	cr_assert_eq(kill(squid.pid, SIGTERM), 0);
	cli_end(&squid);
	log = reach_read("/var/log/squid/access.log");
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		cr_expect_not_null(strstr(log, seen[i]), "%s", log);
	cr_expect_eq(strncmp(log, "sluice-run-", strlen("sluice-run-")), 0, "%s", log);
	cli_free(&cli);
	cli_free(&squid);
}

/* HAProxy, as examples/haproxy.cfg sets it up. */
Test(reach_proxy, haproxy)
{
	static const char both[] =
		"for n in one two; do\n"
		"	echo $n: $(curl -sS -m 20 http://$n.reach.test:8080/ 2>&1)\n"
		"done\n";
	struct cli cli, haproxy;

	need("/usr/sbin/haproxy", "");
	reach_policy(plain);
	reach_file("proxied", "one.reach.test\n", 0644);
	cli_start(&haproxy, NULL,
		  (const char *const[]){ "/bin/sh", "-c",
					 "NAMES=" REACH_DIR "/proxied exec /usr/sbin/haproxy -W "
					 "-db -f examples/haproxy.cfg 2>&1",
					 NULL });
	cli_await(&haproxy, "Loading success");
	reach_start(&cli, REACH_RELAY, REACH_WITH("--proxy", "127.0.0.1:3129"), both);
	cli_end(&cli);
	reach_expect(&cli, "one: hello from 192.0.2.10");
	cr_expect_not_null(strstr(cli.out, "two: curl: ("), "%s", cli.out);
	cr_assert_eq(kill(haproxy.pid, SIGTERM), 0);
	cli_end(&haproxy);
	cr_expect_not_null(strstr(haproxy.out, "\nsluice-run-"), "%s", haproxy.out);
	cr_expect_not_null(strstr(haproxy.out, " one.reach.test 192.0.2.10:8080 "), "%s",
			   haproxy.out);
	cli_free(&cli);
	cli_free(&haproxy);
}
