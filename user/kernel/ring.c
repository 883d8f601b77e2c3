// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "kernel/set_private.h"

/* How long a consumer that finds nothing stays awake: QUIET_ROUNDS * POLL_MS. */
#define POLL_MS 5
#define QUIET_ROUNDS 10

struct sl_ring {
	struct ring_buffer *buffer;
	struct sl_ring_ctl *ctl;
	struct sl_set *set;
	sl_ring_fn fn;
	void *arg;
	int lock_fd;
	unsigned int quiet; /* rounds in which nothing came */
	unsigned long long malformed;
	unsigned long long lost[SL_EVENT_KIND_MAX]; /* reported so far */
};

static int on_record(void *arg, void *data, size_t size)
{
	struct sl_ring *ring = arg;
	const struct sl_event *event = data;

	if (size < sizeof(*event) || event->schema != SL_SCHEMA || event->size > size) {
		ring->malformed++;
		return 0;
	}
	ring->fn(event, ring->arg);
	return 0;
}

/* The directory of maps stands for the ring, whose pin itself can't be locked. */
static int ring_lock(struct sl_ring *ring, const struct sl_set *set, struct sl_err *err)
{
	char path[PATH_MAX];

	if (sl_set_path(path, set->dir, SL_SET_MAPS, NULL))
		return sl_err_sys(err, ENAMETOOLONG, "'%s'", set->dir);
	ring->lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ring->lock_fd < 0)
		return sl_err_sys(err, errno, "can't open '%s'", path);
	if (!flock(ring->lock_fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno != EWOULDBLOCK)
		return sl_err_sys(err, errno, "can't lock '%s'", path);
	sl_err_set(err, EBUSY, "another process reads the events of '%s'", set->dir);
	return sl_err_hint(err, "events have one reader: end the other 'sluice event watch'");
}

int sl_ring_new(struct sl_ring **out, struct sl_set *set, sl_ring_fn fn, void *arg,
		struct sl_err *err)
{
	_cleanup_(sl_ring_free) struct sl_ring *ring = calloc(1, sizeof(*ring));
	struct sl_counters total;
	int rc;

	if (!ring)
		return sl_err_sys(err, ENOMEM, "can't read events");
	*ring = (struct sl_ring){ .set = set, .fn = fn, .arg = arg, .lock_fd = -1 };
	ring->ctl = MAP_FAILED;
	rc = ring_lock(ring, set, err);
	if (rc)
		return rc;
	ring->ctl = mmap(NULL, sizeof(*ring->ctl), PROT_READ | PROT_WRITE, MAP_SHARED,
			 set->maps[SL_MAP_RING_CTL], 0);
	if (ring->ctl == MAP_FAILED)
		return sl_err_sys(err, errno, "can't map the ring's control page");
	ring->buffer = ring_buffer__new(set->maps[SL_MAP_RING], on_record, ring, NULL);
	if (!ring->buffer)
		return sl_err_sys(err, errno, "can't open the ring buffer");
	/* What was lost before there was a reader is nobody's loss. */
	rc = sl_counters_total(set, &total);
	if (rc)
		return sl_err_sys(err, -rc, "can't read the counters");
	for (int kind = 0; kind < SL_EVENT_KIND_MAX; kind++)
		ring->lost[kind] = total.event_lost[kind];
	__atomic_store_n(&ring->ctl->woken, 0, __ATOMIC_SEQ_CST);
	*out = TAKE_PTR(ring);
	return 0;
}

void sl_ring_free(struct sl_ring **ring)
{
	struct sl_ring *r = ring ? *ring : NULL;

	if (!r)
		return;
	if (r->ctl != MAP_FAILED) {
		__atomic_store_n(&r->ctl->idle, 0, __ATOMIC_SEQ_CST);
		munmap(r->ctl, sizeof(*r->ctl));
	}
	ring_buffer__free(r->buffer);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	free(r);
	*ring = NULL;
}

int sl_ring_fd(const struct sl_ring *ring)
{
	return ring_buffer__epoll_fd(ring->buffer);
}

int sl_ring_drain(struct sl_ring *ring)
{
	int n;

	__atomic_store_n(&ring->ctl->idle, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->ctl->woken, 0, __ATOMIC_SEQ_CST);
	n = ring_buffer__consume(ring->buffer);
	if (n > 0)
		ring->quiet = 0;
	return n;
}

int sl_ring_arm(struct sl_ring *ring)
{
	if (ring->quiet < QUIET_ROUNDS) {
		ring->quiet++;
		return POLL_MS;
	}
	/* Say "asleep", then look once more: who comes later sees the flag and wakes us. */
	__atomic_store_n(&ring->ctl->idle, 1, __ATOMIC_SEQ_CST);
	if (ring_buffer__consume(ring->buffer) > 0) {
		ring->quiet = 0;
		return 0;
	}
	return -1;
}

unsigned long long sl_ring_lost(struct sl_ring *ring, unsigned long long by_kind[SL_EVENT_KIND_MAX])
{
	unsigned long long sum = 0;
	struct sl_counters total;

	memset(by_kind, 0, sizeof(*by_kind) * SL_EVENT_KIND_MAX);
	/* The flag spares the per-CPU sums when nothing was lost, which is nearly always. */
	if (!__atomic_exchange_n(&ring->ctl->resync, 0, __ATOMIC_SEQ_CST) ||
	    sl_counters_total(ring->set, &total))
		return 0;
	for (int kind = 0; kind < SL_EVENT_KIND_MAX; kind++) {
		by_kind[kind] = total.event_lost[kind] - ring->lost[kind];
		ring->lost[kind] = total.event_lost[kind];
		sum += by_kind[kind];
	}
	return sum;
}
