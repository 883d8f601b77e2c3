/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one place where the pieces of a compiled policy become a verdict. The guard does the
 * same with its maps; whatever else wants to know (broker, relay, CLI, tests) asks here.
 *
 * Order of the reasons, first that holds:
 *  1. the sandbox's own loopback is allowed without a rule;
 *  2. no images, or a leaf without identity: no-identity;
 *  3. a rule for the destination matches the lineage: allowed;
 *  4. a strict rule for it would match, but for how the leaf was started, or but for who
 *     opened the socket: strict;
 *  5. a rule for it would match, were the digest right: integrity;
 *  6. a rule for it exists: binary;
 *  7. the address is reserved, or a rule has its name and does not let it have the address
 *     (enum sl_withheld): reserved-address;
 *  8. else: endpoint.
 */
#ifndef SLUICE_USER_POLICY_DECIDE_H
#define SLUICE_USER_POLICY_DECIDE_H

#include "policy/compile.h"
#include "policy/words.h"

/* What a lineage matches: begin with the leaf, then add its ancestors that are members. */
struct sl_lineage_bits {
	struct sl_bits match;
	struct sl_bits missed;   /* had the digests been right */
	struct sl_bits withheld; /* but for strictness */
	/* Strict bits, which ancestors further away don't hand on; NULL: they do. */
	const struct sl_bits *cut;
	bool cut_above; /* by an ancestor, not by the leaf alone */
	bool identity;  /* the leaf has one */
};

void sl_lineage_begin(struct sl_lineage_bits *lineage, const struct sl_image_bits *leaf);
void sl_lineage_add(struct sl_lineage_bits *lineage, const struct sl_image_bits *ancestor);

struct sl_query {
	/* Nearest first, members of the sandbox only; not looked at when `lineage` is there. */
	const struct sl_image *images;
	size_t image_count;
	const struct sl_lineage_bits *lineage; /* of the same policy; NULL: from the images */
	const struct sl_lineage_bits *opener;  /* of the socket; NULL: who asks */
	enum sl_transport transport;
	uint16_t port;
	struct sl_addr addr;
	enum sl_addr_kind kind;
	const char *const *names; /* leases of the address, normal form */
	size_t name_count;
	bool listen;       /* asks for a listening port: addr and names are not looked at */
	bool own_loopback; /* the caller knows that the address is the sandbox's own loopback */
};

struct sl_decision {
	enum sl_verdict verdict;
	enum sl_reason reason; /* NONE when allowed; an audit verdict has that of the denial */
	uint32_t rule;         /* entry that allows; or that names the destination; or NONE */
};

/* The bits of a query: its `lineage`, or what its images earn. */
void sl_query_lineage(const struct sl_compiled *compiled, const struct sl_query *query,
		      struct sl_lineage_bits *out);

/* No memory, no system call, no errors. */
void sl_decide(const struct sl_compiled *compiled, const struct sl_query *query,
	       struct sl_decision *out);

/*
 * What a denied query came close to. Slow (reads the whole policy): for people.
 * For reason `binary` and `integrity`: the binaries of the entries that name the
 * destination. For `endpoint` and `reserved-address`: the endpoints of the entries that
 * match the lineage, the most alike first (same host or address, then same port, then file
 * order). For `listen`: the entries that match the lineage, those that listen first.
 */
struct sl_near {
	uint32_t rule;
	const struct sl_policy_endpoint *endpoint; /* one of the two at most */
	const struct sl_policy_binary *binary;
};

#define SL_NEAR_MAX 16

/* At most `max`, SL_NEAR_MAX if that is more; returns how many. */
size_t sl_near_miss(const struct sl_compiled *compiled, const struct sl_query *query,
		    const struct sl_decision *decision, struct sl_near *out, size_t max);

#endif
