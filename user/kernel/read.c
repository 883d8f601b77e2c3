// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reading a set: counters, sockets, processes, executables. */
#define _GNU_SOURCE
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/htab.h"
#include "kernel/set_private.h"

/* --- counters --- */

static int counters_add(struct sl_set *set, __u32 id, struct sl_counters *sum)
{
	int cpus = libbpf_num_possible_cpus();
	_cleanup_free_ struct sl_counters *row = NULL;

	if (cpus < 0)
		return cpus;
	row = calloc(cpus, sizeof(*row));
	if (!row)
		return -ENOMEM;
	if (bpf_map_lookup_elem(set->maps[SL_MAP_COUNTERS], &id, row))
		return -errno;
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (size_t i = 0; i < ARRAY_SIZE(sum->n); i++)
			sum->n[i] += row[cpu].n[i];
		for (size_t i = 0; i < ARRAY_SIZE(sum->event_lost); i++)
			sum->event_lost[i] += row[cpu].event_lost[i];
	}
	return 0;
}

int sl_counters_read(struct sl_set *set, unsigned int id, struct sl_counters *out)
{
	struct sl_counters sum = {};
	int rc = counters_add(set, id, &sum);

	if (!rc)
		*out = sum;
	return rc;
}

int sl_counters_total(struct sl_set *set, struct sl_counters *out)
{
	struct sl_counters sum = {};
	int rc = 0;

	for (__u32 id = 0; !rc && id < set->max_sandboxes; id++)
		rc = counters_add(set, id, &sum);
	if (!rc)
		*out = sum;
	return rc;
}

/* --- live sockets --- */

struct holder_record {
	struct sl_sock sock;
	struct sl_iter_sock now;
};

/* Reads one whole record; 0 at the end, 1 for a record, -errno. */
static int read_record(int fd, void *record, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while (have < size) {
		n = read(fd, (char *)record + have, size - have);
		if (n == 0)
			return have ? -EPROTO : 0;
		if (n > 0)
			have += n;
		else if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
	return 1;
}

int sl_holders_each(struct sl_set *set, sl_holder_fn fn, void *arg)
{
	_cleanup_fd_ int fd = sl_iter_open(set, "dump_socks");
	struct holder_record record;
	int rc;

	if (fd < 0)
		return fd;
	for (;;) {
		rc = read_record(fd, &record, sizeof(record));
		if (rc <= 0)
			return rc;
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

int sl_socks_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	_cleanup_(sl_htab_free) struct sl_htab *seen = NULL;
	struct once once = { .fn = fn, .arg = arg };
	int rc = sl_htab_new(&seen, sizeof(__u64), 1);

	if (rc)
		return rc;
	once.seen = seen;
	return sl_holders_each(set, once_each, &once);
}

/* --- AF_PACKET sockets that have gone --- */

static int note_cookie(const struct sl_sock *sock, const struct sl_iter_sock *holder, void *arg)
{
	(void)holder;
	if (sock->family != AF_PACKET)
		return 0;
	return sl_htab_add(arg, &sock->cookie, NULL) ? 0 : -ENOMEM;
}

int sl_packets_sweep(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	_cleanup_(sl_htab_free) struct sl_htab *held = NULL;
	int fd = set->maps[SL_MAP_PACKETS], rc, swept = 0;
	__u64 started = sl_boottime_ns();
	struct sl_sock sock;
	__u64 key, next;
	bool more;

	more = !bpf_map_get_next_key(fd, NULL, &next);
	if (!more)
		return 0;
	rc = sl_htab_new(&held, sizeof(__u64), 1);
	rc = rc ?: sl_holders_each(set, note_cookie, held);
	while (!rc && more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		/* One that is younger than the scan may have been missed by it. */
		if (sl_htab_get(held, &key) || bpf_map_lookup_elem(fd, &key, &sock) ||
		    sock.created_ns >= started)
			continue;
		if (bpf_map_delete_elem(fd, &key))
			continue;
		sock.closed_ns = sl_boottime_ns();
		sock.flags |= SL_SOCK_RELEASED;
		swept++;
		rc = fn(&sock, arg);
	}
	return rc ? rc : swept;
}

/* --- closed sockets --- */

/* Copies a slot that is not being written; false when it is empty or keeps changing. */
static bool closed_copy(const volatile struct sl_closed *slot, struct sl_closed *out)
{
	for (int tries = 0; tries < 16; tries++) {
		out->seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);
		if (!out->seq)
			continue;
		memcpy(&out->sock, (const void *)&slot->sock, sizeof(out->sock));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&slot->seq, __ATOMIC_RELAXED) == out->seq)
			return true;
	}
	return false;
}

int sl_closed_each(struct sl_set *set, sl_sock_fn fn, void *arg)
{
	size_t stride = (sizeof(struct sl_closed) + 7) & ~(size_t)7;
	size_t len = stride * set->closed_entries;
	struct sl_closed closed;
	struct sl_ids ids;
	__u32 zero = 0;
	__u64 seq;
	int rc = 0;
	char *map;

	if (bpf_map_lookup_elem(set->maps[SL_MAP_IDS], &zero, &ids))
		return -errno;
	map = mmap(NULL, len, PROT_READ, MAP_SHARED, set->maps[SL_MAP_CLOSED], 0);
	if (map == MAP_FAILED)
		return -errno;
	seq = ids.closed > set->closed_entries ? ids.closed - set->closed_entries : 0;
	for (; !rc && seq < ids.closed; seq++) {
		size_t at = stride * (seq & (set->closed_entries - 1));

		if (closed_copy((void *)(map + at), &closed) && closed.seq > seq)
			rc = fn(&closed.sock, arg);
	}
	munmap(map, len);
	return rc;
}

/* --- single look-ups --- */

static int lookup(int fd, const void *key, void *value)
{
	return bpf_map_lookup_elem(fd, key, value) ? -errno : 0;
}

int sl_sock_by_fd(const struct sl_set *set, int fd, struct sl_sock *out)
{
	return lookup(set->maps[SL_MAP_SOCKS], &fd, out);
}

static int tuple_scan(int fd, const struct sl_tuple *wanted, struct sl_tuple_owner *out)
{
	struct sl_tuple key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		if (!memcmp(&key.local, &wanted->local, sizeof(key.local)) &&
		    !memcmp(&key.remote, &wanted->remote, sizeof(key.remote)) &&
		    !lookup(fd, &key, out))
			return 0;
		more = !bpf_map_get_next_key(fd, &key, &next);
	}
	return -ENOENT;
}

int sl_tuple_resolve(struct sl_set *set, const struct sl_endpoint *local,
		     const struct sl_endpoint *remote, __u64 netns_cookie,
		     struct sl_tuple_owner *out)
{
	static const enum sl_map where[] = { SL_MAP_TUPLES, SL_MAP_CLOSED_TUPLES };
	struct sl_tuple tuple = {
		.netns_cookie = netns_cookie,
		.local = *local,
		.remote = *remote,
		.protocol = 6, /* IPPROTO_TCP */
	};
	int rc = -ENOENT;

	for (size_t i = 0; rc == -ENOENT && i < ARRAY_SIZE(where); i++)
		rc = netns_cookie ? lookup(set->maps[where[i]], &tuple, out) :
				    tuple_scan(set->maps[where[i]], &tuple, out);
	return rc;
}

int sl_exe_by_id(const struct sl_set *set, unsigned int id, struct sl_exe *out)
{
	return lookup(set->maps[SL_MAP_EXES], &id, out);
}

int sl_lineage_by_id(const struct sl_set *set, unsigned int id, struct sl_lineage *out)
{
	return lookup(set->maps[SL_MAP_LINEAGES], &id, out);
}

int sl_procs_each(struct sl_set *set, int (*fn)(const struct sl_process *process, void *arg),
		  void *arg)
{
	int fd = set->maps[SL_MAP_PROCS], rc = 0;
	struct sl_process_key key, next;
	struct sl_process process;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (!rc && more) {
		key = next;
		if (!lookup(fd, &key, &process))
			rc = fn(&process, arg);
		more = !bpf_map_get_next_key(fd, &key, &next);
	}
	return rc;
}

int sl_exes_each(struct sl_set *set, int (*fn)(const struct sl_exe *exe, void *arg), void *arg)
{
	_cleanup_free_ struct sl_exe *exe = malloc(sizeof(*exe));
	struct sl_ids ids;
	__u32 zero = 0;
	int rc;

	if (!exe)
		return -ENOMEM;
	rc = lookup(set->maps[SL_MAP_IDS], &zero, &ids);
	for (__u32 id = 1; !rc && id <= ids.exe; id++)
		if (!sl_exe_by_id(set, id, exe))
			rc = fn(exe, arg);
	return rc;
}
