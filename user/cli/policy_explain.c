/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy explain: what a policy says of one connection, and what it came close to. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/exe.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/parse.h"
#include "cli/policy_explain.h"
#include "policy/match.h"
#include "policy/withheld.h"

#define NEAR_SHOWN 8

/* Paths given with --exe: the leaf, then its ancestors. */
struct chain {
	const char *paths[SL_LINEAGE_DEPTH];
	size_t count;
};

struct explain_options {
	struct chain exe;
	const char *script;
	const char *sha256;
	const char *to;
	const char *address;
	enum sl_transport transport;
};

static int add_exe(const char *value, void *member, struct sl_err *err)
{
	struct chain *chain = member;

	if (value[0] != '/')
		return sl_err_set(err, EINVAL, "--exe: '%s' is no absolute path", value);
	if (chain->count == SL_LINEAGE_DEPTH)
		return sl_err_set(err, E2BIG, "--exe: more than %d images", SL_LINEAGE_DEPTH);
	chain->paths[chain->count++] = value;
	return 0;
}

static const char *const transports[] = { "tcp", "udp", NULL };

static const struct sl_option explain_options[] = {
	SL_OPTION(CUSTOM, struct explain_options, exe, "exe", 'e', "PATH",
		  "the binary; again for its parent image, and so on", .parse = add_exe),
	SL_OPTION(TEXT, struct explain_options, script, "script", 0, "PATH",
		  "the script that the binary was started for"),
	SL_OPTION(TEXT, struct explain_options, sha256, "sha256", 0, "HEX",
		  "the binary's digest; without, it counts as not known"),
	SL_OPTION(TEXT, struct explain_options, to, "to", 't', "HOST:PORT",
		  "the destination; HOST is a name or an address"),
	SL_OPTION(TEXT, struct explain_options, address, "address", 0, "ADDRESS",
		  "what the name in --to resolves to"),
	SL_OPTION(CHOICE, struct explain_options, transport, "transport", 0, NULL, "transport",
		  .choices = transports, .fallback = "tcp"),
	{ 0 },
};

/* The question, as it was understood. */
struct question {
	struct sl_image images[SL_LINEAGE_DEPTH];
	uint8_t sha256[SL_SHA256_LEN];
	char name[SL_HOST_MAX + 1];
	const char *names[1];
	bool assumed; /* the address: the name is not looked up */
	bool named;   /* a rule has the name: it is decided by that */
	bool local;   /* the name stands for loopback, whatever DNS says */
	struct sl_query query;
};

static int no_destination(struct sl_cli *cli, const char *to)
{
	sl_err_set(&cli->err, EINVAL, "--to: '%s' is no destination", to ? to : "");
	return sl_err_hint(&cli->err, "write registry.example.org:443, 192.0.2.1:443 or "
				      "[2001:db8::1]:443");
}

static int parse_name(struct sl_cli *cli, const char *to, struct question *question)
{
	const char *colon = strrchr(to, ':');
	char text[SL_HOST_MAX + 2];
	struct sl_err bare = { 0 };
	uint32_t port;

	if (!colon || colon == to || (size_t)(colon - to) >= sizeof(text) ||
	    sl_parse_u32(colon + 1, 1, UINT16_MAX, &port))
		return no_destination(cli, to);
	memcpy(text, to, (size_t)(colon - to));
	text[colon - to] = '\0';
	if (strchr(text, '*')) {
		sl_err_set(&cli->err, EINVAL, "--to: '%s' is a pattern", text);
		return sl_err_hint(&cli->err, "ask about one name that it stands for");
	}
	if (sl_host_normal(question->name, text, &bare)) {
		sl_err_set(&cli->err, EINVAL, "--to: '%s': %s", text, bare.text);
		return bare.hint[0] ? sl_err_hint(&cli->err, "%s", bare.hint) : -EINVAL;
	}
	question->query.port = (uint16_t)port;
	question->query.names = question->names;
	question->names[0] = question->name;
	question->query.name_count = 1;
	question->assumed = true;
	return 0;
}

static int parse_to(struct sl_cli *cli, const struct explain_options *options,
		    struct question *question)
{
	static const struct sl_addr loopback = { { 0, 0, SL_BE32(0xffff), SL_BE32(0x7f000001) } };
	struct sl_endpoint endpoint;
	int ret = 0;

	if (!options->to)
		return no_destination(cli, NULL);
	if (!sl_parse_endpoint(options->to, &endpoint) && endpoint.port_be) {
		memcpy(question->query.addr.be, endpoint.addr_be, sizeof(endpoint.addr_be));
		question->query.port = ntohs(endpoint.port_be);
	} else {
		ret = parse_name(cli, options->to, question);
	}
	if (!ret && !options->address && question->assumed && sl_host_is_local(question->name)) {
		question->query.addr = loopback;
		question->query.name_count = 0;
		question->assumed = false;
		question->local = true;
	}
	if (ret || !options->address)
		return ret;
	if (!question->query.name_count)
		return sl_err_set(&cli->err, EINVAL, "--address goes with a name in --to");
	question->assumed = false;
	if (sl_parse_addr(options->address, question->query.addr.be))
		return sl_err_set(&cli->err, EINVAL, "--address: '%s' is no address",
				  options->address);
	return 0;
}

static int parse_images(struct sl_cli *cli, const struct explain_options *options,
			struct question *question)
{
	if (!options->exe.count) {
		sl_err_set(&cli->err, EINVAL, "no --exe");
		return sl_err_hint(&cli->err, "name the binary: --exe /usr/bin/curl");
	}
	for (size_t i = 0; i < options->exe.count; i++)
		question->images[i].path = options->exe.paths[i];
	question->images[0].script = options->script;
	if (options->sha256) {
		if (sl_sha256_parse(options->sha256, question->sha256))
			return sl_err_set(&cli->err, EINVAL, "--sha256: '%s' is no SHA-256 digest",
					  options->sha256);
		question->images[0].sha256 = question->sha256;
	}
	question->query.images = question->images;
	question->query.image_count = options->exe.count;
	question->query.transport = options->transport;
	return 0;
}

/*
 * A name is decided with an address. When none was given: one that no prefix names, if there
 * is one; else, one that the allowed_ips of a rule for the name have.
 */
static void ask_assumed(const struct sl_policy_open *open, struct question *question,
			struct sl_decision *decision)
{
	static const struct sl_addr plain = { { 0, 0, SL_BE32(0xffff), SL_BE32(0xcb007101) } };
	const struct sl_policy *policy = open->policy;

	question->query.addr = plain; /* 203.0.113.1 */
	sl_decide(open->compiled, &question->query, decision);
	for (size_t i = 0; i < policy->entry_count; i++) {
		for (size_t j = 0; j < policy->entries[i].endpoint_count; j++) {
			const struct sl_policy_endpoint *at = &policy->entries[i].endpoints[j];
			struct sl_query query = question->query;
			struct sl_decision other;

			if (!at->host || !sl_host_match(at->host, question->name))
				continue;
			question->named = true;
			if (!decision->reason || !at->allowed.count)
				continue;
			query.addr = at->allowed.items[0].addr;
			sl_decide(open->compiled, &query, &other);
			if (other.reason &&
			    (other.rule == SL_RULE_NONE || decision->rule != SL_RULE_NONE))
				continue;
			*decision = other;
			question->query.addr = query.addr;
		}
	}
}

struct near_row {
	const char *rule;
	uint32_t line;
	const char *allows;
	char text[SL_POLICY_TEXT];
};

static const struct sl_field near_fields[] = {
	SL_FIELD_TEXT(struct near_row, rule, "NEAR"),
	SL_FIELD_UINT(struct near_row, line, "LINE"),
	SL_FIELD_TEXT(struct near_row, allows, "ALLOWS"),
	SL_FIELD_AS(STRING, struct near_row, text, "what", "WHAT", .flags = SL_FIELD_ELIDE),
	{ 0 },
};

struct answer {
	const char *verdict, *reason, *meaning, *rule, *host, *address_is, *names, *advice;
	uint32_t line;
	uint32_t port;         /* with a host */
	struct sl_endpoint to; /* empty: the name is what counts */
	const char *transport;
	struct sl_records near;
};

static bool has_to(const void *record)
{
	return ((const struct answer *)record)->to.port_be;
}

static const struct sl_field answer_fields[] = {
	SL_FIELD_TEXT(struct answer, verdict, NULL),
	SL_FIELD_TEXT(struct answer, reason, NULL),
	SL_FIELD_TEXT(struct answer, meaning, NULL),
	SL_FIELD_TEXT(struct answer, rule, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_UINT(struct answer, line, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_TEXT(struct answer, host, NULL),
	SL_FIELD_UINT(struct answer, port, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_ENDPOINT(struct answer, to, NULL, .present = has_to),
	SL_FIELD_TEXT(struct answer, address_is, NULL),
	SL_FIELD_TEXT(struct answer, transport, NULL),
	SL_FIELD_TEXT(struct answer, names, NULL),
	SL_FIELD_TEXT(struct answer, advice, NULL),
	SL_FIELD_RECORDS(struct answer, near, NULL, near_fields, .flags = SL_FIELD_JSON_ONLY),
	{ 0 },
};

static size_t find_near(const struct sl_policy_open *open, const struct question *question,
			const struct sl_decision *decision, struct near_row *rows)
{
	struct sl_near near[NEAR_SHOWN];
	size_t count = sl_near_miss(open->compiled, &question->query, decision, near, NEAR_SHOWN);

	for (size_t i = 0; i < count; i++) {
		struct near_row *row = &rows[i];

		row->rule = open->policy->entries[near[i].rule].key;
		row->allows = near[i].endpoint ? "destination" : "binary";
		if (near[i].endpoint) {
			row->line = near[i].endpoint->at.line;
			sl_policy_endpoint_text(row->text, sizeof(row->text), near[i].endpoint);
		} else {
			row->line = near[i].binary->at.line;
			sl_policy_binary_text(row->text, sizeof(row->text), near[i].binary);
		}
	}
	return count;
}

/* What is said of the address; NULL: nothing, since it was given. */
static const char *address_is(const struct question *question, const struct sl_decision *decision)
{
	if (question->local)
		return "loopback (RFC 6761); the sandbox's own listeners there need no rule";
	if (!question->assumed)
		return NULL;
	if (question->named)
		return "any that the rule lets the name have: no reserved ones; the machine's own, "
		       "and private ones of wildcards, only as its allowed_ips";
	if (decision->reason == SL_REASON_ENDPOINT)
		return "not looked up: no rule has the name, so policy DNS refuses it; --address "
		       "says which one is meant";
	return "an example for a rule for addresses: no rule has the name, so policy DNS refuses "
	       "it; --address says which one is meant";
}

static int print_answer(struct sl_cli *cli, const struct sl_policy_open *open,
			const struct question *question, const struct sl_decision *decision)
{
	struct near_row rows[NEAR_SHOWN] = { 0 };
	char advice[SL_WITHHELD_TEXT];
	const struct sl_policy_entry *entries = open->policy->entries;
	bool ruled = decision->rule != SL_RULE_NONE;
	struct answer answer = {
		.verdict = sl_verdict_name(decision->verdict),
		.reason = sl_reason_name(decision->reason),
		.meaning = sl_reason_help(decision->reason),
		.rule = ruled ? entries[decision->rule].key : NULL,
		.line = ruled ? entries[decision->rule].at.line : 0,
		.host = question->name[0] ? question->name : NULL,
		.port = question->name[0] ? question->query.port : 0,
		.address_is = address_is(question, decision),
		.transport = sl_transport_names[question->query.transport],
		.names = question->query.name_count
				 ? "looked up by policy DNS as clients ask, else (--dns host) when "
				   "the policy is loaded and every 30 s"
				 : NULL,
		.near = { .data = rows, .stride = sizeof(rows[0]) },
	};
	int ret;

	if (!question->assumed || (!question->named && decision->reason != SL_REASON_ENDPOINT)) {
		memcpy(answer.to.addr_be, question->query.addr.be, sizeof(answer.to.addr_be));
		answer.to.port_be = htons(question->query.port);
	}
	if (decision->reason == SL_REASON_RESERVED_ADDRESS && question->query.name_count)
		answer.advice = sl_withheld_text(advice, sizeof(advice), open->policy,
						 question->name, question->query.port,
						 &question->query.addr);
	answer.near.count = find_near(open, question, decision, rows);
	ret = sl_print_record(&cli->output, answer_fields, &answer);
	if (!ret && answer.near.count && !cli->output.json) {
		fputc('\n', cli->output.file);
		ret = sl_print_list(&cli->output, near_fields, &answer.near);
	}
	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

static int policy_explain(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	_cleanup_(sl_policy_close) struct sl_policy_open open = { 0 };
	struct question question = { 0 };
	struct sl_decision decision;
	int ret = parse_images(cli, values, &question);

	(void)argc;
	if (!ret)
		ret = parse_to(cli, values, &question);
	if (!ret)
		ret = sl_policy_open(&open, cli, argv[0]);
	if (ret)
		return ret;
	if (question.assumed)
		ask_assumed(&open, &question, &decision);
	else
		sl_decide(open.compiled, &question.query, &decision);
	return print_answer(cli, &open, &question, &decision);
}

const struct sl_command sl_cmd_policy_explain = {
	.name = "explain",
	.summary = "say what a policy makes of one connection, and why",
	.synopsis = "FILE --exe PATH [--exe PARENT …] --to HOST:PORT",
	.details =
		"Nothing is opened or resolved: paths, digests and names are what you give.\n"
		"When it would be denied, what comes closest is listed: the binaries that may\n"
		"go there, or the destinations that the binary may go to.\n"
		"A name is decided by rules with names; --address asks of one of its addresses.\n"
		"The exit status is 0 whatever the answer; with -j, `verdict` has it.",
	.options = explain_options,
	.options_size = sizeof(struct explain_options),
	.run = policy_explain,
	.min_args = 1,
	.max_args = 1,
};
