/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "socket/sock_find.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct search {
	const struct sl_sock_ends *ends;
	struct sl_sock_ends other_ends; /* the same, seen from the other end */
	struct sl_sock_found *out;
	__u64 cookie; /* of the socket, when the map of tuples knew it; else 0 */
};

static bool same_end(const struct sl_endpoint *a, const struct sl_endpoint *b)
{
	return a->port_be == b->port_be && !memcmp(a->addr_be, b->addr_be, sizeof(a->addr_be));
}

/* Bound to a port on all addresses. */
static bool any_address(const struct sl_endpoint *end)
{
	return !end->addr_be[0] && !end->addr_be[1] && !end->addr_be[3];
}

unsigned int sl_sock_ends_match(const struct sl_sock_ends *ends, const struct sl_sock *sock)
{
	bool local, remote = same_end(&sock->remote, &ends->remote);

	if (ends->netns_cookie && sock->netns_cookie != ends->netns_cookie)
		return 0;
	if (sock->family != AF_INET && sock->family != AF_INET6)
		return 0;
	local = same_end(&sock->local, &ends->local);
	if (!ends->udp) {
		bool tcp = sock->protocol == IPPROTO_TCP || sock->protocol == IPPROTO_MPTCP;

		return tcp && local && remote ? 3 : 0;
	}
	if (sock->protocol != IPPROTO_UDP)
		return 0;
	if (local && remote)
		return 3;
	if (!local && (!any_address(&sock->local) || sock->local.port_be != ends->local.port_be))
		return 0;
	if (remote)
		return 2;
	/* It may send to many, of which the record has the latest. */
	return sock->flags & SL_SOCK_CONNECTED ? 0 : 1;
}

static void offer(struct sl_sock_candidate *candidate, const struct sl_sock *sock,
		  unsigned int score)
{
	if (!score || score < candidate->score)
		return;
	if (score > candidate->score)
		candidate->count = 0;
	/* Of sockets that are as good the latest one stands. */
	if (!candidate->count || sock->since_ns >= candidate->sock.since_ns)
		candidate->sock = *sock;
	candidate->score = score;
	candidate->count++;
}

static int match_sock(const struct sl_sock *sock, void *arg)
{
	struct search *search = arg;

	if (search->cookie && sock->cookie == search->cookie)
		offer(&search->out->found, sock, 4);
	else
		offer(&search->out->found, sock, sl_sock_ends_match(search->ends, sock));
	offer(&search->out->other, sock, sl_sock_ends_match(&search->other_ends, sock));
	return 0;
}

int sl_sock_find(struct sl_set *set, const struct sl_sock_ends *ends, struct sl_sock_found *out)
{
	struct search search = {
		.ends = ends,
		/* The other end may be in another namespace of this host. */
		.other_ends = { .local = ends->remote, .remote = ends->local, .udp = ends->udp },
		.out = out,
	};
	struct sl_sock sock;
	int ret;

	memset(out, 0, sizeof(*out));
	if (!ends->udp) {
		ret = sl_tuple_resolve(set, &ends->local, &ends->remote, ends->netns_cookie, &sock);
		if (ret && ret != -ENOENT)
			return ret;
		search.cookie = ret ? 0 : sock.cookie;
	}
	ret = sl_socks_each(set, match_sock, &search);
	if (ret || (out->found.score && (!search.cookie || out->found.score == 4)))
		return ret;
	out->closed = true;
	ret = sl_closed_each(set, match_sock, &search);
	return ret ? ret : out->found.score ? 0 : -ENOENT;
}
