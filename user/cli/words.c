/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/words.h"

#define WORD_MAX 31

void sl_words_add(struct sl_words *words, const char *word)
{
	int n = snprintf(words->text + words->used, sizeof(words->text) - words->used, "%s%s",
			 words->used ? ", " : "", word);

	if (n > 0 && (size_t)n < sizeof(words->text) - words->used)
		words->used += (size_t)n;
	else
		words->text[words->used] = '\0';
}

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t sl_word_distance(const char *a, const char *b)
{
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];
	size_t a_len = strlen(a), b_len = strlen(b);

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= a_len; i++) {
		for (size_t j = 0; j <= b_len; j++) {
			size_t best;

			if (i == 0 || j == 0) {
				rows[i][j] = i + j;
				continue;
			}
			best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			best = min2(best, min2(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = min2(best, rows[i - 2][j - 2] + 1);
			rows[i][j] = best;
		}
	}
	return rows[a_len][b_len];
}

void sl_closest_offer(struct sl_closest *closest, const char *typed, const char *word)
{
	size_t len = strlen(typed);
	size_t distance = sl_word_distance(typed, word);

	if (len == 0)
		return;
	if (strncmp(word, typed, len) == 0)
		distance = min2(distance, 1);
	if (distance > (strlen(word) + 2) / 3)
		return;
	if (!closest->word || distance < closest->distance) {
		closest->word = word;
		closest->distance = distance;
	}
}
