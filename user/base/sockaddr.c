/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/sockaddr.h"

#include <netinet/in.h>
#include <string.h>

#define V4_MAPPED htonl(0xffff)

static bool is_v4(const struct sl_endpoint *endpoint)
{
	return !endpoint->addr_be[0] && !endpoint->addr_be[1] && endpoint->addr_be[2] == V4_MAPPED;
}

socklen_t sl_endpoint_sockaddr(struct sockaddr_storage *out, const struct sl_endpoint *endpoint)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (is_v4(endpoint)) {
		v4->sin_family = AF_INET;
		v4->sin_port = endpoint->port_be;
		v4->sin_addr.s_addr = endpoint->addr_be[3];
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = endpoint->port_be;
	memcpy(&v6->sin6_addr, endpoint->addr_be, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

bool sl_sockaddr_endpoint(struct sl_endpoint *out, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)addr;

	if (addr->ss_family == AF_INET) {
		*out = (struct sl_endpoint){
			.addr_be = { 0, 0, V4_MAPPED, v4->sin_addr.s_addr },
			.port_be = v4->sin_port,
		};
		return true;
	}
	if (addr->ss_family != AF_INET6)
		return false;
	*out = (struct sl_endpoint){ .port_be = v6->sin6_port };
	memcpy(out->addr_be, &v6->sin6_addr, sizeof(out->addr_be));
	return true;
}
