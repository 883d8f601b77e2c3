/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pattern, a NUL, a text: as paths and as host names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/match.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hosts(const char *pattern, const char *text)
{
	char normal[SL_HOST_MAX + 1], again[SL_HOST_MAX + 1], name[SL_HOST_MAX + 1];

	if (sl_host_pattern_normal(normal, pattern, NULL))
		return;
	/* The normal form is its own. */
	if (sl_host_pattern_normal(again, normal, NULL) || strcmp(normal, again) != 0)
		abort();
	if (sl_host_normal(name, text, NULL))
		return;
	if (sl_host_match(normal, name) && sl_host_is_wild(normal) &&
	    strlen(name) < strlen(normal) - 1)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 2);
	const char *text;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	copy[size] = copy[size + 1] = '\0';
	text = copy + strlen(copy) + 1;
	hosts(copy, text);
	if (!sl_path_check(copy, NULL)) {
		bool match = sl_path_match(copy, text);

		if (sl_path_kind(copy) == SL_PATH_EXACT && match != !strcmp(copy, text))
			abort();
		if (sl_path_kind(copy) == SL_PATH_PREFIX &&
		    match != !strncmp(copy, text, strlen(copy) - 2))
			abort();
	}
	free(copy);
	return 0;
}
