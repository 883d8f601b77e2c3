/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "policy_text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define ENTRY_BYTES (PATH_MAX + 512)
#define RULE_BYTES 80

char *sl_policy_text(uint32_t rules, const char *exe, const char *transport, uint16_t port,
		     size_t *len)
{
	size_t size = ENTRY_BYTES + (size_t)rules * RULE_BYTES, used;
	char *text = malloc(size);

	if (!text)
		return NULL;
	used = (size_t)snprintf(text, size, "version: 1\nnetwork_policies:\n");
	if (exe)
		used += (size_t)snprintf(
			text + used, size - used,
			" own:\n  binaries: [{path: \"%s\"}, {path: /opt/*/tool}]\n"
			"  endpoints: [{cidr: 192.0.2.0/24, port: %u, "
			"transport: %s}]\n",
			exe, port, transport);
	for (uint32_t i = 0; i < rules && used < size; i++) {
		uint32_t entry = i / SL_POLICY_TEXT_PER_ENTRY;

		if (i % SL_POLICY_TEXT_PER_ENTRY == 0)
			used += (size_t)snprintf(
				text + used, size - used,
				" e%u:\n  binaries: [{path: /b%u}]\n  endpoints:\n", entry,
				entry % SL_POLICY_TEXT_IMAGES);
		if (i % 2)
			used += (size_t)snprintf(text + used, size - used,
						 "  - {host: h%u.example.org, port: 443}\n", i);
		else
			used += (size_t)snprintf(text + used, size - used,
						 "  - {cidr: 11.%u.%u.%u/31, port: 443}\n",
						 i >> 16 & 255, i >> 8 & 255, i & 254);
	}
	if (used >= size) {
		free(text);
		return NULL;
	}
	*len = used;
	return text;
}
