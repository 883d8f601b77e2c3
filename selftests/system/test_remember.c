/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Closed sockets stay known as long as there is room, whatever cookies they had. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "system/expect.h"
#include "system/member.h"

TestSuite(remember, .init = world_up, .fini = world_down, .timeout = 120);

#define SLOTS 16384 /* of a set by default */
#define EACH 64

/* The first two CPUs that this process may use; false when there is one only. */
static bool two_cpus(int cpus[2])
{
	cpu_set_t allowed;
	int n = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
	return n == 2;
}

static void be_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	member_need(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static uint64_t one_socket(void)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	member_need(fd >= 0, "socket");
	return member_cookie(fd);
}

/* Uses up the cookies of its CPU until the next one is `to` or follows it, modulo SLOTS. */
static void align(uint64_t to)
{
	uint64_t cookie;

	do
		cookie = one_socket() + 1;
	while ((cookie - to) % SLOTS >= EACH / 4);
}

static void meet(struct member *self)
{
	const int *cpus = self->shared;
	uint64_t first;

	be_on(cpus[1]);
	first = one_socket() + 1;
	be_on(cpus[0]);
	align(first);
	member_say(self);
	member_wait(self);
	for (int i = 0; i < 2; i++) {
		be_on(cpus[i]);
		for (int n = 0; n < EACH; n++)
			one_socket();
	}
}

/*
 * The kernel gives each CPU cookies in batches of 4,096: those of two CPUs may be the same
 * modulo the number of slots.
 */
Test(remember, cookies_of_two_cpus)
{
	int *cpus = member_shared(2 * sizeof(*cpus));
	struct member member;

	if (!two_cpus(cpus))
		cr_skip_test("there is one CPU only");
	member_start(&member, OUTSIDE, meet, cpus);
	member_await(&member);
	member_move_in(&member);
	member_go(&member);
	member_end(&member);
	expect_conserved(0);
	cr_expect_eq(counter(SL_COUNTER_CLOSED_KEPT), 2 * EACH);
	cr_expect_eq(counter(SL_COUNTER_SOCK_EVICTED), 0);
	expect_no_faults();
}
