/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sluice policy check, show, explain: what a person and a program read. */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/object.h"
#include "cli/commands.h"

static const struct sl_command root = {
	.name = "sluice",
	.summary = "test",
	.subcommands = (const struct sl_command *const[]){ &sl_cmd_policy, NULL },
};

static const char policy[] =
	"version: 1\n"
	"landlock: {}\n"
	"network_policies:\n"
	"  reg:\n"
	"    endpoints:\n"
	"    - {host: reg.example.org, port: 443}\n"
	"    - {host: '*.cdn.example.org', port: 80, allowed_ips: [10.2.0.0/16]}\n"
	"    binaries: [{path: /usr/bin/node, descendants: false}]\n";

static char path[] = "/tmp/sl-policy-XXXXXX";
static char out[16384], errors[4096];

static void write_policy(void)
{
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, policy, strlen(policy)), (ssize_t)strlen(policy));
	close(fd);
}

static void remove_policy(void)
{
	unlink(path);
}

/* Runs a line with FILE for the policy's path; returns the exit status. */
static int sluice(const char *first, ...)
{
	char *argv[24] = { (char *)"sluice", (char *)"policy" };
	FILE *old_out = stdout, *old_err = stderr;
	int argc = 2, status;
	va_list words;

	va_start(words, first);
	for (const char *word = first; word; word = va_arg(words, const char *))
		argv[argc++] = strcmp(word, "FILE") ? (char *)word : path;
	va_end(words);
	memset(out, 0, sizeof(out));
	memset(errors, 0, sizeof(errors));
	stdout = fmemopen(out, sizeof(out) - 1, "w");
	stderr = fmemopen(errors, sizeof(errors) - 1, "w");
	status = sl_cli_main(&root, argc, argv);
	fclose(stdout);
	fclose(stderr);
	stdout = old_out;
	stderr = old_err;
	return status;
}

static void has(const char *text, const char *part)
{
	cr_expect_not_null(strstr(text, part), "'%s' lacks '%s'", text, part);
}

TestSuite(policy_cli, .init = write_policy, .fini = remove_policy);

Test(policy_cli, tree_is_sound)
{
	struct sl_err err = { 0 };

	cr_expect_eq(sl_command_check(&root, &err), 0, "%s", err.text);
}

Test(policy_cli, check_lists_notes)
{
	cr_expect_eq(sluice("check", "FILE", NULL), 0, "%s", errors);
	has(out, "entries: 1\nendpoints: 2\nbinaries: 1\n");
	has(out, "notice     2       1  'landlock' is not sluice's concern and left alone\n");
	cr_expect_eq(sluice("-j", "check", "FILE", NULL), 0);
	has(out, "\"notes\":[{\"kind\":\"notice\",\"line\":2,\"column\":1,\"text\":");
}

Test(policy_cli, check_fails_with_one_error)
{
	FILE *file = fopen(path, "a");

	cr_assert_not_null(file);
	fputs("mode: of\x1b\n", file);
	fclose(file);
	cr_expect_eq(sluice("check", "FILE", NULL), 1);
	has(errors, ":9:9: character U+001B is not allowed\n");
	cr_expect_str_empty(out);
}

Test(policy_cli, show)
{
	cr_expect_eq(sluice("show", "FILE", NULL), 0);
	has(out, "reg       7  endpoint  *.cdn.example.org  80     tcp        only 10.2.0.0/16\n");
	has(out,
	    "reg       8  binary    /usr/bin/node      -      -          without descendants\n");
}

Test(policy_cli, explain_allowed)
{
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "REG.example.org:443", NULL),
		     0, "%s", errors);
	has(out, "verdict: allow\n");
	/* By the name: no address is made up for it. */
	has(out, "rule: reg\nline: 4\nhost: reg.example.org\nport: 443\naddress_is: any that ");
	has(out, "names: looked up by policy DNS as clients ask");
	cr_expect_null(strstr(out, "to:"), "%s", out);
	/* A name whose rule has allowed_ips: one of these would do. */
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "a.cdn.example.org:80", NULL),
		     0);
	has(out, "verdict: allow\n");
	has(out, "host: a.cdn.example.org\nport: 80\naddress_is: ");
	cr_expect_null(strstr(out, "to:"), "%s", out);
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "a.cdn.example.org:80", "--address", "10.3.0.1", NULL),
		     0);
	has(out, "verdict: deny\nreason: reserved-address\n");
	has(out, "to: 10.3.0.1:80\n");
	has(out,
	    "advice: if it may lead to 10.3.0.1 (not in its allowed_ips), add to 'reg': "
	    "endpoints: [{host: a.cdn.example.org, port: 80, allowed_ips: [\"10.3.0.1/32\"]}]\n");
	cr_expect_null(strstr(out, "address_is"));
}

/* A name that no rule has, and one that is an address in all but name. */
Test(policy_cli, explain_names_without_a_rule)
{
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "other.example.org:443", NULL),
		     0);
	has(out, "verdict: deny\nreason: endpoint\n");
	has(out, "host: other.example.org\nport: 443\naddress_is: not looked up: no rule has the ");
	cr_expect_null(strstr(out, "to:"), "%s", out);
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to", "LocalHost:443",
			    NULL),
		     0);
	has(out, "verdict: deny\nreason: reserved-address\n");
	has(out, "host: localhost\nport: 443\nto: 127.0.0.1:443\naddress_is: loopback (RFC 6761)");
	cr_expect_null(strstr(out, "names:"), "%s", out);
}

Test(policy_cli, explain_near_misses)
{
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/bin/sh", "--exe", "/usr/bin/node", "--to",
			    "reg.example.org:443", NULL),
		     0);
	has(out, "verdict: deny\nreason: binary\n");
	has(out, "reg      8  binary  /usr/bin/node without descendants\n");
	cr_expect_eq(sluice("-j", "explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "a.cdn.example.org:443", NULL),
		     0);
	has(out, "\"reason\":\"endpoint\"");
	has(out, "\"rule\":null");
	has(out, "\"near\":[{\"rule\":\"reg\",\"line\":7,");
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/usr/bin/node", "--to",
			    "[2001:db8::1]:443", "--transport", "udp", NULL),
		     0);
	has(out, "to: [2001:db8::1]:443\ntransport: udp\n");
	cr_expect_null(strstr(out, "names:"));
}

Test(policy_cli, explain_says_what_is_wrong_with_the_question)
{
	static const char *const bad[][2] = {
		{ "reg.example.org", "no destination" },
		{ ":443", "no destination" },
		{ "a:0", "no destination" },
		{ "192.0.2.1:0", "no destination" },
		{ "a!b:1", "no host name" },
		{ "a:70000", "no destination" },
		{ "*.example.org:443", "is a pattern" },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(sluice("explain", "FILE", "--exe", "/a", "--to", bad[i][0], NULL), 1);
		has(errors, bad[i][1]);
	}
	cr_expect_eq(sluice("explain", "FILE", "--to", "a:1", NULL), 1);
	has(errors, "no --exe");
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/a", NULL), 1);
	has(errors, "--to");
	cr_expect_eq(sluice("explain", "FILE", "--exe", "a", "--to", "a:1", NULL), 2);
	has(errors, "no absolute path");
	cr_expect_eq(
		sluice("explain", "FILE", "--exe", "/a", "--to", "a:1", "--sha256", "12", NULL), 1);
	has(errors, "no SHA-256");
	cr_expect_eq(sluice("explain", "FILE", "--exe", "/a", "--to", "1.1.1.1:1", "--address",
			    "1.1.1.1", NULL),
		     1);
	has(errors, "--address goes with a name");
}
