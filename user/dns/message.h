/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DNS messages (RFC 1035, 4) around ldns, which reads and writes them: what is checked before
 * it may read, and names as the rest of sluice has them. Nothing here trusts a byte.
 */
#ifndef SLUICE_USER_DNS_MESSAGE_H
#define SLUICE_USER_DNS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ldns/ldns.h>

#include "dns/resolver.h"
#include "policy/addr.h"

#define SL_MESSAGE_HEAD 12 /* bytes */
#define SL_NAME_WIRE 255   /* longest name, RFC 1035, 2.3.4 */
#define SL_NAME_TEXT 254   /* the longest in text, with terminator */

/*
 * What is asked, of class IN. Used as a key: bytes behind the name are zero. Letters are
 * lower case.
 */
struct sl_question {
	uint16_t type;
	uint16_t len; /* of name */
	uint8_t name[SL_NAME_WIRE];
	uint8_t zero;
};

struct sl_head {
	uint16_t id;
	bool response, cut; /* QR, TC */
	unsigned int opcode, rcode;
	uint16_t count[4]; /* question, answer, authority, additional */
};

/* -EMSGSIZE: shorter than a header. */
int sl_head_read(const uint8_t *data, size_t size, struct sl_head *head);

/*
 * A whole message, to be freed with ldns_pkt_free(). -EBADMSG: malformed, or cut off;
 * -E2BIG: more than `records` in all; -ENOMEM.
 */
int sl_message_read(ldns_pkt **out, const uint8_t *data, size_t size, unsigned int records);

/* Its bytes, to be freed with free(). -ENOMEM. */
int sl_message_write(const ldns_pkt *message, uint8_t **wire, size_t *size);

/* The only question of a message. -EBADMSG: none, several, or a compressed name. */
int sl_question_read(const uint8_t *data, size_t size, struct sl_question *question,
		     uint16_t *class, uint8_t cased[SL_NAME_WIRE]);

/* A question for a name in normal form. -EINVAL: it is none. */
int sl_question_make(struct sl_question *question, const char *name, uint16_t type);

/*
 * The name (SL_NAME_TEXT bytes) in normal form. -EINVAL: the root, or a label has bytes other
 * than letters, digits, "-" and "_".
 */
int sl_question_name(const struct sl_question *question, char *name);

/*
 * Any name as safe text, as RFC 1035, 5.1 has it. For what is only shown; cut when it does
 * not fit.
 */
void sl_question_show(const struct sl_question *question, char *text, size_t size);

/* A name for ldns; NULL: no memory. */
ldns_rdf *sl_question_dname(const struct sl_question *question);

/* The address of an A or AAAA record (IPv4 mapped); false: it is none, or not of class IN. */
bool sl_record_addr(const ldns_rr *record, struct sl_addr *addr);

/* Its TTL; RFC 2181, 8: what has the highest bit set is 0. */
uint32_t sl_record_ttl_s(const ldns_rr *record);

/* A record of an address, its owner cloned; NULL: no memory. */
ldns_rr *sl_record_of(const ldns_rdf *owner, const struct sl_addr *addr, uint32_t ttl_s);

/* The address that a name below in-addr.arpa or ip6.arpa stands for; false: for none. */
bool sl_reverse_addr(const char *name, struct sl_addr *addr);
/* How a message gets from the name asked to the records. */
struct sl_chain {
	const ldns_rr *links[SL_DNS_CHAIN]; /* CNAMEs */
	unsigned int count;
	const ldns_rdf *end; /* the owner of the records */
};

/*
 * Follows CNAMEs in the answer section. -ELOOP: more than SL_DNS_CHAIN of them; -EBADMSG:
 * a name has two different ones, or one beside records of the type (RFC 1034, 3.6.2).
 */
int sl_chain_follow(struct sl_chain *chain, const ldns_pkt *message, const ldns_rdf *name,
		    uint16_t type);

/* Whether a record of the answer section is what the chain leads to. */
bool sl_chain_has(const struct sl_chain *chain, const ldns_rr *record, uint16_t type);

/* The seconds that a message may be kept: the least TTL, of a negative one as in RFC 2308, 5. */
uint32_t sl_message_ttl_s(const ldns_pkt *message);

/* Takes seconds off all TTLs. */
void sl_message_age(ldns_pkt *message, uint32_t seconds);

#endif
