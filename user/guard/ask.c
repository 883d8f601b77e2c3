/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guard/ask.h"

#include <errno.h>
#include <string.h>

#include <bpf/bpf.h>

/* Sockets whose opener nobody knows; the guard's programs leave out the same ones. */
#define OPENER_UNKNOWN (SL_SOCK_FOREIGN | SL_SOCK_PREEXISTING | SL_SOCK_OPENER_LOST)

void sl_guard_who(struct sl_guard_who *who, struct sl_set *set, const struct sl_sock *sock)
{
	struct sl_sock_more more;

	*who = (struct sl_guard_who){ .lineage = sock->owner.lineage };
	if (sock->flags & OPENER_UNKNOWN)
		return;
	who->opener = sock->owner.lineage;
	if (!sl_sock_more_read(set, sock, &more) && more.opener.tgid)
		who->opener = more.opener.lineage;
}

/* What withheld bits are for: strictness, where the image's environment was not clean. */
static void split_missed(struct sl_lineage_bits *out, const struct sl_guard_lineage *row,
			 const struct sl_bits *strict)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++) {
		uint64_t unchecked = row->flags & SL_GUARD_UNCHECKED ? strict->word[i] : 0;

		out->withheld.word[i] = row->missed.word[i] & unchecked;
		out->missed.word[i] = row->missed.word[i] & ~unchecked;
	}
}

/* A lineage without a row has nothing. */
static int read_lineage(struct sl_set *set, __u32 policy_id, __u32 lineage,
			const struct sl_compiled *compiled, struct sl_lineage_bits *out)
{
	const struct sl_guard_lineage_key key = { policy_id, lineage };
	struct sl_guard_lineage row;

	memset(out, 0, sizeof(*out));
	if (bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_GUARD_LINEAGES), &key, &row))
		return errno == ENOENT ? 0 : -errno;
	out->match = row.match;
	out->identity = !(row.flags & SL_GUARD_NO_IDENTITY);
	split_missed(out, &row, sl_compiled_strict_bits(compiled));
	return 0;
}

int sl_guard_ask(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		 const struct sl_guard_who *who, const struct sl_query *query,
		 struct sl_decision *out)
{
	struct sl_lineage_bits lineage, opener;
	struct sl_query full = *query;
	int rc = read_lineage(set, policy_id, who->lineage, compiled, &lineage);

	rc = rc ?: read_lineage(set, policy_id, who->opener, compiled, &opener);
	if (rc)
		return rc;
	full.images = NULL;
	full.image_count = 0;
	full.lineage = &lineage;
	full.opener = &opener;
	sl_decide(compiled, &full, out);
	return 0;
}

bool sl_guard_ask_mode(const struct sl_guard *guard, struct sl_decision *decision)
{
	switch ((enum sl_guard_mode)guard->mode) {
	case SL_GUARD_OBSERVE:
		decision->verdict = SL_VERDICT_ALLOW;
		return true;
	case SL_GUARD_AUDIT:
		if (decision->verdict != SL_VERDICT_ALLOW)
			decision->verdict = SL_VERDICT_AUDIT;
		return true;
	case SL_GUARD_ENFORCE:
		/* The policy may say audit, and whoever loaded it enforce. */
		if (decision->verdict == SL_VERDICT_AUDIT)
			decision->verdict = SL_VERDICT_DENY;
		return decision->verdict == SL_VERDICT_ALLOW;
	case SL_GUARD_FROZEN:
	case SL_GUARD_MODE_MAX:
		break;
	}
	*decision = (struct sl_decision){ SL_VERDICT_DENY, SL_REASON_FROZEN, SL_RULE_NONE };
	return false;
}
