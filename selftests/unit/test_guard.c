/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the guard can't do is refused, never left out. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guard/guard.h"
#include "policy_world.h"

/* Errno of a policy whose one binary is written so, without and with held execs. */
static void expect(const char *binary, int without, int with)
{
	_cleanup_world_ struct policy_world world = { 0 };
	struct sl_err err = { 0 };
	char text[512];

	snprintf(text, sizeof(text),
		 "version: 1\nnetwork_policies:\n  a:\n"
		 "    endpoints: [{ cidr: 192.0.2.0/24, port: 443 }]\n    binaries: [{ %s }]\n",
		 binary);
	policy_world_load(&world, text);
	cr_expect_eq(sl_guard_supports(world.compiled, false, &err), -without, "%s", binary);
	cr_expect_eq(sl_guard_supports(world.compiled, true, &err), -with, "%s", binary);
	if (with)
		cr_expect_neq(err.text[0], '\0');
}

Test(guard, what_it_supports)
{
	expect("path: /usr/bin/curl", 0, 0);
	expect("path: /opt/tool/**", 0, 0);
	expect("path: /usr/bin/env, script: /opt/tool", 0, 0);
	expect("path: /usr/*/curl", ENOTSUP, 0);
	expect("path: /usr/bin/curl, sha256: "
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	       ENOTSUP, 0);
	expect("path: /usr/bin/env, script: /opt/*/tool", ENOTSUP, 0);
	expect("path: /usr/*/env, script: /opt/tool", ENOTSUP, 0);
	expect("path: /usr/bin/curl, strict: true", ENOTSUP, ENOTSUP);
}
