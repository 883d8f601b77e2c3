// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "dns/message.h"

/* Whether a record is of that owner and type. */
static bool is(const ldns_rr *record, const ldns_rdf *owner, uint16_t type)
{
	return ldns_rr_get_type(record) == (ldns_rr_type)type &&
	       ldns_rr_get_class(record) == LDNS_RR_CLASS_IN &&
	       !ldns_dname_compare(ldns_rr_owner(record), owner);
}

/* The CNAME of a name, *link NULL when there is none. */
static int find_link(const ldns_pkt *message, const ldns_rdf *name, uint16_t type,
		     const ldns_rr **link)
{
	const ldns_rr_list *answer = ldns_pkt_answer(message);
	bool found = false;

	*link = NULL;
	for (size_t i = 0; i < ldns_rr_list_rr_count(answer); i++) {
		const ldns_rr *record = ldns_rr_list_rr(answer, i);

		found = found || is(record, name, type);
		if (!is(record, name, LDNS_RR_TYPE_CNAME) || !ldns_rr_rdf(record, 0))
			continue;
		if (*link && ldns_dname_compare(ldns_rr_rdf(*link, 0), ldns_rr_rdf(record, 0)) != 0)
			return -EBADMSG;
		*link = record;
	}
	return *link && found ? -EBADMSG : 0;
}

int sl_chain_follow(struct sl_chain *chain, const ldns_pkt *message, const ldns_rdf *name,
		    uint16_t type)
{
	struct sl_chain found = { .end = name };

	/* Who asks for the CNAME wants it, not where it leads to. */
	while (type != LDNS_RR_TYPE_CNAME) {
		const ldns_rr *link;
		int ret = find_link(message, found.end, type, &link);

		if (ret)
			return ret;
		if (!link)
			break;
		if (found.count == SL_DNS_CHAIN)
			return -ELOOP;
		found.links[found.count++] = link;
		found.end = ldns_rr_rdf(link, 0);
	}
	*chain = found;
	return 0;
}

bool sl_chain_has(const struct sl_chain *chain, const ldns_rr *record, uint16_t type)
{
	return is(record, chain->end, type);
}

static uint32_t sound_ttl(uint32_t ttl_s)
{
	return ttl_s > INT32_MAX ? 0 : ttl_s;
}

uint32_t sl_record_ttl_s(const ldns_rr *record)
{
	return sound_ttl(ldns_rr_ttl(record));
}

static uint32_t least_ttl(const ldns_rr_list *list, uint32_t ttl_s)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		uint32_t of = sl_record_ttl_s(ldns_rr_list_rr(list, i));

		ttl_s = of < ttl_s ? of : ttl_s;
	}
	return ttl_s;
}

/* Of the SOA that comes with a negative answer; 0 without one. */
static uint32_t negative_ttl(const ldns_pkt *message)
{
	const ldns_rr_list *authority = ldns_pkt_authority(message);

	for (size_t i = 0; i < ldns_rr_list_rr_count(authority); i++) {
		const ldns_rr *record = ldns_rr_list_rr(authority, i);
		uint32_t minimum, ttl_s = sl_record_ttl_s(record);

		if (ldns_rr_get_type(record) != LDNS_RR_TYPE_SOA || ldns_rr_rd_count(record) != 7)
			continue;
		minimum = sound_ttl(ldns_rdf2native_int32(ldns_rr_rdf(record, 6)));
		return minimum < ttl_s ? minimum : ttl_s;
	}
	return 0;
}

uint32_t sl_message_ttl_s(const ldns_pkt *message)
{
	const ldns_rr_list *answer = ldns_pkt_answer(message);
	uint32_t ttl_s = UINT32_MAX;
	bool positive = false;

	for (size_t i = 0; i < ldns_rr_list_rr_count(answer); i++)
		positive = positive ||
			   ldns_rr_get_type(ldns_rr_list_rr(answer, i)) != LDNS_RR_TYPE_CNAME;
	if (!positive)
		ttl_s = negative_ttl(message);
	return least_ttl(answer, ttl_s);
}

static void age(const ldns_rr_list *list, uint32_t seconds)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		ldns_rr *record = ldns_rr_list_rr(list, i);
		uint32_t ttl_s = sl_record_ttl_s(record);

		ldns_rr_set_ttl(record, ttl_s > seconds ? ttl_s - seconds : 0);
	}
}

void sl_message_age(ldns_pkt *message, uint32_t seconds)
{
	age(ldns_pkt_answer(message), seconds);
	age(ldns_pkt_authority(message), seconds);
}
