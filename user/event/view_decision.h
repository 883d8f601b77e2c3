/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A decision as users see it: what was asked, the verdict, why, and how often. */
#ifndef SLUICE_USER_VIEW_DECISION_H
#define SLUICE_USER_VIEW_DECISION_H

#include <sluice/guard.h>

#include "socket/process_view.h"

/* `proto` of a question to policy DNS: a name; of an answer that was withheld its address, too. */
#define SL_VIEW_PROTO_DNS "dns"

struct sl_view_decision {
	const char *sandbox; /* its name, NULL: not known */
	__u32 sandbox_id;
	const char *verdict; /* "deny", "audit" */
	const char *reason;
	const char *rule;   /* key of the entry that names the destination; NULL: none does */
	const char *family; /* of a refused socket, else NULL */
	char proto[16];
	struct sl_endpoint remote;
	const char *name; /* that was asked for, or that the address was looked up by; or NULL */
	__u64 cookie;
	__u64 count; /* equal ones since the last line, this one included */
	__u64 first_ns;
	__u64 last_ns;
	bool tried; /* connect() of a UDP socket, which sends nothing */
	/* For reason `integrity`; "": not known. */
	char sha256_found[2 * SL_SHA256_LEN + 1];
	char sha256_expected[2 * SL_SHA256_LEN + 1];
	bool pinned; /* it is the policy that expects it, not what was seen first */
	enum sl_reason reason_id;
	enum sl_verdict verdict_id;
};

extern const struct sl_field sl_view_decision_fields[];

/* Borrows from the source. */
void sl_view_decision_fill(struct sl_view_decision *view, const struct sl_decision_record *decision,
			   struct sl_view_source *source);

#endif
