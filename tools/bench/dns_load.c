/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dns.h"
#include "world.h"

#define NAMES 64            /* that are asked for over and over */
#define LOST_NS 1000000000U /* without an answer */
#define EVENTS 64
#define ANSWER_MAX 1232
#define RUNNING_OUT_MS 50 /* of a wait that is only for lost ones */

struct slot {
	uint64_t sent_ns; /* 0: not in flight */
	uint16_t turn;    /* upper byte of the id, so that a late answer is known */
	uint8_t query[DNS_QUERY_MAX];
	size_t size;
};

struct clients {
	struct dns_load *load;
	struct slot *slots; /* load->inflight of each socket */
	int *fds;
	int epoll;
	uint64_t last_ns; /* when the latest answer came */
	unsigned int opened, waiting;
	bool ending;
};

static size_t put_label(uint8_t *out, const char *text)
{
	size_t len = strlen(text);

	out[0] = (uint8_t)len;
	memcpy(out + 1, text, len);
	return len + 1;
}

size_t dns_query(uint8_t query[DNS_QUERY_MAX], uint16_t id, char kind, unsigned int number)
{
	const uint8_t head[DNS_HEAD] = { (uint8_t)(id >> 8), (uint8_t)id, 1, 0, 0, 1 };
	const uint8_t tail[] = { 0, 0, 1, 0, 1 }; /* root, A, IN */
	const char second[] = { kind, '\0' };
	size_t at = sizeof(head);
	char first[16];

	snprintf(first, sizeof(first), "n%u", number);
	memcpy(query, head, sizeof(head));
	at += put_label(query + at, first);
	at += put_label(query + at, second);
	at += put_label(query + at, "example");
	memcpy(query + at, tail, sizeof(tail));
	return at + sizeof(tail);
}

static void close_all(struct clients *clients)
{
	for (unsigned int i = 0; i < clients->opened; i++)
		close(clients->fds[i]);
	free(clients->fds);
	free(clients->slots);
	sl_cleanup_fd(&clients->epoll);
}

static int open_all(struct clients *clients, uint16_t port)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	struct dns_load *load = clients->load;

	clients->epoll = epoll_create1(EPOLL_CLOEXEC);
	clients->fds = calloc(load->sockets, sizeof(*clients->fds));
	clients->slots = calloc((size_t)load->sockets * load->inflight, sizeof(*clients->slots));
	if (clients->epoll < 0 || !clients->fds || !clients->slots)
		return -ENOMEM;
	for (; clients->opened < load->sockets; clients->opened++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = clients->opened };
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return -errno;
		clients->fds[clients->opened] = fd;
		if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
		    epoll_ctl(clients->epoll, EPOLL_CTL_ADD, fd, &event)) {
			close(fd);
			return -errno;
		}
	}
	return 0;
}

static int ask(struct clients *clients, unsigned int socket, unsigned int at)
{
	struct dns_load *load = clients->load;
	struct slot *slot = &clients->slots[(size_t)socket * load->inflight + at];
	unsigned int number = load->next++;

	slot->turn++;
	slot->size = dns_query(slot->query, (uint16_t)(slot->turn << 8 | at), load->kind,
			       load->kind == DNS_CACHED ? number % NAMES : number);
	slot->sent_ns = sl_bench_now_ns();
	clients->waiting++;
	return send(clients->fds[socket], slot->query, slot->size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool is_right(const struct slot *slot, const uint8_t *answer, size_t size)
{
	uint32_t addr_be;

	if (size < slot->size + sizeof(addr_be) || (answer[3] & 0xf) || answer[7] != 1 ||
	    memcmp(answer + DNS_HEAD, slot->query + DNS_HEAD, slot->size - DNS_HEAD) != 0)
		return false;
	memcpy(&addr_be, answer + size - sizeof(addr_be), sizeof(addr_be));
	return ntohl(addr_be) == dns_address(slot->query, slot->size);
}

static int take_answer(struct clients *clients, unsigned int socket, const uint8_t *answer,
		       size_t size)
{
	struct dns_load *load = clients->load;
	unsigned int at = size > DNS_HEAD ? answer[1] : UINT8_MAX;
	struct slot *slot;

	if (at >= load->inflight)
		return 0;
	slot = &clients->slots[(size_t)socket * load->inflight + at];
	if (!slot->sent_ns || answer[0] != slot->query[0])
		return 0;
	if (!is_right(slot, answer, size))
		load->wrong++;
	clients->last_ns = sl_bench_now_ns();
	if (load->answered < load->room)
		load->latency_ns[load->answered++] = (uint32_t)(clients->last_ns - slot->sent_ns);
	slot->sent_ns = 0;
	clients->waiting--;
	return clients->ending ? 0 : ask(clients, socket, at);
}

static int read_answers(struct clients *clients, unsigned int socket)
{
	uint8_t answer[ANSWER_MAX];
	ssize_t n;
	int ret = 0;

	while (!ret && (n = recv(clients->fds[socket], answer, sizeof(answer), 0)) >= 0)
		ret = take_answer(clients, socket, answer, (size_t)n);
	return ret ?: errno == EAGAIN ? 0 : -errno;
}

/* What waits for too long is lost, and asked anew. */
static int give_up(struct clients *clients, unsigned int socket, uint64_t now_ns)
{
	struct dns_load *load = clients->load;
	int ret = 0;

	for (unsigned int at = 0; !ret && at < load->inflight; at++) {
		struct slot *slot = &clients->slots[(size_t)socket * load->inflight + at];

		if (!slot->sent_ns || now_ns - slot->sent_ns < LOST_NS)
			continue;
		slot->sent_ns = 0;
		clients->waiting--;
		load->lost++;
		if (!clients->ending)
			ret = ask(clients, socket, at);
	}
	return ret;
}

static int go_on(struct clients *clients, uint64_t until_ns)
{
	struct epoll_event events[EVENTS];
	uint64_t looked_ns = sl_bench_now_ns(), now_ns;
	int ret = 0;

	while (!ret && clients->waiting) {
		int n = epoll_wait(clients->epoll, events, EVENTS, RUNNING_OUT_MS);

		for (int i = 0; i < n && !ret; i++)
			ret = read_answers(clients, events[i].data.u32);
		now_ns = sl_bench_now_ns();
		clients->ending = now_ns >= until_ns || sl_world_stopped();
		if (now_ns - looked_ns < LOST_NS / 4)
			continue;
		for (unsigned int i = 0; i < clients->opened && !ret; i++)
			ret = give_up(clients, i, now_ns);
		looked_ns = now_ns;
	}
	return ret;
}

int dns_load_run(struct dns_load *load, uint16_t port, struct sl_err *err)
{
	__attribute__((cleanup(close_all))) struct clients clients = { .load = load, .epoll = -1 };
	uint64_t begin_ns;
	int ret = open_all(&clients, port);

	load->answered = 0;
	begin_ns = sl_bench_now_ns();
	clients.last_ns = begin_ns + 1;
	for (unsigned int at = 0; at < load->inflight; at++)
		for (unsigned int i = 0; i < load->sockets && !ret; i++)
			ret = ask(&clients, i, at);
	ret = ret ?: go_on(&clients, begin_ns + load->ms * 1000000ULL);
	/* What was waited for in vain at the end is no time that answers took. */
	load->seconds = (double)(clients.last_ns - begin_ns) / 1e9;
	return ret ? sl_err_sys(err, -ret, "can't ask port %u", port) : 0;
}
