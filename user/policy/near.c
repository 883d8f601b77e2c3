/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a denied query came close to (decide.h). */
#include <string.h>

#include "policy/bits.h"
#include "policy/compile_private.h"
#include "policy/decide.h"

/* How alike an endpoint and a query are: the destination counts more than the port. */
enum { LIKE_TRANSPORT = 1, LIKE_PORT = 2, LIKE_DESTINATION = 4 };

/* Wide prefixes leave the reserved ranges out. */
static bool prefix_names(const struct sl_prefix *prefix, const struct sl_addr *addr)
{
	const struct sl_range *range = sl_reserved_addr(addr);

	return sl_prefix_has(prefix, addr) && (!range || sl_prefix_covers(&range->prefix, prefix));
}

/* `lets`: the rule must let the name have the address, too. */
static bool same_destination(const struct sl_policy_endpoint *endpoint,
			     const struct sl_query *query, bool lets)
{
	for (size_t i = 0; i < endpoint->addresses.count; i++) {
		if (prefix_names(&endpoint->addresses.items[i], &query->addr))
			return true;
	}
	for (size_t i = 0; endpoint->host && i < query->name_count; i++) {
		if (sl_host_match(endpoint->host, query->names[i]) &&
		    (!lets || !sl_name_withheld(endpoint->host, &endpoint->allowed, &query->addr,
						query->kind)))
			return true;
	}
	return false;
}

static unsigned int likeness(const struct sl_policy_endpoint *endpoint,
			     const struct sl_query *query, bool lets)
{
	unsigned int like = 0;

	if (endpoint->transport == query->transport)
		like |= LIKE_TRANSPORT;
	if (sl_ports_have(&endpoint->ports, query->port))
		like |= LIKE_PORT;
	if (same_destination(endpoint, query, lets))
		like |= LIKE_DESTINATION;
	return like;
}

/* Whether the lineage matches a binary of the entry. */
static bool matches(const struct sl_compiled *compiled, const struct sl_bits *match, uint32_t rule)
{
	const struct sl_rule_bits *bits = &compiled->rules[rule];

	for (size_t i = 0; i < bits->count; i++) {
		if (sl_bits_test(match, bits->bits[i]))
			return true;
	}
	return false;
}

struct found {
	struct sl_near *out;
	unsigned int like[SL_NEAR_MAX];
	size_t count, max;
};

/* Keeps the best ones, equal ones in file order. */
static void offer(struct found *found, const struct sl_near *near, unsigned int like)
{
	size_t at = found->count;

	while (at > 0 && found->like[at - 1] < like)
		at--;
	if (at == found->max)
		return;
	if (found->count < found->max)
		found->count++;
	for (size_t i = found->count - 1; i > at; i--) {
		found->out[i] = found->out[i - 1];
		found->like[i] = found->like[i - 1];
	}
	found->out[at] = *near;
	found->like[at] = like;
}

static void near_endpoints(const struct sl_compiled *compiled, const struct sl_query *query,
			   const struct sl_bits *match, struct found *found)
{
	const struct sl_policy *policy = compiled->policy;

	for (uint32_t rule = 0; rule < policy->entry_count; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		if (!matches(compiled, match, rule))
			continue;
		for (size_t i = 0; i < entry->endpoint_count; i++) {
			const struct sl_near near = {
				.rule = rule,
				.endpoint = &entry->endpoints[i],
			};

			offer(found, &near, likeness(near.endpoint, query, false));
		}
	}
}

static bool names_listener(const struct sl_policy_entry *entry, const struct sl_query *query)
{
	for (size_t i = 0; i < entry->listen_count; i++) {
		if (entry->listens[i].transport == query->transport &&
		    sl_ports_have(&entry->listens[i].ports, query->port))
			return true;
	}
	return false;
}

static bool names_destination(const struct sl_policy_entry *entry, const struct sl_query *query)
{
	const unsigned int all = LIKE_TRANSPORT | LIKE_PORT | LIKE_DESTINATION;

	if (query->listen)
		return names_listener(entry, query);
	for (size_t i = 0; i < entry->endpoint_count; i++) {
		if (likeness(&entry->endpoints[i], query, true) == all)
			return true;
	}
	return false;
}

static void near_binaries(const struct sl_compiled *compiled, const struct sl_query *query,
			  struct found *found)
{
	const struct sl_policy *policy = compiled->policy;

	for (uint32_t rule = 0; rule < policy->entry_count && found->count < found->max; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		if (!names_destination(entry, query))
			continue;
		for (size_t i = 0; i < entry->binary_count; i++) {
			const struct sl_near near = { .rule = rule, .binary = &entry->binaries[i] };

			offer(found, &near, 0);
		}
	}
}

/* Entries to which a port to listen on might be added. */
static void near_listeners(const struct sl_compiled *compiled, const struct sl_bits *match,
			   struct found *found)
{
	for (uint32_t rule = 0; rule < compiled->policy->entry_count; rule++) {
		const struct sl_near near = { .rule = rule };

		if (matches(compiled, match, rule))
			offer(found, &near, compiled->policy->entries[rule].listen_count ? 1 : 0);
	}
}

size_t sl_near_miss(const struct sl_compiled *compiled, const struct sl_query *query,
		    const struct sl_decision *decision, struct sl_near *out, size_t max)
{
	struct found found = { .out = out };
	struct sl_lineage_bits lineage;

	found.max = max < SL_NEAR_MAX ? max : SL_NEAR_MAX;
	switch (decision->reason) {
	case SL_REASON_BINARY:
	case SL_REASON_INTEGRITY:
	case SL_REASON_STRICT:
		near_binaries(compiled, query, &found);
		break;
	case SL_REASON_ENDPOINT:
	case SL_REASON_RESERVED_ADDRESS:
		sl_query_lineage(compiled, query, &lineage);
		if (!query->listen)
			near_endpoints(compiled, query, &lineage.match, &found);
		break;
	case SL_REASON_LISTEN:
		sl_query_lineage(compiled, query, &lineage);
		near_listeners(compiled, &lineage.match, &found);
		break;
	default:
		break;
	}
	return found.count;
}
