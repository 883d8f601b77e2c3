/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/flow.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 60000
/* Of each stream that much is on its way at most, so that nobody waits for room. */
#define WINDOW 8192

struct flow flows[FLOWS];

void flows_accept(int server)
{
	struct pollfd fd = { .fd = server, .events = POLLIN };

	for (int i = 0; i < FLOWS; i++) {
		cr_assert_eq(poll(&fd, 1, WAIT_MS), 1, "%d of %d streams came", i, FLOWS);
		flows[i] = (struct flow){ .fd = accept4(server, NULL, NULL, SOCK_CLOEXEC) };
		cr_assert_geq(flows[i].fd, 0);
	}
}

/* Each byte by its place in its stream: none is lost, changed or in another one. */
static char byte_of(const struct flow *flow, uint64_t at)
{
	return (char)(at * 31 + at / 251 + (uint64_t)(flow - flows) * 7);
}

static void give(struct flow *flow)
{
	size_t room = WINDOW - (size_t)(flow->sent - flow->received);
	char data[WINDOW];
	ssize_t n;

	for (size_t i = 0; i < room; i++)
		data[i] = byte_of(flow, flow->sent + i);
	n = send(flow->fd, data, room, MSG_NOSIGNAL | MSG_DONTWAIT);
	cr_assert(n > 0 || errno == EAGAIN, "a stream has ended: %s", strerror(errno));
	flow->sent += n > 0 ? (uint64_t)n : 0;
}

/* False: the stream is at its end. */
static bool take(struct flow *flow)
{
	char data[WINDOW];
	ssize_t n = recv(flow->fd, data, sizeof(data), MSG_DONTWAIT);

	cr_assert(n >= 0 || errno == EAGAIN, "a stream has ended: %s", strerror(errno));
	for (ssize_t i = 0; i < n; i++)
		cr_assert_eq(data[i], byte_of(flow, flow->received + (uint64_t)i));
	flow->received += n > 0 ? (uint64_t)n : 0;
	return n != 0;
}

unsigned int flows_round(struct pollfd *also, int timeout_ms)
{
	struct pollfd fds[FLOWS + 1];
	unsigned int ready = 0;

	for (int i = 0; i < FLOWS; i++) {
		const struct flow *flow = &flows[i];
		bool room = flow->sent - flow->received < WINDOW;

		fds[i] = (struct pollfd){ .fd = flow->fd,
					  .events = (short)(POLLIN | (room ? POLLOUT : 0)) };
	}
	fds[FLOWS] = *also;
	cr_assert_geq(poll(fds, FLOWS + 1, timeout_ms), 0);
	for (int i = 0; i < FLOWS; i++) {
		ready += fds[i].revents != 0;
		if (fds[i].revents & ~POLLOUT)
			cr_assert(take(&flows[i]), "stream %d has ended", i);
		if (fds[i].revents & POLLOUT)
			give(&flows[i]);
	}
	*also = fds[FLOWS];
	return ready;
}

uint64_t flows_received(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < FLOWS; i++)
		sum += flows[i].received;
	return sum;
}

void flows_end(void)
{
	for (int i = 0; i < FLOWS; i++)
		cr_assert_eq(shutdown(flows[i].fd, SHUT_WR), 0);
	for (int i = 0; i < FLOWS; i++) {
		struct pollfd fd = { .fd = flows[i].fd, .events = POLLIN };

		while (take(&flows[i]))
			cr_assert_eq(poll(&fd, 1, WAIT_MS), 1, "stream %d does not end", i);
		cr_expect_eq(flows[i].received, flows[i].sent);
	}
	flows_close();
}

void flows_close(void)
{
	for (int i = 0; i < FLOWS; i++)
		close(flows[i].fd);
}
