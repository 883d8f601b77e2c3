/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is told of a policy before anything runs. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "run/hints.h"
#include "unit/policy_world.h"

static char text[4096], path[64];

static void write_file(const char *content)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/sl-hints-XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
	close(fd);
}

static bool script(const char *content)
{
	bool found;

	write_file(content);
	text[0] = '\0';
	found = sl_hint_script(text, sizeof(text), "web", path);
	unlink(path);
	return found;
}

Test(hints, scripts)
{
	cr_expect(script("#!/usr/bin/env node\n"));
	cr_expect_not_null(strstr(text, "that /usr/bin/env finds; write that one's path"), "%s",
			   text);
	cr_expect(script("#! /bin/sh -e\nexit\n"));
	cr_expect_not_null(strstr(text, "write path: /bin/sh, script: /tmp/sl-hints"), "%s", text);
	cr_expect(script("#!/a\x1b[1m"));
	cr_expect_null(strchr(text, '\x1b'), "%s", text);
	cr_expect_not(script("\x7f"
			     "ELF"));
	cr_expect_not(script("#"));
	cr_expect_not(script(""));
	cr_expect_not(script("#!  \n"));
	cr_expect_not(sl_hint_script(text, sizeof(text), "web", "/nowhere/x"));
	cr_expect_not(sl_hint_script(text, sizeof(text), "web", "/dev"));
}

Test(hints, nameservers)
{
	struct sl_addr servers[SL_NAMESERVERS_MAX];
	char shown[SL_PREFIX_TEXT];
	struct sl_prefix prefix = { .len = 128 };

	write_file("# nameserver 192.0.2.9\nsearch x\nnameserver 192.0.2.1\n"
		   " nameserver\t2001:db8::1\nnameserver fe80::1%eth0\nnameserver x\n"
		   "nameserver 192.0.2.3\n");
	cr_assert_eq(sl_nameservers(path, servers), 3);
	unlink(path);
	prefix.addr = servers[1];
	cr_expect_str_eq(sl_prefix_format(shown, sizeof(shown), &prefix), "2001:db8::1");
	prefix.addr = servers[2];
	cr_expect_str_eq(sl_prefix_format(shown, sizeof(shown), &prefix), "fe80::1");
	cr_expect_eq(sl_nameservers("/nowhere/x", servers), 0);
}

static bool resolver(const char *endpoints, const char *server)
{
	_cleanup_world_ struct policy_world world;
	struct sl_prefix prefix;
	char yaml[512];

	snprintf(yaml, sizeof(yaml),
		 "version: 1\nnetwork_policies:\n"
		 "  web: {endpoints: [%s], binaries: [{path: /b}]}\n",
		 endpoints);
	policy_world_load(&world, yaml);
	cr_assert_eq(sl_prefix_parse(server, &prefix), 0);
	return sl_hint_resolver(text, sizeof(text), world.compiled, 0, &prefix.addr, 1);
}

Test(hints, names_need_a_resolver)
{
	cr_expect(resolver("{host: a.org, port: 443}", "192.0.2.53"));
	cr_expect_not_null(strstr(text, "; add to 'web': endpoints: [{cidr: \"192.0.2.53/32\", "
					"port: 53, transport: udp}]"),
			   "%s", text);
	cr_expect(resolver("{host: a.org, port: 443}", "127.0.0.53"));
	cr_expect_not_null(strstr(text, "allow_reserved: true"), "%s", text);
	cr_expect_not(resolver("{cidr: 192.0.2.7/32, port: 443}", "192.0.2.53"));
	cr_expect_not(resolver("{host: a.org, port: 443}, "
			       "{cidr: 192.0.2.53/32, port: 53, transport: udp}",
			       "192.0.2.53"));
	/* TCP alone is not what a resolver asks by. */
	cr_expect(resolver("{host: a.org, port: 443}, {cidr: 192.0.2.53/32, port: 53}",
			   "192.0.2.53"));
}
