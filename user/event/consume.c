// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event/consume.h"

#include <bpf/bpf.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

static int packet_closed(const struct sl_sock *sock, void *arg)
{
	sl_event_stream_closed(arg, sock);
	return 0;
}

/* The sweep walks all descriptors of the host: only when there is something to find. */
void sl_consume_packets(struct sl_consumer *consumer)
{
	int fd = sl_set_map_fd(consumer->set, SL_MAP_PACKETS);
	__u64 cookie;

	if (!bpf_map_get_next_key(fd, NULL, &cookie))
		(void)sl_packets_sweep(consumer->set, consumer->sandbox, packet_closed,
				       consumer->stream);
	consumer->sweep_ms = sl_monotonic_ms() + SL_SWEEP_MS;
}

/* What was read but not reported yet; what was not read yet is read first. */
static int consumer_refs(void *ctx, sl_ref_fn fn, void *arg)
{
	struct sl_consumer *consumer = ctx;
	int rc = sl_ring_drain(consumer->ring);

	return rc < 0 ? rc : sl_event_stream_refs(consumer->stream, fn, arg);
}

/* One that can't be done now is tried again at the next look. */
static void consume_rows(struct sl_consumer *consumer)
{
	const struct sl_sweep_roots roots = { .each = consumer_refs,
					      .ctx = consumer,
					      .ring = consumer->ring };
	struct sl_swept swept;
	int rc;

	if (!sl_sweep_due(consumer->set, &consumer->clock))
		return;
	rc = sl_sweep(consumer->set, &roots, &swept);
	if (rc) {
		sl_log_debug("rows were not swept: %s", strerror(-rc));
		return;
	}
	sl_sweep_done(&consumer->clock);
	sl_log_debug("swept %u executables, %u lineages", swept.exes, swept.lineages);
}

int sl_consume(struct sl_consumer *consumer)
{
	unsigned long long by_kind[SL_EVENT_KIND_MAX];
	unsigned long long lost;
	int rc = sl_ring_drain(consumer->ring);

	if (rc < 0)
		return rc;
	lost = sl_ring_lost(consumer->ring, by_kind);
	if (lost)
		sl_event_stream_lost(consumer->stream, lost, by_kind);
	if (!sl_event_stream_holds(consumer->stream))
		sl_ring_reported(consumer->ring);
	if (sl_monotonic_ms() >= consumer->sweep_ms) {
		/* Of a set with readers for single sandboxes somebody else takes care. */
		if (!consumer->sandbox)
			consume_rows(consumer);
		sl_consume_packets(consumer);
	}
	return 0;
}
