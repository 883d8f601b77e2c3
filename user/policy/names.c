/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules by name, and the classes that an address gets by the names it was learned for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/compile_private.h"

struct item {
	uint32_t host; /* number in compiled->hosts */
	uint32_t port_class;
	uint32_t allowed; /* number of the set of allowed_ips; 0: not given */
	uint32_t rule;
};

struct key {
	uint32_t host;
	uint32_t port_class;
};

/* Rows [first, first + count) of compiled->names. */
struct value {
	uint32_t first;
	uint32_t count;
};

/* Sets of allowed_ips, numbered. */
struct allowed {
	struct sl_intern *texts;
	struct sl_array sets; /* const struct sl_prefixes *, by number */
};

static const struct sl_prefixes no_prefixes;

/* The bytes of a set, without the padding of its structs. */
static char *serialize(const struct sl_prefixes *set, size_t *len)
{
	const size_t one = sizeof(struct sl_addr) + 1;
	char *bytes = malloc(set->count * one + 1);

	for (size_t i = 0; bytes && i < set->count; i++) {
		memcpy(bytes + i * one, &set->items[i].addr, sizeof(struct sl_addr));
		bytes[i * one + one - 1] = (char)set->items[i].len;
	}
	*len = set->count * one;
	return bytes;
}

static int number_allowed(struct allowed *allowed, const struct sl_prefixes *set, uint32_t *out)
{
	const struct sl_prefixes **at;
	bool added = false;
	size_t len;
	char *bytes = serialize(set, &len);

	if (!bytes)
		return -ENOMEM;
	*out = sl_intern_add(allowed->texts, bytes, len, &added);
	free(bytes);
	if (*out == SL_INTERN_NONE)
		return -ENOMEM;
	at = added ? sl_array_add(&allowed->sets) : NULL;
	if (at)
		*at = set;
	return added && !at ? -ENOMEM : 0;
}

static int collect_endpoint(struct sl_compiled *compiled, struct sl_array *items,
			    struct allowed *allowed, const struct sl_policy_endpoint *endpoint,
			    uint32_t set, uint32_t rule)
{
	size_t count;
	const uint32_t *classes = sl_port_map_classes(&compiled->ports, set, &count);
	uint32_t host =
		sl_intern_add(compiled->hosts, endpoint->host, strlen(endpoint->host), NULL);
	uint32_t number = 0;
	int ret = number_allowed(allowed, &endpoint->allowed, &number);

	if (host == SL_INTERN_NONE)
		return -ENOMEM;
	compiled->wild_hosts = compiled->wild_hosts || sl_host_is_wild(endpoint->host);
	for (size_t i = 0; i < count && !ret; i++) {
		struct item *item;

		if (items->count == SL_POLICY_ROWS_MAX)
			return -E2BIG;
		item = sl_array_add(items);
		if (!item)
			return -ENOMEM;
		*item = (struct item){ host, classes[i], number, rule };
	}
	return ret;
}

static int collect(struct sl_compiled *compiled, struct sl_array *items, struct allowed *allowed)
{
	const struct sl_policy *policy = compiled->policy;
	uint32_t none;
	size_t at = 0;
	int ret = number_allowed(allowed, &no_prefixes, &none);

	for (uint32_t rule = 0; rule < policy->entry_count; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		for (size_t i = 0; i < entry->endpoint_count && !ret; i++, at++) {
			if (entry->endpoints[i].kind == SL_ENDPOINT_NAME)
				ret = collect_endpoint(compiled, items, allowed,
						       &entry->endpoints[i],
						       compiled->endpoint_sets[at], rule);
		}
	}
	return ret;
}

static int by_row(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->port_class != y->port_class)
		return x->port_class < y->port_class ? -1 : 1;
	if (x->allowed != y->allowed)
		return x->allowed < y->allowed ? -1 : 1;
	return (x->rule > y->rule) - (x->rule < y->rule);
}

static bool same_row(const struct item *a, const struct item *b)
{
	return a->host == b->host && a->port_class == b->port_class && a->allowed == b->allowed;
}

static int add_row(struct sl_compiled *compiled, const struct allowed *allowed,
		   const struct item *item, uint32_t class_id)
{
	const struct key key = { item->host, item->port_class };
	struct sl_name_row *row = sl_array_add(&compiled->names);
	struct value *value;
	bool added = false;

	value = row ? sl_htab_add(compiled->name_index, &key, &added) : NULL;
	if (!value)
		return -ENOMEM;
	if (added)
		value->first = (uint32_t)compiled->names.count - 1;
	value->count++;
	row->port_class = item->port_class;
	row->host = sl_intern_at(compiled->hosts, item->host, NULL);
	row->allowed = *(const struct sl_prefixes **)sl_array_at(&allowed->sets, item->allowed);
	row->class_id = class_id;
	/* The rows of each host are together, and hosts come in the order of their numbers. */
	while (compiled->host_first.count <= item->host) {
		uint32_t *first = sl_array_add(&compiled->host_first);

		if (!first)
			return -ENOMEM;
		*first = (uint32_t)compiled->names.count - 1;
	}
	return 0;
}

static int make_withheld(struct sl_compiled *compiled)
{
	sl_class_begin(&compiled->classes);
	sl_class_add_flags(&compiled->classes, SL_CLASS_RESERVED);
	return sl_class_end(&compiled->classes, &compiled->withheld_class);
}

static int make_rows(struct sl_compiled *compiled, const struct allowed *allowed,
		     struct sl_array *array)
{
	const struct item *items = array->data;
	uint32_t *end;
	size_t to;

	if (array->count)
		qsort(array->data, array->count, array->item, by_row);
	for (size_t from = 0; from < array->count; from = to) {
		uint32_t class_id = SL_CLASS_NONE;
		int ret;

		sl_class_begin(&compiled->classes);
		for (to = from; to < array->count && same_row(&items[from], &items[to]); to++)
			sl_class_add_rule(&compiled->classes, items[to].rule);
		ret = sl_class_end(&compiled->classes, &class_id);
		if (!ret)
			ret = add_row(compiled, allowed, &items[from], class_id);
		if (ret)
			return ret;
	}
	end = sl_array_add(&compiled->host_first);
	if (!end)
		return -ENOMEM;
	*end = (uint32_t)compiled->names.count;
	return 0;
}

int sl_compile_names(struct sl_compiled *compiled, struct sl_err *err)
{
	struct allowed allowed = { .sets = SL_ARRAY(const struct sl_prefixes *) };
	struct sl_array items = SL_ARRAY(struct item);
	bool collected = false;
	int ret = sl_intern_new(&compiled->hosts);

	compiled->names = (struct sl_array)SL_ARRAY(struct sl_name_row);
	compiled->host_first = (struct sl_array)SL_ARRAY(uint32_t);
	if (!ret)
		ret = sl_htab_new(&compiled->name_index, sizeof(struct key), sizeof(struct value));
	if (!ret)
		ret = sl_intern_new(&allowed.texts);
	if (!ret)
		ret = collect(compiled, &items, &allowed);
	collected = !ret;
	if (!ret && items.count)
		ret = make_withheld(compiled);
	if (!ret)
		ret = make_rows(compiled, &allowed, &items);
	sl_intern_free(&allowed.texts);
	sl_array_free(&allowed.sets);
	sl_array_free(&items);
	if (!ret)
		return 0;
	return collected ? sl_compile_class_fail(compiled, err, ret)
			 : sl_compile_fail(compiled, err, ret, "names times kinds of ports",
					   SL_POLICY_ROWS_MAX);
}

/* A walk over the patterns that match a name: itself, "*." and "**." with what is behind a dot. */
struct patterns {
	const struct sl_compiled *compiled;
	const char *name;
	const char *rest; /* from a dot on; NULL: not begun; "": done */
	bool one_label;   /* "*." of the first dot has been tried */
};

static uint32_t find_wild(const struct patterns *walk, const char *stars)
{
	char pattern[SL_HOST_MAX + 3];
	const char *end = stpcpy(stpcpy(pattern, stars), walk->rest);

	return sl_intern_find(walk->compiled->hosts, pattern, (size_t)(end - pattern));
}

/* The next pattern that the policy has; SL_INTERN_NONE at the end. */
static uint32_t next_pattern(struct patterns *walk)
{
	uint32_t host;

	if (!walk->rest) {
		size_t len = strlen(walk->name);

		/* What is not in normal form, a pattern for one, is no name. */
		walk->rest = "";
		if (len > SL_HOST_MAX || strchr(walk->name, '*'))
			return SL_INTERN_NONE;
		if (walk->compiled->wild_hosts)
			walk->rest = walk->name + strcspn(walk->name, ".");
		host = sl_intern_find(walk->compiled->hosts, walk->name, len);
		if (host != SL_INTERN_NONE)
			return host;
	}
	while (*walk->rest) {
		if (!walk->one_label) {
			walk->one_label = true;
			host = find_wild(walk, "*");
		} else {
			host = find_wild(walk, "**");
			walk->rest += 1 + strcspn(walk->rest + 1, ".");
		}
		if (host != SL_INTERN_NONE)
			return host;
	}
	return SL_INTERN_NONE;
}

enum sl_withheld sl_name_withheld(const char *host, const struct sl_prefixes *allowed,
				  const struct sl_addr *addr, enum sl_addr_kind kind)
{
	if (kind == SL_ADDR_SYNTHETIC)
		return SL_WITHHELD_NOT;
	if (sl_reserved_addr(addr))
		return SL_WITHHELD_RESERVED;
	for (size_t i = 0; i < allowed->count; i++) {
		if (sl_prefix_has(&allowed->items[i], addr))
			return SL_WITHHELD_NOT;
	}
	if (allowed->count)
		return SL_WITHHELD_UNLISTED;
	if (kind == SL_ADDR_OWN)
		return SL_WITHHELD_OWN;
	return sl_host_is_wild(host) && sl_private_addr(addr) ? SL_WITHHELD_PRIVATE
							      : SL_WITHHELD_NOT;
}

bool sl_compiled_host(const struct sl_compiled *compiled, const char *name)
{
	struct patterns walk = { .compiled = compiled, .name = name };

	return next_pattern(&walk) != SL_INTERN_NONE;
}

bool sl_compiled_host_exact(const struct sl_compiled *compiled, const char *name)
{
	return !strchr(name, '*') &&
	       sl_intern_find(compiled->hosts, name, strlen(name)) != SL_INTERN_NONE;
}

int sl_compiled_name_each(const struct sl_compiled *compiled, uint32_t port_class, const char *name,
			  const struct sl_addr *addr, enum sl_addr_kind kind,
			  int (*row)(uint32_t class_id, void *arg), void *arg)
{
	struct patterns walk = { .compiled = compiled, .name = name };
	uint32_t host;
	int ret = 0;

	while (!ret && (host = next_pattern(&walk)) != SL_INTERN_NONE) {
		const struct key key = { host, port_class };
		const struct value *rows = sl_htab_get(compiled->name_index, &key);

		for (uint32_t i = 0; rows && i < rows->count && !ret; i++) {
			const struct sl_name_row *at =
				sl_array_at(&compiled->names, rows->first + i);

			ret = row(sl_name_withheld(at->host, at->allowed, addr, kind)
					  ? compiled->withheld_class
					  : at->class_id,
				  arg);
		}
	}
	return ret;
}

bool sl_compiled_answer(const struct sl_compiled *compiled, const char *name,
			const struct sl_addr *addr, enum sl_addr_kind kind)
{
	struct patterns walk = { .compiled = compiled, .name = name };
	const uint32_t *first = compiled->host_first.data;
	uint32_t host;

	while ((host = next_pattern(&walk)) != SL_INTERN_NONE) {
		for (uint32_t i = first[host]; i < first[host + 1]; i++) {
			const struct sl_name_row *row = sl_array_at(&compiled->names, i);

			if (!sl_name_withheld(row->host, row->allowed, addr, kind))
				return true;
		}
	}
	return false;
}

static int add_class(uint32_t class_id, void *arg)
{
	struct sl_compiled *compiled = arg;

	sl_class_add_class(&compiled->classes, class_id);
	return 0;
}

int sl_compiled_address(struct sl_compiled *compiled, enum sl_transport transport, uint16_t port,
			const struct sl_addr *addr, enum sl_addr_kind kind,
			const char *const *names, size_t count, uint32_t *class_id)
{
	uint32_t port_class = sl_compiled_port(compiled, transport, port);

	if (port_class == SL_PORT_CLASS_NONE) {
		*class_id = SL_CLASS_NONE;
		return 0;
	}
	sl_class_begin(&compiled->classes);
	sl_class_add_class(&compiled->classes, sl_compiled_dest(compiled, port_class, addr));
	for (size_t i = 0; i < count; i++)
		sl_compiled_name_each(compiled, port_class, names[i], addr, kind, add_class,
				      compiled);
	return sl_class_end(&compiled->classes, class_id);
}
