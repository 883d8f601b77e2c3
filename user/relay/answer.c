// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the caller says of a stream. */
#include <errno.h>

#include "relay/relay_private.h"
#include "relay/reply.h"

static int may_answer(const struct sl_relay_stream *stream)
{
	if (stream->answered)
		return -EALREADY;
	return stream->state == SL_STREAM_ENDED ? -ECONNRESET : 0;
}

int sl_relay_dial(struct sl_relay_stream *stream, const struct sl_relay_target *target)
{
	int ret = may_answer(stream) ?: sl_dial_check(target);

	if (ret)
		return ret;
	/* Before it is dialled: that may fail, and end it, at once. */
	stream->answered = true;
	ret = sl_dial_new(stream, target);
	if (ret)
		stream->answered = false;
	sl_relay_kick(stream->relay);
	return ret;
}

int sl_relay_refuse(struct sl_relay_stream *stream, enum sl_relay_refusal refusal,
		    const char *reason, const char *hint)
{
	int ret = may_answer(stream);

	if (ret)
		return ret;
	if (refusal >= SL_RELAY_REFUSAL_MAX)
		return -EINVAL;
	stream->answered = true;
	stream->relay->counts[SL_RELAY_REFUSED]++;
	sl_stream_fail(stream, SL_RELAY_CAUSE_REFUSED, 0);
	if (stream->way == SL_RELAY_WAY_TRANSPARENT) {
		sl_stream_end(stream);
	} else {
		struct sl_reply reply = sl_reply_refusals[refusal];

		reply.reason = reason ?: reply.reason;
		reply.hint = hint;
		sl_explicit_refuse(stream, &reply);
	}
	return 0;
}

void sl_relay_reset(struct sl_relay_stream *stream)
{
	sl_stream_fail(stream, SL_RELAY_CAUSE_RESET, 0);
	stream->told = false;
	sl_stream_end(stream);
}

void sl_relay_set(struct sl_relay_stream *stream, void *data)
{
	stream->data = data;
}

void *sl_relay_get(const struct sl_relay_stream *stream)
{
	return stream->data;
}
