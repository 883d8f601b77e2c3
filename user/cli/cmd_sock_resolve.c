/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sock resolve: who owns the socket with these two ends. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/sock_query.h"

struct resolve_options {
	const char *netns;
};

static const struct sl_option resolve_options[] = {
	SL_OPTION(TEXT, struct resolve_options, netns, "netns", 'n', "COOKIE",
		  "in the network namespace of this cookie (netns_cookie of 'sock show')"),
	{ 0 },
};

struct resolve_record {
	const char *found;
	__u32 matches;
	const struct sl_view_sock *socket;
	const struct sl_view_sock *other_end;
};

static bool ambiguous(const void *record)
{
	return ((const struct resolve_record *)record)->matches > 1;
}

static const struct sl_field resolve_fields[] = {
	SL_FIELD_TEXT(struct resolve_record, found, NULL),
	/* Sockets that answer equally well, when there are several (SO_REUSEPORT). */
	SL_FIELD_UINT(struct resolve_record, matches, NULL, .present = ambiguous),
	SL_FIELD_OBJECT_PTR(struct resolve_record, socket, NULL, sl_view_sock_fields),
	SL_FIELD_OBJECT_PTR(struct resolve_record, other_end, NULL, sl_view_sock_fields,
			    .flags = SL_FIELD_NULL),
	{ 0 },
};

static int print_found(struct sl_cli *cli, struct sl_query *query,
		       const struct sl_sock_found *resolve)
{
	struct sl_view_sock socket, other;
	struct resolve_record record = {
		.found = resolve->closed ? "closed" : "live",
		.matches = resolve->found.count,
		.socket = &socket,
	};
	int ret = sl_view_sock_fill(&socket, &resolve->found.sock, NULL, query->source);

	if (!ret && resolve->other.count == 1) {
		ret = sl_view_sock_fill(&other, &resolve->other.sock, NULL, query->source);
		record.other_end = &other;
	}
	return ret ? ret : sl_print_record(&cli->output, resolve_fields, &record);
}

static int parse_end(struct sl_cli *cli, const char *word, struct sl_endpoint *end)
{
	if (!sl_parse_endpoint(word, end))
		return 0;
	sl_err_set(&cli->err, EINVAL, "'%s' is no address with a port", word);
	return sl_err_hint(&cli->err, "write 192.0.2.1:443 or [2001:db8::1]:443");
}

static int parse_arguments(struct sl_cli *cli, const struct resolve_options *options, char **argv,
			   struct sl_sock_ends *ends)
{
	uint64_t netns = 0;
	int ret;

	ends->udp = !strcmp(argv[0], "udp");
	if (!ends->udp && strcmp(argv[0], "tcp") != 0) {
		sl_err_set(&cli->err, EINVAL, "'%s' is neither tcp nor udp", argv[0]);
		return sl_err_hint(&cli->err, "only these have two ends that tell an owner");
	}
	if (options->netns && sl_parse_u64(options->netns, 1, UINT64_MAX, &netns)) {
		sl_err_set(&cli->err, EINVAL, "'%s' is no cookie of a network namespace",
			   options->netns);
		return sl_err_hint(&cli->err, "'sluice sock show' prints it as netns_cookie");
	}
	ends->netns_cookie = netns;
	ret = parse_end(cli, argv[1], &ends->local);
	return ret ? ret : parse_end(cli, argv[2], &ends->remote);
}

static int sock_resolve(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	struct sl_sock_ends ends = { 0 };
	struct sl_sock_found found;
	int ret = parse_arguments(cli, values, argv, &ends);

	(void)argc;
	if (!ret)
		ret = sl_query_open(&query, cli);
	if (ret)
		return ret;
	sl_query_digests(&query);
	ret = sl_sock_find(query.set, &ends, &found);
	if (!ret)
		return print_found(cli, &query, &found);
	if (ret != -ENOENT)
		return sl_err_sys(&cli->err, -ret, "reading the sockets of %s", cli->set_dir);
	sl_err_set(&cli->err, ENOENT, "no %s socket %s to %s is known, open or closed lately",
		   argv[0], argv[1], argv[2]);
	return sl_err_hint(&cli->err, "LOCAL is the end whose owner is asked for; the other end's "
				      "owner is found with the two exchanged");
}

const struct sl_command sl_cmd_sock_resolve = {
	.name = "resolve",
	.summary = "find the owner of a connection by its two ends",
	.synopsis = "tcp|udp LOCAL REMOTE",
	.details = "Looks at open sockets, then at those closed lately, and says which (`found`).\n"
		   "Exits with 1 when there is none.",
	.options = resolve_options,
	.options_size = sizeof(struct resolve_options),
	.run = sock_resolve,
	.min_args = 3,
	.max_args = 3,
};
