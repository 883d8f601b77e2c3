// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "run/advice.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/format.h"
#include "event/view_decision.h"
#include "policy/match.h"
#include "policy/policy.h"

struct text {
	char *dst;
	size_t size, used;
};

static void add(struct text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *fmt, ...)
{
	size_t room = text->size - text->used;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text->dst + text->used, room, fmt, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_escaped(struct text *text, const char *raw)
{
	text->used += sl_escape_text(text->dst + text->used, text->size - text->used, raw);
}

/* As the policy's grammar has it; a path with a '*' would be a pattern there. */
static bool add_binary(struct text *text, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._+@-";
	char safe[SL_ESCAPE_MAX(4096)];

	if (!path || path[0] != '/' || strchr(path, '*'))
		return false;
	if (!path[strspn(path, plain)]) {
		add(text, "binaries: [{path: %s}]", path);
		return true;
	}
	sl_escape_text(safe, sizeof(safe), path);
	if (strcmp(safe, path) != 0 || strpbrk(path, "\"\\"))
		return false;
	add(text, "binaries: [{path: \"%s\"}]", path);
	return true;
}

/* Whom a name was looked up for is not known to policy DNS: most want this one. */
#define LIKELY_PORT 443

static bool asks_name(const struct sl_advice *advice)
{
	return !strcmp(advice->proto, SL_VIEW_PROTO_DNS);
}

/* What was looked up by a name is written so, if a policy can have that name. */
static bool add_host(struct text *text, const struct sl_advice *advice)
{
	char host[SL_HOST_MAX + 1];

	if (!advice->name || sl_host_normal(host, advice->name, NULL) || sl_host_is_local(host))
		return false;
	add(text, "endpoints: [{host: %s, port: %u", host,
	    asks_name(advice) ? LIKELY_PORT : ntohs(advice->remote.port_be));
	if (!strcmp(advice->proto, "udp"))
		add(text, ", transport: udp");
	add(text, "}]");
	return true;
}

static void add_endpoint(struct text *text, const struct sl_advice *advice)
{
	struct sl_prefix prefix = { .len = 128 };
	char addr[SL_PREFIX_TEXT];

	if (add_host(text, advice))
		return;
	memcpy(prefix.addr.be, advice->remote.addr_be, sizeof(prefix.addr.be));
	sl_prefix_format(addr, sizeof(addr), &prefix);
	add(text, "endpoints: [{cidr: \"%s/%u\", port: %u", addr,
	    sl_addr_is_v4(&prefix.addr) ? 32U : 128U, ntohs(advice->remote.port_be));
	if (!strcmp(advice->proto, "udp"))
		add(text, ", transport: udp");
	/* Whatever the reason: a rule for another port may have been nearer. */
	if (sl_reserved_addr(&prefix.addr))
		add(text, ", allow_reserved: true");
	add(text, "}]");
}

#define DNS_PORT 53

/* Resolvers connect, too, but mean it. */
static void add_tried(struct text *text, const struct sl_advice *advice)
{
	if (advice->tried && ntohs(advice->remote.port_be) != DNS_PORT)
		add(text, "nothing was sent, as when addresses of a name are tried; if it is to "
			  "send datagrams, ");
}

static void add_listen(struct text *text, const struct sl_advice *advice)
{
	add(text, "listen: [{port: %u", ntohs(advice->remote.port_be));
	if (!strcmp(advice->proto, "udp"))
		add(text, ", transport: udp");
	add(text, "}]");
}

/* Where it goes, or what it listens on. A port of 0 and a protocol without can't be written. */
static void advise_end(struct text *text, const struct sl_advice *advice,
		       void (*add_end)(struct text *text, const struct sl_advice *advice))
{
	bool udp = !strcmp(advice->proto, "udp"), tcp = !strcmp(advice->proto, "tcp");
	char host[SL_HOST_MAX + 1];
	size_t start;

	if (asks_name(advice)) {
		if (!advice->name || sl_host_normal(host, advice->name, NULL))
			return;
	} else if (!advice->remote.port_be ||
		   (!udp && !tcp && strcmp(advice->proto, "mptcp") != 0)) {
		return;
	}
	start = text->used;
	if (asks_name(advice))
		add(text, "with the port that is wanted in place of %d, ", LIKELY_PORT);
	add_tried(text, advice);
	if (advice->rule) {
		add(text, "add to '");
		add_escaped(text, advice->rule);
		add(text, "': ");
		add_end(text, advice);
		return;
	}
	add(text, "add an entry: {");
	add_end(text, advice);
	add(text, ", ");
	if (add_binary(text, advice->exe)) {
		add(text, "}");
		return;
	}
	text->used = start;
	text->dst[start] = '\0';
}

static void advise_binary(struct text *text, const struct sl_advice *advice)
{
	size_t start = text->used;

	/* To add the binary as such would widen what somebody has narrowed. */
	if (advice->script) {
		add(text, "'");
		add_escaped(text, advice->rule);
		add(text, "' has it for script ");
		add_escaped(text, advice->script);
		add(text, " only, executed by its #! line");
		return;
	}
	add(text, "add to '");
	add_escaped(text, advice->rule);
	add(text, "': ");
	if (add_binary(text, advice->exe))
		return;
	text->used = start;
	add(text, "its path can't stand in a policy: run it from another");
}

static void advise_integrity(struct text *text, const struct sl_advice *advice)
{
	if (!advice->found || !advice->expected) {
		add(text, "its file could not be looked at in time: it is too large, was changed "
			  "right before it ran, or somebody has it open for writing");
		return;
	}
	add(text, "its sha256 is %s, ", advice->found);
	if (advice->pinned || !advice->set_dir) {
		add(text, "'");
		add_escaped(text, advice->rule ? advice->rule : "the policy");
		add(text, "' pins %s: change the pin if the file is meant", advice->expected);
		return;
	}
	add(text, "%s is trusted: 'sluice --set %s exe accept %u' if it is meant to have changed",
	    advice->expected, advice->set_dir, advice->exe_id);
}

static void advise_strict(struct text *text)
{
	add(text, "start it without LD_* variables, from programs that were, and let it open its "
		  "own sockets");
}

const char *sl_advice_text(char *dst, size_t size, const struct sl_advice *advice)
{
	struct text text = { dst, size, 0 };

	dst[0] = '\0';
	switch (advice->reason) {
	case SL_REASON_ENDPOINT:
	case SL_REASON_RESERVED_ADDRESS:
		if (advice->withheld && *advice->withheld)
			add(&text, "%s", advice->withheld);
		else
			advise_end(&text, advice, add_endpoint);
		break;
	case SL_REASON_LISTEN:
		advise_end(&text, advice, add_listen);
		break;
	case SL_REASON_BINARY:
		if (advice->rule)
			advise_binary(&text, advice);
		break;
	case SL_REASON_INTEGRITY:
		advise_integrity(&text, advice);
		break;
	case SL_REASON_STRICT:
		advise_strict(&text);
		break;
	case SL_REASON_NO_IDENTITY:
		add(&text, "rules match by path: run it from a file that keeps its name, in this "
			   "mount namespace");
		break;
	case SL_REASON_FAMILY:
		add(&text, "no rule opens sockets that are not mediated");
		break;
	case SL_REASON_PROXY:
		add(&text, "give the sandbox a proxy of that family, too");
		break;
	case SL_REASON_UNMAPPED_NAME:
		add(&text, "behind a relay such addresses are names', told by its DNS: connect by "
			   "the name");
		break;
	case SL_REASON_FROZEN:
		add(&text, "'sluice sandbox thaw' ends that");
		break;
	default:
		break;
	}
	/* A part of a rule is another rule. */
	if (text.used + 1 >= size)
		dst[0] = '\0';
	return dst;
}
