// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/proxy_v2.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COMMAND_PROXY 0x21 /* version 2, on behalf of another */
#define UNSPECIFIED 0x00
#define TCP4 0x11
#define TCP6 0x21
#define FIXED 16
#define VALUE_HEAD 3

struct writer {
	uint8_t *dst;
	size_t size, at; /* `at` may pass `size`: nothing is written then */
};

static void put(struct writer *writer, const void *data, size_t len)
{
	if (writer->at + len <= writer->size)
		memcpy(writer->dst + writer->at, data, len);
	writer->at += len;
}

static void put_value(struct writer *writer, enum sl_proxy_v2_type type, const void *data,
		      size_t len)
{
	const uint8_t head[VALUE_HEAD] = { (uint8_t)type, (uint8_t)(len >> 8), (uint8_t)len };

	put(writer, head, sizeof(head));
	put(writer, data, len);
}

static void put_text(struct writer *writer, enum sl_proxy_v2_type type, const char *text,
		     size_t max)
{
	size_t len = text ? strnlen(text, max + 1) : 0;

	if (len && len <= max)
		put_value(writer, type, text, len);
}

static void put_ends(struct writer *writer, const struct sl_proxy_v2 *head)
{
	const struct sockaddr_in *from4 = (const struct sockaddr_in *)&head->source;
	const struct sockaddr_in *to4 = (const struct sockaddr_in *)&head->destination;
	const struct sockaddr_in6 *from6 = (const struct sockaddr_in6 *)&head->source;
	const struct sockaddr_in6 *to6 = (const struct sockaddr_in6 *)&head->destination;

	/* Of both families the ports are at the same place. */
	if (head->source.ss_family == AF_INET) {
		put(writer, &from4->sin_addr, sizeof(from4->sin_addr));
		put(writer, &to4->sin_addr, sizeof(to4->sin_addr));
	} else {
		put(writer, &from6->sin6_addr, sizeof(from6->sin6_addr));
		put(writer, &to6->sin6_addr, sizeof(to6->sin6_addr));
	}
	put(writer, &from4->sin_port, sizeof(from4->sin_port));
	put(writer, &to4->sin_port, sizeof(to4->sin_port));
}

static void put_process(struct writer *writer, const struct sl_proxy_v2 *head)
{
	const uint32_t pid = htonl(head->pid);
	const uint32_t start[] = { htonl((uint32_t)(head->start_ns >> 32)),
				   htonl((uint32_t)head->start_ns) };
	char id[SL_PROXY_V2_UNIQUE_ID_MAX + 2];

	if (!head->pid)
		return;
	snprintf(id, sizeof(id), "%s:%" PRIu32 ":%" PRIu64 ":%" PRIu32,
		 head->sandbox ? head->sandbox : "", head->pid, head->start_ns, head->lineage_id);
	put_text(writer, SL_PROXY_V2_UNIQUE_ID, id, SL_PROXY_V2_UNIQUE_ID_MAX);
	put_value(writer, SL_PROXY_V2_PID, &pid, sizeof(pid));
	put_value(writer, SL_PROXY_V2_START, start, sizeof(start));
}

static uint8_t family_of(const struct sl_proxy_v2 *head)
{
	if (head->source.ss_family != head->destination.ss_family)
		return UNSPECIFIED;
	if (head->source.ss_family == AF_INET)
		return TCP4;
	return head->source.ss_family == AF_INET6 ? TCP6 : UNSPECIFIED;
}

int sl_proxy_v2_encode(void *dst, size_t size, const struct sl_proxy_v2 *head)
{
	const uint8_t family = family_of(head);
	uint8_t fixed[FIXED] = { 0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,          0x0a,
				 0x51, 0x55, 0x49, 0x54, 0x0a, COMMAND_PROXY, family };
	struct writer writer = { dst, size, FIXED };

	if (family != UNSPECIFIED)
		put_ends(&writer, head);
	put_text(&writer, SL_PROXY_V2_AUTHORITY, head->authority, SL_PROXY_V2_AUTHORITY_MAX);
	put_process(&writer, head);
	put_text(&writer, SL_PROXY_V2_SANDBOX, head->sandbox, SL_PROXY_V2_SANDBOX_MAX);
	put_text(&writer, SL_PROXY_V2_EXE, head->exe, SL_PROXY_V2_EXE_MAX);
	put_text(&writer, SL_PROXY_V2_LINEAGE, head->lineage, SL_PROXY_V2_LINEAGE_MAX);
	if (writer.at > size)
		return -ENOSPC;
	fixed[14] = (uint8_t)((writer.at - FIXED) >> 8);
	fixed[15] = (uint8_t)(writer.at - FIXED);
	memcpy(dst, fixed, FIXED);
	return (int)writer.at;
}
