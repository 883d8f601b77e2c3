/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "system/cut.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fds.h"
#include "system/held.h"

#define PAIRS 16

enum what { NOW, HEAL, RELEASE, OTHER_VERSION };

struct order {
	enum what what;
	enum cut_how how;
	unsigned int ms;
};

/* A connection: of the runtime, and the agent's that belongs to it; -1: none. */
struct pair {
	int runtime, agent;
};

struct middle {
	int control, listener;
	struct sockaddr_un to;
	struct pair pairs[PAIRS];
	int64_t until_ms; /* cut until then; -1: for ever, 0: not at all */
	bool other_version;
};

/* --- in the process between --- */

static bool is_cut(const struct middle *m)
{
	return m->until_ms < 0 || sl_monotonic_ms() < m->until_ms;
}

static void obey(struct middle *m)
{
	struct order order;
	char done = 0;

	if (recv(m->control, &order, sizeof(order), 0) != sizeof(order))
		_exit(0);
	if (order.what == NOW)
		m->until_ms = order.ms == CUT_FOR_EVER ? -1 : sl_monotonic_ms() + order.ms;
	if (order.what == HEAL)
		m->until_ms = 0;
	m->other_version |= order.what == OTHER_VERSION;
	for (int i = 0; i < PAIRS; i++) {
		struct pair *pair = &m->pairs[i];

		if (order.what == NOW)
			sl_cleanup_fd(&pair->runtime);
		if ((order.what == NOW && order.how == CUT_BOTH) ||
		    (order.what == RELEASE && pair->runtime < 0))
			sl_cleanup_fd(&pair->agent);
	}
	if (send(m->control, &done, 1, MSG_NOSIGNAL) != 1)
		_exit(1);
}

static void accept_one(struct middle *m)
{
	_cleanup_fd_ int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	_cleanup_fd_ int agent = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || is_cut(m) || connect(agent, (struct sockaddr *)&m->to, sizeof(m->to)))
		return;
	for (int i = 0; i < PAIRS; i++) {
		struct pair *pair = &m->pairs[i];

		if (pair->runtime >= 0 || pair->agent >= 0)
			continue;
		*pair = (struct pair){ TAKE_FD(fd), TAKE_FD(agent) };
		return;
	}
}

/* Hello with other numbers, of the same length. */
static void change_version(char *text, size_t size)
{
	static const char from[] = "\"min\":1,\"max\":1", to[] = "\"min\":7,\"max\":9";
	char *at = memmem(text, size, from, sizeof(from) - 1);

	if (at)
		memcpy(at, to, sizeof(to) - 1);
}

static bool send_all(int to, const char *data, size_t size, const struct sl_fds *fds)
{
	struct pollfd room = { .fd = to, .events = POLLOUT };

	while (size) {
		ssize_t n = sl_fds_send(to, data, size, fds);

		if (n == -EAGAIN && poll(&room, 1, -1) == 1)
			continue;
		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
		fds = NULL;
	}
	return true;
}

/* False: it is over, either end has gone. */
static bool pass(const struct middle *m, int from, int to, bool to_agent)
{
	static char data[65536];
	struct sl_fds fds = { .count = 0 };
	ssize_t n = sl_fds_receive(from, data, sizeof(data), &fds);
	bool passed;

	if (n == -EAGAIN || n == -EINTR)
		return true;
	if (n <= 0)
		return false;
	if (to_agent && m->other_version)
		change_version(data, (size_t)n);
	passed = send_all(to, data, (size_t)n, &fds);
	sl_fds_close(&fds);
	return passed;
}

static void serve_pair(const struct middle *m, struct pair *pair, const struct pollfd fds[2])
{
	if ((fds[0].revents && !pass(m, pair->runtime, pair->agent, true)) ||
	    (fds[1].revents && !pass(m, pair->agent, pair->runtime, false))) {
		sl_cleanup_fd(&pair->runtime);
		sl_cleanup_fd(&pair->agent);
	}
}

static _Noreturn void be_between(struct middle *m)
{
	struct pollfd fds[2 + 2 * PAIRS];

	for (;;) {
		fds[0] = (struct pollfd){ .fd = m->control, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = m->listener, .events = POLLIN };
		for (int i = 0; i < PAIRS; i++) {
			const struct pair *pair = &m->pairs[i];
			bool alone = pair->runtime < 0;

			fds[2 + 2 * i] = (struct pollfd){ .fd = pair->runtime, .events = POLLIN };
			fds[3 + 2 * i] =
				(struct pollfd){ .fd = alone ? -1 : pair->agent, .events = POLLIN };
		}
		if (poll(fds, 2 + 2 * PAIRS, -1) < 0)
			continue;
		for (int i = 0; i < PAIRS; i++)
			serve_pair(m, &m->pairs[i], &fds[2 + 2 * i]);
		if (fds[1].revents)
			accept_one(m);
		if (fds[0].revents)
			obey(m);
	}
}

/* --- in the test --- */

void cut_up(struct cut *cut, const char *path, const char *to)
{
	struct middle m = { .to.sun_family = AF_UNIX };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int control[2];

	cr_assert_lt(snprintf(cut->socket, sizeof(cut->socket), "%s", path),
		     (int)sizeof(cut->socket));
	strcpy(at.sun_path, cut->socket);
	strncpy(m.to.sun_path, to, sizeof(m.to.sun_path) - 1);
	for (int i = 0; i < PAIRS; i++)
		m.pairs[i] = (struct pair){ -1, -1 };
	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
	m.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(m.listener, 0);
	cr_assert_eq(bind(m.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert_eq(listen(m.listener, 16), 0);
	m.control = control[1];
	cut->control = control[0];
	cut->pid = fork();
	cr_assert_geq(cut->pid, 0);
	if (!cut->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(control[0]);
		be_between(&m);
	}
	close(control[1]);
	close(m.listener);
}

void cut_down(struct cut *cut)
{
	sl_cleanup_fd(&cut->control);
	if (cut->pid > 0)
		cr_expect_eq(held_wait(cut->pid), 0);
	cut->pid = 0;
}

static void say(const struct cut *cut, const struct order *order)
{
	char done;

	cr_assert_eq(send(cut->control, order, sizeof(*order), MSG_NOSIGNAL), sizeof(*order));
	cr_assert_eq(recv(cut->control, &done, 1, 0), 1);
}

void cut_now(const struct cut *cut, enum cut_how how, unsigned int ms)
{
	say(cut, &(struct order){ .what = NOW, .how = how, .ms = ms });
}

void cut_heal(const struct cut *cut)
{
	say(cut, &(struct order){ .what = HEAL });
}

void cut_release(const struct cut *cut)
{
	say(cut, &(struct order){ .what = RELEASE });
}

void cut_other_version(const struct cut *cut)
{
	say(cut, &(struct order){ .what = OTHER_VERSION });
}
