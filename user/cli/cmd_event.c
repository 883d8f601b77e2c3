/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "cli/watch.h"
#include "cli/words.h"
#include "event/watch.h"

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
	SL_OPTION(CUSTOM, struct sl_watch_options, kinds, "kind", 'k', "KIND[,KIND]",
		  "events of these kinds only", .parse = parse_kinds),
	SL_WATCH_OPTIONS,
	{ 0 },
};

int sl_watch_run(struct sl_cli *cli, const struct sl_watch_options *options)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_(sl_event_stream_free) struct sl_event_stream *stream = NULL;
	bool json = cli->output.json || options->ocsf;
	struct sl_event_stream_options to = {
		.json = json ? cli->output.file : NULL,
		.text = json ? NULL : cli->output.file,
		.width = cli->output.width,
		.kinds = options->kinds,
		.max = options->count,
		.digests = !options->no_digests,
		.ocsf = options->ocsf,
	};
	struct sl_event_ops ops;
	int ret = sl_query_open(&query, cli);

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

static int event_watch(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_watch_run(cli, values);
}

static const struct sl_command watch = {
	.name = "watch",
	.summary = "print events as they happen, until interrupted",
	.details =
		"Times of plain lines are UTC. With -j, each event is one JSON object on a line;\n"
		"`exec` and `close` wait for the SHA-256 of the executable, up to 3 seconds.\n"
		"An event `lost` says that events were dropped because they were read too slowly.\n"
		"Those of a `sluice run` by an agent go to that command instead.",
	.options = watch_options,
	.options_size = sizeof(struct sl_watch_options),
	.run = event_watch,
};

const struct sl_command sl_cmd_event = {
	.name = "event",
	.summary = "events of processes and sockets",
	.subcommands = (const struct sl_command *const[]){ &watch, NULL },
};
