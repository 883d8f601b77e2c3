/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>

#include "policy/bits.h"
#include "policy/decide.h"

const char *sl_reason_name(enum sl_reason reason)
{
	static const char *const names[] = {
#define X(name, text, help) [SL_REASON_##name] = (text),
		SL_REASONS(X)
#undef X
	};

	return (unsigned int)reason < SL_REASON_MAX ? names[reason] : NULL;
}

const char *sl_reason_help(enum sl_reason reason)
{
	static const char *const helps[] = {
#define X(name, text, help) [SL_REASON_##name] = (help),
		SL_REASONS(X)
#undef X
	};

	return (unsigned int)reason < SL_REASON_MAX ? helps[reason] : NULL;
}

const char *sl_verdict_name(enum sl_verdict verdict)
{
	static const char *const names[] = {
		[SL_VERDICT_ALLOW] = "allow",
		[SL_VERDICT_DENY] = "deny",
		[SL_VERDICT_AUDIT] = "audit",
	};

	return (unsigned int)verdict < SL_VERDICT_MAX ? names[verdict] : NULL;
}

void sl_lineage_begin(struct sl_lineage_bits *lineage, const struct sl_image_bits *leaf)
{
	lineage->match = leaf->granted.own;
	lineage->missed = leaf->missed.own;
	lineage->withheld = leaf->withheld;
	lineage->cut = leaf->strict;
	lineage->cut_above = false;
	lineage->identity = leaf->identity;
}

void sl_lineage_add(struct sl_lineage_bits *lineage, const struct sl_image_bits *ancestor)
{
	struct sl_bits granted = ancestor->granted.inherited, missed = ancestor->missed.inherited;

	for (unsigned int i = 0; lineage->cut && i < SL_POLICY_WORDS; i++) {
		if (!lineage->cut_above)
			lineage->withheld.word[i] |= granted.word[i] & lineage->cut->word[i];
		granted.word[i] &= ~lineage->cut->word[i];
		missed.word[i] &= ~lineage->cut->word[i];
	}
	sl_bits_or(&lineage->match, &granted);
	sl_bits_or(&lineage->missed, &missed);
	if (ancestor->strict) {
		lineage->cut = ancestor->strict;
		lineage->cut_above = true;
	}
}

/* Strict bits count on sockets whose opener has them. */
static void narrow_to_opener(const struct sl_compiled *compiled, struct sl_lineage_bits *lineage,
			     const struct sl_lineage_bits *opener)
{
	const struct sl_bits *strict = sl_compiled_strict_bits(compiled);

	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++) {
		uint64_t lost = lineage->match.word[i] & strict->word[i] & ~opener->match.word[i];

		lineage->withheld.word[i] |= lost;
		lineage->match.word[i] &= ~lost;
	}
}

void sl_query_lineage(const struct sl_compiled *compiled, const struct sl_query *query,
		      struct sl_lineage_bits *out)
{
	struct sl_image_bits image;

	if (query->lineage) {
		*out = *query->lineage;
		return;
	}
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < query->image_count; i++) {
		sl_compiled_image(compiled, &query->images[i], &image);
		if (i == 0)
			sl_lineage_begin(out, &image);
		else
			sl_lineage_add(out, &image);
	}
}

/* What the classes of a destination say so far. Rules are the lowest ones. */
struct tally {
	const struct sl_compiled *compiled;
	const struct sl_lineage_bits *lineage;
	uint32_t allowed;  /* rule that matches */
	uint32_t withheld; /* rule that would, were it not strict */
	uint32_t missed;   /* rule that would, were the digest right */
	uint32_t named;    /* rule that names the destination */
	bool reserved;     /* a rule has the name, and does not let it have the address */
};

static void lower(uint32_t *rule, uint32_t other)
{
	if (other < *rule)
		*rule = other;
}

static void weigh_bits(const struct tally *tally, uint32_t class_id, const struct sl_bits *bits,
		       uint32_t *rule)
{
	if (sl_bits_meet(sl_compiled_class(tally->compiled, class_id).allowed, bits))
		lower(rule, sl_compiled_rule(tally->compiled, class_id, bits));
}

static int weigh(uint32_t class_id, void *arg)
{
	struct tally *tally = arg;
	const struct sl_lineage_bits *lineage = tally->lineage;
	const struct sl_class class = sl_compiled_class(tally->compiled, class_id);

	tally->reserved |= (class.flags & SL_CLASS_RESERVED) != 0;
	lower(&tally->named, class.first_rule);
	weigh_bits(tally, class_id, &lineage->match, &tally->allowed);
	weigh_bits(tally, class_id, &lineage->withheld, &tally->withheld);
	weigh_bits(tally, class_id, &lineage->missed, &tally->missed);
	return 0;
}

static void weigh_destination(struct tally *tally, const struct sl_query *query)
{
	uint32_t port_class;

	if (query->listen) {
		weigh(sl_compiled_listen(tally->compiled, query->transport, query->port), tally);
		return;
	}
	port_class = sl_compiled_port(tally->compiled, query->transport, query->port);
	if (port_class == SL_PORT_CLASS_NONE)
		return;
	weigh(sl_compiled_dest(tally->compiled, port_class, &query->addr), tally);
	for (size_t i = 0; i < query->name_count; i++)
		sl_compiled_name_each(tally->compiled, port_class, query->names[i], &query->addr,
				      query->kind, weigh, tally);
}

static void judge(const struct tally *tally, const struct sl_query *query, struct sl_decision *out)
{
	out->rule = tally->named;
	if (!tally->lineage->identity) {
		out->reason = SL_REASON_NO_IDENTITY;
	} else if (tally->allowed != SL_RULE_NONE) {
		out->verdict = SL_VERDICT_ALLOW;
		out->reason = SL_REASON_NONE;
		out->rule = tally->allowed;
	} else if (tally->withheld != SL_RULE_NONE) {
		out->reason = SL_REASON_STRICT;
		out->rule = tally->withheld;
	} else if (tally->missed != SL_RULE_NONE) {
		out->reason = SL_REASON_INTEGRITY;
		out->rule = tally->missed;
	} else if (tally->named != SL_RULE_NONE) {
		out->reason = SL_REASON_BINARY;
	} else {
		/* Here and not before: most queries never need it. */
		out->reason = !query->listen && (tally->reserved || sl_reserved_addr(&query->addr))
				      ? SL_REASON_RESERVED_ADDRESS
				      : SL_REASON_ENDPOINT;
	}
}

void sl_decide(const struct sl_compiled *compiled, const struct sl_query *query,
	       struct sl_decision *out)
{
	const struct sl_policy *policy = sl_compiled_policy(compiled);
	struct sl_lineage_bits own;
	struct tally tally = {
		.compiled = compiled,
		.lineage = query->lineage && !query->opener ? query->lineage : &own,
		.allowed = SL_RULE_NONE,
		.withheld = SL_RULE_NONE,
		.missed = SL_RULE_NONE,
		.named = SL_RULE_NONE,
	};

	if (query->own_loopback) {
		*out = (struct sl_decision){ SL_VERDICT_ALLOW, SL_REASON_NONE, SL_RULE_NONE };
		return;
	}
	if (tally.lineage == &own)
		sl_query_lineage(compiled, query, &own);
	if (query->opener)
		narrow_to_opener(compiled, &own, query->opener);
	weigh_destination(&tally, query);
	*out = (struct sl_decision){
		.verdict = policy->mode == SL_POLICY_AUDIT ? SL_VERDICT_AUDIT : SL_VERDICT_DENY,
	};
	judge(&tally, query, out);
}
