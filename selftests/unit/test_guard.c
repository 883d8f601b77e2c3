/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the guard can't do is refused, never left out. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "guard/guard.h"
#include "policy_world.h"

/* Errno of a policy whose one binary is written so, by who holds what. */
static void expect_top(const char *top, const char *binary, int nothing, int exec, int calls)
{
	_cleanup_world_ struct policy_world world = { 0 };
	const struct {
		enum sl_guard_holder holder;
		int errnum;
	} want[] = {
		{ SL_GUARD_HOLDS_NOTHING, nothing },
		{ SL_GUARD_HOLDS_EXEC, exec },
		{ SL_GUARD_HOLDS_CALLS, calls },
	};
	char text[512];

	snprintf(text, sizeof(text),
		 "version: 1\n%snetwork_policies:\n  a:\n"
		 "    endpoints: [{ cidr: 192.0.2.0/24, port: 443 }]\n    binaries: [{ %s }]\n",
		 top, binary);
	policy_world_load(&world, text);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct sl_err err = { 0 };

		cr_expect_eq(sl_guard_supports(world.compiled, want[i].holder, &err),
			     -want[i].errnum, "%s%s: %zu", top, binary, i);
		cr_expect_eq(err.text[0] != '\0', want[i].errnum != 0);
	}
}

static void expect(const char *binary, int nothing)
{
	expect_top("", binary, nothing, 0, 0);
}

Test(guard, what_it_supports)
{
	expect("path: /usr/bin/curl", 0);
	expect("path: /opt/tool/**", 0);
	expect("path: /usr/bin/env, script: /opt/tool", 0);
	expect("path: /usr/*/curl", ENOTSUP);
	expect("path: /usr/bin/curl, sha256: "
	       "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	       ENOTSUP);
	expect("path: /usr/bin/env, script: /opt/*/tool", ENOTSUP);
	expect("path: /usr/*/env, script: /opt/tool", ENOTSUP);
	expect_top("integrity: pins\n", "path: /usr/bin/curl", 0, 0, 0);
	expect_top("integrity: first-use\n", "path: /usr/bin/curl", ENOTSUP, 0, ENOTSUP);
	/* What else strict takes (ptrace and its kin) only a filter can refuse. */
	expect("path: /usr/bin/curl, strict: true", ENOTSUP);
}
