/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "consumer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "bench.h"
#include "kernel/ring.h"

#define STOP_MS 5000

static void on_event(const struct sl_event *event, void *arg)
{
	struct sl_consumer_stats *stats = arg;

	if (event->kind < SL_EVENT_KIND_MAX)
		stats->by_kind[event->kind]++;
	__atomic_store_n(&stats->read, stats->read + 1, __ATOMIC_RELEASE);
}

static int consume(void *arg)
{
	struct sl_consumer *consumer = arg;
	struct sl_ring *ring = NULL;
	struct sl_err err = { 0 };
	struct pollfd fds[2] = { 0 };
	int timeout, rc;

	close(consumer->stop[1]);
	rc = sl_ring_new(&ring, consumer->set, on_event, consumer->stats, &err);
	if (rc) {
		sl_log_err(SL_LOG_ERROR, &err);
		return 1;
	}
	if (write(consumer->ready[1], "", 1) != 1)
		return 1;
	fds[0] = (struct pollfd){ .fd = sl_ring_fd(ring), .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = consumer->stop[0], .events = POLLIN };
	while (!fds[1].revents) {
		timeout = sl_ring_arm(ring);
		poll(fds, ARRAY_SIZE(fds), timeout);
		consumer->stats->wakeups++;
		if (sl_ring_drain(ring) < 0)
			return 1;
	}
	sl_ring_free(&ring);
	return 0;
}

static void close_pair(int pair[2])
{
	sl_cleanup_fd(&pair[0]);
	sl_cleanup_fd(&pair[1]);
}

int sl_consumer_start(struct sl_consumer *consumer, struct sl_world *world, int cpu,
		      struct sl_err *err)
{
	struct sl_child_spec spec = {
		.cgroup = world->plain, .cpu = cpu, .run = consume, .arg = consumer
	};
	void *memory;
	char byte;
	int rc;

	consumer->set = world->set;
	if (!consumer->stats) {
		if (sl_shared_new(&memory, sizeof(*consumer->stats)))
			return sl_err_sys(err, ENOMEM, "consumer");
		consumer->stats = memory;
	}
	*consumer->stats = (struct sl_consumer_stats){ 0 };
	if (pipe2(consumer->stop, O_CLOEXEC) || pipe2(consumer->ready, O_CLOEXEC))
		return sl_err_sys(err, errno, "pipe");
	rc = sl_child_start(&consumer->child, &spec, err);
	if (rc)
		return rc;
	sl_cleanup_fd(&consumer->ready[1]);
	if (read(consumer->ready[0], &byte, 1) != 1)
		return sl_err_set(err, EIO, "the consumer of events did not start");
	sl_cleanup_fd(&consumer->ready[0]);
	sl_cleanup_fd(&consumer->stop[0]);
	return 0;
}

int sl_consumer_settle(struct sl_consumer *consumer, int timeout_ms, long long *missing)
{
	uint64_t deadline = sl_bench_now_ns() + (uint64_t)timeout_ms * 1000000ULL;
	struct sl_counters counters;
	long long rest;
	int rc;

	for (;;) {
		rc = sl_counters_total(consumer->set, &counters);
		if (rc)
			return rc;
		rest = (long long)(counters.n[SL_COUNTER_EVENT_SUBMITTED] -
				   __atomic_load_n(&consumer->stats->read, __ATOMIC_ACQUIRE));
		if (!rest || sl_bench_now_ns() >= deadline)
			break;
		poll(NULL, 0, 1);
	}
	if (missing)
		*missing = rest;
	return rest ? -ETIMEDOUT : 0;
}

void sl_consumer_stop(struct sl_consumer *consumer)
{
	/* A byte, not the end of the file: later children hold the pipe as well. */
	if (consumer->child.pid && write(consumer->stop[1], "", 1) != 1)
		sl_log_debug("consumer is gone");
	if (consumer->child.pid && sl_child_wait(&consumer->child, STOP_MS, &(int){ 0 }))
		sl_child_stop(&consumer->child);
	close_pair(consumer->stop);
	close_pair(consumer->ready);
}

void sl_consumer_clear(struct sl_consumer *consumer)
{
	sl_consumer_stop(consumer);
	sl_shared_free(consumer->stats, sizeof(*consumer->stats));
	consumer->stats = NULL;
}
