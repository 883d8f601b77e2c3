// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What upstream said, as the policy lets it be told. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dns/server_private.h"

#define HINFO_TTL_S 3789 /* as the example of RFC 8482, 4.2 */

/* What a reply is made of. */
struct answer {
	struct sl_query *query;
	const ldns_pkt *message;
	ldns_rdf *name; /* that was asked */
	struct sl_chain chain;
};

static int add(ldns_rr_list **list, ldns_rr *record)
{
	/* What clients make of the highest bit they need not be asked. */
	if (record)
		ldns_rr_set_ttl(record, sl_record_ttl_s(record));
	if (record && !*list)
		*list = ldns_rr_list_new();
	if (record && *list && ldns_rr_list_push_rr(*list, record))
		return 0;
	ldns_rr_free(record);
	return -ENOMEM;
}

static int add_links(struct answer *a)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < a->chain.count; i++)
		ret = add(&a->query->reply.answer, ldns_rr_clone(a->chain.links[i]));
	return ret;
}

/* The SOA of a negative answer, by which clients know how long to keep it; RFC 2308. */
static int add_soa(struct answer *a)
{
	const ldns_rr_list *authority = ldns_pkt_authority(a->message);

	for (size_t i = 0; i < ldns_rr_list_rr_count(authority); i++) {
		const ldns_rr *record = ldns_rr_list_rr(authority, i);
		const ldns_rdf *owner = ldns_rr_owner(record);

		if (ldns_rr_get_type(record) == LDNS_RR_TYPE_SOA &&
		    ldns_rr_get_class(record) == LDNS_RR_CLASS_IN &&
		    (!ldns_dname_compare(a->chain.end, owner) ||
		     ldns_dname_is_subdomain(a->chain.end, owner)))
			return add(&a->query->reply.authority, ldns_rr_clone(record));
	}
	return 0;
}

static enum sl_dns_outcome fail(struct sl_query *query, enum sl_dns_outcome outcome,
				enum sl_ede ede, const char *text)
{
	sl_reply_clear(&query->reply);
	query->reply.rcode = LDNS_RCODE_SERVFAIL;
	query->reply.ede = ede;
	query->reply.text = text;
	query->addresses = 0;
	return outcome;
}

static enum sl_dns_outcome no_memory(struct sl_query *query)
{
	return fail(query, SL_DNS_UPSTREAM, SL_EDE_OTHER, "out of memory");
}

/* Takes the record, which may be NULL for want of memory; -errno of the ops, or 0. */
static int add_address(struct sl_query *query, ldns_rr *record, const struct sl_addr *addr)
{
	const struct sl_dns_options *options = &query->dns->options;
	int ret = record ? 0 : -ENOMEM;

	if (!ret && query->name[0])
		ret = options->ops->lease(options->arg, query->name, addr, sl_record_ttl_s(record),
					  &query->who);
	if (ret) {
		ldns_rr_free(record);
		return ret;
	}
	ret = add(&query->reply.answer, record);
	if (!ret)
		query->addresses++;
	return ret;
}

/* In place of all addresses one, which is the name's alone. */
static int add_synthetic(struct answer *a, uint32_t ttl_s)
{
	struct sl_query *query = a->query;
	const struct sl_dns_options *options = &query->dns->options;
	int family = query->question.type == LDNS_RR_TYPE_A ? AF_INET : AF_INET6;
	struct sl_addr addr;
	int ret = options->ops->synthetic(options->arg, query->name, family, &addr);

	return ret ?: add_address(query, sl_record_of(a->name, &addr, ttl_s), &addr);
}

/* Adds the addresses that may be told; `type` may be the family that was not asked for. */
static int add_addresses(struct answer *a, uint16_t type)
{
	struct sl_query *query = a->query;
	const struct sl_dns_options *options = &query->dns->options;
	const ldns_rr_list *answer = ldns_pkt_answer(a->message);
	int ret = options->ops->synthetic ? 0 : add_links(a);

	for (size_t i = 0; !ret && i < ldns_rr_list_rr_count(answer); i++) {
		const ldns_rr *record = ldns_rr_list_rr(answer, i);
		struct sl_addr addr;

		if (query->addresses == SL_DNS_ADDRESSES)
			break;
		if (!sl_chain_has(&a->chain, record, type) || !sl_record_addr(record, &addr))
			continue;
		if (!options->ops->answer(options->arg, query->name, &addr, &query->who)) {
			if (query->removed < SL_DNS_LEFT_OUT)
				query->left_out[query->removed] = addr;
			query->removed++;
			continue;
		}
		if (options->ops->synthetic && query->name[0])
			return add_synthetic(a, sl_record_ttl_s(record));
		ret = add_address(query, ldns_rr_clone(record), &addr);
	}
	return ret;
}

static enum sl_dns_outcome fill_addresses(struct answer *a, uint16_t type)
{
	struct sl_query *query = a->query;
	int ret = add_addresses(a, type);

	if (ret)
		return ret == -ENOMEM ? no_memory(query)
				      : fail(query, SL_DNS_UNLEASED, SL_EDE_OTHER,
					     "sluice: the addresses can't be leased");
	if (query->addresses)
		return SL_DNS_ANSWERED;
	if (!query->removed)
		return add_soa(a) ? no_memory(query) : SL_DNS_ANSWERED;
	sl_reply_clear(&query->reply);
	query->reply.ede = SL_EDE_FILTERED;
	query->reply.text = "sluice: no rule lets the host have these addresses";
	return SL_DNS_FILTERED;
}

static enum sl_dns_outcome fill_records(struct answer *a, uint16_t type)
{
	const ldns_rr_list *answer = ldns_pkt_answer(a->message);
	int ret = add_links(a);
	bool any = false;

	for (size_t i = 0; !ret && i < ldns_rr_list_rr_count(answer); i++) {
		const ldns_rr *record = ldns_rr_list_rr(answer, i);

		if (!sl_chain_has(&a->chain, record, type))
			continue;
		any = true;
		ret = add(&a->query->reply.answer, ldns_rr_clone(record));
	}
	if (!ret && !any)
		ret = add_soa(a);
	return ret ? no_memory(a->query) : SL_DNS_ANSWERED;
}

static enum sl_dns_outcome fill(struct answer *a, uint16_t type)
{
	struct sl_query *query = a->query;
	bool address = type == LDNS_RR_TYPE_A || type == LDNS_RR_TYPE_AAAA;

	if (sl_chain_follow(&a->chain, a->message, a->name, type))
		return fail(query, SL_DNS_UNSOUND, SL_EDE_OTHER,
			    "sluice: CNAMEs are looped, too many, or not alone");
	if (ldns_pkt_get_rcode(a->message) == LDNS_RCODE_NXDOMAIN) {
		query->reply.rcode = LDNS_RCODE_NXDOMAIN;
		if ((!query->dns->options.ops->synthetic && add_links(a)) || add_soa(a))
			return no_memory(query);
		return SL_DNS_ANSWERED;
	}
	return address ? fill_addresses(a, type) : fill_records(a, type);
}

enum sl_dns_outcome sl_reply_fill(struct sl_query *query, const struct sl_reply *upstream)
{
	struct answer a = { .query = query, .message = upstream->message };
	uint16_t type = query->question.type;
	enum sl_dns_outcome outcome;

	if (upstream->error == -ENOMEM)
		return no_memory(query);
	if (upstream->error)
		return upstream->error == -ETIMEDOUT
			       ? fail(query, SL_DNS_UPSTREAM, SL_EDE_NO_UPSTREAM,
				      "sluice: no DNS server answers")
			       : fail(query, SL_DNS_UPSTREAM, SL_EDE_NETWORK,
				      "sluice: no DNS server has an answer");
	if (query->other_family)
		type = type == LDNS_RR_TYPE_A ? LDNS_RR_TYPE_AAAA : LDNS_RR_TYPE_A;
	a.name = sl_question_dname(&query->question);
	if (!a.name)
		return no_memory(query);
	outcome = fill(&a, type);
	ldns_rdf_deep_free(a.name);
	return outcome;
}

/* A record of the name asked, its data as text. */
static int add_text(struct sl_query *query, uint16_t type, uint32_t ttl_s, ldns_rdf *first,
		    ldns_rdf *second)
{
	ldns_rr *record = ldns_rr_new();
	ldns_rdf *owner = sl_question_dname(&query->question);

	if (!record || !owner || !first || !ldns_rr_push_rdf(record, first)) {
		ldns_rdf_deep_free(first);
		goto out;
	}
	if (second && !ldns_rr_push_rdf(record, second))
		goto out;
	ldns_rr_set_type(record, (ldns_rr_type)type);
	ldns_rr_set_class(record, LDNS_RR_CLASS_IN);
	ldns_rr_set_ttl(record, ttl_s);
	ldns_rr_set_owner(record, owner);
	return add(&query->reply.answer, record);
out:
	ldns_rdf_deep_free(second);
	ldns_rdf_deep_free(owner);
	ldns_rr_free(record);
	return -ENOMEM;
}

int sl_reply_any(struct sl_query *query)
{
	return add_text(query, LDNS_RR_TYPE_HINFO, HINFO_TTL_S,
			ldns_rdf_new_frm_str(LDNS_RDF_TYPE_STR, "RFC8482"),
			ldns_rdf_new_frm_str(LDNS_RDF_TYPE_STR, ""));
}

int sl_reply_name(struct sl_query *query, const char *name)
{
	return add_text(query, LDNS_RR_TYPE_PTR, SL_DNS_REVERSE_TTL_S,
			ldns_rdf_new_frm_str(LDNS_RDF_TYPE_DNAME, name), NULL);
}

void sl_reply_clear(struct sl_dns_reply *reply)
{
	ldns_rr_list_deep_free(reply->answer);
	ldns_rr_list_deep_free(reply->authority);
	*reply = (struct sl_dns_reply){ .ede = SL_EDE_NONE };
}

static int set_question(const struct sl_query *query, ldns_pkt *message)
{
	ldns_rr *record = ldns_rr_new();
	/* As it was spelled: clients that mix cases compare. */
	ldns_rdf *name =
		ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, query->question.len, query->cased);

	if (!record || !name) {
		ldns_rdf_deep_free(name);
		ldns_rr_free(record);
		return -ENOMEM;
	}
	ldns_rr_set_question(record, true);
	ldns_rr_set_owner(record, name);
	ldns_rr_set_type(record, (ldns_rr_type)query->question.type);
	ldns_rr_set_class(record, (ldns_rr_class)query->class);
	if (ldns_pkt_push_rr(message, LDNS_SECTION_QUESTION, record))
		return 0;
	ldns_rr_free(record);
	return -ENOMEM;
}

static int set_edns(const struct sl_dns_reply *reply, ldns_pkt *message)
{
	size_t len = reply->ede != SL_EDE_NONE ? strlen(reply->text) : 0;
	ldns_edns_option_list *list;
	ldns_edns_option *option;
	uint8_t data[128];

	ldns_pkt_set_edns_udp_size(message, SL_DNS_UDP_SIZE);
	ldns_pkt_set_edns_extended_rcode(message, (uint8_t)(reply->rcode >> 4));
	if (reply->ede == SL_EDE_NONE)
		return 0;
	if (len > sizeof(data) - 2)
		len = sizeof(data) - 2;
	data[0] = 0;
	data[1] = (uint8_t)reply->ede;
	memcpy(data + 2, reply->text, len);
	list = ldns_edns_option_list_new();
	option = ldns_edns_new_from_data(SL_EDE_OPTION, 2 + len, data);
	if (!list || !option || !ldns_edns_option_list_push(list, option)) {
		if (option)
			ldns_edns_deep_free(option);
		ldns_edns_option_list_deep_free(list);
		return -ENOMEM;
	}
	ldns_pkt_set_edns_option_list(message, list);
	return 0;
}

/* The records become the message's: one that is made again, as too large, has none. */
static void move_records(struct sl_dns_reply *reply, ldns_pkt *message)
{
	if (reply->answer) {
		ldns_rr_list_free(ldns_pkt_answer(message));
		ldns_pkt_set_answer(message, reply->answer);
		ldns_pkt_set_ancount(message, (uint16_t)ldns_rr_list_rr_count(reply->answer));
	}
	if (reply->authority) {
		ldns_rr_list_free(ldns_pkt_authority(message));
		ldns_pkt_set_authority(message, reply->authority);
		ldns_pkt_set_nscount(message, (uint16_t)ldns_rr_list_rr_count(reply->authority));
	}
	reply->answer = reply->authority = NULL;
}

static int write_once(struct sl_query *query, uint8_t **wire, size_t *size)
{
	struct sl_dns_reply *reply = &query->reply;
	ldns_pkt *message = ldns_pkt_new();
	int ret = message ? 0 : -ENOMEM;

	if (ret)
		return ret;
	ldns_pkt_set_id(message, query->id);
	ldns_pkt_set_qr(message, true);
	ldns_pkt_set_rd(message, query->recursion);
	ldns_pkt_set_cd(message, query->unchecked);
	ldns_pkt_set_ra(message, true);
	ldns_pkt_set_tc(message, reply->cut);
	ldns_pkt_set_rcode(message, reply->rcode & 15);
	if (query->asks)
		ret = set_question(query, message);
	if (!ret && query->edns)
		ret = set_edns(reply, message);
	move_records(reply, message);
	if (!ret)
		ret = sl_message_write(message, wire, size);
	ldns_pkt_free(message);
	return ret;
}

int sl_reply_write(struct sl_query *query, size_t limit, uint8_t **wire, size_t *size)
{
	_cleanup_free_ uint8_t *whole = NULL;
	size_t whole_size = 0;
	int ret = write_once(query, &whole, &whole_size);

	if (!ret && whole_size > limit) {
		query->reply.cut = true;
		sl_cleanup_free(&whole);
		ret = write_once(query, &whole, &whole_size);
	}
	if (ret)
		return ret;
	*wire = TAKE_PTR(whole);
	*size = whole_size;
	return 0;
}
