// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/hex.h"
#include "base/object.h"
#include "lib/private.h"
#include "session/version.h"

/* Between tries that fail; a connection that was up for the longest is not a failed one. */
#define PAUSE_FIRST_MS 10
#define PAUSE_MAX_MS 1000

#define PERMISSION_DENIED "org.varlink.service.PermissionDenied"

/* To connect, for who has no session: a connection that is lost before it is up. */
#define LOST_TRIES 3

#define STEPS_MAX 64 /* of one run: more wait for the next, so that a peer can't keep it */

static bool is_wanted(const struct sl_runtime *rt)
{
	return rt->state == SL_RUNTIME_ATTACHING || rt->state == SL_RUNTIME_LOST;
}

static void set_events(struct sl_runtime *rt, int how)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (sl_control_events(rt->control) & POLLOUT)
		event.events |= EPOLLOUT;
	epoll_ctl(rt->epoll, how, sl_control_fd(rt->control), &event);
}

void machine_drop(struct sl_runtime *rt)
{
	int64_t now = sl_monotonic_ms();

	if (rt->phase == MACHINE_UP && now - rt->up_at >= PAUSE_MAX_MS)
		rt->pause_ms = 0;
	if (rt->control)
		epoll_ctl(rt->epoll, EPOLL_CTL_DEL, sl_control_fd(rt->control), NULL);
	sl_control_free(&rt->control);
	rt->phase = MACHINE_DOWN;
	rt->beating = false;
	if (rt->state == SL_RUNTIME_LIVE)
		rt->state = SL_RUNTIME_LOST;
	rt->retry_at = now + rt->pause_ms;
	rt->pause_ms = rt->pause_ms ? 2 * rt->pause_ms : PAUSE_FIRST_MS;
	if (rt->pause_ms > PAUSE_MAX_MS)
		rt->pause_ms = PAUSE_MAX_MS;
}

void machine_hurry(struct sl_runtime *rt)
{
	if (rt->phase != MACHINE_DOWN)
		return;
	rt->hurried = true;
	rt->retry_at = 0;
}

static void forget_ask(struct sl_runtime *rt)
{
	json_object_put(rt->ask);
	rt->ask = NULL;
	sl_fds_close(&rt->fds);
}

void machine_over(struct sl_runtime *rt, int code)
{
	machine_drop(rt);
	forget_ask(rt);
	rt->state = SL_RUNTIME_OVER;
	rt->final = -code;
}

/* Somebody was there, and ended the connection: the next may be better. */
static bool is_lost(int ret)
{
	return ret == -EPIPE || ret == -ECONNRESET;
}

/*
 * The error is set. An Attach that was never sent was not made, and is not tried again, unless it
 * is a connection that was lost before.
 */
static void fail(struct sl_runtime *rt, int ret)
{
	rt->failed = ret;
	rt->answered = false;
	machine_drop(rt);
	if (rt->state == SL_RUNTIME_ATTACHING && !rt->epoch && !is_lost(ret))
		machine_unsaid(rt);
}

void machine_unsaid(struct sl_runtime *rt)
{
	forget_ask(rt);
	rt->state = SL_RUNTIME_NONE;
	machine_timer(rt, false);
}

static void refused(struct sl_runtime *rt, int ret)
{
	rt->epoch = 0;
	fail(rt, ret);
	rt->answered = true;
}

static int say(struct sl_runtime *rt, const char *method, struct json_object *parameters,
	       const struct sl_fds *fds, unsigned int limit_ms)
{
	int ret = sl_control_begin(rt->control, method, parameters, fds, &rt->err);

	rt->said_at = sl_monotonic_ms();
	rt->deadline = rt->said_at + limit_ms;
	return ret;
}

static struct json_object *hello(const struct sl_runtime *rt)
{
	struct json_object *parameters = json_object_new_object();
	struct json_object *self = json_object_new_object();

	if (self && parameters && !ask_text(self, "name", rt->name) &&
	    !ask_text(self, "version", rt->version) &&
	    !sl_json_add(self, "min", json_object_new_int(SL_PROTOCOL_MIN)) &&
	    !sl_json_add(self, "max", json_object_new_int(SL_PROTOCOL_MAX)) &&
	    !sl_json_add(parameters, "component", json_object_get(self))) {
		json_object_put(self);
		return parameters;
	}
	json_object_put(self);
	json_object_put(parameters);
	return NULL;
}

static bool connect_step(struct sl_runtime *rt)
{
	struct json_object *parameters;
	int ret;

	if ((!is_wanted(rt) && !rt->hurried) || sl_monotonic_ms() < rt->retry_at)
		return false;
	rt->hurried = false;
	ret = sl_control_connect(&rt->control, rt->path, 0, &rt->err);
	if (!ret) {
		set_events(rt, EPOLL_CTL_ADD);
		parameters = hello(rt);
		ret = parameters ? say(rt, "io.sluice.Hello", parameters, NULL, rt->timeout_ms)
				 : sl_err_sys(&rt->err, ENOMEM, "can't say hello");
	}
	if (ret) {
		fail(rt, ret);
		return false;
	}
	rt->phase = MACHINE_HELLO;
	return true;
}

static void on_hello(struct sl_runtime *rt, int ret, struct json_object *reply)
{
	uint64_t protocol = answer_number(reply, "protocol");
	bool denied = !strcmp(sl_control_error(rt->control), PERMISSION_DENIED);

	if (ret == -EREMOTEIO)
		ret = answer_error(rt, reply);
	else if (!ret && (protocol < SL_PROTOCOL_MIN || protocol > SL_PROTOCOL_MAX))
		ret = sl_err_set(&rt->err, EPROTO,
				 "the agent chose a protocol that was not offered");
	/* Who is not root may resolve, and say no Hello. */
	if (ret == -EPERM && !is_wanted(rt) && denied)
		ret = 0;
	if (ret == -EPROTONOSUPPORT && is_wanted(rt) && (rt->epoch || rt->watch))
		machine_over(rt, EPROTONOSUPPORT);
	else if (ret)
		fail(rt, ret);
	else
		rt->phase = MACHINE_UP;
	rt->up_at = sl_monotonic_ms();
}

static int ask_session(struct sl_runtime *rt)
{
	struct json_object *parameters = rt->ask ? json_object_get(rt->ask)
						 : json_object_new_object();
	int ret = parameters ? 0 : -ENOMEM;

	if (!ret && !rt->ask)
		ret = ask_text(parameters, "token", rt->token);
	if (!ret)
		ret = sl_json_add(parameters, "epoch", json_object_new_uint64(rt->epoch + 1));
	if (ret) {
		json_object_put(parameters);
		return sl_err_sys(&rt->err, -ret, "can't ask for the session");
	}
	rt->epoch++;
	rt->phase = MACHINE_ASKED;
	return rt->ask ? say(rt, "io.sluice.Attach", parameters, &rt->fds, rt->timeout_ms)
		       : say(rt, "io.sluice.Recover", parameters, NULL, rt->timeout_ms);
}

/* What a connection is wanted for, once Hello is answered. */
static bool ask_step(struct sl_runtime *rt)
{
	int ret;

	if (rt->watch) {
		ret = sl_control_more(rt->control, "io.sluice.Watch", NULL, &rt->err);
		if (!ret)
			rt->state = SL_RUNTIME_LIVE;
	} else {
		ret = ask_session(rt);
	}
	if (ret)
		fail(rt, ret);
	return !ret;
}

static int take_session(struct sl_runtime *rt, struct json_object *reply)
{
	const char *sandbox = answer_text(reply, "sandbox");
	const char *token = rt->ask ? answer_text(reply, "token") : rt->token;
	uint8_t bytes[SL_RUNTIME_TOKEN_LEN / 2];

	if (answer_number(reply, "epoch") != rt->epoch || !sandbox ||
	    strlen(sandbox) >= sizeof(rt->sandbox) || !token ||
	    sl_hex_parse(token, bytes, sizeof(bytes)))
		return sl_err_set(&rt->err, EPROTO, "the agent's answer is that of no agent");
	strcpy(rt->sandbox, sandbox);
	memmove(rt->token, token, sizeof(rt->token));
	forget_ask(rt);
	rt->phase = MACHINE_UP;
	rt->state = SL_RUNTIME_LIVE;
	rt->up_at = sl_monotonic_ms();
	return 0;
}

static void on_asked(struct sl_runtime *rt, int ret, struct json_object *reply)
{
	char name[64] = "";

	if (!ret)
		ret = take_session(rt, reply);
	if (ret == -EREMOTEIO) {
		/* It goes with the connection. */
		snprintf(name, sizeof(name), "%s", sl_control_error(rt->control));
		ret = answer_error(rt, reply);
	}
	if (!ret)
		return;
	if (!strcmp(name, "io.sluice.UnknownToken") || !strcmp(name, "io.sluice.SessionOver")) {
		machine_over(rt, -ret);
		return;
	}
	if (!strcmp(name, "io.sluice.StaleEpoch")) {
		if (answer_number(reply, "epoch") > rt->epoch)
			rt->epoch = answer_number(reply, "epoch");
		fail(rt, ret);
	} else if (name[0] && rt->ask && strcmp(name, "io.sluice.Again") != 0) {
		refused(rt, ret);
	} else {
		fail(rt, ret);
	}
}

static void on_beat(struct sl_runtime *rt, int ret, struct json_object *reply)
{
	if (ret == -EREMOTEIO)
		ret = answer_error(rt, reply);
	else if (!ret && answer_number(reply, "epoch") != rt->epoch)
		ret = sl_err_set(&rt->err, EPROTO, "the agent speaks of another epoch");
	if (ret)
		fail(rt, ret);
	rt->beating = false;
}

/* One message, or the end. False: nothing came. */
static bool read_step(struct sl_runtime *rt)
{
	struct json_object *reply = NULL;
	bool more = false;
	int ret = sl_control_next(rt->control, 0, &reply, &more, &rt->read_err);

	if (ret == -EAGAIN) {
		set_events(rt, EPOLL_CTL_MOD);
		return false;
	}
	if (ret)
		rt->err = rt->read_err;
	if (ret && ret != -EREMOTEIO)
		fail(rt, ret);
	else if (rt->phase == MACHINE_HELLO)
		on_hello(rt, ret, reply);
	else if (rt->phase == MACHINE_ASKED)
		on_asked(rt, ret, reply);
	else if (rt->beating)
		on_beat(rt, ret, reply);
	else if (rt->watch && !ret && more)
		lib_watched(rt, reply);
	else
		fail(rt, ret == -EREMOTEIO ? answer_error(rt, reply)
					   : sl_err_set(&rt->err, EPROTO,
							"the agent said what was not asked"));
	json_object_put(reply);
	return true;
}

static bool is_waiting(const struct sl_runtime *rt)
{
	return rt->phase == MACHINE_HELLO || rt->phase == MACHINE_ASKED || rt->beating;
}

static int64_t beat_at(const struct sl_runtime *rt)
{
	return rt->said_at + rt->silence_ms / 3;
}

static bool has_beat(const struct sl_runtime *rt)
{
	return rt->phase == MACHINE_UP && rt->state == SL_RUNTIME_LIVE && !rt->watch &&
	       rt->silence_ms;
}

static bool time_step(struct sl_runtime *rt)
{
	int64_t now = sl_monotonic_ms();
	int ret;

	if (is_waiting(rt)) {
		if (now < rt->deadline)
			return false;
		fail(rt, sl_err_set(&rt->err, ETIMEDOUT, "no answer from the agent in time"));
		return true;
	}
	if (!has_beat(rt) || now < beat_at(rt))
		return false;
	ret = say(rt, "io.sluice.Heartbeat", NULL, NULL, rt->silence_ms);
	if (ret)
		fail(rt, ret);
	else
		rt->beating = true;
	return true;
}

static bool step(struct sl_runtime *rt)
{
	if (rt->phase == MACHINE_DOWN)
		return connect_step(rt);
	if (rt->phase == MACHINE_UP && is_wanted(rt))
		return ask_step(rt);
	return read_step(rt) || time_step(rt);
}

void machine_timer(struct sl_runtime *rt, bool at_once)
{
	struct itimerspec spec = { 0 };
	int64_t due = -1;

	if (rt->phase == MACHINE_DOWN && (is_wanted(rt) || rt->hurried))
		due = rt->retry_at;
	else if (is_waiting(rt))
		due = rt->deadline;
	else if (has_beat(rt))
		due = beat_at(rt);
	if (at_once)
		due = 0;
	if (due >= 0) {
		spec.it_value.tv_sec = due / 1000;
		/* All zero would be no timer. */
		spec.it_value.tv_nsec = due % 1000 * 1000000 + (due ? 0 : 1);
	}
	timerfd_settime(rt->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

void machine_run(struct sl_runtime *rt)
{
	unsigned int steps = 0;

	while (steps < STEPS_MAX && step(rt))
		steps++;
	machine_timer(rt, steps == STEPS_MAX);
}

/* Why what was wanted is not there. */
static int unreached(struct sl_runtime *rt)
{
	if (rt->answered || rt->failed == -EPROTONOSUPPORT || rt->failed == -EPERM)
		return rt->failed;
	rt->err.code = ENOTCONN;
	return -ENOTCONN;
}

static int wait_more(struct sl_runtime *rt, int64_t until)
{
	struct pollfd pollfd = { .fd = rt->epoll, .events = POLLIN };
	int64_t left = until - sl_monotonic_ms();
	int n = left > 0 ? poll(&pollfd, 1, (int)left) : 0;

	if (n > 0 || (n < 0 && errno == EINTR))
		return 0;
	if (is_waiting(rt))
		sl_err_set(&rt->err, ENOTCONN, "no answer from the agent within %d ms",
			   rt->timeout_ms);
	return -ETIMEDOUT;
}

int machine_reach(struct sl_runtime *rt, enum machine_need need, int64_t until)
{
	unsigned int tries = 0;

	rt->failed = 0;
	rt->answered = false;
	for (;;) {
		if (rt->phase == MACHINE_DOWN && !is_wanted(rt)) {
			if (need == MACHINE_SESSION && rt->state == SL_RUNTIME_OVER)
				return rt->final;
			if (tries >= (is_lost(rt->failed) ? LOST_TRIES : 1) ||
			    (need == MACHINE_SESSION && rt->failed))
				return unreached(rt);
			tries++;
			machine_hurry(rt);
		}
		machine_run(rt);
		if (rt->phase == MACHINE_UP && !rt->beating && !is_wanted(rt) &&
		    (need == MACHINE_CONNECTION || rt->state == SL_RUNTIME_LIVE))
			return 0;
		if (rt->phase == MACHINE_DOWN && !is_wanted(rt))
			continue;
		if (wait_more(rt, until))
			return unreached(rt);
	}
}
