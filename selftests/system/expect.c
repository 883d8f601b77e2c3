/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "system/expect.h"

/* Longer than anything takes on a machine with too much to do: who fails late fails as well. */
#define WAIT_MS 60000
#define STEP_MS 5

bool eventually(bool (*fn)(void *arg), void *arg)
{
	for (int ms = 0; ms < WAIT_MS; ms += STEP_MS) {
		if (fn(arg))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000L }, NULL);
	}
	return fn(arg);
}

struct find {
	uint64_t cookie;
	struct sl_sock sock;
	unsigned int n;
};

static int match(const struct sl_sock *sock, void *arg)
{
	struct find *find = arg;

	if (sock->cookie == find->cookie) {
		find->sock = *sock;
		find->n++;
	}
	return 0;
}

static bool is_closed(void *arg)
{
	struct find *find = arg;

	find->n = 0;
	cr_assert_eq(sl_closed_each(world.set, match, find), 0);
	return find->n > 0;
}

struct sl_sock closed_sock(uint64_t cookie)
{
	struct find find = { .cookie = cookie };

	cr_assert_neq(cookie, 0);
	cr_assert(eventually(is_closed, &find), "socket %llu is not among the closed ones",
		  (unsigned long long)cookie);
	cr_assert_eq(find.n, 1, "socket %llu was closed %u times", (unsigned long long)cookie,
		     find.n);
	return find.sock;
}

struct sl_owner opener_of(const struct sl_sock *sock)
{
	struct sl_sock_more more;

	sl_sock_more_read(world.set, sock, &more);
	return more.opener.tgid ? more.opener : sock->owner;
}

struct sl_owner user_of(const struct sl_sock *sock)
{
	struct sl_sock_more more;

	sl_sock_more_read(world.set, sock, &more);
	return more.user.tgid ? more.user : sock->owner;
}

bool live_sock(uint64_t cookie, struct sl_sock *out)
{
	struct find find = { .cookie = cookie };

	cr_assert_eq(sl_socks_each(world.set, match, &find), 0);
	cr_assert_leq(find.n, 1);
	if (find.n)
		*out = find.sock;
	return find.n;
}

static int count_one(const struct sl_sock *sock, void *arg)
{
	(void)sock;
	++*(unsigned int *)arg;
	return 0;
}

unsigned int live_socks(void)
{
	unsigned int n = 0;

	cr_assert_eq(sl_socks_each(world.set, count_one, &n), 0);
	return n;
}

struct find_process {
	uint64_t pid;
	struct sl_process *out;
};

static int match_pid(const struct sl_process *process, void *arg)
{
	struct find_process *find = arg;

	if (process->key.tgid != find->pid)
		return 0;
	*find->out = *process;
	return 1;
}

bool process_by_pid(uint64_t pid, struct sl_process *out)
{
	struct find_process find = { .pid = pid, .out = out };
	int rc = sl_procs_each(world.set, match_pid, &find);

	cr_assert_geq(rc, 0);
	return rc;
}

unsigned int map_rows(enum sl_map map)
{
	unsigned char keys[2][256] = {};
	int fd = sl_set_map_fd(world.set, map);
	unsigned int n = 0;

	while (!bpf_map_get_next_key(fd, n ? keys[n % 2] : NULL, keys[(n + 1) % 2]))
		n++;
	return n;
}

unsigned int watched_events(void)
{
	struct sl_config config;
	__u32 zero = 0;

	cr_assert_eq(bpf_map_lookup_elem(sl_set_map_fd(world.set, SL_MAP_CONFIG), &zero, &config),
		     0);
	return config.events;
}

struct sl_counters counters(void)
{
	struct sl_counters out = {};

	cr_assert_eq(sl_counters_total(world.set, &out), 0);
	return out;
}

uint64_t counter(enum sl_counter which)
{
	return counters().n[which];
}

void expect_no_faults(void)
{
	struct sl_counters now = counters();

#define FLOW(name, text)
#define RACE(name, text)
#define FAULT(name, text)                                                 \
	cr_expect_eq(now.n[SL_COUNTER_##name], 0, "fault %s: %llu", text, \
		     (unsigned long long)now.n[SL_COUNTER_##name]);
#define X(name, class, text, help) class(name, text)
	SL_COUNTERS(X)
#undef X
#undef FAULT
#undef RACE
#undef FLOW
}

static uint64_t tick_ns(void)
{
	return 1000000000ULL / sysconf(_SC_CLK_TCK);
}

bool owner_is(const struct sl_owner *owner, const char *line)
{
	uint64_t start_ns = fact_u64(line, "start_ns");

	return owner->tgid == fact_u64(line, "pid") && owner->start_ns >= start_ns &&
	       owner->start_ns < start_ns + tick_ns();
}

void expect_owner(const struct sl_owner *owner, const char *line, const char *role)
{
	cr_expect(owner_is(owner, line), "%s: pid %u, start %llu, not that of %.300s", role,
		  owner->tgid, (unsigned long long)owner->start_ns, line);
}

/* Field 22 of /proc/PID/stat: clock ticks since boot. */
static uint64_t start_ticks(pid_t pid)
{
	char path[64], text[1024] = "";
	_cleanup_fd_ int fd = -1;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	cr_assert_gt(read(fd, text, sizeof(text) - 1), 0);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	cr_assert_not_null(at);
	return strtoull(at, NULL, 10);
}

void expect_owner_pid(const struct sl_owner *owner, pid_t pid, const char *role)
{
	cr_expect(owner->tgid == (__u32)pid && owner->start_ns / tick_ns() == start_ticks(pid),
		  "%s: pid %u, start %llu, not %d", role, owner->tgid,
		  (unsigned long long)owner->start_ns, pid);
}

bool endpoint_is(const struct sl_endpoint *endpoint, uint32_t addr, unsigned int port)
{
	return !endpoint->addr_be[0] && !endpoint->addr_be[1] &&
	       endpoint->addr_be[2] == htonl(0xffff) && endpoint->addr_be[3] == htonl(addr) &&
	       ntohs(endpoint->port_be) == port;
}

void exe_path(unsigned int id, struct sl_exe *out)
{
	cr_assert_neq(id, 0, "no executable");
	cr_assert_eq(sl_exe_by_id(world.set, id, out), 0, "executable %u has no row", id);
}

unsigned int lineage_exes(unsigned int id, unsigned int exes[], unsigned int max)
{
	unsigned int n = 0;

	while (id && n < max) {
		struct sl_lineage row;

		cr_assert_eq(sl_lineage_by_id(world.set, id, &row), 0, "lineage %u has no row", id);
		exes[n++] = row.key.exe;
		id = row.key.parent;
	}
	return n;
}

bool socks_balance(void *arg)
{
	struct sl_counters now = counters();

	return now.n[SL_COUNTER_SOCK_CREATED] ==
	       now.n[SL_COUNTER_SOCK_DELETED] + *(unsigned int *)arg;
}

bool tuples_balance(void *arg)
{
	struct sl_counters now = counters();

	(void)arg;
	return now.n[SL_COUNTER_TUPLE_CREATED] ==
	       now.n[SL_COUNTER_TUPLE_DELETED] + (unsigned int)sl_tuples_count(world.set);
}

static int count_live(const struct sl_process *process, void *arg)
{
	*(unsigned int *)arg += !(process->flags & SL_PROC_EXITED);
	return 0;
}

bool procs_balance(void *arg)
{
	struct sl_counters now = counters();
	unsigned int live = 0;

	(void)arg;
	cr_assert_eq(sl_procs_each(world.set, count_live, &live), 0);
	return now.n[SL_COUNTER_PROC_ENTERED] + now.n[SL_COUNTER_PROC_FORKED] ==
	       now.n[SL_COUNTER_PROC_EXITED] + live;
}

void expect_conserved(unsigned int live)
{
	cr_expect(eventually(socks_balance, &live), "sockets: %llu created, %llu deleted, %u live",
		  (unsigned long long)counter(SL_COUNTER_SOCK_CREATED),
		  (unsigned long long)counter(SL_COUNTER_SOCK_DELETED), live);
	cr_expect(eventually(tuples_balance, NULL));
	cr_expect(eventually(procs_balance, NULL));
	cr_expect_eq(counter(SL_COUNTER_CLOSED_KEPT) + counter(SL_COUNTER_CLOSED_DROPPED),
		     counter(SL_COUNTER_SOCK_DELETED));
}

struct by_process {
	uint64_t tgid, port;
	struct sl_sock *out;
	unsigned int n;
};

static int match_process(const struct sl_sock *sock, void *arg)
{
	struct by_process *find = arg;

	if (sock->owner.tgid != find->tgid ||
	    (find->port && ntohs(sock->local.port_be) != find->port))
		return 0;
	*find->out = *sock;
	find->n++;
	return 0;
}

static bool is_closed_by(void *arg)
{
	struct by_process *find = arg;

	find->n = 0;
	cr_assert_eq(sl_closed_each(world.set, match_process, find), 0);
	return find->n > 0;
}

struct sl_sock closed_by(uint64_t tgid, uint64_t port)
{
	struct sl_sock sock;
	struct by_process find = { .tgid = tgid, .port = port, .out = &sock };

	cr_assert(eventually(is_closed_by, &find), "process %llu has closed no socket of port %llu",
		  (unsigned long long)tgid, (unsigned long long)port);
	cr_assert_eq(find.n, 1, "process %llu has closed %u of port %llu", (unsigned long long)tgid,
		     find.n, (unsigned long long)port);
	return sock;
}

void expect_path(unsigned int id, const char *path)
{
	struct sl_exe exe;

	exe_path(id, &exe);
	cr_expect_str_eq(exe.path + exe.root_off, path);
}

void expect_lineage(unsigned int id, const char *const paths[])
{
	unsigned int exes[SL_LINEAGE_DEPTH], n = lineage_exes(id, exes, SL_LINEAGE_DEPTH);
	char real[PATH_MAX];

	for (unsigned int i = 0; paths[i]; i++) {
		cr_assert_lt(i, n, "the lineage ends before %s", paths[i]);
		cr_assert_not_null(realpath(paths[i], real), "no %s", paths[i]);
		expect_path(exes[i], real);
	}
}
