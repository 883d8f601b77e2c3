/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "policy/withheld.h"

#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/format.h"

#define PORTS_TEXT 256

struct found {
	const struct sl_policy_entry *entry;
	const struct sl_policy_endpoint *endpoint;
};

static bool find(struct found *found, const struct sl_policy *policy, const char *name,
		 uint16_t port)
{
	for (size_t i = 0; i < policy->entry_count; i++) {
		const struct sl_policy_entry *entry = &policy->entries[i];

		for (size_t j = 0; j < entry->endpoint_count; j++) {
			const struct sl_policy_endpoint *endpoint = &entry->endpoints[j];

			if (!endpoint->host || !sl_host_match(endpoint->host, name))
				continue;
			if (!found->endpoint)
				*found = (struct found){ entry, endpoint };
			if (!port || sl_ports_have(&endpoint->ports, port)) {
				*found = (struct found){ entry, endpoint };
				return true;
			}
		}
	}
	return found->endpoint;
}

/* As the policy's grammar has them: "port: 443", "ports: [80, \"8000-8010\"]". */
static bool format_ports(char *dst, size_t size, const struct sl_ports *ports, uint16_t port)
{
	const struct sl_port_range *range = ports->ranges;
	size_t used;

	if (port || (ports->count == 1 && range->first == range->last)) {
		snprintf(dst, size, "port: %u", port ? port : range->first);
		return true;
	}
	used = (size_t)snprintf(dst, size, "ports: [");
	for (size_t i = 0; i < ports->count && used < size; i++, range++)
		used += (size_t)snprintf(dst + used, size - used,
					 range->first == range->last ? "%s%u" : "%s\"%u-%u\"",
					 i ? ", " : "", range->first, range->last);
	if (used < size)
		used += (size_t)snprintf(dst + used, size - used, "]");
	return used < size;
}

/* Whether it is the machine's own is not asked: it is what else withholds an address. */
static const char *why(const struct sl_policy_endpoint *endpoint, const struct sl_addr *addr)
{
	switch (sl_name_withheld(endpoint->host, &endpoint->allowed, addr, SL_ADDR_OWN)) {
	case SL_WITHHELD_RESERVED:
		return sl_reserved_addr(addr)->what;
	case SL_WITHHELD_UNLISTED:
		return "not in its allowed_ips";
	default:
		if (sl_host_is_wild(endpoint->host) && sl_private_addr(addr))
			return sl_private_addr(addr)->what;
		return "this machine's own";
	}
}

const char *sl_withheld_text(char *dst, size_t size, const struct sl_policy *policy,
			     const char *name, uint16_t port, const struct sl_addr *addr)
{
	char shown[SL_ESCAPE_MAX(SL_HOST_MAX)], key[SL_ESCAPE_MAX(SL_POLICY_KEY_MAX)];
	char at[SL_FORMAT_MAX], ports[PORTS_TEXT];
	struct found found = { 0 };
	int used;

	dst[0] = '\0';
	if (!find(&found, policy, name, port) ||
	    !format_ports(ports, sizeof(ports), &found.endpoint->ports, port))
		return dst;
	sl_escape_text(shown, sizeof(shown), name);
	sl_escape_text(key, sizeof(key), found.entry->key);
	sl_format_addr(at, sizeof(at), addr->be);
	if (sl_reserved_addr(addr))
		used = snprintf(dst, size,
				"no name may lead to %s (%s): that takes a `cidr` of just such "
				"addresses with `allow_reserved: true`",
				at, why(found.endpoint, addr));
	else
		used = snprintf(dst, size,
				"if it may lead to %s (%s), add to '%s': endpoints: [{host: %s, "
				"%s%s, allowed_ips: [\"%s/%u\"]}]",
				at, why(found.endpoint, addr), key, shown, ports,
				found.endpoint->transport == SL_TRANSPORT_UDP ? ", transport: udp"
									      : "",
				at, sl_addr_is_v4(addr) ? 32U : 128U);
	if (used < 0 || (size_t)used >= size)
		dst[0] = '\0';
	return dst;
}
