// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dns/message.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WRITE_SIZE 512 /* most messages are shorter */

static uint16_t read_u16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

/* Not tolower(), which knows locales. */
static uint8_t lower(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;
}

int sl_head_read(const uint8_t *data, size_t size, struct sl_head *head)
{
	if (size < SL_MESSAGE_HEAD)
		return -EMSGSIZE;
	*head = (struct sl_head){
		.id = read_u16(data),
		.response = data[2] & 0x80,
		.cut = data[2] & 0x02,
		.opcode = data[2] >> 3 & 15,
		.rcode = data[3] & 15,
	};
	for (unsigned int i = 0; i < 4; i++)
		head->count[i] = read_u16(data + 4 + 2 * i);
	return 0;
}

int sl_message_read(ldns_pkt **out, const uint8_t *data, size_t size, unsigned int records)
{
	ldns_pkt *message = NULL;
	struct sl_head head;
	ldns_status status;

	if (sl_head_read(data, size, &head))
		return -EBADMSG;
	if ((unsigned int)head.count[0] + head.count[1] + head.count[2] + head.count[3] > records)
		return -E2BIG;
	status = ldns_wire2pkt(&message, data, size);
	if (status == LDNS_STATUS_MEM_ERR)
		return -ENOMEM;
	if (status != LDNS_STATUS_OK)
		return -EBADMSG;
	*out = message;
	return 0;
}

int sl_message_write(const ldns_pkt *message, uint8_t **wire, size_t *size)
{
	/* ldns_pkt2wire() would take and give back 64 KiB; this grows when it has to. */
	ldns_buffer *buffer = ldns_buffer_new(WRITE_SIZE);
	int ret = -ENOMEM;

	if (buffer && ldns_pkt2buffer_wire(buffer, message) == LDNS_STATUS_OK) {
		*size = ldns_buffer_position(buffer);
		*wire = ldns_buffer_export(buffer);
		ret = 0;
	}
	ldns_buffer_free(buffer);
	return ret;
}

int sl_question_read(const uint8_t *data, size_t size, struct sl_question *question,
		     uint16_t *class, uint8_t cased[SL_NAME_WIRE])
{
	struct sl_question q = { 0 };
	struct sl_head head;
	size_t at = SL_MESSAGE_HEAD, left;
	uint8_t label;

	if (sl_head_read(data, size, &head) || head.count[0] != 1)
		return -EBADMSG;
	left = size - SL_MESSAGE_HEAD;
	do {
		size_t room = sizeof(q.name) - q.len;

		if (!left)
			return -EBADMSG;
		label = data[at];
		/* The two upper bits: a pointer, for which nothing is there yet, or no label. */
		if (label > 63 || label + 1u > left || label + 1u > room)
			return -EBADMSG;
		memcpy(cased + q.len, data + at, label + 1u);
		for (size_t i = 0; i <= label; i++)
			q.name[q.len + i] = i ? lower(data[at + i]) : label;
		q.len = (uint16_t)(q.len + label + 1);
		at += label + 1u;
		left -= label + 1u;
	} while (label);
	if (left < 4)
		return -EBADMSG;
	q.type = read_u16(data + at);
	*class = read_u16(data + at + 2);
	*question = q;
	return 0;
}

static bool plain(uint8_t byte)
{
	byte = lower(byte);
	return (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	       byte == '_';
}

int sl_question_make(struct sl_question *question, const char *name, uint16_t type)
{
	struct sl_question q = { .type = type };

	while (*name) {
		size_t len = strcspn(name, ".");

		if (!len || len > 63 || q.len + len + 2 > sizeof(q.name))
			return -EINVAL;
		q.name[q.len] = (uint8_t)len;
		for (size_t i = 0; i < len; i++) {
			if (!plain((uint8_t)name[i]))
				return -EINVAL;
			q.name[q.len + 1 + i] = lower((uint8_t)name[i]);
		}
		q.len = (uint16_t)(q.len + 1 + len);
		name += len;
		/* A dot has to have something behind it. */
		if (*name && !*++name)
			return -EINVAL;
	}
	if (!q.len)
		return -EINVAL;
	q.len++; /* the root */
	*question = q;
	return 0;
}

int sl_question_name(const struct sl_question *question, char *name)
{
	char text[SL_NAME_TEXT];
	size_t out = 0;

	for (size_t at = 0; question->name[at]; at += question->name[at] + 1u) {
		for (size_t i = 1; i <= question->name[at]; i++) {
			if (!plain(question->name[at + i]))
				return -EINVAL;
		}
		if (at)
			text[out++] = '.';
		memcpy(text + out, question->name + at + 1, question->name[at]);
		out += question->name[at];
	}
	if (!out)
		return -EINVAL;
	memcpy(name, text, out);
	name[out] = '\0';
	return 0;
}

void sl_question_show(const struct sl_question *question, char *text, size_t size)
{
	size_t out = 0;

	for (size_t at = 0; question->name[at]; at += question->name[at] + 1u) {
		for (size_t i = at ? 0 : 1; i <= question->name[at] && out + 5 < size; i++) {
			uint8_t byte = question->name[at + i];

			if (!i)
				text[out++] = '.';
			else if (plain(byte) ||
				 (byte > ' ' && byte < 127 && !strchr(".\\\"", byte)))
				text[out++] = (char)byte;
			else
				out += (size_t)snprintf(text + out, size - out, "\\%03u", byte);
		}
	}
	if (!out && size > 1)
		text[out++] = '.';
	text[out] = '\0';
}

ldns_rdf *sl_question_dname(const struct sl_question *question)
{
	return ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, question->len, question->name);
}

bool sl_record_addr(const ldns_rr *record, struct sl_addr *addr)
{
	ldns_rr_type type = ldns_rr_get_type(record);
	const ldns_rdf *data = ldns_rr_rd_count(record) == 1 ? ldns_rr_rdf(record, 0) : NULL;
	size_t size = type == LDNS_RR_TYPE_A ? 4 : 16;

	if ((type != LDNS_RR_TYPE_A && type != LDNS_RR_TYPE_AAAA) || !data ||
	    ldns_rdf_size(data) != size || ldns_rr_get_class(record) != LDNS_RR_CLASS_IN)
		return false;
	*addr = (struct sl_addr){ { 0, 0, SL_BE32(0xffff), 0 } };
	memcpy((char *)addr + sizeof(*addr) - size, ldns_rdf_data(data), size);
	return true;
}

ldns_rr *sl_record_of(const ldns_rdf *owner, const struct sl_addr *addr, uint32_t ttl_s)
{
	bool v4 = sl_addr_is_v4(addr);
	ldns_rr *record = ldns_rr_new();
	ldns_rdf *name = ldns_rdf_clone(owner);
	ldns_rdf *data = ldns_rdf_new_frm_data(v4 ? LDNS_RDF_TYPE_A : LDNS_RDF_TYPE_AAAA,
					       v4 ? 4 : 16, v4 ? &addr->be[3] : &addr->be[0]);

	if (!record || !name || !data)
		goto out;
	ldns_rr_set_type(record, v4 ? LDNS_RR_TYPE_A : LDNS_RR_TYPE_AAAA);
	ldns_rr_set_class(record, LDNS_RR_CLASS_IN);
	ldns_rr_set_ttl(record, ttl_s);
	if (!ldns_rr_push_rdf(record, data))
		goto out;
	ldns_rr_set_owner(record, name);
	return record;
out:
	ldns_rdf_deep_free(data);
	ldns_rdf_deep_free(name);
	ldns_rr_free(record);
	return NULL;
}

/* "4.3.2.1.in-addr.arpa": RFC 1035, 3.5. */
static bool reverse_v4(const char *name, struct sl_addr *addr)
{
	unsigned int d, c, b, a;
	char again[SL_NAME_TEXT];

	if (sscanf(name, "%3u.%3u.%3u.%3u.in-addr.arpa", &d, &c, &b, &a) != 4 || d > 255 ||
	    c > 255 || b > 255 || a > 255)
		return false;
	/* What sscanf() reads is more than what is meant: only one spelling is the address. */
	snprintf(again, sizeof(again), "%u.%u.%u.%u.in-addr.arpa", d, c, b, a);
	if (strcmp(again, name) != 0)
		return false;
	*addr = (struct sl_addr){ { 0, 0, SL_BE32(0xffff), 0 } };
	addr->be[3] = SL_BE32(a << 24 | b << 16 | c << 8 | d);
	return true;
}

/* 32 digits and "ip6.arpa": RFC 3596, 2.5. */
static bool reverse_v6(const char *name, struct sl_addr *addr)
{
	uint8_t *bytes = (uint8_t *)addr->be;

	if (strlen(name) != 64 + 8 || strcmp(name + 64, "ip6.arpa") != 0)
		return false;
	memset(addr, 0, sizeof(*addr));
	for (unsigned int i = 0; i < 32; i++) {
		int digit = (unsigned char)name[2 * i];

		if (!isxdigit(digit) || name[2 * i + 1] != '.')
			return false;
		digit = digit <= '9' ? digit - '0' : digit - 'a' + 10;
		bytes[15 - i / 2] |= (uint8_t)(digit << (i % 2 * 4));
	}
	return true;
}

bool sl_reverse_addr(const char *name, struct sl_addr *addr)
{
	struct sl_addr found;

	if (!reverse_v4(name, &found) && !reverse_v6(name, &found))
		return false;
	*addr = found;
	return true;
}
