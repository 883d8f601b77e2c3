/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a policy file: loaded, compiled, asked. What is refused must say where; what
 * is taken must answer in bounds, and decide() and the lease's class must agree.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "policy/bits.h"
#include "policy/decide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void ask(struct sl_compiled *compiled, const char *path, const char *name, const char *addr,
		uint16_t port)
{
	const struct sl_image images[] = { { .path = path, .script = path },
					   { .path = "/bin/sh" } };
	struct sl_query query = { .images = images, .image_count = 2, .port = port };
	struct sl_near near[SL_NEAR_MAX];
	struct sl_lineage_bits lineage;
	struct sl_decision decision;
	uint32_t class_id = 0;
	size_t entries = sl_compiled_policy(compiled)->entry_count;

	query.names = &name;
	query.name_count = 1;
	check(!sl_parse_addr(addr, query.addr.be));
	sl_decide(compiled, &query, &decision);
	check(decision.rule == SL_RULE_NONE || decision.rule < entries);
	check(sl_near_miss(compiled, &query, &decision, near, SL_NEAR_MAX) <= SL_NEAR_MAX);
	sl_query_lineage(compiled, &query, &lineage);
	check(!sl_compiled_address(compiled, SL_TRANSPORT_TCP, port, &query.addr, SL_ADDR_REAL,
				   &name, 1, &class_id));
	check(sl_bits_meet(sl_compiled_class(compiled, class_id).allowed, &lineage.match) ==
	      (decision.verdict == SL_VERDICT_ALLOW));
}

static void use(const struct sl_policy *policy)
{
	struct sl_compiled *compiled = NULL;
	struct sl_err err = { 0 };
	const char *path = "/usr/bin/curl", *name = "a.example.org";
	uint16_t port = 443;

	if (sl_compiled_new(&compiled, policy, &err)) {
		check(err.text[0] != '\0');
		return;
	}
	for (size_t i = 0; i < policy->entry_count && i < 4; i++) {
		const struct sl_policy_entry *entry = &policy->entries[i];

		if (entry->binary_count)
			path = entry->binaries[0].path;
		if (entry->endpoint_count && entry->endpoints[0].host)
			name = entry->endpoints[0].host;
		if (entry->endpoint_count)
			port = entry->endpoints[0].ports.ranges[0].first;
		ask(compiled, path, name, "192.0.2.1", port);
		ask(compiled, path, name, "10.0.0.1", port);
		ask(compiled, path, name, "169.254.169.254", port);
		ask(compiled, path, name, "2001:db8::1", port);
	}
	sl_compiled_free(&compiled);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };

	if (!sl_policy_load(&policy, (const char *)data, size, "f", &err)) {
		use(policy);
		sl_policy_free(&policy);
		return 0;
	}
	check(!policy && !strncmp(err.text, "f:", 2) && !strchr(err.text, '\n'));
	return 0;
}
