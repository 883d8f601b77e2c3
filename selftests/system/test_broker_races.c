/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Held calls against everything that may happen meanwhile. Numbers are the scenarios'. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/probe.h"
#include "kernel/cgroup.h"
#include "system/scale.h"
#include "system/held.h"

#define REFUSED 1 /* a port where nobody listens: no backlog fills up */
#define KILLS SCALED(10000)
/* Long enough for a call to be received on a busy machine. */
#define ALARM_US 5000
#define UNDER_ALARMS 50
#define LISTENERS SCALED(10000)

static void down(void)
{
	held_down();
}

TestSuite(broker, .fini = down, .timeout = 600);

static void kill_it(const struct sl_call *call, struct sl_answer *answer)
{
	answer->go_on = true;
	atomic_fetch_add(&marks->calls, 1);
	/* Every second one dies with its call received; the others somewhere before. */
	if (call->tid & 1) {
		_cleanup_fd_ int fd = (int)syscall(SYS_pidfd_open, call->tid, 0);
		struct pollfd gone = { .fd = fd, .events = POLLIN };

		kill(call->tid, SIGKILL);
		if (fd >= 0)
			poll(&gone, 1, -1);
	}
}

/*
 * N1. Forks children that connect for ever, and kills every second one once a call of it is
 * in hand, the others after a moment of their own, which may be before it was received.
 */
static int kill_connecting(void *arg)
{
	unsigned int count = *(unsigned int *)arg;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int before = atomic_load(&marks->ack);
		unsigned int in_hand = atomic_load(&marks->calls);
		pid_t pid = fork();

		if (!pid) {
			for (;;) {
				atomic_fetch_add(&marks->ack, 1);
				held_connect(REFUSED);
			}
		}
		while (atomic_load(&marks->ack) == before)
			sched_yield();
		while (i & 1 && atomic_load(&marks->calls) == in_hand)
			sched_yield();
		for (unsigned int spin = 0; spin < i % 200 * 50; spin++)
			atomic_thread_fence(memory_order_seq_cst);
		kill(pid, SIGKILL);
		if (waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int refused_connect(void *arg)
{
	(void)arg;
	return held_connect(REFUSED);
}

Test(broker, killed_while_held)
{
	static const struct sl_broker_options options = { .race_interval_ms = 600000 };
	unsigned int kills = KILLS;
	uint64_t races = 0;

	marks = held_share(sizeof(*marks));
	held.decide = kill_it;
	held_up(&options);
	cr_expect_eq(held_call(&hold_connect, kill_connecting, &kills), 0);
	held_balance();
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		if (sl_broker_kind_class(kind) == SL_OUTCOME_RACE)
			races += held_count(kind);
	}
	cr_expect_gt(races, KILLS / 10);
	cr_expect_gt(held_count(SL_BROKER_RECEIVED), KILLS / 2);
	sl_broker_tick(held.broker);
	cr_expect_eq(atomic_load(&held.lines), 0, "a line before the interval is over");
	/* It still answers. */
	held.decide = NULL;
	cr_expect_eq(held_call(&hold_connect, refused_connect, NULL), ECONNREFUSED);
}

Test(broker, races_are_one_line_a_kind)
{
	static const struct sl_broker_options options = { .race_interval_ms = 1 };
	unsigned int kinds = 0, kills = 200;
	int64_t start;

	marks = held_share(sizeof(*marks));
	held.decide = kill_it;
	held_up(&options);
	held_call(&hold_connect, kill_connecting, &kills);
	held_balance();
	for (start = sl_monotonic_ms(); sl_monotonic_ms() < start + 2;)
		;
	sl_broker_tick(held.broker);
	for (int kind = 0; kind < SL_BROKER_KIND_MAX; kind++)
		kinds += sl_broker_kind_class(kind) == SL_OUTCOME_RACE && held_count(kind);
	cr_expect_gt(kinds, 0);
	cr_expect_eq(atomic_load(&held.lines), kinds);
	for (start = sl_monotonic_ms(); sl_monotonic_ms() < start + 2;)
		;
	sl_broker_tick(held.broker);
	cr_expect_eq(atomic_load(&held.lines), kinds, "told twice");
}

/* N2, N3: what an application earns by itself makes no notification at all. */
static int own_errors(void *arg)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pid_t pid = fork();

	(void)arg;
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 1000; i++) {
		if (!getpeername(fd, (struct sockaddr *)&addr, &len) || errno != ENOTCONN)
			return 1;
		if (!kill(pid, SIGTERM) || errno != ESRCH)
			return 2;
	}
	return 0;
}

Test(broker, own_errors_are_not_notified)
{
	static const struct sl_filter_options all = {
		.hold = SL_HOLD_EXEC | SL_HOLD_CONNECT,
		.flags = SL_FILTER_NOTIFY_FAMILY | SL_FILTER_NOTIFY_LISTEN,
	};

	held_up(NULL);
	cr_expect_eq(held_call(&all, own_errors, NULL), 0);
	cr_expect_eq(held_count(SL_BROKER_RECEIVED), 0);
	cr_expect_eq(held_count(SL_BROKER_LISTENER_ADDED), 1);
}

/* N5: the other thread acts while the call is held; `go` starts it, `ack` says done. */
static int swap_fd;

static void *swap(void *arg)
{
	while (!atomic_load(&marks->go))
		sched_yield();
	if (arg)
		dup2(open("/dev/null", O_RDONLY), swap_fd);
	else
		close(swap_fd);
	atomic_store(&marks->ack, 1);
	return NULL;
}

static int swapped(void *arg)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(marks->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	pthread_t thread;

	swap_fd = socket(AF_INET, SOCK_STREAM, 0);
	pthread_create(&thread, NULL, swap, arg);
	return connect(swap_fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno : 0;
}

static void let_swap(const struct sl_call *call, struct sl_answer *answer)
{
	cr_expect_eq(call->connect.to.port_be, htons(marks->port));
	cr_expect(call->connect.is_ip);
	atomic_store(&marks->go, 1);
	held_reached(&marks->ack, 1);
	answer->go_on = true;
}

static void expect_swapped(void *how, int want)
{
	_cleanup_fd_ int server = -1;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = let_swap;
	held_up(NULL);
	cr_expect_eq(held_call(&hold_connect, swapped, how), want);
	cr_expect_eq(held_accepted(server), 0);
	held_balance();
}

Test(broker, socket_closed_while_held)
{
	expect_swapped(NULL, EBADF);
}

Test(broker, socket_replaced_while_held)
{
	expect_swapped(&held, ENOTSOCK);
}

/*
 * N6. A signal that came during the hold pends when the kernel's connect() waits for the
 * handshake: that is interrupted, or restarted, as it would be without us, and goes on in
 * the background. There must be one connection for a call either way.
 */
static void on_alarm(int sig)
{
	(void)sig;
	atomic_fetch_add(&marks->alarms, 1);
}

/* 1: connected, 0: interrupted before the call was received, -1: failed. */
static int connect_once(bool restart)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(marks->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd done = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(addr);

	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return 1;
	if (errno != EINTR || restart)
		return -1;
	while (poll(&done, 1, -1) < 0 && errno == EINTR)
		;
	return getpeername(fd, (struct sockaddr *)&addr, &len) ? 0 : 1;
}

static int connect_under_alarms(void *arg)
{
	bool restart = arg;
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = restart ? SA_RESTART : 0 };
	struct itimerval timer = { { 0, ALARM_US }, { 0, ALARM_US } };
	int ret = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (int done = 0; done < UNDER_ALARMS && ret >= 0; done += ret)
		ret = connect_once(restart);
	return ret < 0;
}

/* Until the signal is there and has to wait. */
static void until_alarm_pends(const struct sl_call *call, struct sl_answer *answer)
{
	char path[64], line[128];
	unsigned long pending = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", call->tid);
	while (!(pending & 1UL << (SIGALRM - 1))) {
		file = fopen(path, "re");
		while (file && fgets(line, sizeof(line), file))
			sscanf(line, "ShdPnd: %lx", &pending);
		if (!file)
			break;
		fclose(file);
	}
	answer->go_on = true;
}

static void signalled(bool restart)
{
	_cleanup_fd_ int server = -1;
	unsigned long flags;
	const char *why;

	sl_probe_listener_flags(&flags, &why);
	if (!flags)
		cr_skip_test("%s", why);
	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held.decide = until_alarm_pends;
	held_up(NULL);
	cr_expect_eq(held_call(&hold_connect, connect_under_alarms, restart ? marks : NULL), 0);
	held_balance();
	cr_expect_eq(held_accepted(server), UNDER_ALARMS);
	cr_expect_eq(held_count(SL_BROKER_GONE_ANSWER), 0, "a signal took an answer away");
	cr_expect_gt(atomic_load(&marks->alarms), UNDER_ALARMS / 2);
	/* Without restart each connection is one call. */
	if (!restart)
		cr_expect_eq(held_count(SL_BROKER_CONTINUED), UNDER_ALARMS);
}

Test(broker, signals_make_no_second_connection)
{
	signalled(false);
}

Test(broker, restarted_calls_make_no_second_connection)
{
	signalled(true);
}

Test(broker, this_kernel_keeps_answers)
{
	unsigned int lost = 0;
	struct sl_err err = {};
	unsigned long flags;
	const char *why;

	sl_probe_listener_flags(&flags, &why);
	if (!flags)
		cr_skip_test("%s", why);
	held_up(NULL);
	cr_expect_eq(sl_probe_killable_race(SCALED(20000), &lost, &err), 0, "%s", err.text);
	cr_expect_eq(lost, 0);
}

static unsigned int open_fds(void)
{
	_cleanup_dir_ DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(dir))
		n++;
	return n;
}

/* N10 */
Test(broker, listeners_come_and_go)
{
	_cleanup_fd_ int server = -1;
	unsigned int before;

	marks = held_share(sizeof(*marks));
	server = held_server(&marks->port);
	held_up(NULL);
	before = open_fds();
	for (unsigned int i = 0; i < LISTENERS; i++) {
		/* A tag is free again when `ended` was called. */
		cr_assert_eq(held_wait(held_run(i, &hold_connect, held_port_connect, NULL)), 0);
		held_accepted(server);
	}
	cr_expect(held_reached(&held.ended, LISTENERS));
	cr_expect_eq(held_count(SL_BROKER_LISTENER_ENDED), LISTENERS);
	held_balance();
	cr_expect_eq(sl_broker_running(held.broker), 0);
	cr_expect_leq(open_fds(), before);
}

/* A refused family is told, and denied whatever the answer. */
static int packet_socket(void *arg)
{
	(void)arg;
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
}

static void allow_socket(const struct sl_call *call, struct sl_answer *answer)
{
	cr_expect_eq(call->kind, SL_HELD_SOCKET);
	cr_expect_eq(call->socket.family, AF_PACKET);
	cr_expect_eq(call->socket.type, SOCK_RAW);
	answer->go_on = true;
	answer->code = ENOTBLK;
}

Test(broker, refused_family_is_told)
{
	static const struct sl_filter_options options = { .flags = SL_FILTER_NOTIFY_FAMILY };

	held.decide = allow_socket;
	held_up(NULL);
	cr_expect_eq(held_call(&options, packet_socket, NULL), ENOTBLK);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_DENIED), 1);
}

/* B8: lengths that connect() refuses get the kernel's errno. */
static int odd_lengths(void *arg)
{
	static const unsigned int lengths[] = { 0x7fffffff, -1U, 0, 1, 2, 15, 129 };
	struct sockaddr_storage addr = { .ss_family = AF_INET };
	int *errors = arg, fd = socket(AF_INET, SOCK_STREAM, 0);

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		errors[i] = connect(fd, (struct sockaddr *)&addr, lengths[i]) ? errno : 0;
	errors[ARRAY_SIZE(lengths)] = connect(fd, (void *)8, 16) ? errno : 0;
	return 0;
}

Test(broker, odd_addresses)
{
	int *bare = held_share(4096), *under = bare + 64;

	held.decide = NULL;
	held_up(NULL);
	odd_lengths(bare);
	cr_expect_eq(held_call(&hold_connect, odd_lengths, under), 0);
	cr_expect_eq(memcmp(bare, under, 64 * sizeof(int)), 0);
	cr_expect_neq(bare[0], 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_BAD_ARGUMENT), 8);
}
