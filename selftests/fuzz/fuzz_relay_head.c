/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as the head of an explicit request: what is taken for one stays one when it is
 * rewritten, and asks for the same; and an incomplete one is never refused later for bytes
 * behind its end.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relay/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static bool is_host(const char *host)
{
	size_t len = strnlen(host, SL_RELAY_HOST_MAX);

	return len && len < SL_RELAY_HOST_MAX &&
	       strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-._:") == len;
}

/* The server's side of it: a request in origin form, made one for a proxy again. */
static void check_rewritten(const char *text, size_t size, const struct sl_http_head *head)
{
	const char *space = memchr(text, ' ', size);
	bool v6 = strchr(head->host, ':');
	struct sl_http_head again;
	char *whole = NULL;
	size_t whole_size;
	FILE *file = open_memstream(&whole, &whole_size);

	check(file && space);
	fwrite(text, 1, (size_t)(space - text), file);
	fprintf(file, " http://%s%s%s:%u", v6 ? "[" : "", head->host, v6 ? "]" : "", head->port);
	fwrite(space + 1, 1, size - (size_t)(space - text) - 1, file);
	fclose(file);
	check(!sl_http_parse(whole, whole_size, &again));
	check(!strcmp(again.host, head->host) && again.port == head->port);
	check(again.body == head->body && again.size == whole_size);
	free(whole);
}

static void fuzz_http(const char *text, size_t size)
{
	struct sl_http_head head, shorter;
	char *out;
	size_t n;
	int ret = sl_http_parse(text, size, &head);

	check(ret == -EAGAIN || (ret >= 0 && ret < SL_HEAD_FAULT_MAX));
	if (ret)
		return;
	check(head.size && head.size <= size && head.port && is_host(head.host));
	check(sl_http_parse(text, head.size - 1, &shorter) == -EAGAIN);
	check(!sl_http_parse(text, head.size, &shorter));
	if (head.connect)
		return;
	out = malloc(SL_HTTP_REWRITE_MAX(head.size));
	check(out);
	n = sl_http_rewrite(out, text, &head);
	check(n <= SL_HTTP_REWRITE_MAX(head.size));
	check_rewritten(out, n, &head);
	free(out);
}

static void fuzz_socks(const uint8_t *data, size_t size)
{
	struct sl_socks_head head;
	size_t greeting = 0;
	int ret = sl_socks_greeting(data, size, &greeting);

	check(ret == -EAGAIN || (ret >= 0 && ret < SL_HEAD_FAULT_MAX));
	check(ret || (greeting > 2 && greeting <= size));
	if (ret)
		return;
	ret = sl_socks_request(data + greeting, size - greeting, &head);
	check(ret == -EAGAIN || (ret >= 0 && ret < SL_HEAD_FAULT_MAX));
	check(ret || (head.size <= size - greeting && head.port && is_host(head.host)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of its own, so that a byte read behind the end is seen. */
	char *copy = malloc(size ?: 1);

	check(copy);
	if (size)
		memcpy(copy, data, size);
	fuzz_http(copy, size);
	fuzz_socks((uint8_t *)copy, size);
	free(copy);
	return 0;
}
