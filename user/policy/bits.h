/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of binary classes. */
#ifndef SLUICE_USER_POLICY_BITS_H
#define SLUICE_USER_POLICY_BITS_H

#include <stdbool.h>

#include <sluice/policy.h>

static inline void sl_bits_set(struct sl_bits *bits, unsigned int bit)
{
	bits->word[bit / 64] |= 1ULL << (bit % 64);
}

static inline bool sl_bits_test(const struct sl_bits *bits, unsigned int bit)
{
	return bits->word[bit / 64] >> (bit % 64) & 1;
}

static inline void sl_bits_or(struct sl_bits *bits, const struct sl_bits *more)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++)
		bits->word[i] |= more->word[i];
}

static inline void sl_bits_remove(struct sl_bits *bits, const struct sl_bits *less)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++)
		bits->word[i] &= ~less->word[i];
}

static inline bool sl_bits_any(const struct sl_bits *bits)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++) {
		if (bits->word[i])
			return true;
	}
	return false;
}

static inline bool sl_bits_meet(const struct sl_bits *a, const struct sl_bits *b)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++) {
		if (a->word[i] & b->word[i])
			return true;
	}
	return false;
}

static inline void sl_grant_or(struct sl_grant *grant, const struct sl_grant *more)
{
	sl_bits_or(&grant->own, &more->own);
	sl_bits_or(&grant->inherited, &more->inherited);
}

#endif
