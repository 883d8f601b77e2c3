/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "policy/match.h"
#include "policy/policy.h"

static bool has_address(const struct sl_prefixes *prefixes, const struct sl_addr *addr)
{
	const struct sl_prefix one = { .addr = *addr, .len = 128 };

	for (size_t i = 0; i < prefixes->count; i++)
		if (sl_prefix_covers(&prefixes->items[i], &one))
			return true;
	return false;
}

static bool endpoint_has(const struct sl_policy_endpoint *endpoint, const char *name,
			 const struct sl_addr *addr, uint16_t port)
{
	if (!endpoint->inspected || !sl_ports_have(&endpoint->ports, port))
		return false;
	if (endpoint->kind == SL_ENDPOINT_NAME)
		return name && sl_host_match(endpoint->host, name);
	return has_address(&endpoint->addresses, addr);
}

bool sl_policy_inspects(const struct sl_policy *policy, const char *name,
			const struct sl_addr *addr, uint16_t port)
{
	for (size_t i = 0; i < policy->entry_count; i++)
		for (size_t j = 0; j < policy->entries[i].endpoint_count; j++)
			if (endpoint_has(&policy->entries[i].endpoints[j], name, addr, port))
				return true;
	return false;
}
