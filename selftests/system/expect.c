/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <time.h>

#include "base/cleanup.h"
#include "system/expect.h"

#define WAIT_MS 5000
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

unsigned int map_rows(enum sl_map map)
{
	unsigned char keys[2][256] = {};
	int fd = sl_set_map_fd(world.set, map);
	unsigned int n = 0;

	while (!bpf_map_get_next_key(fd, n ? keys[n % 2] : NULL, keys[(n + 1) % 2]))
		n++;
	return n;
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
#define FAULT(name, text)                                             \
	cr_expect_eq(now.n[SL_COUNTER_##name], 0, "fault %s: %llu", text, \
		     (unsigned long long)now.n[SL_COUNTER_##name]);
#define X(name, class, text, help) class(name, text)
	SL_COUNTERS(X)
#undef X
#undef FAULT
#undef RACE
#undef FLOW
}

bool owner_is(const struct sl_owner *owner, const char *line)
{
	uint64_t start_ns = fact_u64(line, "start_ns");
	uint64_t tick_ns = 1000000000ULL / sysconf(_SC_CLK_TCK);

	return owner->tgid == fact_u64(line, "pid") && owner->start_ns >= start_ns &&
	       owner->start_ns < start_ns + tick_ns;
}

void expect_owner(const struct sl_owner *owner, const char *line, const char *role)
{
	cr_expect(owner_is(owner, line), "%s: pid %u, start %llu, not that of %.300s", role,
		  owner->tgid, (unsigned long long)owner->start_ns, line);
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
