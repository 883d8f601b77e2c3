/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What `event watch` and `decision watch` share. */
#ifndef SLUICE_USER_CLI_WATCH_H
#define SLUICE_USER_CLI_WATCH_H

#include "cli/command.h"

struct sl_watch_options {
	unsigned int kinds; /* SL_EVENT_BIT; 0: all */
	const char *sandbox;
	uint32_t count;
	uint64_t time_us;
	bool no_digests;
	bool ocsf;
};

/* The options that both have, by a struct sl_watch_options. */
#define SL_WATCH_OPTIONS                                                                          \
	SL_OPTION(TEXT, struct sl_watch_options, sandbox, "sandbox", 's', "ID|NAME",              \
		  "of this sandbox only"),                                                        \
		SL_OPTION(U32, struct sl_watch_options, count, "count", 'n', "N",                 \
			  "end after N events", .min = 1),                                        \
		SL_OPTION(DURATION_US, struct sl_watch_options, time_us, "time", 't', "DURATION", \
			  "end after this time (10s, 5m)"),                                       \
		SL_OPTION(FLAG, struct sl_watch_options, no_digests, "no-digests", 0, NULL,       \
			  "do not hash executables")

/* -errno with cli->err filled. */
int sl_watch_run(struct sl_cli *cli, const struct sl_watch_options *options);

#endif
