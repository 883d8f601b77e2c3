// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/object.h"

#define ERROR_MAX 128 /* of an error's name; a longer one is cut */

struct sl_control {
	struct sl_wire *wire;
	int timeout_ms;
	bool untaken; /* of the last call, see sl_control_untaken() */
	char error[ERROR_MAX];
};

int sl_control_new(struct sl_control **out, int fd, int timeout_ms)
{
	struct sl_control *control = calloc(1, sizeof(*control));
	int ret;

	if (!control)
		return -ENOMEM;
	control->timeout_ms = timeout_ms;
	ret = sl_wire_new(&control->wire, fd, NULL);
	if (ret) {
		free(control);
		return ret;
	}
	*out = control;
	return 0;
}

void sl_control_free(struct sl_control **control)
{
	struct sl_control *c;

	if (!control || !*control)
		return;
	c = TAKE_PTR(*control);
	sl_wire_free(&c->wire);
	free(c);
}

int sl_control_connect(struct sl_control **out, const char *path, int timeout_ms,
		       struct sl_err *err)
{
	const struct timeval limit = { .tv_sec = timeout_ms / 1000,
				       .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_fd_ int fd = -1;
	int ret;

	if (strlen(path) >= sizeof(addr.sun_path))
		return sl_err_set(err, ENAMETOOLONG, "the socket's path '%s' is too long", path);
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (timeout_ms ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return sl_err_sys(err, errno, "can't make a socket");
	/* A socket that nobody accepts from is full some day: then connect() would wait. */
	if (timeout_ms > 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)))
		return sl_err_sys(err, errno, "can't limit the time of a socket");
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = sl_err_sys(err, errno, "can't reach the agent at '%s'", path);
		if (ret == -ENOENT || ret == -ECONNREFUSED)
			sl_err_hint(err, "start sluiced, or name its socket with --agent");
		return ret; /* also for who does not want to know why */
	}
	ret = sl_control_new(out, fd, timeout_ms);
	if (ret)
		return sl_err_sys(err, -ret, "can't talk to the agent");
	(void)TAKE_FD(fd);
	return 0;
}

int sl_control_fd(const struct sl_control *control)
{
	return sl_wire_fd(control->wire);
}

short sl_control_events(const struct sl_control *control)
{
	return sl_wire_queued(control->wire) ? POLLIN | POLLOUT : POLLIN;
}

/* Until the socket is ready; 0, -ETIMEDOUT or -errno. `until` < 0: for ever. */
static int wait_for(const struct sl_control *control, int64_t until)
{
	struct pollfd pollfd = { .fd = sl_wire_fd(control->wire),
				 .events = sl_control_events(control) };

	for (;;) {
		int64_t left = until < 0 ? -1 : until - sl_monotonic_ms();
		int n = left < 0 && until >= 0 ? 0 : poll(&pollfd, 1, (int)left);

		if (n > 0)
			return 0;
		if (!n)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int64_t deadline(int timeout_ms)
{
	return timeout_ms < 0 ? -1 : sl_monotonic_ms() + timeout_ms;
}

static struct json_object *call_new(const char *method, struct json_object *parameters, bool more)
{
	struct json_object *call = json_object_new_object();

	if (!parameters)
		parameters = json_object_new_object();
	if (!call || sl_json_add(call, "method", json_object_new_string(method)) ||
	    (more && sl_json_add(call, "more", json_object_new_boolean(true)))) {
		json_object_put(parameters);
		json_object_put(call);
		return NULL;
	}
	if (sl_json_add(call, "parameters", parameters)) {
		json_object_put(call);
		return NULL;
	}
	return call;
}

static int flush(struct sl_control *control)
{
	int ret = sl_wire_queued(control->wire) ? sl_wire_flush(control->wire) : 0;

	/* Of a connection that has ended the cause may be there to be read. */
	return ret == -EAGAIN || ret == -EPIPE ? 0 : ret;
}

static int begin(struct sl_control *control, const char *method, struct json_object *parameters,
		 bool more, const struct sl_fds *fds, struct sl_err *err)
{
	struct json_object *call = call_new(method, parameters, more);
	int ret = call ? sl_wire_put(control->wire, call, fds) : -ENOMEM;

	json_object_put(call);
	ret = ret ?: flush(control);
	return ret ? sl_err_sys(err, -ret, "can't call %s", method) : 0;
}

int sl_control_begin(struct sl_control *control, const char *method, struct json_object *parameters,
		     const struct sl_fds *fds, struct sl_err *err)
{
	return begin(control, method, parameters, false, fds, err);
}

int sl_control_more(struct sl_control *control, const char *method, struct json_object *parameters,
		    struct sl_err *err)
{
	return begin(control, method, parameters, true, NULL, err);
}

/* Sends what is left of a call as well: the answer comes after that. */
static int receive(struct sl_control *control, int64_t until, struct json_object **out)
{
	struct sl_fds fds = { .count = 0 };
	int ret;

	while ((ret = sl_wire_next(control->wire, out, &fds)) == -EAGAIN) {
		ret = sl_wire_fill(control->wire);
		if (ret == -EAGAIN)
			ret = flush(control) ?: wait_for(control, until);
		if (ret)
			return ret;
	}
	sl_fds_close(&fds);
	return ret;
}

/* The end of a connection as the service tells it (control/server.h, rule 5). */
static bool is_closing(const char *error)
{
	const char *dot = strrchr(error, '.');

	return dot && !strcmp(dot, ".Closed");
}

static int closed(struct sl_control *control, struct json_object *reply, struct sl_err *err)
{
	char text[sizeof(err->text)] = "";
	struct json_object *value;

	control->untaken = json_object_object_get_ex(reply, "taken", &value) &&
			   json_object_is_type(value, json_type_boolean) &&
			   !json_object_get_boolean(value);
	if (json_object_object_get_ex(reply, "text", &value) &&
	    json_object_is_type(value, json_type_string))
		sl_escape_text(text, sizeof(text), json_object_get_string(value));
	return sl_err_set(err, ECONNRESET, "the agent has ended the connection: %s", text);
}

/* The parameters of an answer, and its error. */
static int take_answer(struct sl_control *control, struct json_object *answer,
		       struct json_object **reply, bool *more, struct sl_err *err)
{
	struct json_object *value;

	control->error[0] = '\0';
	*more = json_object_object_get_ex(answer, "continues", &value) &&
		json_object_get_boolean(value);
	if (json_object_object_get_ex(answer, "error", &value))
		strncat(control->error, json_object_get_string(value) ?: "",
			sizeof(control->error) - 1);
	*reply = json_object_object_get_ex(answer, "parameters", &value) ? json_object_get(value)
									 : json_object_new_object();
	json_object_put(answer);
	if (!*reply)
		return sl_err_sys(err, ENOMEM, "can't keep the answer");
	if (!control->error[0])
		return 0;
	if (is_closing(control->error)) {
		int ret = closed(control, *reply, err);

		json_object_put(TAKE_PTR(*reply));
		return ret;
	}
	return sl_err_set(err, EREMOTEIO, "the agent answered %s", control->error);
}

int sl_control_next(struct sl_control *control, int timeout_ms, struct json_object **reply,
		    bool *more, struct sl_err *err)
{
	struct json_object *answer;
	int ret = receive(control, deadline(timeout_ms), &answer);

	if (ret == -ETIMEDOUT)
		return sl_err_set(err, EAGAIN, "nothing came in time");
	/* The kernel's word for an end with something unread: a call is read whole, or is none. */
	control->untaken = ret == -ECONNRESET || sl_wire_queued(control->wire);
	if (ret)
		return sl_err_sys(err, -ret, "the connection to the agent has ended");
	return take_answer(control, answer, reply, more, err);
}

int sl_control_call(struct sl_control *control, const char *method, struct json_object *parameters,
		    const struct sl_fds *fds, struct json_object **reply, struct sl_err *err)
{
	bool more;
	int ret = begin(control, method, parameters, false, fds, err);

	if (ret)
		return ret;
	ret = sl_control_next(control, control->timeout_ms, reply, &more, err);
	if (ret == -EAGAIN)
		return sl_err_set(err, ETIMEDOUT, "no answer to %s within %d ms", method,
				  control->timeout_ms);
	return ret;
}

bool sl_control_untaken(const struct sl_control *control)
{
	return control->untaken;
}

const char *sl_control_error(const struct sl_control *control)
{
	return control->error;
}
