/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The sizes of a set as options: of `sandbox attach` and of `run`, which has its own set. */
#ifndef SLUICE_USER_CLI_SET_OPTIONS_H
#define SLUICE_USER_CLI_SET_OPTIONS_H

#include "cli/options.h"
#include "kernel/set.h"

#define SL_SET_SIZE(values, member, text, largest, meaning) \
	SL_OPTION(U32, values, member, text, 0, "COUNT", meaning, .min = 1, .max = (largest))

/*
 * The rows of a table whose struct of values, `values`, has a struct sl_set_options named
 * `set`. Not given is 0, the set's own default; the other arguments say which that is here.
 */
#define SL_SET_SIZES(values, procs, exes, socks)                                              \
	SL_SET_SIZE(values, set.max_procs, "max-procs", 1U << 22,                             \
		    "processes that are known at once (default: " procs ")"),                 \
		SL_SET_SIZE(values, set.max_exes, "max-exes", 1U << 20,                       \
			    "executables that are known (default: " exes ")"),                \
		SL_SET_SIZE(values, set.max_lineages, "max-lineages", 1U << 22,               \
			    "chains of executables (default: 16384)"),                        \
		SL_SET_SIZE(values, set.max_closed, "max-closed", 1U << 22,                   \
			    "sockets remembered, open or closed; made a power of two, 64 at " \
			    "least (default: 16384)"),                                        \
		SL_SET_SIZE(values, set.max_socks, "max-socks", 1U << 24,                     \
			    "open sockets beyond that (default: " socks ")"),                 \
		SL_OPTION(CUSTOM, values, set.ring_bytes, "ring-bytes", 0, "BYTES",           \
			  "size of the ring buffer of events, 4K to 1G; made a power of two " \
			  "(default: 8M)",                                                    \
			  .parse = sl_set_parse_ring)

/* The size of a ring into an unsigned int. -EINVAL with what is expected. */
int sl_set_parse_ring(const char *value, void *member, struct sl_err *err);

#endif
