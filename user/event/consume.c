// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event/consume.h"

#include <bpf/bpf.h>

#include "base/clock.h"

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
		(void)sl_packets_sweep(consumer->set, packet_closed, consumer->stream);
	consumer->sweep_ms = sl_monotonic_ms() + SL_SWEEP_MS;
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
	if (sl_monotonic_ms() >= consumer->sweep_ms)
		sl_consume_packets(consumer);
	return 0;
}
