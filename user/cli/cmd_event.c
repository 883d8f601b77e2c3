/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/words.h"
#include "event/watch.h"

struct watch_options {
	unsigned int kinds;
	const char *sandbox;
	uint32_t count;
	uint64_t time_us;
	bool no_digests;
};

static int parse_kind(const char *word, size_t len, unsigned int *kinds, struct sl_err *err)
{
	struct sl_words known = { 0 };

	for (unsigned int kind = SL_EVENT_NONE + 1; kind < SL_EVENT_KIND_MAX; kind++) {
		const char *name = sl_event_kind_name(kind);

		sl_words_add(&known, name);
		if (strlen(name) == len && !strncmp(name, word, len)) {
			*kinds |= SL_EVENT_BIT(kind);
			return 0;
		}
	}
	sl_err_set(err, EINVAL, "no kind of event '%.*s'", (int)len, word);
	return sl_err_hint(err, "kinds: %s", known.text);
}

/* "connect,close"; several options add up. */
static int parse_kinds(const char *value, void *member, struct sl_err *err)
{
	unsigned int kinds = *(unsigned int *)member;
	int ret;

	for (const char *word = value;; word++) {
		size_t len = strcspn(word, ",");

		ret = parse_kind(word, len, &kinds, err);
		if (ret)
			return ret;
		word += len;
		if (!*word)
			break;
	}
	*(unsigned int *)member = kinds;
	return 0;
}

static const struct sl_option watch_options[] = {
	SL_OPTION(CUSTOM, struct watch_options, kinds, "kind", 'k', "KIND[,KIND]",
		  "events of these kinds only", .parse = parse_kinds),
	SL_OPTION(TEXT, struct watch_options, sandbox, "sandbox", 's', "ID|NAME",
		  "of this sandbox only"),
	SL_OPTION(U32, struct watch_options, count, "count", 'n', "N", "end after N events",
		  .min = 1),
	SL_OPTION(DURATION_US, struct watch_options, time_us, "time", 't', "DURATION",
		  "end after this time (10s, 5m)"),
	SL_OPTION(FLAG, struct watch_options, no_digests, "no-digests", 0, NULL,
		  "do not hash executables"),
	{ 0 },
};

static int event_watch(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct watch_options *options = values;
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_(sl_event_stream_free) struct sl_event_stream *stream = NULL;
	struct sl_event_stream_options to = {
		.json = cli->output.json ? cli->output.file : NULL,
		.text = cli->output.json ? NULL : cli->output.file,
		.width = cli->output.width,
		.kinds = options->kinds,
		.max = options->count,
		.digests = !options->no_digests,
	};
	struct sl_event_ops ops;
	int ret = sl_query_open(&query, cli);

	(void)argc;
	(void)argv;
	if (!ret)
		ret = sl_query_sandbox(&query, cli, options->sandbox, &to.sandbox);
	if (ret)
		return ret;
	ops = sl_event_ops_of_set(query.set);
	ret = sl_event_stream_new(&stream, &ops, &to);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "starting to watch");
	ret = sl_event_watch(query.set, stream, options->time_us, &cli->err);
	if (ret == -EBUSY && !cli->err.hint[0])
		sl_err_hint(&cli->err, "a set's events have one reader: end the other "
				       "'sluice event watch' or agent first");
	return ret;
}

static const struct sl_command watch = {
	.name = "watch",
	.summary = "print events as they happen, until interrupted",
	.details =
		"Times of plain lines are UTC. With -j, each event is one JSON object on a line;\n"
		"`exec` and `close` wait for the SHA-256 of the executable, up to 3 seconds.\n"
		"An event `lost` says that events were dropped because they were read too slowly.",
	.options = watch_options,
	.options_size = sizeof(struct watch_options),
	.run = event_watch,
};

const struct sl_command sl_cmd_event = {
	.name = "event",
	.summary = "events of processes and sockets",
	.subcommands = (const struct sl_command *const[]){ &watch, NULL },
};
