// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "broker/contain.h"
#include "broker/listener.h"
#include "broker/probe.h"

struct sl_gate {
	struct sl_err err;
	struct sl_contain_options options;
	char user[64]; /* options.name */
	struct sl_contain_plan plan;
	bool contained;
	struct sl_filter filter;
	unsigned long listener_flags;
	struct sl_handoff handoff;
};

int sl_gate_new(struct sl_gate **out)
{
	struct sl_gate *gate = calloc(1, sizeof(*gate));

	if (!gate)
		return -ENOMEM;
	gate->handoff = (struct sl_handoff){ -1, -1 };
	*out = gate;
	return 0;
}

void sl_gate_free(struct sl_gate **gate)
{
	if (!gate || !*gate)
		return;
	sl_handoff_end(&(*gate)->handoff);
	free(*gate);
	*gate = NULL;
}

const char *sl_gate_error(const struct sl_gate *gate)
{
	return gate ? gate->err.text : "out of memory";
}

const char *sl_gate_hint(const struct sl_gate *gate)
{
	return gate ? gate->err.hint : "";
}

int sl_gate_user(struct sl_gate *gate, uid_t uid, gid_t gid, const char *name)
{
	if (name && strlen(name) >= sizeof(gate->user))
		return sl_err_set(&gate->err, ENAMETOOLONG, "a user's name has less than %zu bytes",
				  sizeof(gate->user));
	gate->options.change_user = true;
	gate->options.uid = uid;
	gate->options.gid = gid;
	if (name)
		strcpy(gate->user, name);
	gate->options.name = name ? gate->user : NULL;
	return 0;
}

static int make_filter(struct sl_gate *gate, unsigned int plan, unsigned int flags)
{
	const struct sl_filter_options options = {
		.hold = (plan & SL_PLAN_EXEC ? SL_HOLD_EXEC : 0) |
			(plan & SL_PLAN_CONNECT ? SL_HOLD_CONNECT : 0) |
			(plan & SL_PLAN_SEND ? SL_HOLD_SEND : 0),
		.flags = SL_FILTER_NOTIFY_FAMILY |
			 (flags & SL_GATE_IO_URING ? SL_FILTER_IO_URING : 0) |
			 (plan & SL_PLAN_LISTEN ? SL_FILTER_NOTIFY_LISTEN : 0) |
			 (plan & SL_PLAN_STRICT ? SL_FILTER_STRICT : 0),
		.refuse_errno = EACCES,
	};
	const char *why;

	sl_probe_listener_flags(&gate->listener_flags, &why);
	return sl_filter_make(&gate->filter, &options, &gate->err);
}

int sl_gate_set(struct sl_gate *gate, unsigned int plan, unsigned int flags)
{
	int ret = 0;

	if (plan >= 2 * SL_PLAN_STRICT || flags >= 2 * SL_GATE_UNCONTAINED ||
	    (flags & SL_GATE_UNCONTAINED && gate->options.change_user))
		return sl_err_set(&gate->err, EINVAL, "a gate can't be like this");
	gate->contained = !(flags & SL_GATE_UNCONTAINED);
	gate->options.pass_socket = flags & SL_GATE_PASS_SOCKET;
	gate->options.strict = plan & SL_PLAN_STRICT;
	if (gate->contained)
		ret = sl_contain_plan(&gate->plan, &gate->options, &gate->err);
	ret = ret ?: make_filter(gate, plan, flags);
	if (ret)
		return ret;
	sl_handoff_end(&gate->handoff);
	return sl_handoff_new(&gate->handoff, &gate->err);
}

/*
 * What a process has open while its sandbox is attached is the sandbox's: the runtime's own
 * sockets would be found there, though they are gone after the exec.
 */
static int close_network(struct sl_gate *gate)
{
	_cleanup_dir_ DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	uint32_t fd;

	if (!dir)
		return sl_err_sys(&gate->err, errno, "can't look for sockets in /proc/self/fd");
	while ((entry = readdir(dir))) {
		if (!sl_parse_u32(entry->d_name, STDERR_FILENO + 1, INT_MAX, &fd) &&
		    sl_contain_is_network((int)fd))
			close((int)fd);
	}
	return 0;
}

int sl_gate_pass(struct sl_gate *gate)
{
	int ret = 0;

	if (gate->contained)
		ret = close_network(gate) ?: sl_contain_apply(&gate->plan, &gate->err);
	if (!ret)
		return sl_handoff_give(&gate->handoff, &gate->filter, gate->listener_flags,
				       &gate->err);
	sl_handoff_fail(&gate->handoff, &gate->err);
	return ret;
}

int sl_gate_listener(struct sl_gate *gate, int timeout_ms, int *listener)
{
	return sl_handoff_take(&gate->handoff, timeout_ms, listener, &gate->err);
}

int sl_gate_open(struct sl_gate *gate)
{
	int ret = sl_handoff_release(&gate->handoff, &gate->err);

	sl_handoff_end(&gate->handoff);
	return ret;
}
