/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as what an OCI runtime says: what is taken is within its bounds, and no path. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "oci/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_name(const char *name, size_t size)
{
	check(memchr(name, '\0', size) != NULL);
	check(!strchr(name, '/') && name[0] != '.');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sl_oci_process process = {};
	struct sl_oci_state state = {};
	struct sl_err err = { 0 };

	if (!sl_oci_state_parse(&state, (const char *)data, size, &err)) {
		check_name(state.id, sizeof(state.id));
		check_name(state.policy, sizeof(state.policy));
		check(state.id[0] && state.pid >= 0);
	} else {
		check(err.text[0]);
	}
	if (!sl_oci_process_parse(&process, (const char *)data, size, 2, &err)) {
		check_name(process.policy, sizeof(process.policy));
		check(process.policy[0] && process.listener < 2 && process.pid > 0);
	}
	return 0;
}
