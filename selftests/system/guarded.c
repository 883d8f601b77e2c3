/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/guarded.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "guard/guard.h"

#define ARGS_MAX 48
#define SINK_MS 5000

struct guarded guarded;
static enum sl_guard_mode load_mode;

/* --- receivers --- */

static socklen_t make_addr(struct sockaddr_storage *out, const char *addr, unsigned int port)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)port);
		return sizeof(*in);
	}
	cr_assert_eq(inet_pton(AF_INET6, addr, &in6->sin6_addr), 1, "%s", addr);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons((uint16_t)port);
	return sizeof(*in6);
}

/* Both families have it at the same place. */
static unsigned int port_of(const struct sockaddr_storage *addr)
{
	struct sockaddr_in in;

	memcpy(&in, addr, sizeof(in));
	return ntohs(in.sin_port);
}

static int local_of(int fd, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	return getsockname(fd, (struct sockaddr *)out, &len);
}

void sink_open(struct sink *sink, bool udp, const char *addr, unsigned int port)
{
	socklen_t len = make_addr(&sink->addr, addr, port);

	sink->udp = udp;
	sink->fd = socket(sink->addr.ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	cr_assert_geq(sink->fd, 0);
	cr_assert_eq(bind(sink->fd, (struct sockaddr *)&sink->addr, len), 0, "%s port %u: %s", addr,
		     port, strerror(errno));
	if (!udp) {
		setsockopt(sink->fd, IPPROTO_TCP, TCP_FASTOPEN, &(int){ 64 }, sizeof(int));
		cr_assert_eq(listen(sink->fd, 4096), 0);
	}
	cr_assert_eq(local_of(sink->fd, &sink->addr), 0);
	sink->port = port_of(&sink->addr);
	snprintf(sink->text, sizeof(sink->text),
		 sink->addr.ss_family == AF_INET ? "%s:%u" : "[%s]:%u", addr, sink->port);
}

static void sink_close(struct sink *sink)
{
	if (sink->port)
		close(sink->fd);
	*sink = (struct sink){ .fd = -1 };
}

/* The next arrival's source port. */
static unsigned int next_port(struct sink *sink)
{
	struct pollfd pfd = { .fd = sink->fd, .events = POLLIN };
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char byte;
	int fd;

	cr_assert_eq(poll(&pfd, 1, SINK_MS), 1, "the receiver at %s gets nothing", sink->text);
	if (sink->udp) {
		cr_assert_geq(recvfrom(sink->fd, &byte, 1, 0, (struct sockaddr *)&from, &len), 0);
	} else {
		fd = accept4(sink->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
		cr_assert_geq(fd, 0);
		close(fd);
	}
	return port_of(&from);
}

/* What the test itself sends marks the end of what came before. */
unsigned int sink_take(struct sink *sink)
{
	_cleanup_fd_ int fd = socket(sink->addr.ss_family,
				     (sink->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	struct sockaddr_storage local;
	unsigned int n = 0;

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&sink->addr, sizeof(sink->addr)), 0, "%s: %s",
		     sink->text, strerror(errno));
	if (sink->udp)
		cr_assert_eq(send(fd, "", 1, 0), 1);
	cr_assert_eq(local_of(fd, &local), 0);
	while (next_port(sink) != port_of(&local))
		n++;
	return n;
}

unsigned int guarded_leaks(void)
{
	unsigned int n = sink_take(&guarded.shut_v6);

	for (int i = 0; i < SHUT_MAX; i++)
		n += sink_take(&guarded.shut[i]) + sink_take(&guarded.shut_udp[i]);
	return n;
}

/* --- the policy --- */

void guarded_write(const char *text)
{
	_cleanup_fd_ int fd = -1;

	snprintf(guarded.policy, sizeof(guarded.policy), "%s/policy.yaml", world.scratch);
	fd = open(guarded.policy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void guarded_mode(enum sl_guard_mode mode)
{
	load_mode = mode;
}

void guarded_load(const char *text)
{
	struct sl_guard_options options = { .mode = load_mode, .deny_errno = guarded.deny_errno };
	struct sl_compiled *compiled = NULL;
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	__u32 id;

	guarded_write(text);
	cr_assert_eq(sl_policy_load_file(&policy, guarded.policy, &err), 0, "%s\n%s", err.text,
		     text);
	cr_assert_eq(sl_compiled_new(&compiled, policy, &err), 0, "%s", err.text);
	cr_assert_eq(sl_guard_load(world.set, world.sandbox, compiled, &options, &id, &err), 0,
		     "%s", err.text);
	sl_compiled_free(&compiled);
	sl_policy_free(&policy);
}

void guarded_load_more(const char *more)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 "version: 1\n"
		 "network_policies:\n"
		 "  open:\n"
		 "    endpoints:\n"
		 "      - { cidr: 127.0.0.1/32, port: %u, allow_reserved: true }\n"
		 "      - { cidr: 127.0.0.1/32, port: %u, transport: udp, allow_reserved: true }\n"
		 "      - { cidr: '::1/128', port: %u, allow_reserved: true }\n"
		 "    binaries: [{ path: %s }]\n"
		 "%s",
		 guarded.open.port, guarded.open_udp.port, guarded.open_v6.port, getenv("SL_LOAD"),
		 more);
	guarded_load(text);
}

/* --- the world --- */

static void own_network(void)
{
	_cleanup_fd_ int fd = -1, sysctl = -1;
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	cr_assert_eq(unshare(CLONE_NEWNET), 0, "%s", strerror(errno));
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	/* 1 client, 2 server, 4 and 0x200 without a cookie: the first SYN carries data. */
	sysctl = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	cr_assert_eq(write(sysctl, "519", 3), 3);
}

/* That what is denied fails is what programs here are to say; it stays out of the log. */
static void quiet(void)
{
	_cleanup_fd_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	cr_assert_eq(dup2(null, STDERR_FILENO), STDERR_FILENO);
}

void guarded_up(void)
{
	guarded_make(NULL);
}

void guarded_make(const struct sl_set_options *options)
{
	quiet();
	own_network();
	world_make(options, true);
	guarded_mode(SL_GUARD_ENFORCE);
	sink_open(&guarded.open, false, "127.0.0.1", 0);
	sink_open(&guarded.open_udp, true, "127.0.0.1", 0);
	sink_open(&guarded.open_v6, false, "::1", 0);
	sink_open(&guarded.shut[OTHER_PORT], false, "127.0.0.1", 0);
	sink_open(&guarded.shut[OTHER_ADDR], false, "127.0.0.2", guarded.open.port);
	sink_open(&guarded.shut_udp[OTHER_PORT], true, "127.0.0.1", 0);
	sink_open(&guarded.shut_udp[OTHER_ADDR], true, "127.0.0.2", guarded.open_udp.port);
	sink_open(&guarded.shut_v6, false, "::1", 0);
	guarded_load_more("");
}

void guarded_down(void)
{
	sink_close(&guarded.open);
	sink_close(&guarded.open_udp);
	sink_close(&guarded.open_v6);
	sink_close(&guarded.shut_v6);
	for (int i = 0; i < SHUT_MAX; i++) {
		sink_close(&guarded.shut[i]);
		sink_close(&guarded.shut_udp[i]);
	}
	world_down();
}

/* --- attempts --- */

static bool take_errno(const char *line, char out[32])
{
	return line && fact_text(line, "errno", out, 32);
}

const char *last_errno(const struct load *load, const char *what)
{
	static char text[32];

	snprintf(text, sizeof(text), "none");
	for (const char *line = NULL; (line = fact_next(load, line, what));)
		take_errno(line, text);
	return text;
}

const char *did_line(const struct load *load, const char *verb, unsigned int n)
{
	const char *line = NULL;
	char name[64];

	while ((line = fact_next(load, line, "did"))) {
		if (fact_text(line, "verb", name, sizeof(name)) && !strcmp(name, verb) && !n--)
			break;
	}
	return line;
}

const char *did_errno(const struct load *load, const char *verb, unsigned int n)
{
	static char texts[4][32];
	static unsigned int which;
	char *text = texts[which++ % 4];

	if (!take_errno(did_line(load, verb, n), text))
		snprintf(text, 32, "not done");
	return text;
}

void do_more(struct load *load, const char *fmt, ...)
{
	unsigned int done = load->text ? fact_count(load, "did") : 0;
	char line[256];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	cr_assert_lt(len, (int)sizeof(line) - 1);
	line[len++] = '\n';
	cr_assert_eq(write(load->in, line, (size_t)len), len);
	load_await(load, "did", done + 1);
}

/* Exit 77 skips the test; returns the errno of what was tried last. */
static const char *attempt(const char *words, const char *option, const struct sink *to,
			   const char *what)
{
	struct load load;
	const char *result;

	load_start(&load, INSIDE, "%s%s%s", words, option, to->text);
	if (load_end(&load) == 77)
		cr_skip_test("the kernel lacks it: %s", load.text);
	result = last_errno(&load, what);
	load_free(&load);
	return result;
}

static void expect(const char *words, const char *option, const char *what, struct sink *open,
		   struct sink *shut, unsigned int count)
{
	const char *result = attempt(words, option, open, what);

	cr_expect_str_eq(result, "0", "%s to %s, which is allowed: %s", words, open->text, result);
	cr_expect_eq(sink_take(open), count, "%s to %s has not arrived", words, open->text);
	result = attempt(words, option, shut, what);
	cr_expect_str_eq(result, "EACCES", "%s to %s, which is denied: %s", words, shut->text,
			 result);
	cr_expect_eq(sink_take(shut), 0, "%s to %s has arrived", words, shut->text);
}

void guarded_expect(bool udp, unsigned int count, const char *words)
{
	for (int i = 0; i < SHUT_MAX; i++)
		expect(words, " --server ", "sock", udp ? &guarded.open_udp : &guarded.open,
		       udp ? &guarded.shut_udp[i] : &guarded.shut[i], count);
}

void guarded_expect_v6(const char *words)
{
	expect(words, " --server ", "sock", &guarded.open_v6, &guarded.shut_v6, 1);
}

void guarded_expect_do(bool udp, const char *before, const char *verb)
{
	char words[256];

	snprintf(words, sizeof(words), "do %s %s=", before, verb);
	for (int i = 0; i < SHUT_MAX; i++)
		expect(words, "", "did", udp ? &guarded.open_udp : &guarded.open,
		       udp ? &guarded.shut_udp[i] : &guarded.shut[i], 1);
}

int guarded_run(struct load *load, const char *const words[])
{
	const char *argv[ARGS_MAX] = { "sluice", "run", "-q", "--policy", guarded.policy };
	unsigned int n = 5;
	struct cli cli;

	for (; *words; words++) {
		cr_assert_lt(n, ARGS_MAX - 1);
		argv[n++] = *words;
	}
	argv[n] = NULL;
	cli_start(&cli, NULL, argv);
	cli_end(&cli);
	*load = (struct load){ .in = -1, .out = -1, .text = strdup(cli.out) };
	cr_assert_not_null(load->text);
	load->len = strlen(load->text);
	cr_expect(cli.status != 125, "sluice run failed: %s", cli.err);
	cli_free(&cli);
	return cli.status;
}
