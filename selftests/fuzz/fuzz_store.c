/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a file of the store. What is taken is whole, and comes back from what is written
 * of it. The input is a session's text, or a file when its first byte is 'f': no fuzzer finds
 * the digest, so it is made here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/hex.h"
#include "session/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void parse(const char *text, size_t len)
{
	static struct sl_store_entry entry, again;
	struct sl_err err = { 0 };
	char *printed, *again_printed;
	size_t printed_len, again_len;

	if (sl_store_parse(&entry, text, len, &err)) {
		check(err.text[0]);
		return;
	}
	check(sl_record_whole(&entry.session));
	check(!sl_store_print(&printed, &printed_len, &entry));
	check(printed_len <= SL_STORE_FILE_MAX);
	check(!sl_store_parse(&again, printed, printed_len, &err));
	check(!sl_store_print(&again_printed, &again_len, &again));
	check(again_len == printed_len && !memcmp(printed, again_printed, printed_len));
	free(again_printed);
	free(printed);
}

/* The file that has this session, as json-c writes it. */
static void parse_session(const char *data, size_t size)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *session = json_tokener_parse_ex(tok, data, (int)size);
	unsigned char sha256[SL_SHA256_LEN];
	char hex[2 * sizeof(sha256) + 1], *text;
	const char *plain;
	size_t len;
	int n;

	json_tokener_free(tok);
	if (!session)
		return;
	plain = json_object_to_json_string_length(session, JSON_C_TO_STRING_PLAIN, &len);
	check(EVP_Digest(plain, len, sha256, NULL, EVP_sha256(), NULL));
	sl_hex(hex, sha256, sizeof(sha256));
	n = asprintf(&text, "{\"session\":%s,\"schema\":1,\"sha256\":\"%s\"}\n", plain, hex);
	check(n > 0);
	parse(text, (size_t)n);
	free(text);
	json_object_put(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size && data[0] == 'f')
		parse((const char *)data + 1, size - 1);
	else
		parse_session((const char *)data, size);
	return 0;
}
