/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who stands between: policy DNS of this tree, as it is, and forwarders people use. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dns.h"
#include "dns/lease.h"
#include "dns/server.h"
#include "world.h"

#define READY_MS 10000
#define POLL_MS 10
#define SWEEP_MS 1000
/* Fresh names of a benchmark are more than a sandbox may have. */
#define LEASES (1 << 20)
#define TEXT_MAX 64

struct instance {
	int fd;
	struct sl_resolver_config config;
	struct sl_leases *leases;
};

/* --- policy DNS: all may ask for everything, from one process --- */

static const struct sl_lease_client asker = { .tgid = 1, .start_ns = 1 };

static void who(void *arg, const struct sl_dns_source *source, struct sl_dns_who *who)
{
	(void)arg;
	(void)source;
	/* Not known: its limit of queries in flight is no part of what is measured. */
	who->cookie = 1;
}

static enum sl_dns_say eligible(void *arg, const char *name, uint16_t type,
				const struct sl_dns_who *who)
{
	(void)arg, (void)name, (void)type, (void)who;
	return SL_DNS_ASK;
}

static bool answer(void *arg, const char *name, const struct sl_addr *addr,
		   const struct sl_dns_who *who)
{
	(void)arg, (void)name, (void)addr, (void)who;
	return true;
}

static int lease(void *arg, const char *name, const struct sl_addr *addr, uint32_t ttl_s,
		 const struct sl_dns_who *who)
{
	struct instance *instance = arg;

	(void)who;
	return sl_leases_add(instance->leases, name, addr, ttl_s, &asker, sl_monotonic_ms());
}

static const struct sl_dns_ops dns_ops = {
	.who = who,
	.eligible = eligible,
	.answer = answer,
	.lease = lease,
};

static bool client_alive(void *arg, const struct sl_lease_client *client)
{
	(void)arg, (void)client;
	return false;
}

static int addresses_in_use(void *arg, void (*use)(void *ctx, const struct sl_addr *addr),
			    void *ctx)
{
	(void)arg, (void)use, (void)ctx;
	return 0;
}

static int changed(void *arg, const struct sl_addr *addr, const char *const *names, size_t count)
{
	(void)arg, (void)addr, (void)names, (void)count;
	return 0;
}

static const struct sl_leases_ops lease_ops = {
	.client_alive = client_alive,
	.addresses_in_use = addresses_in_use,
	.changed = changed,
};

static int run_sluice(void *arg)
{
	struct instance *instance = arg;
	const struct sl_leases_options leases = { .ops = &lease_ops, .max = LEASES };
	struct sl_dns_options options = { .ops = &dns_ops, .arg = instance };
	struct sl_resolver *resolver = NULL;
	struct sl_dns *dns = NULL;
	struct pollfd ready = { .events = POLLIN };
	int64_t swept_ms = 0, now_ms;

	if (sl_leases_new(&instance->leases, &leases) ||
	    sl_resolver_new(&resolver, &instance->config, NULL))
		return 1;
	options.resolver = resolver;
	if (sl_dns_new(&dns, &options, NULL) || sl_dns_listen(dns, instance->fd, NULL))
		return 1;
	ready.fd = sl_dns_fd(dns);
	for (;;) {
		if (poll(&ready, 1, SWEEP_MS) > 0)
			sl_dns_run(dns);
		now_ms = sl_monotonic_ms();
		if (now_ms - swept_ms < SWEEP_MS)
			continue;
		sl_leases_sweep(instance->leases, now_ms);
		swept_ms = now_ms;
	}
}

static const char *addr_text(char text[TEXT_MAX])
{
	const struct in_addr addr = { htonl(SL_WORLD_ADDR) };

	return inet_ntop(AF_INET, &addr, text, TEXT_MAX);
}

int dns_sluice_start(struct dns_party *party, uint16_t upstream, struct sl_err *err)
{
	struct instance instance = { .fd = -1 };
	struct sl_child_spec spec = { .cpu = -1, .run = run_sluice, .arg = &instance };
	char addr[TEXT_MAX], text[2 * TEXT_MAX];
	int ret = dns_bind(&instance.fd, &party->port, err);

	snprintf(text, sizeof(text), "%s:%u", addr_text(addr), upstream);
	ret = ret ?: sl_resolver_config_add(&instance.config, text, err);
	ret = ret ?: sl_child_start(&party->child, &spec, err);
	sl_cleanup_fd(&instance.fd);
	return ret;
}

/* --- forwarders --- */

static int exec_quietly(char *const argv[])
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execvp(argv[0], argv);
	return 127;
}

static bool answers(uint16_t port)
{
	uint32_t latency_ns;
	struct dns_load load = { .sockets = 1,
				 .inflight = 1,
				 .kind = DNS_CACHED,
				 .latency_ns = &latency_ns,
				 .room = 1 };

	return !dns_load_run(&load, port, NULL) && load.answered && !load.wrong;
}

static int await(struct dns_party *party, const char *name, struct sl_err *err)
{
	uint64_t until_ns = sl_bench_now_ns() + READY_MS * 1000000ULL;
	int status;

	while (!answers(party->port)) {
		if (!sl_child_wait(&party->child, POLL_MS, &status)) {
			party->port = 0;
			return -ENOENT;
		}
		if (sl_bench_now_ns() > until_ns)
			return sl_err_set(err, ETIMEDOUT, "%s did not begin to answer", name);
	}
	return 0;
}

/* A port that was free just now. */
static int pick_port(struct dns_party *party, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;

	return dns_bind(&fd, &party->port, err);
}

static int run_dnsmasq(void *arg)
{
	return exec_quietly(arg);
}

int dns_dnsmasq_start(struct dns_party *party, uint16_t upstream, struct sl_err *err)
{
	char addr[TEXT_MAX], listen[2 * TEXT_MAX], server[2 * TEXT_MAX], port[TEXT_MAX];
	char *const argv[] = { "dnsmasq",     "--keep-in-foreground", "-C",          "/dev/null",
			       "--user=root", "--pid-file=",          "--no-resolv", "--no-hosts",
			       listen,        "--bind-interfaces",    server,        port,
			       NULL };
	struct sl_child_spec spec = { .cpu = -1, .run = run_dnsmasq, .arg = (void *)argv };
	int ret = pick_port(party, err);

	addr_text(addr);
	snprintf(listen, sizeof(listen), "--listen-address=%s", addr);
	snprintf(server, sizeof(server), "--server=%s#%u", addr, upstream);
	snprintf(port, sizeof(port), "--port=%u", party->port);
	ret = ret ?: sl_child_start(&party->child, &spec, err);
	return ret ?: await(party, argv[0], err);
}

static int run_unbound(void *arg)
{
	char path[TEXT_MAX];
	char *const argv[] = { "unbound", "-d", "-p", "-c", path, NULL };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *(int *)arg);
	return exec_quietly(argv);
}

int dns_unbound_start(struct dns_party *party, uint16_t upstream, struct sl_err *err)
{
	_cleanup_fd_ int config = memfd_create("unbound.conf", 0);
	struct sl_child_spec spec = { .cpu = -1, .run = run_unbound, .arg = &config };
	char addr[TEXT_MAX];
	int ret = pick_port(party, err);

	if (ret)
		return ret;
	addr_text(addr);
	if (config < 0 ||
	    dprintf(config,
		    "server:\n  username: \"\"\n  chroot: \"\"\n  directory: \"/\"\n"
		    "  use-syslog: no\n  num-threads: 1\n  module-config: \"iterator\"\n"
		    "  interface: %s@%u\n  access-control: 0.0.0.0/0 allow\n  do-ip6: no\n"
		    "remote-control:\n  control-enable: no\n"
		    "forward-zone:\n  name: \".\"\n  forward-addr: %s@%u\n",
		    addr, party->port, addr, upstream) < 0)
		return sl_err_sys(err, errno, "can't write unbound's configuration");
	ret = sl_child_start(&party->child, &spec, err);
	return ret ?: await(party, "unbound", err);
}
