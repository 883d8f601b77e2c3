/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options as data: one table gives parsing, bounds and help. */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "load.h"

enum option_type {
	OPTION_FLAG,
	OPTION_NUMBER,
	OPTION_TEXT,
	OPTION_ADDR,
	OPTION_SERVER, /* an address that may be given several times */
};

struct option {
	const char *name;
	enum option_type type;
	size_t offset;
	uint64_t max; /* numbers */
	const char *arg;
	const char *help;
};

#define AT(field) offsetof(struct sl_opts, field)
#define FLAG(name, field, help)                             \
	{                                                   \
		name, OPTION_FLAG, AT(field), 0, NULL, help \
	}
#define NUMBER(name, field, max, help)                         \
	{                                                      \
		name, OPTION_NUMBER, AT(field), max, "N", help \
	}
#define TEXT(name, field, arg, help)                       \
	{                                                  \
		name, OPTION_TEXT, AT(field), 0, arg, help \
	}
#define ADDR(name, field, help)                                    \
	{                                                          \
		name, OPTION_ADDR, AT(field), 0, "ADDR:PORT", help \
	}

static const struct option options[] = {
	{ "server", OPTION_SERVER, AT(server), 0, "ADDR:PORT",
	  "destination; udp-send takes up to 16" },
	ADDR("listen", listen, "address to serve on; port 0 lets the kernel choose"),
	ADDR("bind", bind, "source address"),
	ADDR("then", then, "second destination of --disconnect"),
	NUMBER("bytes", bytes, 1ULL << 32, "bytes of one message"),
	NUMBER("count", count, 10000000, "messages, connections, processes or threads"),
	NUMBER("rate", rate, 1000000, "at most N a second"),
	NUMBER("jobs", jobs, 256, "at most N at once"),
	NUMBER("peers", peers, SL_SERVERS_MAX, "take turns with N consecutive addresses"),
	NUMBER("timeout", timeout_s, 86400, "give up after N seconds (20)"),
	NUMBER("seconds", seconds, 86400, "end after N seconds, whatever the count"),
	NUMBER("backlog", backlog, 65535, "of listen (4096)"),
	NUMBER("fd", fd, 1 << 20, "an inherited descriptor"),
	NUMBER("proto", proto, 255, "IP protocol (253)"),
	TEXT("via", via, "HOW", "how to send"),
	TEXT("recv", recv, "HOW", "read back what is echoed, and how"),
	TEXT("mode", mode, "MODE", "which kind of send"),
	TEXT("connect", connect, "HOW", "plain, nonblock or uring"),
	TEXT("kind", kind, "KIND", "which variety"),
	TEXT("uring", uring, "MODE", "inline, async or sqpoll"),
	TEXT("ifname", ifname, "NAME", "interface (lo)"),
	TEXT("name", name, "NAME", "name of the thread or the copy"),
	TEXT("dir", dir, "DIR", "where copies of this program go"),
	FLAG("echo", echo, "send back what arrives"),
	FLAG("close-early", close_early, "close without reading"),
	FLAG("fork", fork, "a process of its own for each connection or step"),
	FLAG("until-eof", until_eof, "serve until stdin ends; then count what is queued, and stop"),
	FLAG("no-accept", no_accept, "listen, accept nothing, wait for the end of stdin"),
	FLAG("fastopen", fastopen, "enable TCP Fast Open on the listener"),
	FLAG("half-close", half_close, "shut down writing, then read to the end"),
	FLAG("rst", rst, "close with a reset (SO_LINGER 0)"),
	FLAG("connect-only", connect_only, "send nothing"),
	FLAG("v6", v6, "an IPv6 socket"),
	FLAG("mapped", mapped, "an IPv6 socket and an IPv4-mapped destination"),
	FLAG("v4-on-v6", v4_on_v6, "an IPv6 socket and an AF_INET destination"),
	FLAG("mptcp", mptcp, "a Multipath TCP socket"),
	FLAG("disconnect", disconnect, "connect(AF_UNSPEC), then connect and send again"),
	FLAG("connected", connected, "connect the UDP socket first"),
	FLAG("cmsg", cmsg, "sendmsg with a control message; without a name if connected"),
	FLAG("exit-at-once", exit_at_once, "_exit right after the first datagram"),
	FLAG("identify", identify, "send struct {u64 start_ticks; u32 pid; u32 n} first"),
	FLAG("hold", hold, "keep the socket until stdin ends"),
	FLAG("quiet", quiet, "totals only"),
	FLAG("hdrincl", hdrincl, "IPPROTO_RAW, own IPv4 header"),
	FLAG("own-netns", own_netns, "in a new network namespace that allows ping sockets"),
	FLAG("detach", detach, "do not wait; the child's stdout is /dev/null"),
	FLAG("copied", copied, "internal: the copies have been made"),
};

int sl_usage(const char *fmt, ...)
{
	va_list ap;

	fputs("sl-load: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("\n", stderr);
	return -SL_EUSAGE;
}

int sl_number(const char *text, uint64_t max, uint64_t *out)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

/* Whether `name` is one of the blank-separated words of `list`. */
static bool listed(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *at = list;

	while ((at = strstr(at, name))) {
		bool starts = at == list || at[-1] == ' ';

		if (starts && (at[len] == '\0' || at[len] == ' '))
			return true;
		at += len;
	}
	return false;
}

static bool accepted(const struct sl_cmd *cmd, const char *name)
{
	return !strcmp(name, "timeout") || listed(cmd->options, name);
}

static const struct option *find(const struct sl_cmd *cmd, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (!strcmp(options[i].name, name) && accepted(cmd, name))
			return &options[i];
	}
	return NULL;
}

static int set_value(struct sl_opts *o, const struct option *opt, const char *text)
{
	void *field = (char *)o + opt->offset;

	switch (opt->type) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_NUMBER:
		if (sl_number(text, opt->max, field) < 0)
			return sl_usage("--%s: not a number from 0 to %llu", opt->name,
					(unsigned long long)opt->max);
		return 0;
	case OPTION_TEXT:
		*(const char **)field = text;
		return 0;
	case OPTION_ADDR:
		if (sl_addr_parse(text, field) < 0)
			return sl_usage("--%s: not an address", opt->name);
		return 0;
	case OPTION_SERVER:
		if (o->n_servers == SL_SERVERS_MAX)
			return sl_usage("--%s: more than %d", opt->name, SL_SERVERS_MAX);
		if (sl_addr_parse(text, &o->server[o->n_servers]) < 0)
			return sl_usage("--%s: not an address", opt->name);
		o->n_servers++;
		return 0;
	}
	return -EINVAL;
}

static void set_defaults(struct sl_opts *o, const struct sl_cmd *cmd)
{
	*o = (struct sl_opts){ .cmd = cmd->name };
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (options[i].type == OPTION_NUMBER)
			*(uint64_t *)((char *)o + options[i].offset) = SL_UNSET;
	}
}

/* One option at argv[*at]; moves *at to the last argument that it used. */
static int parse_option(struct sl_opts *o, const struct sl_cmd *cmd, char **argv, int *at)
{
	char *name = argv[*at] + 2;
	const struct option *opt;

	/* The value is a separate argument, so that argv needs no change. */
	opt = find(cmd, name);
	if (!opt)
		return sl_usage("%s: no option --%s", cmd->name, name);
	if (opt->type == OPTION_FLAG)
		return set_value(o, opt, NULL);
	if (!argv[*at + 1])
		return sl_usage("--%s needs a value", name);
	return set_value(o, opt, argv[++*at]);
}

int sl_opts_parse(struct sl_opts *o, const struct sl_cmd *cmd, int argc, char **argv)
{
	int rc;

	set_defaults(o, cmd);
	/* Positional arguments are gathered at the front, over options already read. */
	o->args = argv;
	for (int i = 0; i < argc; i++) {
		if (!strcmp(argv[i], "--")) {
			if (!cmd->takes_tail || !argv[i + 1])
				return sl_usage("%s: nothing can follow \"--\"", cmd->name);
			o->tail = &argv[i + 1];
			break;
		}
		if (!strncmp(argv[i], "--", 2)) {
			rc = parse_option(o, cmd, argv, &i);
			if (rc < 0)
				return rc;
			continue;
		}
		o->args[o->n_args++] = argv[i];
	}
	if (o->n_args < cmd->min_args || (cmd->max_args >= 0 && o->n_args > cmd->max_args))
		return sl_usage("usage: sl-load %s %s [options]", cmd->name,
				cmd->args ? cmd->args : "");
	return 0;
}

void sl_opts_help(const struct sl_cmd *cmd)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (accepted(cmd, options[i].name))
			printf("    --%s %s\t%s\n", options[i].name,
			       options[i].arg ? options[i].arg : "", options[i].help);
	}
}
