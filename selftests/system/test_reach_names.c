/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Questions of policy DNS that are odd, expected to fail, or many. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "system/reach.h"

TestSuite(reach_names, .init = reach_up, .fini = reach_down, .timeout = 120);

static const char some[] = "  some:\n"
			   "    endpoints:\n"
			   "      - { host: one.reach.test, port: 8080 }\n"
			   "      - { host: _dmarc.reach.test, port: 53 }\n"
			   "      - { host: '**.wild.test', port: 8080 }\n"
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
