/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "load.h"

static int parse_port(const char *text, uint16_t *port)
{
	uint64_t value;
	int rc = sl_number(text, UINT16_MAX, &value);

	if (rc == 0)
		*port = (uint16_t)value;
	return rc;
}

/* Splits "host:port" into its two parts; a host in brackets loses them. */
static int split(const char *text, char host[SL_ADDR_TEXT], uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	const char *end = text + strlen(text);

	*port = 0;
	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return -EINVAL;
		colon = end[1] == ':' ? end + 1 : NULL;
		text++;
	} else if (colon && strchr(text, ':') == colon) {
		end = colon;
	} else {
		colon = NULL;
	}
	if (colon && parse_port(colon + 1, port) < 0)
		return -EINVAL;
	if ((size_t)(end - text) >= SL_ADDR_TEXT)
		return -EINVAL;
	memcpy(host, text, (size_t)(end - text));
	host[end - text] = '\0';
	return 0;
}

int sl_addr_parse(const char *text, struct sl_addr *out)
{
	struct sl_addr addr = { .len = 0 };
	char host[SL_ADDR_TEXT];
	uint16_t port;

	if (split(text, host, &port) < 0)
		return -EINVAL;
	if (inet_pton(AF_INET, host, &addr.in.sin_addr) == 1) {
		addr.in.sin_family = AF_INET;
		addr.len = sizeof(addr.in);
	} else if (inet_pton(AF_INET6, host, &addr.in6.sin6_addr) == 1) {
		addr.in6.sin6_family = AF_INET6;
		addr.len = sizeof(addr.in6);
	} else {
		return -EINVAL;
	}
	sl_addr_set_port(&addr, port);
	*out = addr;
	return 0;
}

bool sl_addr_is_mapped(const struct sl_addr *addr)
{
	return addr->len > 0 && addr->sa.sa_family == AF_INET6 &&
	       IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr);
}

void sl_addr_text(const struct sl_addr *addr, char out[SL_ADDR_TEXT])
{
	char host[INET6_ADDRSTRLEN];
	unsigned int port;

	if (addr->len == 0) {
		snprintf(out, SL_ADDR_TEXT, "-");
		return;
	}
	port = sl_addr_port(addr);
	if (addr->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
		snprintf(out, SL_ADDR_TEXT, "%s:%u", host, port);
	} else if (sl_addr_is_mapped(addr)) {
		inet_ntop(AF_INET, &addr->in6.sin6_addr.s6_addr[12], host, sizeof(host));
		snprintf(out, SL_ADDR_TEXT, "%s:%u", host, port);
	} else {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, host, sizeof(host));
		snprintf(out, SL_ADDR_TEXT, "[%s]:%u", host, port);
	}
}

struct sl_addr sl_addr_mapped(const struct sl_addr *addr)
{
	struct sl_addr out = { .len = sizeof(out.in6) };

	if (addr->sa.sa_family == AF_INET6)
		return *addr;
	out.in6.sin6_family = AF_INET6;
	out.in6.sin6_port = addr->in.sin_port;
	out.in6.sin6_addr.s6_addr[10] = 0xff;
	out.in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&out.in6.sin6_addr.s6_addr[12], &addr->in.sin_addr, sizeof(addr->in.sin_addr));
	return out;
}

struct sl_addr sl_addr_next(const struct sl_addr *addr, unsigned int n)
{
	struct sl_addr out = *addr;
	uint32_t word;

	if (out.sa.sa_family == AF_INET) {
		out.in.sin_addr.s_addr = htonl(ntohl(out.in.sin_addr.s_addr) + n);
		return out;
	}
	memcpy(&word, &out.in6.sin6_addr.s6_addr[12], sizeof(word));
	word = htonl(ntohl(word) + n);
	memcpy(&out.in6.sin6_addr.s6_addr[12], &word, sizeof(word));
	return out;
}

uint16_t sl_addr_port(const struct sl_addr *addr)
{
	return ntohs(addr->sa.sa_family == AF_INET ? addr->in.sin_port : addr->in6.sin6_port);
}

void sl_addr_set_port(struct sl_addr *addr, uint16_t port)
{
	if (addr->sa.sa_family == AF_INET)
		addr->in.sin_port = htons(port);
	else
		addr->in6.sin6_port = htons(port);
}

static int name_of(int fd, struct sl_addr *out,
		   int (*get)(int fd, struct sockaddr *sa, socklen_t *len))
{
	struct sl_addr addr = { .len = sizeof(addr.in6) };

	if (get(fd, &addr.sa, &addr.len) < 0)
		return -errno;
	if (addr.sa.sa_family != AF_INET && addr.sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	*out = addr;
	return 0;
}

/* glibc declares the address as a transparent union, so these two can't be passed on. */
static int get_local(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getsockname(fd, sa, len);
}

static int get_remote(int fd, struct sockaddr *sa, socklen_t *len)
{
	return getpeername(fd, sa, len);
}

int sl_addr_local(int fd, struct sl_addr *out)
{
	return name_of(fd, out, get_local);
}

int sl_addr_remote(int fd, struct sl_addr *out)
{
	return name_of(fd, out, get_remote);
}
