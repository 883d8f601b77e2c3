/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Help for mistyped words: lists of candidates, and the closest one. */
#ifndef SLUICE_USER_WORDS_H
#define SLUICE_USER_WORDS_H

#include <stddef.h>

/* "a, b, c", bounded; start from { 0 }. */
struct sl_words {
	char text[256];
	size_t used;
};

void sl_words_add(struct sl_words *words, const char *word);

/* The closest word offered so far, NULL when none is close; start from { 0 }. */
struct sl_closest {
	const char *word; /* borrowed from the offer */
	size_t distance;
};

/* Close means: it begins with what was typed, or a third of its letters differ at most. */
void sl_closest_offer(struct sl_closest *closest, const char *typed, const char *word);

/*
 * Edits (insert, delete, replace, swap of neighbours) that make one word of the other. Words
 * of more than 31 bytes are infinitely far.
 */
size_t sl_word_distance(const char *a, const char *b);

#endif
