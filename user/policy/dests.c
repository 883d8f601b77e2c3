/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prefixes and their classes. Sorted, a prefix comes before all that it covers, so one
 * pass with a stack of open prefixes gives each the class of those around it. Barriers end
 * that: a reserved range begins from nothing, and so does IPv4 within ::/0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/compile_private.h"

struct item {
	uint32_t port_class;
	uint32_t rule; /* SL_RULE_NONE: a barrier */
	struct sl_prefix prefix;
};

struct key {
	uint32_t port_class;
	uint32_t len;
	struct sl_addr addr;
};

struct open {
	struct sl_prefix prefix;
	uint32_t class_id;
};

static const struct sl_prefix v4_prefix = {
	.addr = { { 0, 0, SL_BE32(0xffff), 0 } },
	.len = 96,
};

static int add_item(struct sl_array *items, uint32_t port_class, const struct sl_prefix *prefix,
		    uint32_t rule)
{
	struct item *item;

	if (items->count == SL_POLICY_ROWS_MAX)
		return -E2BIG;
	item = sl_array_add(items);
	if (!item)
		return -ENOMEM;
	item->port_class = port_class;
	item->rule = rule;
	item->prefix = *prefix;
	return 0;
}

/* Where a prefix must not reach. */
static int add_barriers(struct sl_array *items, uint32_t port_class, const struct sl_prefix *prefix)
{
	const struct sl_range *range;
	int ret = 0;

	if (prefix->len < v4_prefix.len && sl_prefix_covers_bits(prefix, &v4_prefix))
		ret = add_item(items, port_class, &v4_prefix, SL_RULE_NONE);
	for (size_t i = 0; (range = sl_reserved_at(i)) && !ret; i++) {
		if (prefix->len < range->prefix.len &&
		    sl_prefix_covers_bits(prefix, &range->prefix))
			ret = add_item(items, port_class, &range->prefix, SL_RULE_NONE);
	}
	return ret;
}

static int collect_endpoint(struct sl_compiled *compiled, struct sl_array *items,
			    const struct sl_policy_endpoint *endpoint, uint32_t set, uint32_t rule)
{
	size_t count;
	const uint32_t *classes = sl_port_map_classes(&compiled->ports, set, &count);
	int ret = 0;

	for (size_t i = 0; i < endpoint->addresses.count && !ret; i++) {
		for (size_t j = 0; j < count && !ret; j++)
			ret = add_item(items, classes[j], &endpoint->addresses.items[i], rule);
	}
	return ret;
}

static int by_prefix(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order;

	if (x->port_class != y->port_class)
		return x->port_class < y->port_class ? -1 : 1;
	order = sl_prefix_compare(&x->prefix, &y->prefix);
	if (order)
		return order;
	return (x->rule > y->rule) - (x->rule < y->rule);
}

static bool same_row(const struct item *a, const struct item *b)
{
	return a->port_class == b->port_class && !sl_prefix_compare(&a->prefix, &b->prefix);
}

static void sort_items(struct sl_array *items)
{
	if (items->count)
		qsort(items->data, items->count, items->item, by_prefix);
}

static int collect(struct sl_compiled *compiled, struct sl_array *items)
{
	const struct sl_policy *policy = compiled->policy;
	size_t endpoint = 0, count;
	int ret = 0;

	for (uint32_t rule = 0; rule < policy->entry_count; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		for (size_t i = 0; i < entry->endpoint_count && !ret; i++, endpoint++)
			ret = collect_endpoint(compiled, items, &entry->endpoints[i],
					       compiled->endpoint_sets[endpoint], rule);
	}
	sort_items(items);
	count = items->count;
	for (size_t i = 0; i < count && !ret; i++) {
		struct item *item = sl_array_at(items, i);

		/* Adding moves the items. */
		if (i == 0 || !same_row(item - 1, item)) {
			struct item copy = *item;

			ret = add_barriers(items, copy.port_class, &copy.prefix);
		}
	}
	sort_items(items);
	return ret;
}

/* Adds a row and its entries in the index. */
static int add_row(struct sl_compiled *compiled, const struct item *item, uint32_t class_id)
{
	const struct key key = {
		.port_class = item->port_class,
		.len = item->prefix.len,
		.addr = item->prefix.addr,
	};
	struct sl_lengths *lengths = &compiled->lengths[item->port_class];
	struct sl_dest_row *row = sl_array_add(&compiled->dests);
	uint32_t *value = row ? sl_htab_add(compiled->dest_index, &key, NULL) : NULL;

	if (!value)
		return -ENOMEM;
	*row = (struct sl_dest_row){ item->port_class, item->prefix, class_id };
	*value = class_id;
	lengths->word[key.len / 64] |= 1ULL << (key.len % 64);
	return 0;
}

/* The class of the rows at [from, to), within the class of what is open around them. */
static int row_class(struct sl_compiled *compiled, const struct item *items, size_t from, size_t to,
		     uint32_t around, uint32_t *class_id)
{
	struct sl_classes *classes = &compiled->classes;
	bool barrier = items[to - 1].rule == SL_RULE_NONE;

	sl_class_begin(classes);
	if (!barrier)
		sl_class_add_class(classes, around);
	else if (sl_reserved_prefix(&items[from].prefix))
		sl_class_add_flags(classes, SL_CLASS_RESERVED);
	for (size_t i = from; i < to && items[i].rule != SL_RULE_NONE; i++)
		sl_class_add_rule(classes, items[i].rule);
	return sl_class_end(classes, class_id);
}

static int make_rows(struct sl_compiled *compiled, const struct sl_array *array)
{
	const struct item *items = array->data;
	struct open stack[130]; /* a chain of prefixes: each longer than the one before */
	size_t depth = 0, to;
	int ret = 0;

	for (size_t from = 0; from < array->count && !ret; from = to) {
		uint32_t class_id = SL_CLASS_NONE;

		if (from && items[from].port_class != items[from - 1].port_class)
			depth = 0;
		for (to = from + 1; to < array->count && same_row(&items[from], &items[to]);)
			to++;
		while (depth &&
		       !sl_prefix_covers_bits(&stack[depth - 1].prefix, &items[from].prefix))
			depth--;
		ret = row_class(compiled, items, from, to,
				depth ? stack[depth - 1].class_id : SL_CLASS_NONE, &class_id);
		if (ret)
			return ret;
		stack[depth++] = (struct open){ items[from].prefix, class_id };
		ret = add_row(compiled, &items[from], class_id);
	}
	return ret;
}

int sl_compile_dests(struct sl_compiled *compiled, struct sl_err *err)
{
	struct sl_array items = SL_ARRAY(struct item);
	int ret = sl_htab_new(&compiled->dest_index, sizeof(struct key), sizeof(uint32_t));

	compiled->dests = (struct sl_array)SL_ARRAY(struct sl_dest_row);
	compiled->lengths = calloc(compiled->ports.class_count + 1u, sizeof(*compiled->lengths));
	if (!ret)
		ret = compiled->lengths ? collect(compiled, &items) : -ENOMEM;
	if (ret) {
		sl_array_free(&items);
		return sl_compile_fail(compiled, err, ret, "addresses times kinds of ports",
				       SL_POLICY_ROWS_MAX);
	}
	ret = make_rows(compiled, &items);
	sl_array_free(&items);
	return ret ? sl_compile_class_fail(compiled, err, ret) : 0;
}

uint32_t sl_compiled_dest(const struct sl_compiled *compiled, uint32_t port_class,
			  const struct sl_addr *addr)
{
	const struct sl_lengths *lengths = &compiled->lengths[port_class];

	for (int word = 2; word >= 0; word--) {
		for (uint64_t left = lengths->word[word]; left;) {
			unsigned int bit = 63 - (unsigned int)__builtin_clzll(left);
			unsigned int len = (unsigned int)word * 64 + bit;
			struct sl_prefix prefix = sl_prefix_of(addr, len);
			const struct key key = { port_class, len, prefix.addr };
			const uint32_t *found = sl_htab_get(compiled->dest_index, &key);

			if (found)
				return *found;
			left &= ~(1ULL << bit);
		}
	}
	return SL_CLASS_NONE;
}
