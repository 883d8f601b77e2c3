/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a set: sockets by cookie, by descriptor, and all of them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <sluice/event.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/htab.h"
#include "kernel/adopt.h"
#include "kernel/set_private.h"

/* --- records by cookie --- */

static size_t slots_bytes(const struct sl_set *set)
{
	return sizeof(struct sl_sock) * set->sock_slots;
}

const struct sl_sock *sl_set_slots(struct sl_set *set)
{
	void *map;

	if (!set->slots) {
		map = mmap(NULL, slots_bytes(set), PROT_READ, MAP_SHARED, set->maps[SL_MAP_SOCKS],
			   0);
		if (map == MAP_FAILED)
			return NULL;
		set->slots = map;
	}
	return set->slots;
}

void sl_set_slots_unmap(struct sl_set *set)
{
	if (set->slots)
		munmap((void *)set->slots, slots_bytes(set));
	set->slots = NULL;
}

/* Copies a slot while one and the same socket has it; false when it is empty or busy. */
static bool slot_copy(const struct sl_sock *slot, struct sl_sock *out)
{
	__u64 cookie = __atomic_load_n(&slot->cookie, __ATOMIC_ACQUIRE);

	if (!cookie || cookie == SL_SOCK_BUSY)
		return false;
	memcpy(out, slot, sizeof(*out));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return out->cookie == cookie && __atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) == cookie;
}

int sl_sock_by_cookie(struct sl_set *set, __u64 cookie, struct sl_sock *out)
{
	const struct sl_sock *slots = sl_set_slots(set);

	if (!slots)
		return -errno;
	for (unsigned int way = 0; way < SL_SOCK_WAYS; way++) {
		const struct sl_sock *slot = &slots[sl_sock_slot(cookie, way, set->sock_slots)];

		if (slot_copy(slot, out) && out->cookie == cookie)
			return 0;
	}
	return sl_map_lookup(set->maps[SL_MAP_SOCKS_OVER], &cookie, out);
}

struct each_sock {
	sl_sock_fn fn;
	void *arg;
};

static int sock_row(const void *cookie, void *value, void *arg)
{
	const struct each_sock *each = arg;

	(void)cookie;
	return each->fn(value, each->arg);
}

/* Those that found their slots taken. */
static int over_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	struct each_sock each = { fn, arg };

	return sl_map_each(set->maps[SL_MAP_SOCKS_OVER], sock_row, &each);
}

int sl_sock_rows_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	const struct sl_sock *slots = sl_set_slots(set);
	struct sl_sock sock;
	int rc = 0;

	if (!slots)
		return -errno;
	for (unsigned int i = 0; !rc && i < set->sock_slots; i++)
		if (slot_copy(&slots[i], &sock))
			rc = fn(&sock, arg);
	return rc ? rc : over_each(set, fn, arg);
}

int sl_sock_by_fd(struct sl_set *set, int fd, struct sl_sock *out)
{
	socklen_t len = sizeof(__u64);
	__u64 cookie;
	int rc = sl_map_lookup(set->maps[SL_MAP_ADOPTED], &fd, out);

	/* A listener's storage is what its children start with: its record may be a row. */
	if (rc != -ENOENT && (rc || !(out->flags & SL_SOCK_LISTENING)))
		return rc;
	if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len))
		return -errno;
	if (!rc && sl_sock_by_cookie(set, cookie, out))
		return sl_map_lookup(set->maps[SL_MAP_ADOPTED], &fd, out);
	return rc ? sl_sock_by_cookie(set, cookie, out) : 0;
}

int sl_sock_by_datagram(struct sl_set *set, __u64 netns_cookie, unsigned int protocol,
			__be16 port_be, struct sl_sock *out)
{
	struct sl_datagram key = {
		.netns_cookie = netns_cookie,
		.protocol = protocol,
		.port_be = port_be,
	};
	__u64 cookie;
	int rc = sl_map_lookup(set->maps[SL_MAP_DATAGRAMS], &key, &cookie);

	return rc ? rc : sl_sock_by_cookie(set, cookie, out);
}

int sl_sock_more_read(const struct sl_set *set, const struct sl_sock *sock,
		      struct sl_sock_more *out)
{
	__u64 cookie = sock->cookie;
	int rc = sock->flags & SL_SOCK_MORE
			 ? sl_map_lookup(set->maps[SL_MAP_SOCK_MORE], &cookie, out)
			 : -ENOENT;

	if (rc)
		*out = (struct sl_sock_more){ 0 };
	return rc;
}

/* --- live sockets --- */

struct holder_record {
	struct sl_sock sock;
	struct sl_iter_sock now;
};

int sl_holders_each(struct sl_set *set, sl_holder_fn fn, void *arg)
{
	const bool by_fd = sl_adopt_by_fd(set);
	_cleanup_fd_ int fd = sl_iter_open(set, by_fd ? "dump_socks_found" : "dump_socks");
	struct holder_record record;
	int rc;

	if (fd < 0)
		return fd;
	for (;;) {
		rc = sl_iter_read(fd, &record, sizeof(record));
		if (rc <= 0)
			return rc;
		if (record.now.maybe_adopted && sl_adopt_complete(set, &record.sock, &record.now))
			continue;
		record.sock.bytes_sent = record.now.bytes_sent;
		record.sock.bytes_acked = record.now.bytes_acked;
		record.sock.bytes_received = record.now.bytes_received;
		record.sock.state = record.now.state;
		rc = fn(&record.sock, &record.now, arg);
		if (rc)
			return rc;
	}
}

struct once {
	struct sl_htab *seen;
	sl_sock_fn fn;
	void *arg;
};

static int once_each(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	struct once *once = arg;
	bool added;

	(void)holder;
	if (!sl_htab_add(once->seen, &sock->cookie, &added) && !added)
		return -ENOMEM;
	return added ? once->fn(sock, once->arg) : 0;
}

/*
 * Live rows that no descriptor was found for: on their way in a message (SCM_RIGHTS), or
 * made after the scan.
 */
static int unheld(const struct sl_sock *sock, void *arg)
{
	struct once *once = arg;

	if (sock->flags & SL_SOCK_RELEASED || sl_htab_get(once->seen, &sock->cookie))
		return 0;
	return once->fn(sock, once->arg);
}

int sl_socks_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	_cleanup_(sl_htab_free) struct sl_htab *seen = NULL;
	struct once once = { .fn = fn, .arg = arg };
	int rc = sl_htab_new(&seen, sizeof(__u64), 1);

	if (rc)
		return rc;
	once.seen = seen;
	rc = sl_holders_each(set, once_each, &once);
	return rc ? rc : sl_sock_rows_each(set, unheld, &once);
}

/* --- AF_PACKET sockets that have gone --- */

static int note_cookie(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	(void)holder;
	if (sock->family != AF_PACKET)
		return 0;
	return sl_htab_add(arg, &sock->cookie, NULL) ? 0 : -ENOMEM;
}

/* By one reader: that of the sandbox's own ring, else that of the set's. */
static bool is_told_to(const struct sl_set *set, const struct sl_sock *sock, unsigned int reader)
{
	__u32 sandbox = sock->owner.sandbox;
	struct sl_ring_ctl ctl;

	if (bpf_map_lookup_elem(set->maps[SL_MAP_RING_CTL], &sandbox, &ctl) || !ctl.own)
		sandbox = 0;
	return sandbox == reader;
}

struct packets_sweep {
	const struct sl_set *set;
	const struct sl_htab *held;
	unsigned int reader;
	__u64 started_ns;
	int swept;
	sl_sock_fn fn;
	void *arg;
};

static int sweep_packet(const void *cookie, void *value, void *arg)
{
	struct packets_sweep *sweep = arg;
	struct sl_sock *sock = value;

	/* One that is younger than the scan may have been missed by it. */
	if (sl_htab_get(sweep->held, cookie) || sock->since_ns >= sweep->started_ns ||
	    !is_told_to(sweep->set, sock, sweep->reader))
		return 0;
	if (bpf_map_delete_elem(sweep->set->maps[SL_MAP_PACKETS], cookie))
		return 0;
	sock->closed_ns = sl_boottime_ns();
	sock->flags |= SL_SOCK_RELEASED;
	sweep->swept++;
	return sweep->fn(sock, sweep->arg);
}

int sl_packets_sweep(struct sl_set *set, unsigned int sandbox, sl_sock_fn fn, void *arg)
{
	_cleanup_(sl_htab_free) struct sl_htab *held = NULL;
	struct packets_sweep sweep = {
		.set = set, .reader = sandbox, .started_ns = sl_boottime_ns(), .fn = fn, .arg = arg
	};
	int fd = set->maps[SL_MAP_PACKETS], rc;
	__u64 cookie;

	if (bpf_map_get_next_key(fd, NULL, &cookie))
		return 0;
	rc = sl_htab_new(&held, sizeof(__u64), 1);
	rc = rc ?: sl_holders_each(set, note_cookie, held);
	sweep.held = held;
	rc = rc ?: sl_map_each(fd, sweep_packet, &sweep);
	return rc ? rc : sweep.swept;
}

/* --- closed sockets --- */

static int closed_add(const struct sl_sock *sock, void *arg)
{
	struct sl_sock *copy;

	if (!(sock->flags & SL_SOCK_RELEASED))
		return 0;
	copy = sl_array_add(arg);
	if (!copy)
		return -ENOMEM;
	*copy = *sock;
	return 0;
}

static int by_close(const void *a, const void *b)
{
	const struct sl_sock *x = a, *y = b;

	return (x->closed_ns > y->closed_ns) - (x->closed_ns < y->closed_ns);
}

int sl_closed_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	struct sl_array closed = SL_ARRAY(struct sl_sock);
	const struct sl_sock *sock;
	int rc = sl_sock_rows_each(set, closed_add, &closed);

	if (!rc && closed.count)
		qsort(closed.data, closed.count, closed.item, by_close);
	sock = closed.data;
	for (size_t i = 0; !rc && i < closed.count; i++)
		rc = fn(&sock[i], arg);
	sl_array_free(&closed);
	return rc;
}

/* --- the end of a sandbox --- */

struct forget {
	struct sl_set *set;
	struct sl_sock *slots; /* mapped for writing */
	unsigned int sandbox;
};

/* As bpf/slot.h takes one: another sandbox's socket may be about to take it as well. */
static void slot_empty(struct sl_sock *slot, __u64 cookie)
{
	if (!__atomic_compare_exchange_n(&slot->cookie, &cookie, SL_SOCK_BUSY, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	memset(&slot->netns_cookie, 0, sizeof(*slot) - offsetof(struct sl_sock, netns_cookie));
	__atomic_store_n(&slot->cookie, 0, __ATOMIC_RELEASE);
}

static int forget_one(const struct sl_sock *sock, void *arg)
{
	struct forget *forget = arg;
	const int *maps = forget->set->maps;
	__u64 cookie = sock->cookie;

	if (sock->owner.sandbox != forget->sandbox)
		return 0;
	if (sock->flags & SL_SOCK_MORE)
		bpf_map_delete_elem(maps[SL_MAP_SOCK_MORE], &cookie);
	if (!bpf_map_delete_elem(maps[SL_MAP_SOCKS_OVER], &cookie))
		return 0;
	for (unsigned int way = 0; way < SL_SOCK_WAYS; way++)
		slot_empty(&forget->slots[sl_sock_slot(cookie, way, forget->set->sock_slots)],
			   cookie);
	return 0;
}

int sl_socks_forget(struct sl_set *set, unsigned int sandbox)
{
	struct forget forget = { .set = set, .sandbox = sandbox };
	struct sl_sock sock;
	int rc = 0;

	forget.slots = mmap(NULL, slots_bytes(set), PROT_READ | PROT_WRITE, MAP_SHARED,
			    set->maps[SL_MAP_SOCKS], 0);
	if (forget.slots == MAP_FAILED)
		return -errno;
	/* Its programs are detached: no slot becomes the sandbox's now. */
	for (unsigned int i = 0; !rc && i < set->sock_slots; i++) {
		if (__atomic_load_n(&forget.slots[i].owner.sandbox, __ATOMIC_RELAXED) == sandbox &&
		    slot_copy(&forget.slots[i], &sock))
			rc = forget_one(&sock, &forget);
	}
	rc = rc ?: over_each(set, forget_one, &forget);
	munmap(forget.slots, slots_bytes(set));
	return rc ? rc : sl_tuples_forget(set, sandbox);
}
