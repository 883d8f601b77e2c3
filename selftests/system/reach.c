/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/reach.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/expect.h"
#include "system/world.h"

#define ARGS_MAX 48
#define QUERIES REACH_DIR "/queries"
#define DNSMASQ_PID REACH_DIR "/dnsmasq.pid"

static struct load server;
static struct cli dns;

static const char network[] =
	"set -e\n"
	"ip link set lo up\n"
	"for a in 192.0.2.10 192.0.2.11 192.0.2.53 10.0.0.5 169.254.169.254; do\n"
	"	ip addr add $a/32 dev lo\n"
	"done\n"
	"ip addr add 2001:db8::10/128 dev lo nodad\n";

/*
 * No daemon, and of no other group: so it ends with the test, even with one that is killed
 * (PR_SET_PDEATHSIG is forgotten when ids change).
 */
static const char dns_server[] =
	"exec dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --group=root --bind-interfaces"
	" --listen-address=192.0.2.53 --no-resolv --no-hosts --addn-hosts=" REACH_DIR "/names"
	" --local=/test/ --local-ttl=1 --log-queries --log-facility=" QUERIES
	" --pid-file=" DNSMASQ_PID;

static const char names[] =
	"192.0.2.10 one.reach.test a.wild.test mixed.wild.test app.search.test\n"
	"192.0.2.10 left.reach.test right.reach.test\n"
	"192.0.2.11 two.reach.test\n"
	"2001:db8::10 six.reach.test\n"
	"192.0.2.10 own.reach.test\n"
	"10.0.0.5 private.wild.test mixed.wild.test p.bare.test\n"
	"169.254.169.254 meta.reach.test\n"
	"127.0.0.1 loop.reach.test\n";

static const char server_code[] =
	"import http.server as h, os, socket, socketserver, sys, threading\n"
	"class Http(h.BaseHTTPRequestHandler):\n"
	"    protocol_version = 'HTTP/1.1'\n"
	"    def log_message(self, *args): pass\n"
	"    def do_GET(self):\n"
	"        at = self.connection.getsockname()[0]\n"
	"        n = self.path[1:].split('?')[0]\n"
	"        body = b'x' * int(n) if n.isdigit() else b'hello from %s\\n' % at.encode()\n"
	"        self.send_response(200)\n"
	"        self.send_header('Content-Length', len(body))\n"
	"        self.end_headers()\n"
	"        self.wfile.write(body)\n"
	"class Count(socketserver.BaseRequestHandler):\n"
	"    def handle(self):\n"
	"        n = 0\n"
	"        while d := self.request.recv(65536): n += len(d)\n"
	"        self.request.sendall(b'%d\\n' % n)\n"
	"class Echo(socketserver.BaseRequestHandler):\n"
	"    def handle(self): self.request[1].sendto(self.request[0], self.client_address)\n"
	"class Tcp(socketserver.ThreadingTCPServer):\n"
	"    allow_reuse_address = daemon_threads = True\n"
	"    request_queue_size = 512\n"
	"class Tcp6(Tcp): address_family = socket.AF_INET6\n"
	"for s in [Tcp((a, 8080), Http) for a in ('192.0.2.10', '192.0.2.11')] + [\n"
	"    Tcp6(('2001:db8::10', 8080), Http), Tcp(('192.0.2.10', 7000), Count),\n"
	"    socketserver.UDPServer(('192.0.2.10', 5353), Echo)]:\n"
	"    threading.Thread(target=s.serve_forever, daemon=True).start()\n"
	"print('what=listening', flush=True)\n"
	"sys.stdin.read()\n";

void reach_file(const char *name, const char *text, mode_t mode)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), REACH_DIR "/%s", name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

char *reach_read(const char *path)
{
	_cleanup_file_ FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t cap = 0;

	cr_assert_not_null(file, "%s: %s", path, strerror(errno));
	/* No byte of it is 0. */
	if (getdelim(&text, &cap, '\0', file) < 0 && text)
		*text = '\0';
	text = text ?: strdup("");
	cr_assert_not_null(text);
	return text;
}

static void over(const char *name, const char *path, const char *text)
{
	char own[PATH_MAX];

	reach_file(name, text, 0644);
	snprintf(own, sizeof(own), REACH_DIR "/%s", name);
	cr_assert_eq(mount(own, path, NULL, MS_BIND, NULL), 0, "%s: %s", path, strerror(errno));
}

static void need(const char *program)
{
	if (access(program, X_OK)) {
		fprintf(stderr, "no %s here\n", program);
		cr_skip_test("no %s", program);
	}
}

/* It writes that once it has its sockets. */
static bool dns_listens(void *arg)
{
	struct stat st;

	(void)arg;
	return !stat(DNSMASQ_PID, &st) && st.st_size;
}

pid_t reach_dns_pid(void)
{
	return dns.pid;
}

void reach_up(void)
{
	char *argv[] = { "/usr/bin/python3", "-c", (char *)server_code, NULL };
	struct cli cli;

	need("/usr/bin/python3");
	need("/usr/sbin/dnsmasq");
	cr_assert_eq(unshare(CLONE_NEWNET | CLONE_NEWNS), 0, "%s", strerror(errno));
	cr_assert_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	cr_assert_eq(mount("reach", REACH_DIR, "tmpfs", 0, "mode=0755"), 0, "%s", strerror(errno));
	over("hosts", "/etc/hosts",
	     "127.0.0.1 localhost here.reach.test\n192.0.2.11 hosted.reach.test\n");
	over("resolv.conf", "/etc/resolv.conf",
	     "nameserver 192.0.2.53\nsearch search.test\noptions ndots:5\n");
	reach_file("names", names, 0644);
	cli_start(&cli, NULL, (const char *const[]){ "/bin/sh", "-c", network, NULL });
	cli_end(&cli);
	cr_assert_eq(cli.status, 0, "%s%s", cli.out, cli.err);
	cli_free(&cli);
	cli_start(&dns, NULL, (const char *const[]){ "/bin/sh", "-c", dns_server, NULL });
	cr_assert(eventually(dns_listens, NULL), "no DNS: %s", dns.err);
	load_exec(&server, OUTSIDE, argv);
	load_await(&server, "listening", 1);
}

void reach_down(void)
{
	if (!server.pid)
		return;
	load_end(&server);
	load_free(&server);
	cr_expect_eq(kill(reach_dns_pid(), SIGTERM), 0);
	cli_end(&dns);
	cli_free(&dns);
}

void reach_policy(const char *entries)
{
	char text[8192];

	cr_assert_lt(snprintf(text, sizeof(text), "version: 1\nnetwork_policies:\n%s", entries),
		     (int)sizeof(text));
	reach_file("policy.yaml", text, 0644);
}

void reach_start(struct cli *cli, enum reach_net net, const char *const options[],
		 const char *script)
{
	const char *argv[ARGS_MAX] = { "sluice",   "run",
				       "--policy", REACH_POLICY,
				       "--events", REACH_EVENTS,
				       "--net",    net == REACH_RELAY ? "relay" : "host" };
	unsigned int n = 8;

	for (; options && *options; options++) {
		cr_assert_lt(n, ARGS_MAX - 5);
		argv[n++] = *options;
	}
	argv[n++] = "--";
	argv[n++] = "/bin/sh";
	argv[n++] = "-c";
	argv[n++] = script;
	cli_start(cli, NULL, argv);
}

void reach_run(struct cli *cli, enum reach_net net, const char *script)
{
	reach_start(cli, net, NULL, script);
	cli_end(cli);
	cr_assert_neq(cli->status, 125, "%s", cli->err);
}

bool reach_asked(const char *name)
{
	_cleanup_free_ char *queries = reach_read(QUERIES);
	char wanted[300];

	snprintf(wanted, sizeof(wanted), "] %s from ", name);
	return strstr(queries, wanted) != NULL;
}

struct json_object *reach_event(const char *kind, const char *path, const char *text)
{
	_cleanup_free_ char *events = reach_read(REACH_EVENTS);
	const char *rest = events;
	struct json_object *event;

	while ((event = json_line(&rest))) {
		if (!strcmp(json_text(event, "event"), kind) &&
		    !strcmp(json_text(event, path), text))
			return event;
		json_object_put(event);
	}
	return NULL;
}

void reach_expect(const struct cli *cli, const char *line)
{
	char wanted[512];

	snprintf(wanted, sizeof(wanted), "%s\n", line);
	cr_expect_not_null(strstr(cli->out, wanted), "no '%s' in: %s%s", line, cli->out, cli->err);
}
