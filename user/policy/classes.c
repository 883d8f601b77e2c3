/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/bits.h"
#include "policy/classes.h"

_Static_assert(sizeof(struct sl_class_head) == 2 * sizeof(uint32_t) &&
		       sizeof(struct sl_class_pair) == 2 * sizeof(uint32_t),
	       "what is interned has no padding");

int sl_classes_init(struct sl_classes *classes, const struct sl_rule_bits *rules)
{
	uint32_t none;
	int ret = sl_intern_new(&classes->heads);

	classes->allowed = (struct sl_array)SL_ARRAY(struct sl_bits);
	classes->rules = rules;
	if (ret)
		return ret;
	sl_class_begin(classes);
	return sl_class_end(classes, &none);
}

void sl_classes_clear(struct sl_classes *classes)
{
	sl_intern_free(&classes->heads);
	sl_array_free(&classes->allowed);
}

void sl_class_begin(struct sl_classes *classes)
{
	memset(&classes->bits, 0, sizeof(classes->bits));
	classes->flags = 0;
	classes->first_rule = SL_RULE_NONE;
}

static void add_pair(struct sl_classes *classes, uint32_t rule, uint32_t bit)
{
	if (!sl_bits_test(&classes->bits, bit) || rule < classes->rule_of[bit])
		classes->rule_of[bit] = rule;
	sl_bits_set(&classes->bits, bit);
}

void sl_class_add_rule(struct sl_classes *classes, uint32_t rule)
{
	const struct sl_rule_bits *bits = &classes->rules[rule];

	if (rule < classes->first_rule)
		classes->first_rule = rule;
	for (size_t i = 0; i < bits->count; i++)
		add_pair(classes, rule, bits->bits[i]);
}

static const struct sl_class_head *head_of(const struct sl_classes *classes, uint32_t id,
					   size_t *pairs)
{
	size_t len = 0;
	const struct sl_class_head *head = sl_intern_at(classes->heads, id, &len);

	*pairs = (len - sizeof(*head)) / sizeof(head->pairs[0]);
	return head;
}

void sl_class_add_class(struct sl_classes *classes, uint32_t id)
{
	size_t count;
	const struct sl_class_head *head = head_of(classes, id, &count);

	classes->flags |= head->flags;
	if (head->first_rule < classes->first_rule)
		classes->first_rule = head->first_rule;
	for (size_t i = 0; i < count; i++)
		add_pair(classes, head->pairs[i].rule, head->pairs[i].bit);
}

void sl_class_add_flags(struct sl_classes *classes, unsigned int flags)
{
	classes->flags |= flags;
}

static int by_rule(const void *a, const void *b)
{
	const struct sl_class_pair *x = a, *y = b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return (x->bit > y->bit) - (x->bit < y->bit);
}

int sl_class_end(struct sl_classes *classes, uint32_t *id)
{
	struct sl_class_head *head = (struct sl_class_head *)classes->scratch;
	struct sl_bits *allowed;
	size_t count = 0, len;
	bool added = false;
	uint32_t found;

	head->flags = classes->flags;
	head->first_rule = classes->first_rule;
	for (uint32_t word = 0; word < SL_POLICY_WORDS; word++) {
		for (uint64_t left = classes->bits.word[word]; left; left &= left - 1) {
			uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(left);

			head->pairs[count].rule = classes->rule_of[bit];
			head->pairs[count++].bit = bit;
		}
	}
	qsort(head->pairs, count, sizeof(head->pairs[0]), by_rule);
	len = sizeof(*head) + count * sizeof(head->pairs[0]);
	found = sl_intern_find(classes->heads, classes->scratch, len);
	if (found != SL_INTERN_NONE) {
		*id = found;
		return 0;
	}
	if (classes->allowed.count == SL_POLICY_CLASSES_MAX ||
	    classes->pair_count + count > SL_POLICY_CLASS_PAIRS_MAX)
		return -E2BIG;
	/* The bits first: an array that is one too long does no harm, and is cut again. */
	allowed = sl_array_add(&classes->allowed);
	if (!allowed)
		return -ENOMEM;
	*allowed = classes->bits;
	found = sl_intern_add(classes->heads, classes->scratch, len, &added);
	if (found == SL_INTERN_NONE) {
		classes->allowed.count--;
		return -ENOMEM;
	}
	classes->pair_count += count;
	*id = found;
	return 0;
}

struct sl_class sl_class_at(const struct sl_classes *classes, uint32_t id)
{
	size_t count;
	const struct sl_class_head *head = head_of(classes, id, &count);

	return (struct sl_class){
		.allowed = sl_array_at(&classes->allowed, id),
		.flags = head->flags,
		.first_rule = head->first_rule,
	};
}

uint32_t sl_class_rule(const struct sl_classes *classes, uint32_t id, const struct sl_bits *bits)
{
	size_t count;
	const struct sl_class_head *head = head_of(classes, id, &count);

	for (size_t i = 0; i < count; i++) {
		if (sl_bits_test(bits, head->pairs[i].bit))
			return head->pairs[i].rule;
	}
	return SL_RULE_NONE;
}
