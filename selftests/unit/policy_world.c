/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "policy_world.h"

void policy_world_load(struct policy_world *world, const char *text)
{
	struct sl_err err = { 0 };

	world->policy = NULL;
	world->compiled = NULL;
	cr_assert_eq(sl_policy_load(&world->policy, text, strlen(text), "p.yaml", &err), 0,
		     "%s (%s)\n%s", err.text, err.hint, text);
	cr_assert_eq(sl_compiled_new(&world->compiled, world->policy, &err), 0, "%s\n%s", err.text,
		     text);
}

void policy_world_free(struct policy_world *world)
{
	sl_compiled_free(&world->compiled);
	sl_policy_free(&world->policy);
}

struct sl_addr policy_addr(const char *text)
{
	struct sl_addr addr;

	cr_assert_eq(sl_parse_addr(text, addr.be), 0, "%s", text);
	return addr;
}

struct sl_decision policy_world_ask(const struct policy_world *world, const char *exe,
				    const char *parent, const char *addr, uint16_t port,
				    const char *name)
{
	const struct sl_image images[] = { { .path = exe }, { .path = parent } };
	const struct sl_query query = {
		.images = images,
		.image_count = parent ? 2 : 1,
		.transport = SL_TRANSPORT_TCP,
		.port = port,
		.addr = policy_addr(addr),
		.names = &name,
		.name_count = name != NULL,
	};
	struct sl_decision decision;

	sl_decide(world->compiled, &query, &decision);
	return decision;
}

const char *policy_says(const struct policy_world *world, const struct sl_decision *decision)
{
	static char texts[4][160];
	static unsigned int next;
	char *text = texts[next++ % 4];
	bool allow = decision->verdict == SL_VERDICT_ALLOW;

	snprintf(text, sizeof(texts[0]), "%s%s%s%s%s", sl_verdict_name(decision->verdict),
		 allow ? "" : " ", allow ? "" : sl_reason_name(decision->reason),
		 decision->rule == SL_RULE_NONE ? "" : " ",
		 decision->rule == SL_RULE_NONE ? "" : world->policy->entries[decision->rule].key);
	return text;
}

void policy_world_says(const struct policy_world *world, const char *exe, const char *addr,
		       uint16_t port, const char *name, const char *expected)
{
	const struct sl_decision decision = policy_world_ask(world, exe, NULL, addr, port, name);

	cr_expect_str_eq(policy_says(world, &decision), expected, "%s to %s:%u (%s): %s", exe, addr,
			 port, name, policy_says(world, &decision));
}
