/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who stands between: the relay of this tree in a process of its own, and HAProxy. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "relay.h"
#include "relay/relay.h"
#include "world.h"

#define THREADS_MAX 16
#define READY_MS 10000
#define POLL_US 10000

struct instance {
	int listener;
	unsigned int threads, pipe_bytes;
	struct sl_addr addr;
	struct sl_relay_target target;
};

static void admit(void *arg, struct sl_relay_stream *stream, const struct sl_relay_ask *ask)
{
	const struct instance *instance = arg;

	(void)ask;
	sl_relay_dial(stream, &instance->target);
}

static void gone(void *arg, struct sl_relay_stream *stream)
{
	(void)arg;
	(void)stream;
}

static void ended(void *arg, struct sl_relay_stream *stream, const struct sl_relay_end *end)
{
	(void)arg;
	(void)stream;
	(void)end;
}

static const struct sl_relay_ops ops = { .admit = admit, .gone = gone, .ended = ended };

static void *loop(void *arg)
{
	struct instance *instance = arg;
	struct sl_relay_options options = { .ops = &ops,
					    .arg = instance,
					    .pipe_bytes = instance->pipe_bytes };
	struct sl_relay_listener listener = { .fd = instance->listener,
					      .kind = SL_RELAY_TRANSPARENT,
					      .netns = -1 };
	struct sl_relay *relay = NULL;

	if (sl_relay_new(&relay, &options, NULL) || sl_relay_listen(relay, &listener, NULL))
		_exit(1);
	for (;;)
		sl_relay_run(relay, -1);
	return NULL;
}

static int run_sluice(void *arg)
{
	struct instance *instance = arg;
	pthread_t thread;

	signal(SIGPIPE, SIG_IGN);
	for (unsigned int i = 1; i < instance->threads; i++)
		if (pthread_create(&thread, NULL, loop, instance))
			return 1;
	loop(instance);
	return 1;
}

int relay_sluice_start(struct relay_party *party, unsigned int threads, uint16_t to,
		       unsigned int pipe_bytes, struct sl_err *err)
{
	struct instance instance = { .threads = threads, .pipe_bytes = pipe_bytes };
	struct sl_child_spec spec = { .cpu = -1, .run = run_sluice, .arg = &instance };
	int ret = relay_listen(&party->listener, &party->port, err);

	if (ret)
		return ret;
	instance.listener = party->listener;
	instance.addr = (struct sl_addr){ { 0, 0, htonl(0xffff), htonl(SL_WORLD_ADDR) } };
	/* The child has its own copy of both, at the same address. */
	instance.target =
		(struct sl_relay_target){ .addresses = &instance.addr, .count = 1, .port = to };
	return sl_child_start(&party->child, &spec, err);
}

static int write_config(int fd, unsigned int threads, uint16_t port, uint16_t to)
{
	struct in_addr addr = { htonl(SL_WORLD_ADDR) };
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &addr, text, sizeof(text));
	return dprintf(fd,
		       "global\n  nbthread %u\n  maxconn 4096\n"
		       "defaults\n  mode tcp\n  option splice-auto\n  option splice-request\n"
		       "  option splice-response\n  timeout connect 10s\n  timeout client 1h\n"
		       "  timeout server 1h\n"
		       "listen relay\n  bind %s:%u backlog 4096\n  server one %s:%u\n",
		       threads, text, port, text, to) < 0
		       ? -EIO
		       : 0;
}

static int run_haproxy(void *arg)
{
	char path[64];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *(int *)arg);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("haproxy", "haproxy", "-db", "-f", path, NULL);
	return 127;
}

static int wait_ready(struct relay_party *party, struct sl_err *err)
{
	uint64_t until = sl_bench_now_ns() + READY_MS * 1000000ULL;
	int status, fd;

	do {
		fd = relay_connect(party->port, RELAY_ECHO);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
		if (!sl_child_wait(&party->child, POLL_US / 1000, &status))
			return -ENOENT;
	} while (sl_bench_now_ns() < until);
	return sl_err_set(err, ETIMEDOUT, "HAProxy did not begin to listen");
}

int relay_haproxy_start(struct relay_party *party, unsigned int threads, uint16_t to,
			struct sl_err *err)
{
	_cleanup_fd_ int config = memfd_create("haproxy.cfg", 0);
	_cleanup_fd_ int reserved = -1;
	struct sl_child_spec spec = { .cpu = -1, .run = run_haproxy, .arg = &config };
	int ret = relay_listen(&reserved, &party->port, err);

	if (ret)
		return ret;
	sl_cleanup_fd(&reserved);
	if (config < 0 || write_config(config, threads, party->port, to))
		return sl_err_sys(err, errno, "can't write HAProxy's configuration");
	ret = sl_child_start(&party->child, &spec, err) ?: wait_ready(party, err);
	if (ret == -ENOENT)
		party->port = 0;
	return ret;
}

void relay_party_stop(struct relay_party *party)
{
	sl_child_stop(&party->child);
	sl_cleanup_fd(&party->listener);
}
