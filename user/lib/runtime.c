// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lib/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/utf8.h"

static bool is_word(const char *text)
{
	return text && *text && strlen(text) < SL_RUNTIME_WORD && sl_utf8_valid(text, strlen(text));
}

int sl_runtime_new(struct sl_runtime **out, const char *name, const char *version)
{
	struct epoll_event event = { .events = EPOLLIN };
	_cleanup_(sl_runtime_free) struct sl_runtime *rt = NULL;

	if (!is_word(name) || !is_word(version))
		return -EINVAL;
	rt = calloc(1, sizeof(*rt));
	if (!rt)
		return -ENOMEM;
	strcpy(rt->name, name);
	strcpy(rt->version, version);
	rt->timer = -1;
	rt->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (rt->epoll < 0)
		return -errno;
	rt->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (rt->timer < 0 || epoll_ctl(rt->epoll, EPOLL_CTL_ADD, rt->timer, &event))
		return -errno;
	*out = TAKE_PTR(rt);
	return 0;
}

void sl_runtime_free(struct sl_runtime **rt)
{
	struct sl_runtime *r;

	if (!rt || !*rt)
		return;
	r = TAKE_PTR(*rt);
	/* Nothing is wanted of the connection any more. */
	r->state = SL_RUNTIME_NONE;
	r->watch = NULL;
	machine_drop(r);
	json_object_put(r->ask);
	json_object_put(r->given);
	sl_fds_close(&r->fds);
	sl_cleanup_fd(&r->timer);
	sl_cleanup_fd(&r->epoll);
	/* The token is a secret. */
	explicit_bzero(r, sizeof(*r));
	free(r);
}

const char *sl_runtime_error(const struct sl_runtime *rt)
{
	return rt ? rt->err.text : "out of memory";
}

const char *sl_runtime_hint(const struct sl_runtime *rt)
{
	return rt ? rt->err.hint : "";
}

int sl_runtime_fd(const struct sl_runtime *rt)
{
	return rt->epoll;
}

enum sl_runtime_state sl_runtime_state(const struct sl_runtime *rt)
{
	return rt->state;
}

const char *sl_runtime_sandbox(const struct sl_runtime *rt)
{
	return rt->sandbox;
}

const char *sl_runtime_token(const struct sl_runtime *rt)
{
	return rt->token;
}

int sl_runtime_connect(struct sl_runtime *rt, const char *path, int timeout_ms)
{
	path = path ?: SL_RUNTIME_SOCKET;
	if (timeout_ms <= 0 || strlen(path) >= sizeof(rt->path))
		return sl_err_set(&rt->err, EINVAL,
				  "a socket's path has less than %zu bytes, a timeout is above 0",
				  sizeof(rt->path));
	if (rt->state != SL_RUNTIME_NONE || rt->watch)
		return sl_err_set(&rt->err, EBUSY, "this handle has a session or a watch");
	machine_drop(rt);
	strcpy(rt->path, path);
	rt->timeout_ms = timeout_ms;
	machine_hurry(rt);
	return machine_reach(rt, MACHINE_CONNECTION, sl_monotonic_ms() + timeout_ms);
}

int sl_runtime_dispatch(struct sl_runtime *rt)
{
	machine_run(rt);
	return rt->state == SL_RUNTIME_OVER ? rt->final : 0;
}

int sl_runtime_recover(struct sl_runtime *rt, int timeout_ms)
{
	if (rt->state == SL_RUNTIME_OVER)
		return rt->final;
	if (rt->state == SL_RUNTIME_NONE)
		return sl_err_set(&rt->err, EINVAL, "there is no session to recover");
	if (rt->state != SL_RUNTIME_LIVE)
		machine_hurry(rt);
	return machine_reach(rt, MACHINE_SESSION, sl_monotonic_ms() + timeout_ms);
}
