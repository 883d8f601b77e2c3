/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes on the control socket, in any pieces: the first byte of the input is the size
 * of a piece. Nothing leaks, nothing hangs, and what is answered is valid.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/params.h"
#include "control/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct record {
	const char *cgroup;
	uint64_t grace_ms, id;
	unsigned int mode;
	bool keep;
	struct json_object *options;
};

static const char *const modes[] = { "observe", NULL, "enforce" };

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct record, cgroup, .max = 16),
	SL_PARAM(UINT, struct record, grace_ms, .optional = true, .max = 1000),
	SL_PARAM(ID, struct record, id, .optional = true),
	SL_PARAM_ENUM(struct record, mode, modes, .optional = true),
	SL_PARAM(BOOL, struct record, keep, .optional = true),
	SL_PARAM(OBJECT, struct record, options, .optional = true),
	{ 0 },
};

static void check(bool good)
{
	if (!good)
		abort();
}

static void take_all(struct sl_wire *wire)
{
	struct sl_fds fds = { .count = 0 };
	struct json_object *json;

	while (!sl_wire_next(wire, &json, &fds)) {
		struct record record = { .cgroup = NULL };
		const char *bad = NULL;

		check(json_object_is_type(json, json_type_object));
		check(!fds.count);
		if (sl_params_read(&record, params, json, &bad))
			check(bad != NULL);
		else
			check(record.cgroup && strlen(record.cgroup) <= 16 &&
			      record.grace_ms <= 1000 && record.mode != 1 && record.mode < 3);
		json_object_put(json);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct sl_wire_limits limits = { .message = 4096 };
	struct sl_wire *wire = NULL;
	size_t piece = size ? data[0] + 1 : 1;
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	check(!sl_wire_new(&wire, pair[0], &limits));
	for (size_t at = 1; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		check(write(pair[1], data + at, n) == (ssize_t)n);
		if (sl_wire_fill(wire))
			break;
		take_all(wire);
	}
	sl_wire_free(&wire);
	close(pair[1]);
	return 0;
}
