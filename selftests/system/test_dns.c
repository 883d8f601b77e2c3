/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Policy DNS between clients and DNS servers as people have them, in a network namespace of
 * loopback alone: clients ask 127.0.0.1, policy DNS asks 127.0.0.2.
 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli.h"
#include "dns/server.h"

#define BIG 100 /* addresses: more than fit a datagram */

static struct {
	char dir[64];
	struct cli upstream;
	struct sl_resolver *resolver;
	struct sl_dns *dns;
	pthread_t thread;
	int stop;
	atomic_uint asked, leased;
} here;

/* --- policy DNS --- */

static void who(void *arg, const struct sl_dns_source *source, struct sl_dns_who *out)
{
	(void)arg;
	(void)source;
	out->known = false;
}

static enum sl_dns_say eligible(void *arg, const char *name, uint16_t type,
				const struct sl_dns_who *asker)
{
	size_t len = strlen(name);

	(void)arg;
	(void)type;
	(void)asker;
	if (len <= 5 || strcmp(name + len - 5, ".test") != 0 || !strcmp(name, "denied.test"))
		return SL_DNS_REFUSE;
	return SL_DNS_ASK;
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
	(void)arg;
	(void)name;
	(void)addr;
	(void)ttl_s;
	(void)asker;
	here.leased++;
	return 0;
}

static void asked(void *arg, const struct sl_dns_asked *told)
{
	(void)arg;
	(void)told;
	here.asked++;
}

static const struct sl_dns_ops ops = { who, eligible, NULL, answer, lease, NULL, NULL, asked };

static void *serve(void *arg)
{
	struct pollfd fds[] = { { .fd = sl_dns_fd(here.dns), .events = POLLIN },
				{ .fd = here.stop, .events = POLLIN } };

	(void)arg;
	while (!fds[1].revents && (poll(fds, 2, -1) >= 0 || errno == EINTR))
		sl_dns_run(here.dns);
	return NULL;
}

static void listen_on(int type)
{
	const struct sockaddr_in addr = { .sin_family = AF_INET,
					  .sin_port = htons(53),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	if (type == SOCK_STREAM)
		cr_assert_eq(listen(fd, 16), 0);
	cr_assert_eq(sl_dns_listen(here.dns, fd, NULL), 0);
}

static void start_dns(void)
{
	struct sl_dns_options options = { .ops = &ops };
	struct sl_resolver_config config = { .mix_case = true };
	struct sl_err err = { 0 };

	cr_assert_eq(sl_resolver_config_add(&config, "127.0.0.2", &err), 0, "%s", err.text);
	cr_assert_eq(sl_resolver_new(&here.resolver, &config, &err), 0, "%s", err.text);
	options.resolver = here.resolver;
	cr_assert_eq(sl_dns_new(&here.dns, &options, &err), 0, "%s", err.text);
	listen_on(SOCK_DGRAM);
	listen_on(SOCK_STREAM);
	here.stop = eventfd(0, EFD_CLOEXEC);
	cr_assert_geq(here.stop, 0);
	cr_assert_eq(pthread_create(&here.thread, NULL, serve, NULL), 0);
}

/* --- the world --- */

static void write_file(const char *name, const char *text)
{
	char path[128];
	_cleanup_file_ FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", here.dir, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
}

static void mount_over(const char *name, const char *target)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", here.dir, name);
	cr_assert_eq(mount(path, target, NULL, MS_BIND, NULL), 0, "%s: %s", target,
		     strerror(errno));
}

static void up(void)
{
	_cleanup_fd_ int fd = -1;
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	snprintf(here.dir, sizeof(here.dir), "/tmp/sl-dns-XXXXXX");
	cr_assert_not_null(mkdtemp(here.dir));
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0, "%s", strerror(errno));
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	write_file("resolv.conf", "nameserver 127.0.0.1\noptions timeout:20 attempts:1\n");
	write_file("nsswitch.conf", "hosts: dns\n");
	mount_over("resolv.conf", "/etc/resolv.conf");
	mount_over("nsswitch.conf", "/etc/nsswitch.conf");
}

static void down(void)
{
	char command[128];

	if (here.dns) {
		cr_expect_eq(eventfd_write(here.stop, 1), 0);
		pthread_join(here.thread, NULL);
		close(here.stop);
	}
	sl_dns_free(&here.dns);
	sl_resolver_free(&here.resolver);
	if (here.upstream.pid) {
		kill(here.upstream.pid, SIGKILL);
		cli_end(&here.upstream);
		cli_free(&here.upstream);
	}
	snprintf(command, sizeof(command), "rm -r %s", here.dir);
	cr_expect_eq(system(command), 0);
}

TestSuite(dns, .init = up, .fini = down, .timeout = 120);

/* Starts a server that logs to stdout, and waits until it says that it is ready. */
static void start_upstream(const char *command, const char *ready)
{
	cli_start(&here.upstream, NULL, (const char *const[]){ "/bin/sh", "-c", command, NULL });
	cli_await(&here.upstream, ready);
}

/* What a client prints has these texts, and has not the other; the last one is NULL. */
static void expect(const char *command, const char *const texts[], const char * not )
{
	struct cli cli;

	cli_start(&cli, NULL, (const char *const[]){ "/bin/sh", "-c", command, NULL });
	cli_end(&cli);
	for (size_t i = 0; texts[i]; i++)
		cr_expect_not_null(strstr(cli.out, texts[i]), "%s: no '%s' in: %s%s", command,
				   texts[i], cli.out, cli.err);
	cr_expect_null(strstr(cli.out, not ), "%s: '%s' in: %s", command, not, cli.out);
	cli_free(&cli);
}

#define TEXTS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Scenario D3 with the clients that people have; each takes a while to start. */
static void expect_clients_served(void)
{
	start_dns();
	expect("getent ahosts alias.test", TEXTS("2001:db8::1", "192.0.2.1"), "10.0.0.5");
	expect("dig a.test alias.test AAAA gone.test mixed.test a.test HTTPS",
	       TEXTS("IN\tA\t192.0.2.1\n", "IN\tCNAME\ta.test.\n", "IN\tAAAA\t2001:db8::1\n",
		     "status: NXDOMAIN", "IN\tA\t203.0.113.5\n", "EDE: 17 (Filtered)"),
	       "10.0.0.5");
	expect("dig +tcp +short a.test a.test ANY", TEXTS("192.0.2.1\n", "RFC8482"), "10.0.0.5");
	/* Cut between upstream and here, and cut again at 512 bytes; then over TCP. */
	expect("dig +noedns +ignore big.test; dig +noedns +short big.test | wc -l",
	       TEXTS("flags: qr tc rd ra", "\n64\n"), "198.51.100");
	cr_expect_gt(sl_resolver_count(here.resolver, SL_RESOLVER_COUNT_TCP), 0);

	here.leased = 0;
	expect("dig denied.test; getent ahosts denied.test || echo none",
	       TEXTS("status: REFUSED", "EDE: 15 (Blocked): (sluice: no rule names this host)",
		     "none\n"),
	       "192.0.2.9");
	cr_expect_eq(here.leased, 0);
	cr_expect_gt(here.asked, 12);
}

Test(dns, clients_with_dnsmasq_behind)
{
	char command[512], hosts[64 + BIG * 32];
	size_t len = (size_t)snprintf(hosts, sizeof(hosts),
				      "192.0.2.1 a.test\n2001:db8::1 a.test\n"
				      "10.0.0.5 mixed.test\n203.0.113.5 mixed.test\n"
				      "192.0.2.9 denied.test\n");

	for (int i = 0; i < BIG; i++)
		len += (size_t)snprintf(hosts + len, sizeof(hosts) - len,
					"198.51.100.%d big.test\n", i + 1);
	write_file("hosts", hosts);
	snprintf(
		command, sizeof(command),
		"exec dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts "
		"--addn-hosts=%s/hosts --cname=alias.test,a.test --local=/test/ --pid-file= "
		"--user=root --group=root --listen-address=127.0.0.2 --bind-interfaces --log-facility=- 2>&1",
		here.dir);
	start_upstream(command, "names\n");
	expect_clients_served();
}

Test(dns, clients_with_unbound_behind)
{
	char command[256], text[1024 + BIG * 40];
	size_t len;

	if (access("/usr/sbin/unbound", X_OK)) {
		fputs("no unbound here, whose Debian package starts a service\n", stderr);
		cr_skip("no unbound");
	}
	len = (size_t)snprintf(text, sizeof(text),
			       "test. 60 IN SOA ns.test. root.test. 1 3600 600 86400 30\n"
			       "test. 60 IN NS ns.test.\nns.test. 60 IN A 127.0.0.2\n"
			       "a.test. 60 IN A 192.0.2.1\na.test. 60 IN AAAA 2001:db8::1\n"
			       "alias.test. 60 IN CNAME a.test.\n"
			       "mixed.test. 60 IN A 10.0.0.5\nmixed.test. 60 IN A 203.0.113.5\n"
			       "denied.test. 60 IN A 192.0.2.9\n");
	for (int i = 0; i < BIG; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"big.test. 60 IN A 198.51.100.%d\n", i + 1);
	write_file("zone", text);
	snprintf(
		text, sizeof(text),
		"server:\n interface: 127.0.0.2\n do-daemonize: no\n use-syslog: no\n logfile: \"\"\n"
		" chroot: \"\"\n username: \"\"\n pidfile: \"\"\n module-config: \"iterator\"\n"
		" directory: \"%s\"\n verbosity: 1\n local-zone: \"test.\" nodefault\n"
		" access-control: 127.0.0.0/8 allow\n do-ip6: no\n"
		"auth-zone:\n name: \"test\"\n zonefile: \"%s/zone\"\n for-downstream: no\n"
		" for-upstream: yes\n fallback-enabled: no\nremote-control:\n control-enable: no\n",
		here.dir, here.dir);
	write_file("unbound.conf", text);
	snprintf(command, sizeof(command), "exec unbound -d -c %s/unbound.conf 2>&1", here.dir);
	start_upstream(command, "start of service");
	expect_clients_served();
}
