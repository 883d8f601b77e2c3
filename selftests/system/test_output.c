/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `sluice` prints of a set, across calls. */
#include <criterion/criterion.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "system/expect.h"

TestSuite(output, .init = world_up, .fini = world_down, .timeout = 60);

/* `start` of the process, as one call prints it. */
static void printed_start(uint64_t pid, char *out, size_t size)
{
	struct json_object *list, *row, *value;
	struct load load;

	load_exec(&load, OUTSIDE,
		  (char *[]){ getenv("SLUICE"), "-j", "--set", world.dir, "proc", "list", NULL });
	cr_assert_eq(load_end(&load), 0);
	list = json_tokener_parse(load.text);
	cr_assert_not_null(list, "%s", load.text);
	out[0] = '\0';
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		row = json_object_array_get_idx(list, i);
		if (json_object_object_get_ex(row, "pid", &value) &&
		    json_object_get_uint64(value) == pid &&
		    json_object_object_get_ex(row, "start", &value))
			snprintf(out, size, "%s", json_object_get_string(value));
	}
	json_object_put(list);
	load_free(&load);
	cr_assert_neq(out[0], '\0', "no process %llu", (unsigned long long)pid);
}

/* A date is made with the distance of two clocks, which can't be read in one piece. */
Test(output, start_is_the_same_in_every_call)
{
	char first[64], again[64];
	struct load server;
	uint64_t pid;

	server_start_at(&server, INSIDE, "tcp-server --no-accept", "127.0.0.1:0");
	pid = fact_u64(fact_next(&server, NULL, "listen"), "pid");
	printed_start(pid, first, sizeof(first));
	for (int i = 0; i < 20; i++) {
		printed_start(pid, again, sizeof(again));
		cr_expect_str_eq(again, first);
	}
	load_end(&server);
	expect_conserved(0);
	expect_no_faults();
	load_free(&server);
}
