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
#include "base/clock.h"
#include "kernel/bpffs.h"
#include "kernel/set_private.h"

/* How long a consumer that finds nothing stays awake: QUIET_ROUNDS * POLL_MS. */
#define POLL_MS 5
#define QUIET_ROUNDS 10

struct sl_ring {
	struct ring_buffer *buffer;
	void *ctls; /* map `ring_ctl`, whole: its elements are no pages */
	size_t ctls_len;
	struct sl_ring_ctl *ctl; /* of this ring */
	unsigned int sandbox;    /* whose own it is; 0: the set's */
	struct sl_set *set;
	sl_ring_fn fn;
	void *arg;
	int lock_fd;
	__u64 drain_ns;     /* when the latest drain began */
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

int sl_ring_lock(int *out, const struct sl_set *set, unsigned int sandbox)
{
	_cleanup_fd_ int fd = -1;
	char path[PATH_MAX], name[16];
	int rc;

	snprintf(name, sizeof(name), "%u", sandbox);
	rc = sandbox ? sl_set_path(path, set->dir, SL_SET_SANDBOXES, name)
		     : sl_set_path(path, set->dir, SL_SET_MAPS, NULL);
	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*out = TAKE_FD(fd);
	return 0;
}

/* What a ring of either kind starts with: a reader's lock, and its control words. */
static int ring_begin(struct sl_ring *ring, struct sl_err *err)
{
	struct sl_set *set = ring->set;
	int rc = sl_ring_lock(&ring->lock_fd, set, ring->sandbox);

	if (rc == -EBUSY) {
		sl_err_set(err, EBUSY, "another process reads the events of '%s'", set->dir);
		return sl_err_hint(err, "events have one reader: end the other 'sluice event "
					"watch'");
	}
	if (rc)
		return sl_err_sys(err, -rc, "can't lock the events of '%s'", set->dir);
	ring->ctls_len = set->max_sandboxes * sizeof(*ring->ctl);
	ring->ctls = mmap(NULL, ring->ctls_len, PROT_READ | PROT_WRITE, MAP_SHARED,
			  set->maps[SL_MAP_RING_CTL], 0);
	if (ring->ctls == MAP_FAILED)
		return sl_err_sys(err, errno, "can't map the rings' control words");
	ring->ctl = (struct sl_ring_ctl *)ring->ctls + ring->sandbox;
	/* What was lost before there was a reader is nobody's loss. */
	for (int kind = 0; kind < SL_EVENT_KIND_MAX; kind++)
		ring->lost[kind] = __atomic_load_n(&ring->ctl->lost[kind], __ATOMIC_RELAXED);
	__atomic_store_n(&ring->ctl->woken, 0, __ATOMIC_SEQ_CST);
	return 0;
}

static struct sl_ring *ring_alloc(struct sl_set *set, unsigned int sandbox, sl_ring_fn fn,
				  void *arg)
{
	struct sl_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	*ring = (struct sl_ring){
		.set = set, .sandbox = sandbox, .fn = fn, .arg = arg, .lock_fd = -1
	};
	ring->ctls = MAP_FAILED;
	return ring;
}

static int ring_open(struct sl_ring *ring, int fd, struct sl_err *err)
{
	ring->buffer = ring_buffer__new(fd, on_record, ring, NULL);
	return ring->buffer ? 0 : sl_err_sys(err, errno, "can't open the ring buffer");
}

int sl_ring_new(struct sl_ring **out, struct sl_set *set, sl_ring_fn fn, void *arg,
		struct sl_err *err)
{
	_cleanup_(sl_ring_free) struct sl_ring *ring = ring_alloc(set, 0, fn, arg);
	int rc;

	if (!ring)
		return sl_err_sys(err, ENOMEM, "can't read events");
	rc = ring_begin(ring, err);
	rc = rc ?: ring_open(ring, set->maps[SL_MAP_RING], err);
	if (rc)
		return rc;
	*out = TAKE_PTR(ring);
	return 0;
}

/* From here on the sandbox's events come here: the switch is the last that is written. */
static void own_begin(struct sl_ring *ring, const struct sl_ring_own *own)
{
	ring->ctl->events = own->events;
	ring->ctl->wake_bytes = own->bytes / 4;
	ring->ctl->idle = ring->ctl->resync = ring->ctl->busy = 0;
	ring->ctl->seen_ns = 0;
	__atomic_store_n(&ring->ctl->own, 1, __ATOMIC_SEQ_CST);
}

int sl_ring_new_own(struct sl_ring **out, struct sl_set *set, const struct sl_ring_own *own,
		    sl_ring_fn fn, void *arg, struct sl_err *err)
{
	_cleanup_(sl_ring_free) struct sl_ring *ring = NULL;
	_cleanup_fd_ int fd = -1;
	__u32 key = own->sandbox;
	int rc;

	if (!key || key >= set->max_sandboxes)
		return sl_err_set(err, EINVAL, "there is no sandbox %u", key);
	ring = ring_alloc(set, key, fn, arg);
	if (!ring)
		return sl_err_sys(err, ENOMEM, "can't read events");
	rc = ring_begin(ring, err);
	if (rc)
		return rc;
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "own_ring", 0, 0, own->bytes, NULL);
	if (fd < 0)
		return sl_err_sys(err, errno, "can't make a ring buffer of %u bytes", own->bytes);
	rc = ring_open(ring, fd, err);
	if (rc)
		return rc;
	if (bpf_map_update_elem(set->maps[SL_MAP_RINGS], &key, &fd, BPF_ANY))
		return sl_err_sys(err, errno, "can't give sandbox %u a ring buffer", key);
	own_begin(ring, own);
	*out = TAKE_PTR(ring);
	return 0;
}

void sl_ring_forget_own(const struct sl_set *set, unsigned int sandbox)
{
	static const struct sl_ring_ctl none;
	__u32 key = sandbox;

	bpf_map_update_elem(set->maps[SL_MAP_RING_CTL], &key, &none, BPF_EXIST);
	/* -ENOENT: it had none, and nothing was waited for. */
	bpf_map_delete_elem(set->maps[SL_MAP_RINGS], &key);
}

/* Once the sandbox is detached its number may be another's, and its directory is gone. */
static bool is_there(const struct sl_ring *ring)
{
	char path[PATH_MAX], name[16];

	snprintf(name, sizeof(name), "%u", ring->sandbox);
	return !sl_set_path(path, ring->set->dir, SL_SET_SANDBOXES, name) &&
	       sl_bpffs_is(ring->lock_fd, path);
}

void sl_ring_free(struct sl_ring **ring)
{
	struct sl_ring *r = ring ? *ring : NULL;

	if (!r)
		return;
	if (r->ctls != MAP_FAILED) {
		__atomic_store_n(&r->ctl->idle, 0, __ATOMIC_SEQ_CST);
		munmap(r->ctls, r->ctls_len);
	}
	if (r->sandbox && r->buffer && is_there(r))
		sl_ring_forget_own(r->set, r->sandbox);
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
	__atomic_store_n(&ring->ctl->busy, 1, __ATOMIC_SEQ_CST);
	ring->drain_ns = sl_boottime_ns();
	n = ring_buffer__consume(ring->buffer);
	if (n > 0)
		ring->quiet = 0;
	return n;
}

int sl_ring_arm(struct sl_ring *ring)
{
	__u32 was_busy = ring->ctl->busy;

	if (ring->quiet < QUIET_ROUNDS) {
		ring->quiet++;
		return POLL_MS;
	}
	/* Say "asleep", then look once more: who comes later sees the flag and wakes us. */
	__atomic_store_n(&ring->ctl->idle, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->ctl->busy, 1, __ATOMIC_SEQ_CST);
	if (ring_buffer__consume(ring->buffer) > 0) {
		ring->quiet = 0;
		return 0;
	}
	__atomic_store_n(&ring->ctl->busy, was_busy, __ATOMIC_SEQ_CST);
	return -1;
}

void sl_ring_reported(struct sl_ring *ring)
{
	__atomic_store_n(&ring->ctl->seen_ns, ring->drain_ns, __ATOMIC_SEQ_CST);
	__atomic_store_n(&ring->ctl->busy, 0, __ATOMIC_SEQ_CST);
}

unsigned long long sl_ring_lost(struct sl_ring *ring, unsigned long long by_kind[SL_EVENT_KIND_MAX])
{
	unsigned long long sum = 0, now;

	memset(by_kind, 0, sizeof(*by_kind) * SL_EVENT_KIND_MAX);
	/* The flag spares the reading when nothing was lost, which is nearly always. */
	if (!__atomic_exchange_n(&ring->ctl->resync, 0, __ATOMIC_SEQ_CST))
		return 0;
	for (int kind = 0; kind < SL_EVENT_KIND_MAX; kind++) {
		now = __atomic_load_n(&ring->ctl->lost[kind], __ATOMIC_RELAXED);
		by_kind[kind] = now - ring->lost[kind];
		ring->lost[kind] = now;
		sum += by_kind[kind];
	}
	return sum;
}

static bool has_reader(const struct sl_set *set, unsigned int sandbox)
{
	_cleanup_fd_ int fd = -1;

	return sl_ring_lock(&fd, set, sandbox) == -EBUSY;
}

/* A producer clears `idle` before its event is there: while it is set there is nothing. */
static bool is_behind(const struct sl_ring_ctl *ctl, __u64 time_ns)
{
	bool idle = __atomic_load_n(&ctl->idle, __ATOMIC_SEQ_CST);

	return !(idle && !__atomic_load_n(&ctl->busy, __ATOMIC_SEQ_CST)) &&
	       __atomic_load_n(&ctl->seen_ns, __ATOMIC_SEQ_CST) < time_ns;
}

int sl_rings_behind(const struct sl_set *set, const struct sl_ring *mine, __u64 time_ns)
{
	size_t len = set->max_sandboxes * sizeof(struct sl_ring_ctl);
	const struct sl_ring_ctl *ctl;
	int behind = 0;

	ctl = mmap(NULL, len, PROT_READ, MAP_SHARED, set->maps[SL_MAP_RING_CTL], 0);
	if (ctl == MAP_FAILED)
		return -errno;
	for (unsigned int id = 0; !behind && id < set->max_sandboxes; id++)
		behind = (!mine || mine->sandbox != id) && (!id || ctl[id].own) &&
			 is_behind(&ctl[id], time_ns) && has_reader(set, id);
	munmap((void *)ctl, len);
	return behind;
}
