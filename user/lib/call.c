// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "lib/private.h"

/* Over a connection that is up; *again: it was not done, and may be on another one. */
static int call_once(struct sl_runtime *rt, const char *method, struct json_object *parameters,
		     const struct sl_fds *fds, int64_t until, struct json_object **reply,
		     bool *again)
{
	int64_t left;
	bool more;
	int ret;

	ret = sl_control_begin(rt->control, method, json_object_get(parameters), fds, &rt->err);
	/* Nothing is queued: it failed before it was said. */
	if (ret && sl_control_events(rt->control) == POLLIN)
		return ret;
	rt->said_at = sl_monotonic_ms();
	left = until - rt->said_at;
	if (!ret)
		ret = sl_control_next(rt->control, left > 0 ? (int)left : 0, reply, &more,
				      &rt->err);
	if (ret == -EREMOTEIO) {
		/* A connection that is not the session's any more. */
		*again = !strcmp(sl_control_error(rt->control), "io.sluice.NotTheSession");
		ret = answer_error(rt, *reply);
		if (!strcmp(sl_control_error(rt->control), "io.sluice.SessionOver"))
			machine_over(rt, ESHUTDOWN);
		else if (*again)
			machine_drop(rt);
		json_object_put(*reply);
		*reply = NULL;
	} else if (ret) {
		*again = ret != -EAGAIN && sl_control_untaken(rt->control);
		machine_drop(rt);
		ret = ret == -EAGAIN
			      ? sl_err_set(&rt->err, ETIMEDOUT, "no answer to %s within %d ms",
					   method, rt->timeout_ms)
			      : sl_err_set(&rt->err, ECONNRESET,
					   "the connection ended before %s was answered", method);
	}
	return ret;
}

int lib_call(struct sl_runtime *rt, enum machine_need need, const char *method,
	     struct json_object *parameters, const struct sl_fds *fds, struct json_object **reply)
{
	int64_t until = sl_monotonic_ms() + rt->timeout_ms;
	struct json_object *answer = NULL;
	bool again = false;
	int ret = 0;

	if (rt->watch)
		ret = sl_err_set(&rt->err, EBUSY, "this handle is for its watch only");
	else if (!rt->timeout_ms)
		ret = sl_err_set(&rt->err, EINVAL, "sl_runtime_connect() comes first");
	else if (need == MACHINE_SESSION && rt->state == SL_RUNTIME_NONE)
		ret = sl_err_set(&rt->err, EINVAL, "there is no session");
	/* What was said over a displaced connection, or one that ends, was not done. */
	for (int tries = 0; !ret && tries < 2; tries++) {
		ret = machine_reach(rt, need, until);
		if (!ret)
			ret = call_once(rt, method, parameters, fds, until, &answer, &again);
		if (!ret || !again || tries)
			break;
		again = false;
		ret = 0;
	}
	machine_timer(rt, false);
	json_object_put(parameters);
	if (ret)
		return ret;
	if (reply)
		*reply = answer;
	else
		json_object_put(answer);
	return 0;
}
