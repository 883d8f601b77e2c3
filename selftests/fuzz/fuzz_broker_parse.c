/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes of a workload that the broker parses: first lines of scripts, addresses, /proc. */
#include <stdlib.h>
#include <string.h>

#include "broker/parse.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void shebang(const char *data, size_t size)
{
	char out[SL_SHEBANG_SIZE];

	if (sl_parse_shebang(data, size, out))
		return;
	/* A word of the first line, whole. */
	if (!out[0] || strlen(out) >= SL_SHEBANG_SIZE - 2 || strpbrk(out, " \t\n") ||
	    !memmem(data, size, out, strlen(out)))
		abort();
}

static void address(const char *data, size_t size)
{
	struct sl_endpoint out;
	int family = -1, ret = sl_parse_sockaddr(data, size, &family, &out);

	if (!ret && size < 16)
		abort();
	if (ret && size >= 28 && (family == 2 || family == 10))
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t ticks;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	shebang(text, size);
	address(text, size);
	sl_parse_start_ticks(text, &ticks);
	free(text);
	return 0;
}
