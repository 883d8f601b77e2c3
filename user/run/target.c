// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/target.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "socket/sock_view.h"

bool sl_target_unresolved(const struct sl_endpoint *end)
{
	const struct sl_endpoint none = { .port_be = end->port_be };

	return !memcmp(end->addr_be, none.addr_be, sizeof(none.addr_be));
}

const char *sl_target_text(char *dst, size_t size, const char *name, const struct sl_endpoint *end)
{
	char address[SL_FORMAT_MAX] = "";

	/* An answer of policy DNS has no port. */
	if (!sl_view_endpoint_empty(end) && !end->port_be)
		sl_format_addr(address, sizeof(address), end->addr_be);
	else if (!sl_view_endpoint_empty(end))
		sl_format_endpoint(address, sizeof(address), end);
	if (name && *address && sl_target_unresolved(end))
		snprintf(dst, size, "%s:%u", name, ntohs(end->port_be));
	else if (name && *address)
		snprintf(dst, size, "%s (%s)", name, address);
	else
		snprintf(dst, size, "%s", name ?: address);
	return dst;
}
