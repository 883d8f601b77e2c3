// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static size_t held(const struct sl_pump *pump)
{
	return pump->first_size - pump->first_at + (pump->pipe ? pump->pipe->held : 0);
}

static void give_pipe(struct sl_pump *pump, struct sl_pump_ctx *ctx)
{
	sl_pipes_give(&ctx->pipes, pump->pipe);
	pump->pipe = NULL;
}

static void drop_first(struct sl_pump *pump)
{
	free(pump->first);
	pump->first = NULL;
	pump->first_size = pump->first_at = 0;
}

int sl_pump_first(struct sl_pump *pump, const void *data, size_t size)
{
	uint8_t *first;

	if (!size)
		return 0;
	first = realloc(pump->first, pump->first_size + size);
	if (!first)
		return -ENOMEM;
	memcpy(first + pump->first_size, data, size);
	pump->first = first;
	pump->first_size += size;
	return 0;
}

void sl_pump_kill(struct sl_pump *pump, struct sl_pump_ctx *ctx)
{
	pump->dead = true;
	give_pipe(pump, ctx);
	drop_first(pump);
}

bool sl_pump_done(const struct sl_pump *pump)
{
	return pump->closed || (pump->limited && !pump->left && !held(pump));
}

bool sl_pump_over(const struct sl_pump *pump)
{
	return pump->dead || sl_pump_done(pump) || (pump->error && !held(pump));
}

/* What a call that writes said: whether to go on. */
static bool wrote(struct sl_pump *pump, struct sl_pump_ctx *ctx, ssize_t n)
{
	if (n > 0 || errno == EINTR)
		return true;
	if (errno == EAGAIN)
		pump->to->writable = false;
	else
		sl_pump_kill(pump, ctx);
	return false;
}

/* What a call that reads said, likewise. */
static bool was_read(struct sl_pump *pump, ssize_t n)
{
	if (n > 0 || (n < 0 && errno == EINTR))
		return true;
	if (!n && pump->broken)
		pump->error = ECONNRESET;
	else if (!n)
		pump->eof = true;
	else if (errno != EAGAIN)
		pump->error = errno;
	/* There is no more to read in any of these cases; an edge tells of new data. */
	pump->from->readable = false;
	return false;
}

static bool send_first(struct sl_pump *pump, struct sl_pump_ctx *ctx)
{
	while (pump->first_at < pump->first_size) {
		ssize_t n = send(pump->to->fd, pump->first + pump->first_at,
				 pump->first_size - pump->first_at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (!wrote(pump, ctx, n))
			return false;
		pump->first_at += n > 0 ? (size_t)n : 0;
	}
	drop_first(pump);
	return true;
}

static bool drain_pipe(struct sl_pump *pump, struct sl_pump_ctx *ctx)
{
	while (pump->pipe && pump->pipe->held) {
		ssize_t n = splice(pump->pipe->fd[0], NULL, pump->to->fd, NULL, pump->pipe->held,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

		if (!wrote(pump, ctx, n))
			return false;
		if (n < 0)
			continue;
		pump->pipe->held -= (size_t)n;
		pump->bytes += (uint64_t)n;
	}
	return true;
}

static size_t wanted(const struct sl_pump *pump, size_t most)
{
	return pump->limited && pump->left < most ? pump->left : most;
}

static void took(struct sl_pump *pump, size_t n)
{
	if (pump->limited)
		pump->left -= n;
}

/*
 * Without a pipe nothing may be taken that can't be put down, so the bytes stay in the socket
 * until the other one has them: looked at, sent, then discarded (MSG_TRUNC, tcp(7)).
 */
static bool copy_some(struct sl_pump *pump, struct sl_pump_ctx *ctx, size_t *moved)
{
	ssize_t n = recv(pump->from->fd, ctx->copy, wanted(pump, SL_PUMP_COPY),
			 MSG_PEEK | MSG_DONTWAIT);

	ctx->no_pipe++;
	if (!was_read(pump, n) || n < 0)
		return n < 0 && errno == EINTR;
	n = send(pump->to->fd, ctx->copy, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (!wrote(pump, ctx, n) || n < 0)
		return n < 0 && errno == EINTR;
	n = recv(pump->from->fd, ctx->copy, (size_t)n, MSG_TRUNC | MSG_DONTWAIT);
	if (!was_read(pump, n) || n < 0)
		return false;
	took(pump, (size_t)n);
	pump->bytes += (uint64_t)n;
	*moved += (size_t)n;
	return true;
}

static bool splice_some(struct sl_pump *pump, struct sl_pump_ctx *ctx, size_t *moved)
{
	ssize_t n;

	if (!pump->pipe)
		pump->pipe = sl_pipes_take(&ctx->pipes);
	if (!pump->pipe)
		return copy_some(pump, ctx, moved);
	/* The pipe is empty here, so EAGAIN is the socket's word. */
	n = splice(pump->from->fd, NULL, pump->pipe->fd[1], NULL, wanted(pump, SL_PUMP_TURN),
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (!was_read(pump, n))
		return false;
	if (n < 0)
		return true;
	pump->pipe->held = (size_t)n;
	took(pump, (size_t)n);
	*moved += (size_t)n;
	return drain_pipe(pump, ctx);
}

static bool may_read(const struct sl_pump *pump)
{
	return !pump->eof && !pump->error && pump->from->readable && pump->to->writable &&
	       !(pump->limited && !pump->left);
}

bool sl_pump_run(struct sl_pump *pump, struct sl_pump_ctx *ctx)
{
	size_t moved = 0;

	if (pump->dead || pump->to->fd < 0)
		return false;
	if (held(pump) && (!pump->to->writable || !send_first(pump, ctx) || !drain_pipe(pump, ctx)))
		return false;
	while (moved < SL_PUMP_TURN && may_read(pump) && splice_some(pump, ctx, &moved))
		;
	if (pump->dead)
		return false;
	if (!held(pump))
		give_pipe(pump, ctx);
	if (pump->eof && !pump->closed && !held(pump)) {
		pump->closed = true;
		shutdown(pump->to->fd, SHUT_WR);
	}
	return may_read(pump);
}
