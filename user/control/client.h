/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calling side of a varlink connection, with a time limit for each step.
 *
 *	sl_control_connect(&control, path, timeout_ms, &err);
 *	sl_control_call(control, "io.sluice.Status", parameters, NULL, &reply, &err);
 *	sl_control_more(control, "io.sluice.Watch", parameters, &err);
 *	sl_control_next(control, -1, &reply, &more, &err);
 *	sl_control_free(&control);
 *
 * Or without waiting: sl_control_begin(), then sl_control_next() with no time, each time that
 * sl_control_fd() is ready for sl_control_events().
 *
 * `parameters` is taken over, NULL for none; the caller owns *reply, the parameters of the
 * answer. Not locked.
 */
#ifndef SLUICE_USER_CONTROL_CLIENT_H
#define SLUICE_USER_CONTROL_CLIENT_H

#include <stdbool.h>

#include <json-c/json.h>

#include "base/err.h"
#include "control/wire.h"

struct sl_control;

/*
 * -ENOENT and -ECONNREFUSED with a hint: nobody listens. -EAGAIN: so many wait to be accepted
 * that the time was over; with timeout_ms 0, none is waited.
 */
int sl_control_connect(struct sl_control **out, const char *path, int timeout_ms,
		       struct sl_err *err);
/* Over a connected socket, which is taken over on success. */
int sl_control_new(struct sl_control **out, int fd, int timeout_ms);
void sl_control_free(struct sl_control **control);

/* For poll(): readable when an answer, or the end, is there. */
int sl_control_fd(const struct sl_control *control);
/* POLLIN, and POLLOUT while part of a call is unsent. */
short sl_control_events(const struct sl_control *control);

/*
 * -EREMOTEIO: the service answered with an error; its name is sl_control_error(), its
 * parameters are *reply. -ETIMEDOUT, -EPIPE, -ECONNRESET: after these the connection is of no more
 * use; the service may have said why. Descriptors (may be NULL) stay the caller's.
 */
int sl_control_call(struct sl_control *control, const char *method, struct json_object *parameters,
		    const struct sl_fds *fds, struct json_object **reply, struct sl_err *err);

/* Queues a call, sends what the service takes, and never waits. */
int sl_control_begin(struct sl_control *control, const char *method, struct json_object *parameters,
		     const struct sl_fds *fds, struct sl_err *err);

/* The same for a stream. */
int sl_control_more(struct sl_control *control, const char *method, struct json_object *parameters,
		    struct sl_err *err);

/*
 * The answer, or the next of a stream; *more: others follow. timeout_ms < 0: for ever.
 * -EAGAIN: none in time. Other errors as of a call.
 */
int sl_control_next(struct sl_control *control, int timeout_ms, struct json_object **reply,
		    bool *more, struct sl_err *err);

/*
 * After one of these errors: whether the service has certainly not begun the last call, so that it
 * may be said again on another connection.
 */
bool sl_control_untaken(const struct sl_control *control);

/* Name of the error of the last answer, "" when it was none. Valid until the next call. */
const char *sl_control_error(const struct sl_control *control);

#endif
