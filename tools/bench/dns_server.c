/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The upstream: has an address for every name, and costs as little as can be. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dns.h"
#include "world.h"

#define MESSAGE_MAX 1232
#define RECORD 16 /* bytes of an A record whose name is a pointer */
#define TYPE_A 1
#define TTL_CACHED_S 3600
#define TTL_FRESH_S 1
#define RECEIVE_BUFFER (4 << 20)

int dns_bind(int *out, uint16_t *port, struct sl_err *err)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(*port),
				    .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	socklen_t len = sizeof(addr);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		return sl_err_sys(err, errno, "can't bind a UDP socket on loopback");
	*port = ntohs(addr.sin_port);
	*out = TAKE_FD(fd);
	return 0;
}

size_t dns_question_end(const uint8_t *message, size_t size)
{
	size_t at = DNS_HEAD;

	while (at < size && message[at])
		at += 1u + message[at];
	return at + 5 <= size ? at + 5 : 0;
}

static uint8_t kind_of(const uint8_t *message, size_t end)
{
	size_t second = DNS_HEAD + 1u + message[DNS_HEAD];

	return second + 1 < end && message[second] ? message[second + 1] : 0;
}

/* In 10.0.0.0/8; FNV-1a. */
uint32_t dns_address(const uint8_t *message, size_t size)
{
	size_t end = dns_question_end(message, size);
	uint32_t hash = 2166136261U;

	if (kind_of(message, end) == DNS_WORLD)
		return SL_WORLD_ADDR;
	for (size_t i = DNS_HEAD; i + 4 < end; i++)
		hash = (hash ^ message[i]) * 16777619U;
	return 10U << 24 | (hash & 0xffffff);
}

/* In place; returns the answer's size, 0: none. */
static size_t make_answer(uint8_t *message, size_t size)
{
	uint32_t addr_be, ttl_be;
	size_t end = dns_question_end(message, size);
	uint8_t record[RECORD] = { 0xc0, DNS_HEAD, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4 };
	bool has;

	if (!end || end + RECORD > MESSAGE_MAX)
		return 0;
	addr_be = htonl(dns_address(message, size));
	has = message[end - 3] == TYPE_A && !message[end - 4];
	ttl_be = htonl(kind_of(message, end) == DNS_FRESH ? TTL_FRESH_S : TTL_CACHED_S);
	memcpy(record + 6, &ttl_be, sizeof(ttl_be));
	memcpy(record + 12, &addr_be, sizeof(addr_be));
	message[2] = (uint8_t)(0x84 | (message[2] & 1)); /* QR, AA, RD as asked */
	message[3] = 0x80;                               /* RA */
	memset(message + 6, 0, 6);
	message[7] = has;
	if (has)
		memcpy(message + end, record, RECORD);
	return end + (has ? RECORD : 0);
}

static int serve(void *arg)
{
	int fd = *(int *)arg, size = RECEIVE_BUFFER;
	struct sockaddr_in client;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		return 1;
	for (;;) {
		uint8_t message[MESSAGE_MAX];
		socklen_t len = sizeof(client);
		ssize_t n =
			recvfrom(fd, message, sizeof(message), 0, (struct sockaddr *)&client, &len);
		size_t answer = n > DNS_HEAD ? make_answer(message, (size_t)n) : 0;

		if (answer)
			(void)!sendto(fd, message, answer, 0, (struct sockaddr *)&client, len);
	}
}

int dns_server_start(struct dns_party *server, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	struct sl_child_spec spec = { .cpu = -1, .run = serve, .arg = &fd };
	int ret = dns_bind(&fd, &server->port, err);

	return ret ?: sl_child_start(&server->child, &spec, err);
}
