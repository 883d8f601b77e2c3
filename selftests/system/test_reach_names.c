/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions of policy DNS that are odd, expected to fail, or many. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/reach.h"

TestSuite(reach_names, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char some[] =
	"  some:\n"
	"    endpoints:\n"
	"      - { host: one.reach.test, port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: _dmarc.reach.test, port: 53, allowed_ips: [192.0.2.0/24] }\n"
	"      - { host: '**.wild.test', port: 8080, allowed_ips: [192.0.2.0/24] }\n"
	"    binaries: [{ path: /usr/bin/dig }, { path: /usr/bin/python3 }]\n";

static void expect_decision(const char *name, bool there)
{
	struct json_object *event = reach_event("decision", "name", name);

	cr_expect_eq(event != NULL, there, "%s", name);
	if (event) {
		cr_expect_str_eq(json_text(event, "proto"), "dns");
		cr_expect_str_eq(json_text(event, "process.exe.path"), "/usr/bin/dig");
	}
	json_object_put(event);
}

/* As apt, mail programs and resolvers with search domains ask. */
Test(reach_names, odd_and_expected)
{
	static const char script[] =
		"say() { echo \"$1: $(dig +tries=1 $2 \"$3\" | grep -o 'status: [A-Z]*')\"; }\n"
		"say srv SRV _http._tcp.one.reach.test\n"
		"say searched A one.reach.test.search.test\n"
		"say both SRV _http._tcp.one.reach.test.search.test\n"
		"say text TXT _http._tcp.one.reach.test\n"
		"say dmarc TXT _dmarc.reach.test\n"
		"say odd A 'sp\\032ace.reach.test'\n"
		"say wild A 'a\\007b.wild.test'\n";
	struct cli cli;

	reach_policy(some);
	reach_run(&cli, REACH_DIRECT, script);
	reach_expect(&cli, "srv: status: NXDOMAIN");
	reach_expect(&cli, "searched: status: NXDOMAIN");
	reach_expect(&cli, "both: status: NXDOMAIN");
	reach_expect(&cli, "text: status: REFUSED");
	reach_expect(&cli, "dmarc: status: NXDOMAIN");
	reach_expect(&cli, "odd: status: REFUSED");
	reach_expect(&cli, "wild: status: REFUSED");
	cr_expect_not(reach_asked("_http._tcp.one.reach.test"));
	cr_expect_not(reach_asked("one.reach.test.search.test"));
	cr_expect(reach_asked("_dmarc.reach.test"));
	expect_decision("_http._tcp.one.reach.test", true); /* of the text alone */
	expect_decision("one.reach.test.search.test", false);
	expect_decision("_http._tcp.one.reach.test.search.test", false);
	expect_decision("sp\\032ace.reach.test", true);
	expect_decision("a\\007b.wild.test", true);
	cr_expect_not_null(strstr(cli.err, "sluice: 3 denied\n"), "%s", cli.err);
	cr_expect_null(strchr(cli.err, '\a'));
	cli_free(&cli);
}

/* Sends so many questions from one socket; counts so many answers by their rcode. */
static const char burst[] =
	"import collections, socket, struct, sys\n"
	"count, wait = int(sys.argv[1]), int(sys.argv[2])\n"
	"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
	"s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)\n"
	"s.connect(('192.0.2.53', 53))\n"
	"s.settimeout(60)\n"
	"for i in range(count):\n"
	"    name = b'n%d' % i\n"
	"    s.send(struct.pack('>6H', i, 256, 1, 0, 0, 0) + bytes([len(name)]) + name +\n"
	"           b'\\4wild\\4test\\0' + struct.pack('>2H', 1, 1))\n"
	"got = collections.Counter(s.recv(512)[3] & 15 for _ in range(wait))\n"
	"print(sorted(got.items()))\n"
	"E\n";

static void run_burst(struct cli *cli, unsigned int count, unsigned int wait)
{
	char script[2048];

	snprintf(script, sizeof(script), "/usr/bin/python3 - %u %u <<'E'\n%s", count, wait, burst);
	reach_policy(some);
	reach_run(cli, REACH_DIRECT, script);
}

/* A burst as of npm is answered whole: here none of the names exists. */
Test(reach_names, burst)
{
	struct cli cli;

	run_burst(&cli, 600, 600);
	reach_expect(&cli, "[(3, 600)]");
	cr_expect_null(strstr(cli.err, "too many"), "%s", cli.err);
	cli_free(&cli);
}

/* With an upstream that says nothing, what is one too many is refused at once, and told. */
Test(reach_names, too_many)
{
	struct cli cli;

	cr_assert_eq(kill(reach_dns_pid(), SIGSTOP), 0);
	run_burst(&cli, 1200, 1200 - 1152);
	cr_expect_eq(kill(reach_dns_pid(), SIGCONT), 0);
	reach_expect(&cli, "[(2, 48)]");
	cr_expect_not_null(strstr(cli.err, "48 questions to policy DNS were refused"), "%s",
			   cli.err);
	cli_free(&cli);
}
