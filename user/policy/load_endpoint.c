/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Endpoints and listeners. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/load.h"
#include "policy/match.h"

#define INSPECTION                                                                            \
	"it asks to look into requests, and no inspecting proxy is configured: remove it to " \
	"allow the whole connection, or leave this endpoint out"
#define INSPECTED .refused = INSPECTION, .inspected = true

enum key {
	KEY_HOST,
	KEY_CIDR,
	KEY_PORT,
	KEY_PORTS,
	KEY_TRANSPORT,
	KEY_ALLOWED_IPS,
	KEY_ALLOW_RESERVED,
	KEY_PROTOCOL,
	KEY_TLS,
	KEY_ENFORCEMENT,
	KEY_INSPECTED, /* this and all that follow */
};

/* In the order of enum key; then those of OpenShell that can't be had. */
static const struct sl_load_key endpoint_keys[] = {
	{ .name = "host" },
	{ .name = "cidr" },
	{ .name = "port" },
	{ .name = "ports" },
	{ .name = "transport" },
	{ .name = "allowed_ips" },
	{ .name = "allow_reserved" },
	{ .name = "protocol" },
	{ .name = "tls" },
	{ .name = "enforcement" },
	{ .name = "path", INSPECTED },
	{ .name = "access", INSPECTED },
	{ .name = "rules", INSPECTED },
	{ .name = "deny_rules", INSPECTED },
	{ .name = "allow_encoded_slash", INSPECTED },
	{ .name = "websocket_credential_rewrite", INSPECTED },
	{ .name = "request_body_credential_rewrite", INSPECTED },
	{ .name = "allow_uninspected_credentials", INSPECTED },
	{ .name = "persisted_queries", INSPECTED },
	{ .name = "graphql_persisted_queries", INSPECTED },
	{ .name = "graphql_max_body_bytes", INSPECTED },
	{ .name = "credential_signing", INSPECTED },
	{ .name = "signing_service", INSPECTED },
	{ .name = "signing_region", INSPECTED },
	{ .name = "json_rpc", INSPECTED },
	{ .name = "mcp", INSPECTED },
	{ 0 },
};

static int take_transport(struct sl_loader *loader, const struct sl_yaml_node *node,
			  enum sl_transport *out)
{
	unsigned int word = SL_TRANSPORT_TCP;
	int ret = sl_load_word(loader, node, "transport", sl_transport_names, SL_TRANSPORT_MAX,
			       &word);

	if (!ret)
		*out = (enum sl_transport)word;
	return ret;
}

/*
 * OpenShell's keys may be there with the one value that asks for nothing more, or with any
 * where somebody looks into requests.
 */
static int check_value(struct sl_loader *loader, const struct sl_yaml_node *node, const char *key,
		       const char *good, struct sl_policy_endpoint *endpoint)
{
	const char *text = NULL;
	int ret = node ? sl_load_text(loader, node, key, &text) : 0;

	if (ret || !node || !strcmp(text, good))
		return ret;
	if (loader->inspects) {
		endpoint->inspected = true;
		return 0;
	}
	sl_yaml_fail(&loader->source, EINVAL, node->at, text, "%s: sluice can't enforce it", key);
	return sl_err_hint(loader->source.err, "only `%s: %s` is taken; else " INSPECTION, key,
			   good);
}

static int check_openshell(struct sl_loader *loader, const struct sl_yaml_node *const *values,
			   struct sl_policy_endpoint *endpoint)
{
	int ret = check_value(loader, values[KEY_PROTOCOL], "protocol", "tcp", endpoint);

	if (!ret && values[KEY_PROTOCOL] && endpoint->transport != SL_TRANSPORT_TCP)
		return sl_yaml_fail(&loader->source, EINVAL, values[KEY_PROTOCOL]->at,
				    values[KEY_PROTOCOL]->text,
				    "protocol: it contradicts the transport");
	if (!ret)
		ret = check_value(loader, values[KEY_TLS], "tls", "skip", endpoint);
	if (!ret)
		ret = check_value(loader, values[KEY_ENFORCEMENT], "enforcement", "enforce",
				  endpoint);
	for (size_t i = KEY_INSPECTED; endpoint_keys[i].name; i++)
		endpoint->inspected |= values[i] != NULL;
	if (!ret && endpoint->inspected && endpoint->transport != SL_TRANSPORT_TCP)
		return sl_yaml_fail(&loader->source, EINVAL, endpoint->at, NULL,
				    "what is not TCP can't be handed to an inspecting proxy");
	return ret;
}

static int bad_prefix(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		      int error, const struct sl_prefix *prefix)
{
	const struct sl_yaml_source *source = &loader->source;
	char text[SL_PREFIX_TEXT];

	if (error == -EDOM) {
		sl_yaml_fail(source, EINVAL, node->at, node->text,
			     "%s: the prefix has host bits set", what);
		return sl_err_hint(source->err, "write %s, or the address alone",
				   sl_prefix_format(text, sizeof(text), prefix));
	}
	sl_yaml_fail(source, EINVAL, node->at, node->text,
		     error == -ERANGE ? "%s: the prefix length is out of range"
				      : "%s: not an address or prefix",
		     what);
	return sl_err_hint(source->err, "write 192.0.2.0/24, 2001:db8::/32 or a single address");
}

/* Rule 3 of policy.h. */
static int check_reserved(struct sl_loader *loader, const struct sl_yaml_node *node,
			  const char *what, const struct sl_prefix *prefix, bool allow)
{
	const struct sl_range *range = sl_reserved_prefix(prefix);
	char text[SL_PREFIX_TEXT];

	if (!range && allow)
		return sl_yaml_fail(
			&loader->source, EINVAL, node->at, node->text,
			"allow_reserved, but the prefix is not within a reserved range");
	if (!range || allow)
		return 0;
	sl_prefix_format(text, sizeof(text), &range->prefix);
	sl_yaml_fail(&loader->source, EINVAL, node->at, node->text,
		     "%s: within %s, which is "
		     "reserved: %s",
		     what, text, range->what);
	return sl_err_hint(loader->source.err, "such addresses can be named only by a `cidr` with "
					       "`allow_reserved: true`");
}

static int take_prefix(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		       bool allow_reserved, struct sl_prefix *out)
{
	const char *text = NULL;
	int ret = sl_load_text(loader, node, what, &text);

	if (ret)
		return ret;
	ret = sl_prefix_parse(text, out);
	if (ret)
		return bad_prefix(loader, node, what, ret, out);
	return check_reserved(loader, node, what, out, allow_reserved);
}

static int take_allowed(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	return take_prefix(loader, node, "allowed_ips", false, element);
}

static int compare(const void *a, const void *b)
{
	return sl_prefix_compare(a, b);
}

static int take_prefixes(struct sl_loader *loader, const struct sl_yaml_node *node,
			 struct sl_prefixes *out)
{
	struct sl_prefix *items;
	const void *list = NULL;
	size_t count = 0, used = 0;
	int ret = sl_load_list(loader, node, "allowed_ips", SL_POLICY_ALLOWED_MAX, sizeof(*items),
			       take_allowed, &list, &count);

	if (ret)
		return ret;
	if (!count)
		return sl_yaml_fail(&loader->source, EINVAL, node->at, NULL,
				    "allowed_ips: an empty list can never match");
	items = (struct sl_prefix *)list;
	qsort(items, count, sizeof(*items), compare);
	for (size_t i = 0; i < count; i++) {
		/* What a wider one covers adds nothing. */
		if (!used || !sl_prefix_covers(&items[used - 1], &items[i]))
			items[used++] = items[i];
	}
	out->items = items;
	out->count = used;
	return 0;
}

/* Addresses that a relay has made its own: a rule for them reaches nobody. */
static int note_synthetic(struct sl_loader *loader, const struct sl_yaml_node *node,
			  const struct sl_prefix *prefix)
{
	const struct sl_range *range;
	char text[SL_PREFIX_TEXT];
	int ret = 0;

	for (size_t i = 0; loader->relayed && !ret && (range = sl_synthetic_at(i)); i++) {
		sl_prefix_format(text, sizeof(text), &range->prefix);
		if (sl_prefix_covers(&range->prefix, prefix))
			ret = sl_load_note(loader, SL_NOTE_WARNING, node->at,
					   "'%s' lies in %s, of which the relay makes the "
					   "addresses of names: the rule can't match",
					   node->text, text);
		else if (sl_prefix_covers(prefix, &range->prefix))
			ret = sl_load_note(loader, SL_NOTE_NOTICE, node->at,
					   "of '%s' the relay makes %s addresses of names: hosts "
					   "in there can't be reached",
					   node->text, text);
	}
	return ret;
}

static int one_address(struct sl_loader *loader, const struct sl_yaml_node *node,
		       const struct sl_prefix *prefix, struct sl_policy_endpoint *endpoint)
{
	int ret = note_synthetic(loader, node, prefix);

	if (ret)
		return ret;
	endpoint->kind = SL_ENDPOINT_ADDRESS;
	endpoint->addresses.items = sl_arena_copy(loader->arena, prefix, sizeof(*prefix));
	endpoint->addresses.count = 1;
	return endpoint->addresses.items ? 0 : sl_load_no_memory(loader);
}

/* An address as host: allowed_ips, when given, must have it. */
static int literal_host(struct sl_loader *loader, const struct sl_yaml_node *node,
			struct sl_policy_endpoint *endpoint)
{
	struct sl_prefix prefix;
	bool listed = endpoint->allowed.count == 0;
	int ret = take_prefix(loader, node, "host", false, &prefix);

	if (ret)
		return ret;
	for (size_t i = 0; i < endpoint->allowed.count; i++)
		listed = listed || sl_prefix_covers(&endpoint->allowed.items[i], &prefix);
	if (!listed)
		return sl_yaml_fail(
			&loader->source, EINVAL, node->at, node->text,
			"host: an address that allowed_ips does not have can never match");
	endpoint->allowed = (struct sl_prefixes){ 0 };
	return one_address(loader, node, &prefix, endpoint);
}

static int take_host(struct sl_loader *loader, const struct sl_yaml_node *node,
		     struct sl_policy_endpoint *endpoint)
{
	char name[SL_HOST_MAX + 1];
	struct sl_prefix prefix;
	struct sl_err bare = { 0 };
	const char *text = NULL;
	int ret = sl_load_text(loader, node, "host", &text);

	if (ret)
		return ret;
	ret = sl_prefix_parse(text, &prefix);
	if (!ret && !strchr(text, '/'))
		return literal_host(loader, node, endpoint);
	if (!ret || ret == -EDOM) {
		sl_yaml_fail(&loader->source, EINVAL, node->at, text, "host: a prefix is no host");
		return sl_err_hint(loader->source.err, "write it as `cidr`");
	}
	if (sl_host_pattern_normal(name, text, &bare)) {
		sl_err_prefix(&bare, "host");
		return sl_yaml_locate(&loader->source, node->at, text, &bare);
	}
	if (sl_host_is_local(name)) {
		ret = sl_load_note(loader, SL_NOTE_WARNING, node->at,
				   "'%s' is loopback, which is "
				   "reserved: the rule can't match",
				   name);
		if (ret)
			return ret;
	}
	endpoint->kind = SL_ENDPOINT_NAME;
	return sl_load_keep(loader, name, &endpoint->host);
}

static int take_destination(struct sl_loader *loader, const struct sl_yaml_node *node,
			    const struct sl_yaml_node *const *values,
			    struct sl_policy_endpoint *endpoint)
{
	const struct sl_yaml_source *source = &loader->source;
	struct sl_prefix prefix;
	int ret;

	if (values[KEY_HOST] && values[KEY_CIDR])
		return sl_yaml_fail(source, EINVAL, node->at, NULL,
				    "both `host` and `cidr`; expected is one of them");
	if (values[KEY_ALLOW_RESERVED] && !values[KEY_CIDR])
		return sl_yaml_fail(source, EINVAL, values[KEY_ALLOW_RESERVED]->at, NULL,
				    "allow_reserved goes with a `cidr` only");
	if (values[KEY_CIDR] && values[KEY_ALLOWED_IPS])
		return sl_yaml_fail(source, EINVAL, values[KEY_ALLOWED_IPS]->at, NULL,
				    "allowed_ips has no meaning beside a `cidr`");
	if (values[KEY_HOST])
		return take_host(loader, values[KEY_HOST], endpoint);
	if (values[KEY_CIDR]) {
		ret = take_prefix(loader, values[KEY_CIDR], "cidr", endpoint->allow_reserved,
				  &prefix);
		return ret ? ret : one_address(loader, values[KEY_CIDR], &prefix, endpoint);
	}
	if (!endpoint->allowed.count) {
		sl_yaml_fail(source, EINVAL, node->at, NULL, "an endpoint without destination");
		return sl_err_hint(source->err, "expected is `host`, `cidr` or `allowed_ips`");
	}
	endpoint->kind = SL_ENDPOINT_ADDRESS;
	endpoint->addresses = endpoint->allowed;
	endpoint->allowed = (struct sl_prefixes){ 0 };
	return 0;
}

int sl_load_endpoint(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	const struct sl_yaml_node *values[SL_LOAD_KEYS_MAX] = { NULL };
	struct sl_policy_endpoint *endpoint = element;
	int ret = sl_load_map(loader, node, "endpoint", endpoint_keys, values);

	_Static_assert(ARRAY_SIZE(endpoint_keys) <= SL_LOAD_KEYS_MAX, "keys of an endpoint");
	endpoint->at = node->at;
	if (!ret)
		ret = take_transport(loader, values[KEY_TRANSPORT], &endpoint->transport);
	if (!ret)
		ret = check_openshell(loader, values, endpoint);
	if (!ret)
		ret = sl_load_bool(loader, values[KEY_ALLOW_RESERVED], &endpoint->allow_reserved);
	if (!ret && values[KEY_ALLOWED_IPS])
		ret = take_prefixes(loader, values[KEY_ALLOWED_IPS], &endpoint->allowed);
	if (!ret)
		ret = take_destination(loader, node, values, endpoint);
	return ret ? ret
		   : sl_load_ports(loader, node, values[KEY_PORT], values[KEY_PORTS],
				   &endpoint->ports);
}

int sl_load_listen(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	static const struct sl_load_key keys[] = {
		{ .name = "port" }, { .name = "ports" }, { .name = "transport" }, { 0 }
	};
	const struct sl_yaml_node *values[ARRAY_SIZE(keys)] = { NULL };
	struct sl_policy_listen *listen = element;
	int ret = sl_load_map(loader, node, "listen", keys, values);

	listen->at = node->at;
	if (!ret)
		ret = take_transport(loader, values[2], &listen->transport);
	return ret ? ret : sl_load_ports(loader, node, values[0], values[1], &listen->ports);
}
