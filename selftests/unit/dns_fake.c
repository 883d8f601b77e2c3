/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dns_fake.h"

#define CHAIN_MAX 32 /* more than policy DNS follows */

/* One port for both, as upstreams have. */
void dns_fake_open(struct dns_fake *fake)
{
	socklen_t size = sizeof(fake->addr);

	fake->conn = -1;
	fake->addr = (struct sockaddr_in){ .sin_family = AF_INET,
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	fake->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert(fake->listener >= 0 && fake->udp >= 0);
	for (int i = 0; i < 100; i++) {
		fake->addr.sin_port = 0;
		cr_assert_eq(bind(fake->udp, (struct sockaddr *)&fake->addr, size), 0);
		cr_assert_eq(getsockname(fake->udp, (struct sockaddr *)&fake->addr, &size), 0);
		if (!bind(fake->listener, (struct sockaddr *)&fake->addr, size))
			break;
		/* Somebody has the port over TCP. */
		close(fake->udp);
		fake->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	}
	cr_assert_eq(listen(fake->listener, 64), 0);
}

void dns_fake_close(struct dns_fake *fake)
{
	int *const fds[] = { &fake->udp, &fake->listener, &fake->conn };

	for (size_t i = 0; i < 3; i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

nfds_t dns_fake_poll(const struct dns_fake *fake, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ .fd = fake->hold ? -1 : fake->udp, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = fake->listener, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = fake->conn, .events = POLLIN };
	return 3;
}

/* Adds the zone's records of a name and type; whether it has any of the name. */
static bool add(const struct dns_fake *fake, ldns_pkt *reply, ldns_pkt_section section,
		const ldns_rdf *name, ldns_rr_type type, const ldns_rr **last)
{
	bool exists = false;

	*last = NULL;
	for (size_t i = 0; i < DNS_ZONE_MAX && fake->zone[i]; i++) {
		ldns_rr *record = NULL;

		cr_assert_eq(ldns_rr_new_frm_str(&record, fake->zone[i], 0, NULL, NULL),
			     LDNS_STATUS_OK, "%s", fake->zone[i]);
		exists = exists || !ldns_dname_compare(ldns_rr_owner(record), name);
		if (ldns_rr_get_type(record) == type &&
		    !ldns_dname_compare(ldns_rr_owner(record), name)) {
			ldns_pkt_push_rr(reply, section, record);
			*last = record;
		} else {
			ldns_rr_free(record);
		}
	}
	return exists;
}

static void fill(const struct dns_fake *fake, ldns_pkt *reply, const ldns_rdf *name,
		 ldns_rr_type type)
{
	ldns_rdf *apex = ldns_dname_new_frm_str("test.");
	const ldns_rr *last = NULL, *link = NULL;

	for (int i = 0; i < CHAIN_MAX; i++) {
		bool exists = add(fake, reply, LDNS_SECTION_ANSWER, name, type, &last);

		if (!exists)
			ldns_pkt_set_rcode(reply, LDNS_RCODE_NXDOMAIN);
		if (last || !exists || type == LDNS_RR_TYPE_CNAME)
			break;
		add(fake, reply, LDNS_SECTION_ANSWER, name, LDNS_RR_TYPE_CNAME, &link);
		if (!link)
			break;
		name = ldns_rr_rdf(link, 0);
	}
	if (!last)
		add(fake, reply, LDNS_SECTION_AUTHORITY, apex, LDNS_RR_TYPE_SOA, &last);
	ldns_rdf_deep_free(apex);
}

ldns_pkt *dns_fake_answer(struct dns_fake *fake, const uint8_t *data, size_t size)
{
	ldns_pkt *query = NULL, *reply;
	ldns_rr *question;
	char *name;

	if (ldns_wire2pkt(&query, data, size) != LDNS_STATUS_OK)
		return NULL;
	reply = ldns_pkt_new();
	question = ldns_rr_clone(ldns_rr_list_rr(ldns_pkt_question(query), 0));
	ldns_pkt_set_id(reply, ldns_pkt_id(query));
	ldns_pkt_set_qr(reply, true);
	ldns_pkt_set_rd(reply, true);
	ldns_pkt_set_ra(reply, true);
	if (fake->way == DNS_NO_EDNS && ldns_pkt_edns(query))
		ldns_pkt_set_rcode(reply, LDNS_RCODE_FORMERR);
	else if (fake->way == DNS_FAIL)
		ldns_pkt_set_rcode(reply, LDNS_RCODE_SERVFAIL);
	else
		fill(fake, reply, ldns_rr_owner(question), ldns_rr_get_type(question));
	fake->type = (uint16_t)ldns_rr_get_type(question);
	name = ldns_rdf2str(ldns_rr_owner(question));
	strncpy(fake->name, name, sizeof(fake->name) - 1);
	free(name);
	if (fake->way == DNS_LOWER)
		ldns_dname2canonical(ldns_rr_owner(question));
	ldns_pkt_push_rr(reply, LDNS_SECTION_QUESTION, question);
	ldns_pkt_free(query);
	return reply;
}

/* What the fake says, in its way: the size, 0 for nothing. */
static size_t say(struct dns_fake *fake, const uint8_t *query, size_t size, bool tcp, uint8_t *out,
		  size_t room)
{
	ldns_pkt *reply = dns_fake_answer(fake, query, size);
	uint8_t *wire = NULL;
	size_t len = 0;

	if (!reply)
		return 0;
	if (fake->way == DNS_CUT_ALWAYS || fake->way == DNS_HANG_UP ||
	    (fake->way == DNS_CUT && !tcp))
		ldns_pkt_set_tc(reply, true);
	cr_assert_eq(ldns_pkt2wire(&wire, reply, &len), LDNS_STATUS_OK);
	cr_assert_leq(len, room);
	memcpy(out, wire, len);
	free(wire);
	ldns_pkt_free(reply);
	if (fake->way == DNS_WRONG_ID)
		out[0] ^= 0xff;
	if (fake->way == DNS_WRONG_NAME)
		out[13] ^= 1; /* the first letter */
	if (fake->way == DNS_GARBAGE)
		memset(out + 12, 0xc0, len - 12);
	if (fake->way == DNS_PREFIX && fake->prefix < len)
		len = fake->prefix;
	return fake->way == DNS_SILENT ? 0 : len;
}

static void send_junk(const struct dns_fake *fake, const uint8_t *good, size_t size,
		      const struct sockaddr_in *to)
{
	uint8_t junk[2048];

	cr_assert_leq(size, sizeof(junk));
	for (int i = 0; i < 4; i++) {
		memcpy(junk, good, size);
		if (i == 0)
			junk[1] ^= 1; /* the id */
		else if (i == 1)
			junk[2] &= 0x7f; /* a query */
		else if (i == 2)
			junk[14] ^= 1; /* another name */
		else
			junk[5] = 2; /* two questions */
		sendto(fake->udp, junk, size, 0, (const struct sockaddr *)to, sizeof(*to));
	}
}

static void serve_udp(struct dns_fake *fake)
{
	uint8_t query[4096], out[65536];
	struct sockaddr_in from;
	socklen_t from_size = sizeof(from);
	ssize_t n =
		recvfrom(fake->udp, query, sizeof(query), 0, (struct sockaddr *)&from, &from_size);
	size_t size;

	if (n < 0)
		return;
	fake->udp_asked++;
	size = say(fake, query, (size_t)n, false, out, sizeof(out));
	if (size && fake->way == DNS_JUNK_FIRST)
		send_junk(fake, out, size, &from);
	if (size || fake->way == DNS_PREFIX)
		sendto(fake->udp, out, size, 0, (struct sockaddr *)&from, sizeof(from));
}

static void serve_tcp(struct dns_fake *fake)
{
	uint8_t query[4096], out[65538];
	ssize_t n = recv(fake->conn, query, sizeof(query), 0);
	size_t size;

	if (n < 0 && errno == EAGAIN)
		return;
	/* The resolver sends its query in one piece. */
	if (n > 2 && fake->way != DNS_HANG_UP) {
		fake->tcp_asked++;
		size = say(fake, query + 2, (size_t)n - 2, true, out + 2, sizeof(out) - 2);
		out[0] = (uint8_t)(size >> 8);
		out[1] = (uint8_t)size;
		/* In two pieces: the reader has to put them together. */
		if (size) {
			send(fake->conn, out, 1, MSG_NOSIGNAL);
			send(fake->conn, out + 1, size + 1, MSG_NOSIGNAL);
		}
		return;
	}
	close(fake->conn);
	fake->conn = -1;
}

void dns_fake_serve(struct dns_fake *fake)
{
	if (fake->udp >= 0 && !fake->hold)
		serve_udp(fake);
	if (fake->conn < 0 && fake->listener >= 0)
		fake->conn = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fake->conn >= 0)
		serve_tcp(fake);
}
