// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One call, from its notification to its answer. */
#include <errno.h>

#include "broker/loop_private.h"

void sl_broker_fault(struct sl_broker *b, enum sl_broker_kind kind, uint64_t tag, pid_t tid,
		     int code)
{
	sl_races_count(&b->races, kind);
	if (b->options.ops.fault)
		b->options.ops.fault(b->options.ctx, kind, tag, tid, code);
}

enum sl_broker_kind sl_broker_kind_of(enum sl_broker_kind kind, int sent)
{
	switch (sent) {
	case 0:
		return kind;
	case -ENOENT:
		return sl_broker_kind_class(kind) == SL_OUTCOME_RACE ? kind : SL_BROKER_GONE_ANSWER;
	case -EINPROGRESS:
		return SL_BROKER_ANSWERED;
	default:
		return SL_BROKER_ANSWER;
	}
}

void sl_broker_outcome(struct sl_broker *b, enum sl_broker_kind kind, int sent, uint64_t tag,
		       pid_t tid)
{
	kind = sl_broker_kind_of(kind, sent);
	if (sl_broker_kind_class(kind) == SL_OUTCOME_FAULT)
		sl_broker_fault(b, kind, tag, tid, -sent);
	else
		sl_races_count(&b->races, kind);
}

/* False when somebody else has answered: sl_broker_tick() or sl_broker_drain(). */
static bool claim_answer(struct worker *w)
{
	struct sl_broker *b = w->broker;
	bool mine;

	pthread_mutex_lock(&b->lock);
	mine = !w->answered;
	w->answered = true;
	pthread_mutex_unlock(&b->lock);
	return mine;
}

static enum sl_broker_kind decide(struct worker *w, struct sl_answer *answer)
{
	const struct sl_broker_options *options = &w->broker->options;
	const struct seccomp_notif *notif = &w->slot->notif.notif;
	struct sl_call *call = &w->call;
	enum sl_broker_kind kind;
	int ret;

	ret = sl_call_read(call, notif, w->listener->fd, w->slot->tag, &kind);
	if (ret) {
		answer->go_on = sl_broker_kind_class(kind) == SL_OUTCOME_APPLICATION;
		return kind;
	}
	/* Until here it may all have been read of a task that took over the number. */
	ret = sl_notify_valid(w->listener->fd, notif->id);
	if (!ret) {
		options->ops.held(options->ctx, call, answer);
		if (call->kind == SL_HELD_SOCKET)
			answer->go_on = false;
	}
	sl_call_free(call);
	if (ret)
		return ret == -ENOENT ? SL_BROKER_GONE_READ : SL_BROKER_ANSWER;
	return answer->go_on ? SL_BROKER_CONTINUED : SL_BROKER_DENIED;
}

bool sl_worker_at_once(struct worker *w)
{
	static const struct sl_answer go_on = { .go_on = true };
	const struct sl_broker_options *options = &w->broker->options;
	const struct seccomp_notif *notif = &w->slot->notif.notif;
	enum sl_call_kind kind = SL_HELD_MAX;

	if (options->ops.at_once)
		kind = sl_call_kind_of(&notif->data);
	if (kind == SL_HELD_MAX || kind == SL_HELD_SOCKET ||
	    !options->ops.at_once(options->ctx, w->listener->tag, kind))
		return false;
	sl_races_count(&w->broker->races, SL_BROKER_RECEIVED);
	sl_broker_outcome(w->broker, SL_BROKER_CONTINUED,
			  sl_notify_answer(w->listener->fd, notif->id, &go_on), w->slot->tag,
			  notif->pid);
	sl_inflight_done(w->slot);
	return true;
}

void sl_worker_handle(struct worker *w)
{
	struct sl_answer answer = { .go_on = false, .code = EACCES };
	const struct seccomp_notif *notif = &w->slot->notif.notif;
	enum sl_broker_kind kind = decide(w, &answer);

	if (claim_answer(w))
		sl_broker_outcome(w->broker, kind,
				  sl_notify_answer(w->listener->fd, notif->id, &answer),
				  w->slot->tag, notif->pid);
	sl_inflight_done(w->slot);
}
