/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a client's query, and as what upstream has for it: what is told is an answer to
 * the query, within its size, and has no address that was not leased, or that was refused.
 * Input: two bytes of length, the query, the upstream's message.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dns/pool.h"
#include "dns/resolver_private.h"
#include "dns/server_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sl_addr leased[SL_DNS_ADDRESSES];
static size_t leased_count;
static struct sl_resolver *resolver;
static struct sl_dns *servers[2]; /* direct, relay */
static struct sl_pool *pool;
static struct sl_dns_source source;
static int client;

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_name(const char *name)
{
	check(strlen(name) < SL_NAME_TEXT && name[0] && !strpbrk(name, " \\\n\"ABCXYZ"));
}

static void who(void *arg, const struct sl_dns_source *from, struct sl_dns_who *out)
{
	(void)arg;
	check(from->fd == source.fd);
	*out = (struct sl_dns_who){ .known = true, .tgid = 1 };
}

static enum sl_dns_say eligible(void *arg, const char *name, uint16_t type,
				const struct sl_dns_who *asker)
{
	(void)arg;
	check_name(name);
	if (name[0] == 's')
		return SL_DNS_ABSENT;
	return asker->known && type != LDNS_RR_TYPE_NULL ? SL_DNS_ASK : SL_DNS_REFUSE;
}

/* Some pass, as where nothing is refused. */
static enum sl_dns_say odd(void *arg, const char *shown, uint16_t type,
			   const struct sl_dns_who *asker)
{
	size_t len = strlen(shown);

	(void)arg;
	(void)asker;
	check(len && len < SL_DNS_ODD);
	for (size_t i = 0; i < len; i++)
		check(shown[i] > ' ' && shown[i] < 127);
	return type == LDNS_RR_TYPE_TXT ? SL_DNS_ASK : SL_DNS_REFUSE;
}

static bool answer(void *arg, const char *name, const struct sl_addr *addr,
		   const struct sl_dns_who *asker)
{
	(void)arg;
	(void)asker;
	check_name(name);
	return !sl_reserved_addr(addr);
}

static int lease(void *arg, const char *name, const struct sl_addr *addr, uint32_t ttl_s,
		 const struct sl_dns_who *asker)
{
	(void)arg;
	(void)ttl_s;
	(void)asker;
	check_name(name);
	check(!sl_reserved_addr(addr) && leased_count < SL_DNS_ADDRESSES);
	leased[leased_count++] = *addr;
	return 0;
}

static int synthetic(void *arg, const char *name, int family, struct sl_addr *addr)
{
	(void)arg;
	/* An exhausted pool is an answer as well. */
	return sl_pool_address(pool, name, family, addr);
}

static bool reverse(void *arg, const struct sl_addr *addr, const struct sl_dns_who *asker,
		    char *name)
{
	(void)arg;
	(void)asker;
	if (!sl_addr_is_v4(addr))
		return false;
	memcpy(name, "reverse.test", sizeof("reverse.test"));
	return true;
}

static void asked(void *arg, const struct sl_dns_asked *told)
{
	(void)arg;
	check(sl_dns_outcome_name(told->outcome) && strlen(told->name) < 1024);
	check(told->addresses == leased_count);
}

static int open_socket(struct sockaddr_in *addr)
{
	socklen_t size = sizeof(*addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	check(fd >= 0 && !bind(fd, (struct sockaddr *)addr, size) &&
	      !getsockname(fd, (struct sockaddr *)addr, &size));
	return fd;
}

static void set_up(void)
{
	static const struct sl_dns_ops direct = { who,   eligible, odd,     answer,
						  lease, NULL,     reverse, asked };
	static const struct sl_dns_ops relay = { who,   eligible,  odd,     answer,
						 lease, synthetic, reverse, asked };
	struct sl_resolver_config config = { 0 };

	check(!sl_resolver_config_add(&config, "127.0.0.1:9", NULL) &&
	      !sl_resolver_new(&resolver, &config, NULL) && !sl_pool_new(&pool, 1, 1000));
	/* As if all exchanges were in use: what is not in the cache is not asked. */
	resolver->count = SL_RESOLVER_INFLIGHT;
	for (int i = 0; i < 2; i++) {
		const struct sl_dns_options options = { .ops = i ? &relay : &direct,
							.resolver = resolver };

		check(!sl_dns_new(&servers[i], &options, NULL));
	}
	source.fd = open_socket((struct sockaddr_in *)&source.asked);
	client = open_socket((struct sockaddr_in *)&source.client);
}

static void check_records(const ldns_rr_list *list)
{
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		struct sl_addr addr;
		bool found = false;

		if (!sl_record_addr(ldns_rr_list_rr(list, i), &addr))
			continue;
		for (size_t j = 0; j < leased_count; j++)
			found = found || !memcmp(&leased[j], &addr, sizeof(addr));
		check(found);
	}
}

/* There is an answer to all but what has no header, or is an answer itself. */
static void check_reply(const uint8_t *query, size_t size)
{
	uint8_t wire[65536];
	ssize_t n = recv(client, wire, sizeof(wire), 0);
	ldns_pkt *reply = NULL;

	if (size < SL_MESSAGE_HEAD || (query[2] & 0x80)) {
		check(n < 0);
		return;
	}
	check(n >= SL_MESSAGE_HEAD && n <= SL_DNS_UDP_SIZE);
	check(wire[0] == query[0] && wire[1] == query[1] && (wire[2] & 0x80));
	check(!sl_message_read(&reply, wire, (size_t)n, 4096));
	check_records(ldns_pkt_answer(reply));
	check(!ldns_pkt_arcount(reply) && !ldns_pkt_ad(reply));
	ldns_pkt_free(reply);
}

/* For both families: a relay asks for the other one as well. */
static void have_upstream_say(const uint8_t *query, size_t query_size, const uint8_t *data,
			      size_t size)
{
	struct sl_question question;
	uint8_t cased[SL_NAME_WIRE];
	ldns_pkt *message = NULL;
	uint16_t class;

	if (sl_question_read(query, query_size, &question, &class, cased) ||
	    sl_message_read(&message, data, size, SL_RESOLVER_RECORDS))
		return;
	(void)sl_message_ttl_s(message);
	ldns_pkt_free(message);
	sl_cache_put(resolver->cache, &question, data, size, 60, sl_monotonic_ms());
	if (question.type != LDNS_RR_TYPE_A && question.type != LDNS_RR_TYPE_AAAA)
		return;
	question.type ^= LDNS_RR_TYPE_A ^ LDNS_RR_TYPE_AAAA;
	sl_cache_put(resolver->cache, &question, data, size, 60, sl_monotonic_ms());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t query_size;

	if (!resolver)
		set_up();
	if (size < 2)
		return 0;
	query_size = (size_t)(data[0] << 8 | data[1]);
	data += 2;
	size -= 2;
	if (query_size > size)
		query_size = size;
	have_upstream_say(data, query_size, data + query_size, size - query_size);
	for (int i = 0; i < 2; i++) {
		leased_count = 0;
		sl_query_take(servers[i], NULL, &source, data, query_size);
		/* What is not in the cache waits for its turn, which does not come. */
		if (sl_dns_waiting(servers[i]))
			sl_query_limited(TAILQ_FIRST(&servers[i]->queries));
		check(!sl_dns_waiting(servers[i]));
		check_reply(data, query_size);
	}
	return 0;
}
