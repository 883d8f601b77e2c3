// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/cleanup.h"

#define QUEUE_DEFAULT (1UL << 20)
#define READ_SIZE 16384

struct out {
	STAILQ_ENTRY(out) next;
	size_t size, sent;
	struct sl_fds fds;
	char data[];
};

struct sl_wire {
	int fd;
	struct sl_wire_limits limits;
	char *data; /* received, from the first byte of a message */
	size_t room, used;
	size_t scanned;    /* no NUL before this */
	struct sl_fds fds; /* received, of the message that byte `fds_at` is in */
	size_t fds_at;
	STAILQ_HEAD(, out) queue;
	size_t queued;
};

int sl_wire_new(struct sl_wire **out, int fd, const struct sl_wire_limits *limits)
{
	struct sl_wire *wire;
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	wire = calloc(1, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	wire->fd = fd;
	if (limits)
		wire->limits = *limits;
	if (!wire->limits.message)
		wire->limits.message = SL_WIRE_MESSAGE;
	if (!wire->limits.queue)
		wire->limits.queue = QUEUE_DEFAULT;
	STAILQ_INIT(&wire->queue);
	*out = wire;
	return 0;
}

static void pop(struct sl_wire *wire)
{
	struct out *first = STAILQ_FIRST(&wire->queue);

	STAILQ_REMOVE_HEAD(&wire->queue, next);
	wire->queued -= first->size;
	sl_fds_close(&first->fds);
	free(first);
}

void sl_wire_free(struct sl_wire **wire)
{
	struct sl_wire *w;

	if (!wire || !*wire)
		return;
	w = TAKE_PTR(*wire);
	while (!STAILQ_EMPTY(&w->queue))
		pop(w);
	sl_fds_close(&w->fds);
	sl_cleanup_fd(&w->fd);
	free(w->data);
	free(w);
}

int sl_wire_fd(const struct sl_wire *wire)
{
	return wire->fd;
}

/* Room for another read: a message of the limit and its NUL fit at most. */
static int grow(struct sl_wire *wire)
{
	size_t max = wire->limits.message + 1, room;
	char *data;

	if (wire->used < wire->room)
		return 0;
	if (wire->room >= max)
		return -EMSGSIZE;
	room = wire->room ? wire->room * 2 : READ_SIZE;
	if (room > max)
		room = max;
	data = realloc(wire->data, room);
	if (!data)
		return -ENOMEM;
	wire->data = data;
	wire->room = room;
	return 0;
}

/* What came beside the bytes just read. */
static int take_fds(struct sl_wire *wire, struct sl_fds *got)
{
	if (!got->count)
		return 0;
	if (wire->fds.count) {
		sl_fds_close(got);
		return -EPROTO;
	}
	wire->fds = *got;
	wire->fds_at = wire->used - 1;
	return 0;
}

int sl_wire_fill(struct sl_wire *wire)
{
	struct sl_fds got;
	ssize_t n;
	int ret;

	ret = grow(wire);
	if (ret)
		return ret;
	n = sl_fds_receive(wire->fd, wire->data + wire->used, wire->room - wire->used, &got);
	if (n <= 0)
		return n ? (int)n : -EPIPE;
	wire->used += (size_t)n;
	return take_fds(wire, &got);
}

int sl_wire_parse(struct json_object **out, const char *text, size_t len)
{
	struct json_tokener *tok = json_tokener_new_ex(SL_WIRE_DEPTH);
	struct json_object *json;
	int ret = 0;

	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	json = json_tokener_parse_ex(tok, text, (int)len);
	if (!json_object_is_type(json, json_type_object) ||
	    json_tokener_get_error(tok) != json_tokener_success ||
	    json_tokener_get_parse_end(tok) != len) {
		json_object_put(json);
		ret = -EBADMSG;
	} else {
		*out = json;
	}
	json_tokener_free(tok);
	return ret;
}

int sl_wire_next(struct sl_wire *wire, struct json_object **json, struct sl_fds *fds)
{
	char *end = NULL;
	size_t len, taken;
	int ret;

	if (wire->data)
		end = memchr(wire->data + wire->scanned, '\0', wire->used - wire->scanned);
	if (!end) {
		wire->scanned = wire->used;
		return wire->used > wire->limits.message ? -EMSGSIZE : -EAGAIN;
	}
	len = (size_t)(end - wire->data);
	ret = sl_wire_parse(json, wire->data, len);
	if (ret)
		return ret;
	fds->count = 0;
	if (wire->fds.count && wire->fds_at <= len) {
		*fds = wire->fds;
		wire->fds.count = 0;
	}
	taken = len + 1;
	memmove(wire->data, wire->data + taken, wire->used - taken);
	wire->used -= taken;
	wire->scanned = 0;
	/* Most connections say little for most of their time: they keep no memory for it. */
	if (!wire->used) {
		free(TAKE_PTR(wire->data));
		wire->room = 0;
	}
	if (wire->fds.count)
		wire->fds_at -= taken;
	return 0;
}

bool sl_wire_partial(const struct sl_wire *wire)
{
	return wire->used > 0;
}

int sl_wire_put(struct sl_wire *wire, struct json_object *json, const struct sl_fds *fds)
{
	struct out *out;
	const char *text;
	size_t len;
	int ret;

	text = json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &len);
	if (!text)
		return -ENOMEM;
	if (wire->queued && wire->queued + len + 1 > wire->limits.queue)
		return -ENOBUFS;
	out = calloc(1, sizeof(*out) + len + 1);
	if (!out)
		return -ENOMEM;
	ret = fds ? sl_fds_copy(&out->fds, fds) : 0;
	if (ret) {
		free(out);
		return ret;
	}
	memcpy(out->data, text, len + 1);
	out->size = len + 1;
	STAILQ_INSERT_TAIL(&wire->queue, out, next);
	wire->queued += out->size;
	return 0;
}

int sl_wire_flush(struct sl_wire *wire)
{
	struct out *out;

	while ((out = STAILQ_FIRST(&wire->queue))) {
		ssize_t n = sl_fds_send(wire->fd, out->data + out->sent, out->size - out->sent,
					out->sent ? NULL : &out->fds);

		if (n < 0)
			return (int)n;
		out->sent += (size_t)n;
		if (out->sent == out->size)
			pop(wire);
	}
	return 0;
}

size_t sl_wire_queued(const struct sl_wire *wire)
{
	return wire->queued;
}
