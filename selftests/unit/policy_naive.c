/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <string.h>

#include "policy_naive.h"

static bool bit_at(const struct sl_addr *addr, unsigned int i)
{
	return ntohl(addr->be[i / 32]) >> (31 - i % 32) & 1;
}

static bool bits_equal(const struct sl_addr *a, const struct sl_addr *b, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++) {
		if (bit_at(a, i) != bit_at(b, i))
			return false;
	}
	return true;
}

static bool is_v4(const struct sl_addr *addr)
{
	const struct sl_addr v4 = { { 0, 0, htonl(0xffff), 0 } };

	return bits_equal(addr, &v4, 96);
}

static bool in_prefix(const struct sl_prefix *prefix, const struct sl_addr *addr)
{
	return bits_equal(&prefix->addr, addr, prefix->len) && (prefix->len >= 96 || !is_v4(addr));
}

/* The narrowest reserved range that has the address. */
static const struct sl_prefix *reserved(const struct sl_addr *addr)
{
	const struct sl_prefix *best = NULL;
	const struct sl_range *range;

	for (size_t i = 0; (range = sl_reserved_at(i)); i++) {
		if (bits_equal(&range->prefix.addr, addr, range->prefix.len) &&
		    (!best || range->prefix.len > best->len))
			best = &range->prefix;
	}
	return best;
}

static bool address_names(const struct sl_policy_endpoint *endpoint, const struct sl_addr *addr)
{
	const struct sl_prefix *limit = reserved(addr);

	for (size_t i = 0; i < endpoint->addresses.count; i++) {
		const struct sl_prefix *prefix = &endpoint->addresses.items[i];

		if (in_prefix(prefix, addr) && (!limit || prefix->len >= limit->len))
			return true;
	}
	return false;
}

static unsigned int dots(const char *text)
{
	unsigned int count = 0;

	for (; *text; text++)
		count += *text == '.';
	return count;
}

static bool ends_with(const char *text, const char *end)
{
	return strlen(text) > strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

static bool name_matches(const char *host, const char *name)
{
	if (!strncmp(host, "**.", 3))
		return ends_with(name, host + 2);
	if (!strncmp(host, "*.", 2))
		return ends_with(name, host + 1) && dots(name) == dots(host);
	return !strcmp(host, name);
}

static bool name_lets(const struct sl_policy_endpoint *endpoint, const struct sl_query *query)
{
	const struct sl_addr *addr = &query->addr;
	bool listed = false;

	if (reserved(addr))
		return false;
	for (size_t i = 0; i < endpoint->allowed.count; i++)
		listed = listed || in_prefix(&endpoint->allowed.items[i], addr);
	if (endpoint->allowed.count)
		return listed;
	return query->kind != SL_ADDR_OWN && (endpoint->host[0] != '*' || !sl_private_addr(addr));
}

static bool port_named(const struct sl_ports *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->count; i++) {
		if (port >= ports->ranges[i].first && port <= ports->ranges[i].last)
			return true;
	}
	return false;
}

/* `withheld`: it has the name, and the name may not have the address. */
static bool endpoint_named(const struct sl_policy_endpoint *endpoint, const struct sl_query *query,
			   bool *withheld)
{
	if (endpoint->transport != query->transport || !port_named(&endpoint->ports, query->port))
		return false;
	if (endpoint->kind == SL_ENDPOINT_ADDRESS)
		return address_names(endpoint, &query->addr);
	for (size_t i = 0; i < query->name_count; i++) {
		if (!name_matches(endpoint->host, query->names[i]))
			continue;
		if (name_lets(endpoint, query))
			return true;
		*withheld = true;
	}
	return false;
}

static bool entry_named(const struct sl_policy_entry *entry, const struct sl_query *query,
			bool *withheld)
{
	for (size_t i = 0; query->listen && i < entry->listen_count; i++) {
		if (entry->listens[i].transport == query->transport &&
		    port_named(&entry->listens[i].ports, query->port))
			return true;
	}
	for (size_t i = 0; !query->listen && i < entry->endpoint_count; i++) {
		if (endpoint_named(&entry->endpoints[i], query, withheld))
			return true;
	}
	return false;
}

static bool glob(const char *pattern, const char *text)
{
	bool across = pattern[0] == '*' && pattern[1] == '*';

	if (!*pattern)
		return !*text;
	if (*pattern != '*')
		return *pattern == *text && glob(pattern + 1, text + 1);
	for (;; text++) {
		if (glob(pattern + strspn(pattern, "*"), text))
			return true;
		if (!*text || (!across && *text == '/'))
			return false;
	}
}

enum answer { NO, WRONG_BYTES, STRICTLY, YES };

/* Whether the bytes are the ones trusted for the path: a pin for it, right or wrong, says it. */
static bool image_changed(const struct sl_policy *policy, const struct sl_image *image)
{
	bool pinned = false;

	for (size_t i = 0; policy->first_use && i < policy->entry_count; i++) {
		for (size_t j = 0; j < policy->entries[i].binary_count; j++) {
			const struct sl_policy_binary *binary = &policy->entries[i].binaries[j];

			if (!binary->sha256 || !glob(binary->path, image->path))
				continue;
			if (image->sha256 && !memcmp(image->sha256, binary->sha256, SL_SHA256_LEN))
				return false;
			pinned = true;
		}
	}
	return pinned || image->changed;
}

static enum answer image_matches(const struct sl_policy *policy,
				 const struct sl_policy_binary *binary,
				 const struct sl_image *image, bool ancestor)
{
	if (!image->path || (ancestor && !binary->descendants))
		return NO;
	if (!glob(binary->path, image->path))
		return NO;
	if (binary->script && (!image->script || !glob(binary->script, image->script)))
		return NO;
	if (binary->sha256)
		return image->sha256 && !memcmp(image->sha256, binary->sha256, SL_SHA256_LEN)
			       ? YES
			       : WRONG_BYTES;
	return image_changed(policy, image) ? WRONG_BYTES : YES;
}

/* A strict binary is not handed on through images that the loader was told about. */
static enum answer strictly(enum answer answer, const struct sl_query *query, size_t at)
{
	bool leaf = query->images[0].loader, above = false;

	for (size_t i = 1; i <= at; i++)
		above |= query->images[i].loader;
	if (!leaf && !above)
		return answer;
	if (at == 0)
		return answer == NO ? NO : STRICTLY;
	return answer == YES && !above ? STRICTLY : NO;
}

static enum answer entry_matches(const struct sl_policy *policy,
				 const struct sl_policy_entry *entry, const struct sl_query *query)
{
	enum answer best = NO;

	for (size_t i = 0; i < entry->binary_count; i++) {
		for (size_t j = 0; j < query->image_count; j++) {
			enum answer answer = image_matches(policy, &entry->binaries[i],
							   &query->images[j], j > 0);

			if (entry->binaries[i].strict)
				answer = strictly(answer, query, j);
			best = answer > best ? answer : best;
		}
	}
	return best;
}

void policy_naive_decide(const struct sl_policy *policy, const struct sl_query *query,
			 struct sl_decision *out)
{
	uint32_t first[] = { SL_RULE_NONE, SL_RULE_NONE, SL_RULE_NONE, SL_RULE_NONE };
	uint32_t named = SL_RULE_NONE;
	bool withheld = false;

	for (uint32_t i = 0; i < policy->entry_count; i++) {
		enum answer answer;

		if (!entry_named(&policy->entries[i], query, &withheld))
			continue;
		answer = entry_matches(policy, &policy->entries[i], query);
		named = named == SL_RULE_NONE ? i : named;
		first[answer] = first[answer] == SL_RULE_NONE ? i : first[answer];
	}
	out->verdict = policy->mode == SL_POLICY_AUDIT ? SL_VERDICT_AUDIT : SL_VERDICT_DENY;
	out->rule = named;
	if (!query->image_count || !query->images[0].path) {
		out->reason = SL_REASON_NO_IDENTITY;
	} else if (first[YES] != SL_RULE_NONE) {
		*out = (struct sl_decision){ SL_VERDICT_ALLOW, SL_REASON_NONE, first[YES] };
	} else if (first[STRICTLY] != SL_RULE_NONE) {
		out->reason = SL_REASON_STRICT;
		out->rule = first[STRICTLY];
	} else if (first[WRONG_BYTES] != SL_RULE_NONE) {
		out->reason = SL_REASON_INTEGRITY;
		out->rule = first[WRONG_BYTES];
	} else if (named != SL_RULE_NONE) {
		out->reason = SL_REASON_BINARY;
	} else {
		out->reason = !query->listen && (withheld || reserved(&query->addr))
				      ? SL_REASON_RESERVED_ADDRESS
				      : SL_REASON_ENDPOINT;
	}
}
