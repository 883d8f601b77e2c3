/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Destination classes: interned sets of (bit, lowest entry with it). Private to the
 * compiler; compile.h says what they mean.
 *
 *	sl_class_begin(classes);
 *	sl_class_add_rule(classes, rule);	as often as needed, with
 *	sl_class_add_class(classes, id);	these two in any order
 *	sl_class_end(classes, &id);
 */
#ifndef SLUICE_USER_POLICY_CLASSES_H
#define SLUICE_USER_POLICY_CLASSES_H

#include "base/intern.h"
#include "policy/compile.h"

struct sl_class_pair {
	uint32_t rule;
	uint32_t bit;
};

/* What is interned; pairs sorted by rule, then bit, each bit once. */
struct sl_class_head {
	uint32_t flags;
	uint32_t first_rule;
	struct sl_class_pair pairs[];
};

/* The bits of an entry's binaries. */
struct sl_rule_bits {
	const uint16_t *bits;
	size_t count;
};

struct sl_classes {
	struct sl_intern *heads;
	struct sl_array allowed;          /* struct sl_bits, by class */
	size_t pair_count;                /* of all classes */
	const struct sl_rule_bits *rules; /* by entry; borrowed */
	/* The class that is being built: rule_of[bit] is valid for the bits in `bits`. */
	struct sl_bits bits;
	uint32_t rule_of[SL_POLICY_BITS];
	uint32_t flags, first_rule;
	uint32_t scratch[2 + 2 * SL_POLICY_BITS]; /* a head and its pairs */
};

/* Makes class 0, SL_CLASS_NONE. */
int sl_classes_init(struct sl_classes *classes, const struct sl_rule_bits *rules);
void sl_classes_clear(struct sl_classes *classes);

void sl_class_begin(struct sl_classes *classes);
void sl_class_add_rule(struct sl_classes *classes, uint32_t rule);
void sl_class_add_class(struct sl_classes *classes, uint32_t id);
void sl_class_add_flags(struct sl_classes *classes, unsigned int flags);
/* -E2BIG: SL_POLICY_CLASSES_MAX or SL_POLICY_CLASS_PAIRS_MAX; -ENOMEM. */
int sl_class_end(struct sl_classes *classes, uint32_t *id);

struct sl_class sl_class_at(const struct sl_classes *classes, uint32_t id);

/* See sl_compiled_rule(). */
uint32_t sl_class_rule(const struct sl_classes *classes, uint32_t id, const struct sl_bits *bits);

#endif
