/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calling side of a varlink connection; blocking, with a time limit for each step.
 *
 *	sl_control_connect(&control, path, timeout_ms, &err);
 *	sl_control_call(control, "io.sluice.Status", parameters, NULL, &reply, &err);
 *	sl_control_more(control, "io.sluice.Watch", parameters, &err);
 *	sl_control_next(control, -1, &reply, &more, &err);
 *	sl_control_free(&control);
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

/* -ENOENT and -ECONNREFUSED with a hint: nobody listens. */
int sl_control_connect(struct sl_control **out, const char *path, int timeout_ms,
		       struct sl_err *err);
/* Over a connected socket, which is taken over on success. */
int sl_control_new(struct sl_control **out, int fd, int timeout_ms);
void sl_control_free(struct sl_control **control);

/* For poll(): readable when a message of a stream, or the end, is there. */
int sl_control_fd(const struct sl_control *control);

/*
 * -EREMOTEIO: the service answered with an error; its name is sl_control_error(), its
 * parameters are *reply. -ETIMEDOUT, -EPIPE: after these the connection is of no more use.
 * Descriptors (may be NULL) stay the caller's.
 */
int sl_control_call(struct sl_control *control, const char *method, struct json_object *parameters,
		    const struct sl_fds *fds, struct json_object **reply, struct sl_err *err);

/* Begins a stream. */
int sl_control_more(struct sl_control *control, const char *method, struct json_object *parameters,
		    struct sl_err *err);

/* Its next message; *more: others follow. timeout_ms < 0: for ever. -EAGAIN: none in time. */
int sl_control_next(struct sl_control *control, int timeout_ms, struct json_object **reply,
		    bool *more, struct sl_err *err);

/* Name of the error of the last answer, "" when it was none. Valid until the next call. */
const char *sl_control_error(const struct sl_control *control);

#endif
