/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* AddListener: one more filter whose calls are answered as those of the sandbox are. */
#include <errno.h>

#include "agent/agent.h"
#include "base/cleanup.h"

struct params {
	const char *sandbox;
	uint64_t listener_fd;
};

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct params, sandbox, .optional = true, .max = 20),
	SL_PARAM(UINT, struct params, listener_fd, .max = SL_FDS_MAX - 1),
	{ 0 },
};

static int add(struct sl_agent *agent, unsigned int row, int *listener, struct sl_err *err)
{
	const struct sl_record *record = sl_record_at(agent->records, row);

	if (*listener < 0)
		return sl_err_set(err, EBADF, "listener_fd: no such descriptor was sent");
	if (sl_record_state(agent->records, row) == SL_RECORD_ENDED)
		return sl_err_set(err, ESHUTDOWN, "the session is over");
	/* Its policy was taken for one that needs no held calls. */
	if (!record->listener)
		return sl_err_set(err, EINVAL, "sandbox %u was attached without a listener",
				  record->sandbox);
	return sl_held_add(agent->held, listener, record->listener, agent->boxes[row]->use, err);
}

void sl_method_add_listener(struct sl_request *request, void *ctx)
{
	struct sl_agent *agent = ctx;
	const struct sl_conn *conn = sl_conn_enter(agent, request);
	_cleanup_fd_ int listener = -1;
	struct params read = { 0 };
	struct sl_err err = { 0 };
	unsigned int row;

	if (!conn || !sl_read_params(request, params, &read) ||
	    !sl_target(agent, request, conn, read.sandbox, &row))
		return;
	/* Which policy files are looked at by is in the hands of a job. */
	if (agent->boxes[row]->changing || agent->boxes[row]->leaving) {
		sl_reply_error(request, "Again", NULL);
		return;
	}
	listener = sl_request_take_fd(request, (unsigned int)read.listener_fd);
	if (add(agent, row, &listener, &err))
		sl_reply_refused(request, &err);
	else
		sl_request_reply(request, NULL);
}
