/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dns_fake.h"
#include "dns_world.h"

#define PATIENCE_MS 30000

static void who(void *arg, const struct sl_dns_source *source, struct sl_dns_who *out)
{
	struct dns_world *world = arg;

	(void)source;
	*out = world->who;
}

static enum sl_dns_say eligible(void *arg, const char *name, uint16_t type,
				const struct sl_dns_who *asker)
{
	struct dns_world *world = arg;
	const char *host = world->host ?: "test";
	size_t len = strlen(name), host_len = strlen(host);

	(void)type;
	(void)asker;
	if (!strcmp(name, SEARCHED))
		return SL_DNS_ABSENT;
	return len >= host_len && !strcmp(name + len - host_len, host) ? SL_DNS_ASK : SL_DNS_REFUSE;
}

static enum sl_dns_say odd(void *arg, const char *shown, uint16_t type,
			   const struct sl_dns_who *asker)
{
	struct dns_world *world = arg;

	(void)type;
	(void)asker;
	snprintf(world->odd, sizeof(world->odd), "%s", shown);
	return world->odd_passes ? SL_DNS_ASK : SL_DNS_REFUSE;
}

static bool answer(void *arg, const char *name, const struct sl_addr *addr,
		   const struct sl_dns_who *asker)
{
	(void)arg;
	(void)name;
	(void)asker;
	return !sl_private_addr(addr) && !sl_reserved_addr(addr);
}

static int lease(void *arg, const char *name, const struct sl_addr *addr, uint32_t ttl_s,
		 const struct sl_dns_who *asker)
{
	struct dns_world *world = arg;
	struct dns_lease *new = &world->leases[world->lease_count];

	(void)asker;
	if (world->lease_error)
		return world->lease_error;
	cr_assert_lt(world->lease_count, DNS_LEASES_MAX);
	snprintf(new->name, sizeof(new->name), "%s", name);
	new->addr = *addr;
	new->ttl_s = ttl_s;
	world->lease_count++;
	return 0;
}

static int synthetic(void *arg, const char *name, int family, struct sl_addr *addr)
{
	struct dns_world *world = arg;

	return sl_pool_address(world->pool, name, family, addr);
}

static bool reverse(void *arg, const struct sl_addr *addr, const struct sl_dns_who *asker,
		    char *name)
{
	struct dns_world *world = arg;

	(void)asker;
	for (size_t i = 0; i < world->lease_count; i++) {
		if (memcmp(&world->leases[i].addr, addr, sizeof(*addr)) != 0)
			continue;
		memcpy(name, world->leases[i].name, strlen(world->leases[i].name) + 1);
		return true;
	}
	return false;
}

static void asked(void *arg, const struct sl_dns_asked *told)
{
	struct dns_world *world = arg;

	world->asked++;
	world->last = *told;
	snprintf(world->last_name, sizeof(world->last_name), "%s", told->name);
	world->last.name = world->last_name;
	world->last.source = NULL;
	world->last.who = NULL;
	world->last.upstream = NULL;
}

void dns_world_start(struct dns_world *world, unsigned int upstreams)
{
	memset(world, 0, sizeof(*world));
	world->ops = (struct sl_dns_ops){ who, eligible, odd, answer, lease, NULL, reverse, asked };
	world->fake_count = upstreams;
	world->config.count = upstreams;
	world->config.timeout_ms = 8000;
	for (unsigned int i = 0; i < upstreams; i++) {
		dns_fake_open(&world->fakes[i]);
		memcpy(&world->config.upstreams[i], &world->fakes[i].addr,
		       sizeof(world->fakes[i].addr));
	}
}

void dns_world_stop(struct dns_world *world)
{
	sl_dns_free(&world->dns);
	sl_resolver_free(&world->resolver);
	sl_pool_free(&world->pool);
	for (unsigned int i = 0; i < world->fake_count; i++)
		dns_fake_close(&world->fakes[i]);
}

void dns_world_resolver(struct dns_world *world)
{
	struct sl_err err = { 0 };

	for (unsigned int i = 0; i < world->fake_count; i++) {
		if (world->fakes[i].way == DNS_DEAD)
			dns_fake_close(&world->fakes[i]);
	}
	cr_assert_eq(sl_resolver_new(&world->resolver, &world->config, &err), 0, "%s", err.text);
}

static void listen_on(struct dns_world *world, int family, int type, struct sockaddr_storage *out)
{
	struct sockaddr_storage addr = { .ss_family = (sa_family_t)family };
	socklen_t size = sizeof(addr);
	struct sl_err err = { 0 };
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	/* To all addresses: answers have to come from the one that was asked. */
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr,
			  family == AF_INET ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6)),
		     0);
	if (type == SOCK_STREAM)
		cr_assert_eq(listen(fd, 128), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&addr, &size), 0);
	if (family == AF_INET)
		((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(0x7f000035); /* 127.0.0.53 */
	else
		((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
	*out = addr;
	cr_assert_eq(sl_dns_listen(world->dns, fd, &err), 0, "%s", err.text);
}

void dns_world_listen(struct dns_world *world)
{
	struct sl_dns_options options = { .ops = &world->ops, .arg = world };
	struct sl_err err = { 0 };

	if (world->pool)
		world->ops.synthetic = synthetic;
	dns_world_resolver(world);
	options.resolver = world->resolver;
	cr_assert_eq(sl_dns_new(&world->dns, &options, &err), 0, "%s", err.text);
	listen_on(world, AF_INET, SOCK_DGRAM, &world->udp[0]);
	listen_on(world, AF_INET6, SOCK_DGRAM, &world->udp[1]);
	listen_on(world, AF_INET, SOCK_STREAM, &world->tcp[0]);
	listen_on(world, AF_INET6, SOCK_STREAM, &world->tcp[1]);
}

static void turn(struct dns_world *world, int extra)
{
	struct pollfd fds[3 + 3 * SL_RESOLVER_UPSTREAMS];
	nfds_t count = 0;

	fds[count++] = (struct pollfd){ .fd = extra, .events = POLLIN };
	if (world->dns)
		fds[count++] = (struct pollfd){ .fd = sl_dns_fd(world->dns), .events = POLLIN };
	else if (world->resolver)
		fds[count++] =
			(struct pollfd){ .fd = sl_resolver_fd(world->resolver), .events = POLLIN };
	for (unsigned int i = 0; i < world->fake_count; i++)
		count += dns_fake_poll(&world->fakes[i], fds + count);
	poll(fds, count, 100);
	for (unsigned int i = 0; i < world->fake_count; i++)
		dns_fake_serve(&world->fakes[i]);
	if (world->dns)
		sl_dns_run(world->dns);
	else if (world->resolver)
		sl_resolver_run(world->resolver);
}

void dns_world_until(struct dns_world *world, bool (*done)(void *arg), void *arg)
{
	int64_t end_ms = sl_monotonic_ms() + PATIENCE_MS;

	while (!done(arg)) {
		cr_assert_lt(sl_monotonic_ms(), end_ms, "nothing came of it");
		turn(world, -1);
	}
}

static bool readable(void *arg)
{
	struct pollfd fd = { .fd = *(int *)arg, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

void dns_world_until_readable(struct dns_world *world, int fd)
{
	int64_t end_ms = sl_monotonic_ms() + PATIENCE_MS;

	while (!readable(&fd)) {
		cr_assert_lt(sl_monotonic_ms(), end_ms, "nothing came of it");
		turn(world, fd);
	}
}

int dns_world_client(struct dns_world *world, bool tcp, bool v6)
{
	const struct sockaddr_storage *to = tcp ? &world->tcp[v6] : &world->udp[v6];
	int fd = socket(to->ss_family, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (const struct sockaddr *)to,
			     v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)),
		     0, "%s", strerror(errno));
	return fd;
}

size_t dns_world_query(const struct dns_ask *ask, uint16_t id, uint8_t *wire, size_t size)
{
	ldns_rr_class class = ask->class ? (ldns_rr_class)ask->class : LDNS_RR_CLASS_IN;
	ldns_pkt *query = ldns_pkt_query_new(ldns_dname_new_frm_str(ask->name),
					     (ldns_rr_type)ask->type, class, LDNS_RD);
	uint8_t *data = NULL;
	size_t len = 0;

	ldns_pkt_set_id(query, id);
	if (ask->edns_size)
		ldns_pkt_set_edns_udp_size(query, ask->edns_size);
	cr_assert_eq(ldns_pkt2wire(&data, query, &len), LDNS_STATUS_OK);
	cr_assert_leq(len, size);
	memcpy(wire, data, len);
	free(data);
	ldns_pkt_free(query);
	return len;
}

void dns_world_send(int fd, bool tcp, const uint8_t *data, size_t size)
{
	const uint8_t head[] = { (uint8_t)(size >> 8), (uint8_t)size };

	if (tcp)
		cr_assert_eq(send(fd, head, 2, MSG_NOSIGNAL), 2);
	cr_assert_eq(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void receive_all(struct dns_world *world, int fd, uint8_t *data, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n;

		dns_world_until_readable(world, fd);
		n = recv(fd, data + got, size - got, 0);
		cr_assert_gt(n, 0, "the server has closed the connection");
		got += (size_t)n;
	}
}

ldns_pkt *dns_world_receive(struct dns_world *world, int fd, bool tcp)
{
	static uint8_t data[65536];
	ldns_pkt *reply = NULL;
	size_t size;

	if (tcp) {
		receive_all(world, fd, data, 2);
		size = (size_t)(data[0] << 8 | data[1]);
		receive_all(world, fd, data, size);
	} else {
		ssize_t n;

		dns_world_until_readable(world, fd);
		n = recv(fd, data, sizeof(data), 0);
		cr_assert_gt(n, 0);
		size = (size_t)n;
	}
	cr_assert_eq(ldns_wire2pkt(&reply, data, size), LDNS_STATUS_OK);
	ldns_pkt_set_size(reply, size);
	return reply;
}

ldns_pkt *dns_world_ask(struct dns_world *world, const struct dns_ask *ask)
{
	uint8_t wire[512];
	ldns_pkt *reply;
	size_t size;
	int fd;

	if (!world->dns)
		dns_world_listen(world);
	fd = dns_world_client(world, ask->tcp, ask->v6);
	size = dns_world_query(ask, 0x1234, wire, sizeof(wire));
	dns_world_send(fd, ask->tcp, wire, size);
	reply = dns_world_receive(world, fd, ask->tcp);
	cr_assert_eq(ldns_pkt_id(reply), 0x1234);
	cr_assert(ldns_pkt_qr(reply));
	close(fd);
	return reply;
}

const char *dns_world_text(const ldns_rr_list *list)
{
	static char text[8192];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++) {
		char *line = ldns_rr2str(ldns_rr_list_rr(list, i));

		line[strcspn(line, "\n")] = '\0';
		for (char *tab = line; (tab = strchr(tab, '\t'));)
			*tab = ' ';
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "; " : "",
					line);
		free(line);
	}
	return text;
}

void dns_world_four(struct dns_world *world)
{
	dns_world_start(world, 1);
	world->config.timeout_ms = 9000;
	world->fakes[0].zone[0] = "four.test. 60 IN A 192.0.2.4";
	dns_world_listen(world);
}

void dns_world_expect_four(struct dns_world *world)
{
	ldns_pkt *reply = dns_world_ask(world, &(struct dns_ask){ .name = "four.test",
								  .type = LDNS_RR_TYPE_A });

	cr_expect(strstr(dns_world_text(ldns_pkt_answer(reply)), " IN A 192.0.2.4"));
	ldns_pkt_free(reply);
}
