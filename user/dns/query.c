// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What becomes of a query, from its bytes to its answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns/server_private.h"

#define UDP_SIZE_MIN 512 /* RFC 1035, 4.2.1 */

/* Beside A and AAAA: their data has no address, and names in it are asked for in their turn. */
static const uint16_t passed[] = {
	LDNS_RR_TYPE_CNAME, LDNS_RR_TYPE_CAA, LDNS_RR_TYPE_MX,  LDNS_RR_TYPE_NAPTR,
	LDNS_RR_TYPE_NS,    LDNS_RR_TYPE_SOA, LDNS_RR_TYPE_SRV, LDNS_RR_TYPE_SSHFP,
	LDNS_RR_TYPE_TLSA,  LDNS_RR_TYPE_TXT, LDNS_RR_TYPE_A,   LDNS_RR_TYPE_AAAA,
};

static const char *const outcome_names[SL_DNS_OUTCOME_MAX] = {
	[SL_DNS_ANSWERED] = "answered", [SL_DNS_FILTERED] = "filtered",
	[SL_DNS_WITHHELD] = "withheld", [SL_DNS_REFUSED] = "refused",
	[SL_DNS_LOCAL] = "local",       [SL_DNS_UPSTREAM] = "upstream-failed",
	[SL_DNS_UNSOUND] = "unsound",   [SL_DNS_UNLEASED] = "not-leased",
	[SL_DNS_LIMITED] = "limited",   [SL_DNS_MALFORMED] = "malformed",
};

const char *sl_dns_outcome_name(enum sl_dns_outcome outcome)
{
	return outcome < SL_DNS_OUTCOME_MAX ? outcome_names[outcome] : NULL;
}

void sl_query_drop(struct sl_query *query)
{
	struct sl_dns *dns = query->dns;

	sl_ask_cancel(&query->ask);
	sl_query_dequeue(query);
	TAILQ_REMOVE(&dns->queries, query, all);
	dns->waiting--;
	if (query->begun) {
		dns->asked--;
		query->asker->asked--;
	}
	if (query->asker) {
		TAILQ_REMOVE(&query->asker->queries, query, of_asker);
		sl_asker_put(dns, &query->asker);
	}
	if (query->conn)
		query->conn->waiting--;
	sl_reply_clear(&query->reply);
	free(query);
}

/*
 * As sl_resolver_addresses() has it. Of a question for A: who asks for AAAA asks for that too,
 * and servers that have an A alone often answer the other one with an error.
 */
static int error_of(const struct sl_query *query, enum sl_dns_outcome outcome, unsigned int rcode)
{
	if (query->question.type != LDNS_RR_TYPE_A)
		return 0;
	if (outcome == SL_DNS_UPSTREAM)
		return query->reply.ede == SL_EDE_NO_UPSTREAM ? ETIMEDOUT : EIO;
	if (outcome == SL_DNS_UNSOUND)
		return EIO;
	return outcome == SL_DNS_ANSWERED && rcode == LDNS_RCODE_NXDOMAIN ? ENOENT : 0;
}

static void tell(struct sl_query *query, enum sl_dns_outcome outcome, unsigned int rcode)
{
	const struct sl_dns_options *options = &query->dns->options;
	char shown[1024] = "";

	query->dns->outcomes[outcome]++;
	if (!options->ops->asked)
		return;
	if (query->asks && !query->name[0])
		sl_question_show(&query->question, shown, sizeof(shown));
	options->ops->asked(options->arg,
			    &(struct sl_dns_asked){
				    .name = query->name[0] ? query->name : shown,
				    .type = query->asks ? query->question.type : 0,
				    .rcode = rcode,
				    .outcome = outcome,
				    .source = &query->source,
				    .who = &query->who,
				    .upstream = query->upstream,
				    .error = error_of(query, outcome, rcode),
				    .addresses = query->addresses,
				    .removed = query->removed,
				    .left_out = query->left_out,
				    .left_out_count = query->removed < SL_DNS_LEFT_OUT
							      ? query->removed
							      : SL_DNS_LEFT_OUT,
				    .duration_us = (sl_boottime_ns() - query->start_ns) / 1000,
			    });
}

/* Sends the reply and forgets the query. */
static void answer(struct sl_query *query, enum sl_dns_outcome outcome)
{
	size_t limit = query->edns ? query->udp_size : UDP_SIZE_MIN, size;
	_cleanup_free_ uint8_t *wire = NULL;
	unsigned int rcode = query->reply.rcode;
	struct sl_conn *conn = query->conn;
	struct sl_dns *dns = query->dns;

	if (limit < UDP_SIZE_MIN)
		limit = UDP_SIZE_MIN;
	if (limit > SL_DNS_UDP_SIZE)
		limit = SL_DNS_UDP_SIZE;
	if (conn)
		limit = UINT16_MAX;
	tell(query, outcome, rcode);
	if (sl_reply_write(query, limit, &wire, &size)) {
		dns->counts[SL_DNS_COUNT_UNSENT]++;
	} else if (conn) {
		sl_conn_send(conn, wire, size);
	} else {
		dns->counts[SL_DNS_COUNT_TRUNCATED] += query->reply.cut;
		sl_udp_send(dns, &query->source, wire, size);
	}
	sl_query_drop(query);
	if (conn)
		sl_conn_answered(conn);
}

static void answer_with(struct sl_query *query, enum sl_dns_outcome outcome, unsigned int rcode,
			enum sl_ede ede, const char *text)
{
	query->reply.rcode = rcode;
	query->reply.ede = ede;
	query->reply.text = text;
	answer(query, outcome);
}

void sl_query_limited(struct sl_query *query)
{
	sl_reply_clear(&query->reply);
	answer_with(query, SL_DNS_LIMITED, LDNS_RCODE_SERVFAIL, SL_EDE_OTHER,
		    "sluice: too many queries wait");
}

static int ask(struct sl_query *query);

static void answered(void *arg, const struct sl_reply *reply)
{
	struct sl_query *query = arg;
	uint16_t type = query->question.type;
	bool address = type == LDNS_RR_TYPE_A || type == LDNS_RR_TYPE_AAAA;
	enum sl_dns_outcome outcome;

	query->ask = NULL;
	query->upstream = reply->upstream;
	/* The first family's answer, "none", stays true when the other can't be had. */
	if (query->other_family && reply->error) {
		answer(query, query->removed ? SL_DNS_FILTERED : SL_DNS_ANSWERED);
		return;
	}
	if (query->other_family)
		sl_reply_clear(&query->reply);
	outcome = sl_reply_fill(query, reply);
	/* A relay reaches whatever family the name has, so the client may use either. */
	if (query->dns->options.ops->synthetic && query->name[0] && address &&
	    !query->other_family && (outcome == SL_DNS_ANSWERED || outcome == SL_DNS_FILTERED) &&
	    !query->addresses && query->reply.rcode == LDNS_RCODE_NOERROR) {
		query->other_family = true;
		/* What came from the cache had no turn yet, and needs one now. */
		if (!query->begun)
			sl_query_await_turn(query);
		else if (ask(query))
			sl_query_limited(query);
		return;
	}
	answer(query, outcome);
}

static int ask(struct sl_query *query)
{
	struct sl_question question = query->question;
	int ret;

	if (query->other_family)
		question.type = question.type == LDNS_RR_TYPE_A ? LDNS_RR_TYPE_AAAA
								: LDNS_RR_TYPE_A;
	ret = sl_ask(query->dns->options.resolver, &question, answered, query, &query->ask);
	return ret < 0 ? ret : 0;
}

int sl_query_begin(struct sl_query *query)
{
	struct sl_dns *dns = query->dns;
	int ret;

	query->begun = true;
	query->asker->asked++;
	dns->asked++;
	ret = ask(query);
	if (ret) {
		query->begun = false;
		query->asker->asked--;
		dns->asked--;
	}
	return ret;
}

static bool is_passed(uint16_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++) {
		if (passed[i] == type)
			return true;
	}
	return false;
}

static void answer_reverse(struct sl_query *query, const struct sl_addr *addr)
{
	const struct sl_dns_options *options = &query->dns->options;
	char name[SL_NAME_TEXT];

	if (!options->ops->reverse || !options->ops->reverse(options->arg, addr, &query->who, name))
		answer_with(query, SL_DNS_LOCAL, LDNS_RCODE_NXDOMAIN, SL_EDE_NONE, NULL);
	else if (sl_reply_name(query, name))
		answer_with(query, SL_DNS_LOCAL, LDNS_RCODE_SERVFAIL, SL_EDE_NONE, NULL);
	else
		answer(query, SL_DNS_LOCAL);
}

static enum sl_dns_say decide_odd(const struct sl_query *query)
{
	const struct sl_dns_options *options = &query->dns->options;
	char shown[SL_DNS_ODD];

	if (!options->ops->odd)
		return SL_DNS_REFUSE;
	sl_question_show(&query->question, shown, sizeof(shown));
	return options->ops->odd(options->arg, shown, query->question.type, &query->who);
}

/* By name and type, of a query that is sound. */
static void decide(struct sl_query *query)
{
	const struct sl_dns_options *options = &query->dns->options;
	uint16_t type = query->question.type;
	enum sl_dns_say say;
	struct sl_addr addr;

	if (query->name[0] && type == LDNS_RR_TYPE_PTR && sl_reverse_addr(query->name, &addr)) {
		answer_reverse(query, &addr);
		return;
	}
	say = query->name[0] ? options->ops->eligible(options->arg, query->name, type, &query->who)
			     : decide_odd(query);
	if (say == SL_DNS_REFUSE) {
		answer_with(query, SL_DNS_REFUSED, LDNS_RCODE_REFUSED, SL_EDE_BLOCKED,
			    "sluice: no rule names this host");
	} else if (say == SL_DNS_ABSENT) {
		answer_with(query, SL_DNS_LOCAL, LDNS_RCODE_NXDOMAIN, SL_EDE_NONE, NULL);
	} else if (type == SL_DNS_TYPE_HTTPS || type == SL_DNS_TYPE_SVCB) {
		answer_with(query, SL_DNS_WITHHELD, LDNS_RCODE_NOERROR, SL_EDE_FILTERED,
			    "sluice: service bindings are not passed on");
	} else if (type == LDNS_RR_TYPE_ANY) {
		unsigned int rcode = sl_reply_any(query) ? LDNS_RCODE_SERVFAIL : LDNS_RCODE_NOERROR;

		answer_with(query, SL_DNS_LOCAL, rcode, SL_EDE_NONE, NULL);
	} else if (!is_passed(type)) {
		answer_with(query, SL_DNS_WITHHELD, LDNS_RCODE_REFUSED, SL_EDE_BLOCKED,
			    "sluice: records of this type are not passed on");
	} else if (!sl_ask_at_hand(options->resolver, &query->question) || ask(query)) {
		sl_query_await_turn(query);
	}
}

/*
 * Whether the additional section is an OPT record; -EBADMSG, or the rcode to answer with. Its
 * options are for the next hop only, and none is acted on (RFC 6891, 6).
 */
static int read_edns(struct sl_query *query, const uint8_t *data, size_t size)
{
	ldns_pkt *message = NULL;
	int ret = sl_message_read(&message, data, size, 2);

	if (ret)
		return ret;
	query->edns = ldns_pkt_edns(message);
	query->udp_size = ldns_pkt_edns_udp_size(message);
	if (ldns_pkt_edns_version(message))
		ret = LDNS_RCODE_NOERROR + 16; /* BADVERS */
	else if (!query->edns && ldns_pkt_arcount(message))
		ret = LDNS_RCODE_FORMERR;
	ldns_pkt_free(message);
	return ret;
}

/* The rcode for a query that can't be taken, or 0. */
static unsigned int read_query(struct sl_query *query, const uint8_t *data, size_t size,
			       const struct sl_head *head)
{
	int ret;

	if (head->opcode != LDNS_PACKET_QUERY)
		return LDNS_RCODE_NOTIMPL;
	if (head->count[1] || head->count[2] || head->count[3] > 1 ||
	    sl_question_read(data, size, &query->question, &query->class, query->cased))
		return LDNS_RCODE_FORMERR;
	query->asks = true;
	sl_question_name(&query->question, query->name);
	/* Else there is nothing but the question, which is read. */
	ret = head->count[3] ? read_edns(query, data, size) : 0;
	if (ret)
		return ret < 0 ? LDNS_RCODE_FORMERR : (unsigned int)ret;
	return query->class == LDNS_RR_CLASS_IN ? 0 : LDNS_RCODE_REFUSED;
}

void sl_query_take(struct sl_dns *dns, struct sl_conn *conn, const struct sl_dns_source *source,
		   const uint8_t *data, size_t size)
{
	struct sl_query *query;
	struct sl_head head;
	unsigned int rcode;

	dns->counts[conn ? SL_DNS_COUNT_TCP : SL_DNS_COUNT_UDP]++;
	/* An answer to an answer could go on for ever. */
	if (sl_head_read(data, size, &head) || head.response) {
		dns->counts[SL_DNS_COUNT_IGNORED]++;
		return;
	}
	query = calloc(1, sizeof(*query));
	if (!query) {
		dns->counts[SL_DNS_COUNT_UNSENT]++;
		return;
	}
	query->dns = dns;
	query->conn = conn;
	query->source = *source;
	query->start_ns = sl_boottime_ns();
	query->id = head.id;
	query->recursion = data[2] & 1;
	query->unchecked = data[3] & 0x10;
	query->reply.ede = SL_EDE_NONE;
	TAILQ_INSERT_TAIL(&dns->queries, query, all);
	dns->waiting++;
	if (conn)
		conn->waiting++;
	rcode = read_query(query, data, size, &head);
	if (rcode) {
		answer_with(query, SL_DNS_MALFORMED, rcode, SL_EDE_NONE, NULL);
		return;
	}
	dns->options.ops->who(dns->options.arg, source, &query->who);
	decide(query);
}
