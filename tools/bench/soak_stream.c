/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "soak.h"

/* No power of two, nor near to one: what is moved by a page or a buffer is somewhere else. */
#define PATTERN 1000003
#define CHUNK (256 << 10)

static const uint8_t *pattern(void)
{
	static uint8_t bytes[PATTERN];
	uint32_t x = 2463534242U; /* xorshift32 */

	if (!bytes[0] && !bytes[1]) {
		for (size_t i = 0; i < PATTERN; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			bytes[i] = (uint8_t)x;
		}
	}
	return bytes;
}

/* The bytes that come next, and how many of them are in one piece. */
static const uint8_t *next(const struct soak_stream *stream, size_t *size)
{
	size_t at = (size_t)((stream->head.place + stream->done) % PATTERN);
	uint64_t left = stream->head.bytes - stream->done;

	*size = PATTERN - at < CHUNK ? PATTERN - at : CHUNK;
	if (*size > left)
		*size = (size_t)left;
	return pattern() + at;
}

int soak_send(struct soak_stream *stream)
{
	size_t size;
	const uint8_t *bytes = next(stream, &size);
	ssize_t n = send(stream->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 1 : -errno;
	stream->done += (uint64_t)n;
	return stream->done < stream->head.bytes;
}

static uint64_t differing(const uint8_t *a, const uint8_t *b, size_t size)
{
	uint64_t n = 0;

	if (!memcmp(a, b, size))
		return 0;
	for (size_t i = 0; i < size; i++)
		n += a[i] != b[i];
	return n;
}

int soak_receive(struct soak_stream *stream)
{
	static uint8_t data[CHUNK];
	size_t size;
	const uint8_t *bytes = next(stream, &size);
	/* One byte too many would be seen as well. */
	ssize_t n = recv(stream->fd, data, size ?: 1, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN ? 1 : -errno;
	if (!n || !size)
		return n || size ? -EPIPE : 0;
	stream->wrong += differing(data, bytes, (size_t)n);
	stream->done += (uint64_t)n;
	return 1;
}
