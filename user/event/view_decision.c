/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/hex.h"
#include "event/view_decision.h"
#include "policy/decide.h"
#include "socket/sock_view.h"

static bool has_remote(const void *record)
{
	return !sl_view_endpoint_empty(&((const struct sl_view_decision *)record)->remote);
}

#define DECISION struct sl_view_decision

const struct sl_field sl_view_decision_fields[] = {
	SL_FIELD_TEXT(DECISION, sandbox, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ID(DECISION, sandbox_id, NULL),
	SL_FIELD_TEXT(DECISION, verdict, "VERDICT"),
	SL_FIELD_TEXT(DECISION, reason, "REASON"),
	SL_FIELD_TEXT(DECISION, rule, "RULE", .flags = SL_FIELD_NULL),
	SL_FIELD_UINT(DECISION, count, "COUNT"),
	SL_FIELD_AS(TIME, DECISION, first_ns, "first", NULL),
	SL_FIELD_AS(TIME, DECISION, last_ns, "last", NULL),
	SL_FIELD_STRING(DECISION, proto, "PROTO"),
	SL_FIELD_TEXT(DECISION, family, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ENDPOINT(DECISION, remote, "REMOTE", .flags = SL_FIELD_NULL | SL_FIELD_ELIDE,
			  .present = has_remote),
	SL_FIELD_TEXT(DECISION, name, "NAME", .flags = SL_FIELD_NULL | SL_FIELD_ELIDE),
	SL_FIELD_ID(DECISION, cookie, NULL),
	SL_FIELD_STRING(DECISION, sha256_found, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_STRING(DECISION, sha256_expected, NULL, .flags = SL_FIELD_OPTIONAL),
	{ 0 },
};

static void fill_digests(struct sl_view_decision *view, const struct sl_decision_record *decision,
			 const struct sl_view_source *source)
{
	struct sl_guard_grant file;

	if (sl_view_source_file(source, decision, &file))
		return;
	if (file.flags & SL_GUARD_FILE_HASHED)
		sl_hex(view->sha256_found, file.found, sizeof(file.found));
	if (file.flags & SL_GUARD_FILE_EXPECTED)
		sl_hex(view->sha256_expected, file.expected, sizeof(file.expected));
	view->pinned = file.flags & SL_GUARD_FILE_PINNED;
}

/* A name that policy DNS was asked for: there is no socket to it yet, so no port either. */
static bool is_question(const struct sl_decision_key *key)
{
	return key->name && !key->protocol && !key->family && !key->remote.port_be;
}

void sl_view_decision_fill(struct sl_view_decision *view, const struct sl_decision_record *decision,
			   struct sl_view_source *source)
{
	const struct sl_decision_key *key = &decision->key;
	int type = key->protocol == IPPROTO_UDP ? SOCK_DGRAM : SOCK_STREAM;

	*view = (struct sl_view_decision){
		.sandbox = sl_view_source_sandbox(source, key->sandbox),
		.sandbox_id = key->sandbox,
		.verdict = sl_verdict_name(key->verdict),
		.verdict_id = key->verdict,
		.reason = sl_reason_name(key->reason),
		.reason_id = key->reason,
		.rule = sl_view_source_rule(source, decision),
		.remote = key->remote,
		.name = sl_view_source_name(source, key->name),
		.cookie = decision->cookie,
		.count = decision->count,
		.first_ns = decision->first_ns,
		.last_ns = decision->last_ns,
	};
	view->tried = !key->family && key->type == SL_DECISION_TRIED;
	if (key->reason == SL_REASON_INTEGRITY)
		fill_digests(view, decision, source);
	if (key->reason == SL_REASON_FAMILY)
		view->family = sl_family_name(key->family);
	if (is_question(key))
		snprintf(view->proto, sizeof(view->proto), SL_VIEW_PROTO_DNS);
	else
		sl_format_protocol(view->proto, sizeof(view->proto),
				   key->family ? key->family : AF_INET,
				   key->type ? key->type : type, key->protocol);
}
