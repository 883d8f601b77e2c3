// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One question's tries: a datagram to one upstream after the other, TCP when told to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/epoll.h"
#include "dns/resolver_private.h"

#define SILENT_MS 30000
#define DATAGRAM_MAX 4096
#define READS_MAX 16 /* datagrams of one socket in one turn */

void sl_exchange_close(struct sl_exchange *exchange)
{
	sl_epoll_close(exchange->resolver->epoll, &exchange->fd);
	sl_cleanup_free(&exchange->buffer);
	exchange->done = exchange->size = 0;
	exchange->sent = false;
}

static struct sl_upstream *upstream_of(const struct sl_exchange *exchange)
{
	struct sl_resolver *resolver = exchange->resolver;
	unsigned int at = (exchange->tries ? exchange->tries - 1 : 0) % resolver->config.count;

	return &resolver->upstreams[exchange->order[at]];
}

/* The id; and "0x20": letters in random case, which an answer has to repeat. */
static int set_name(struct sl_exchange *exchange)
{
	const struct sl_resolver *resolver = exchange->resolver;
	uint8_t random[sizeof(exchange->id) + SL_NAME_WIRE / 8 + 1];

	/* Waits only as long as the system has no entropy at all, early at boot. */
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	memcpy(&exchange->id, random, sizeof(exchange->id));
	memcpy(exchange->cased, exchange->question.name, SL_NAME_WIRE);
	/* Some servers answer in lower case: a second round without. */
	if (!resolver->config.mix_case || exchange->tries > resolver->config.count)
		return 0;
	for (size_t i = 0; i < exchange->question.len; i++) {
		bool up = random[sizeof(exchange->id) + i / 8] >> (i % 8) & 1;

		/* The length of a label is at most 63, below any letter. */
		if (up && exchange->cased[i] >= 'a' && exchange->cased[i] <= 'z')
			exchange->cased[i] = (uint8_t)(exchange->cased[i] - 'a' + 'A');
	}
	return 0;
}

/* The query, to be freed with free(). */
static int make_query(struct sl_exchange *exchange, uint8_t **wire, size_t *size)
{
	ldns_rdf *name = NULL;
	ldns_pkt *query = NULL;
	int ret = set_name(exchange);

	if (ret)
		return ret;
	name = ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, exchange->question.len, exchange->cased);
	if (name)
		query = ldns_pkt_query_new(name, (ldns_rr_type)exchange->question.type,
					   LDNS_RR_CLASS_IN, LDNS_RD);
	if (!query) {
		ldns_rdf_deep_free(name);
		return -ENOMEM;
	}
	ldns_pkt_set_id(query, exchange->id);
	if (!exchange->no_edns)
		ldns_pkt_set_edns_udp_size(query, SL_RESOLVER_UDP_SIZE);
	ret = sl_message_write(query, wire, size);
	ldns_pkt_free(query);
	return ret;
}

static int open_socket(struct sl_exchange *exchange)
{
	const struct sl_upstream *upstream = upstream_of(exchange);
	struct sl_resolver *resolver = exchange->resolver;
	struct epoll_event event = { .events = exchange->tcp ? EPOLLOUT : EPOLLIN,
				     .data.ptr = exchange };
	_cleanup_fd_ int fd = socket(
		upstream->addr.ss_family,
		(exchange->tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint32_t mark = resolver->config.mark;

	if (fd < 0 || (mark && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark))))
		return -errno;
	/* Connected: the kernel takes nothing from elsewhere, and tells when nobody is there. */
	if (connect(fd, (const struct sockaddr *)&upstream->addr, upstream->size) &&
	    errno != EINPROGRESS)
		return -errno;
	if (epoll_ctl(resolver->epoll, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	exchange->fd = TAKE_FD(fd);
	return 0;
}

static int begin_tcp(struct sl_exchange *exchange, const uint8_t *wire, size_t size)
{
	exchange->buffer = malloc(2 + size);
	if (!exchange->buffer)
		return -ENOMEM;
	exchange->buffer[0] = (uint8_t)(size >> 8);
	exchange->buffer[1] = (uint8_t)size;
	memcpy(exchange->buffer + 2, wire, size);
	exchange->size = 2 + size;
	exchange->resolver->counts[SL_RESOLVER_COUNT_TCP]++;
	return 0;
}

/* A try fails here, or is on its way until try_until_ms. */
static void begin(struct sl_exchange *exchange, bool tcp)
{
	struct sl_resolver *resolver = exchange->resolver;
	_cleanup_free_ uint8_t *wire = NULL;
	int64_t now_ms = sl_monotonic_ms();
	unsigned int round;
	size_t size;
	int ret;

	sl_exchange_close(exchange);
	exchange->tcp = tcp;
	ret = make_query(exchange, &wire, &size);
	if (!ret)
		ret = open_socket(exchange);
	if (!ret && tcp)
		ret = begin_tcp(exchange, wire, size);
	else if (!ret && send(exchange->fd, wire, size, MSG_NOSIGNAL) < 0)
		ret = -errno;
	resolver->counts[SL_RESOLVER_COUNT_TRIES]++;
	/* Twice as long in each round: who is slow under load gets its time. */
	round = (exchange->tries - 1) / resolver->config.count;
	exchange->try_until_ms =
		now_ms + ((int64_t)resolver->config.timeout_ms << (round < 8 ? round : 8));
	if (exchange->try_until_ms > exchange->until_ms)
		exchange->try_until_ms = exchange->until_ms;
	if (ret) {
		/* The next one's turn is when the timer fires, at once: nobody is called here. */
		sl_exchange_close(exchange);
		exchange->error = ret;
		exchange->try_until_ms = now_ms;
	}
	sl_resolver_arm(resolver, exchange->try_until_ms);
}

void sl_exchange_next(struct sl_exchange *exchange, int error)
{
	struct sl_resolver *resolver = exchange->resolver;
	const struct sl_resolver_config *config = &resolver->config;
	int64_t now_ms = sl_monotonic_ms();

	/* Closed already: it failed before anything was sent. */
	if (error == -ETIMEDOUT && exchange->fd < 0 && exchange->tries)
		error = exchange->error;
	if (error == -ETIMEDOUT)
		resolver->counts[SL_RESOLVER_COUNT_TIMEOUTS]++;
	if (error == -ETIMEDOUT || error == -ECONNREFUSED)
		upstream_of(exchange)->silent_until_ms = now_ms + SILENT_MS;
	if (exchange->tries < config->count * config->attempts && now_ms < exchange->until_ms) {
		exchange->tries++;
		begin(exchange, false);
		return;
	}
	if (error != -ETIMEDOUT && error != -ENOMEM)
		error = -EIO;
	sl_exchange_end(exchange, &(struct sl_reply){ .error = error });
}

/* Whether the message is about what was asked; RFC 5452, 9.1. */
static bool is_ours(const struct sl_exchange *exchange, const uint8_t *data, size_t size,
		    const struct sl_head *head)
{
	const struct sl_question *asked = &exchange->question;
	struct sl_question question;
	uint8_t cased[SL_NAME_WIRE];
	uint16_t class;

	if (!head->response || head->id != exchange->id || head->opcode != LDNS_PACKET_QUERY)
		return false;
	/* Who could not read the question need not repeat it. */
	if (!head->count[0] && head->rcode != LDNS_RCODE_NOERROR &&
	    head->rcode != LDNS_RCODE_NXDOMAIN)
		return true;
	return !sl_question_read(data, size, &question, &class, cased) &&
	       class == LDNS_RR_CLASS_IN && !memcmp(&question, asked, sizeof(question)) &&
	       (!exchange->resolver->config.mix_case ||
		!memcmp(cased, exchange->cased, question.len));
}

static void again_without_edns(struct sl_exchange *exchange)
{
	exchange->no_edns = true;
	begin(exchange, false);
}

static void end_well(struct sl_exchange *exchange, ldns_pkt *message, const uint8_t *data,
		     size_t size)
{
	struct sl_resolver *resolver = exchange->resolver;
	struct sl_upstream *upstream = upstream_of(exchange);

	upstream->silent_until_ms = 0;
	if (resolver->cache)
		sl_cache_put(resolver->cache, &exchange->question, data, size,
			     sl_message_ttl_s(message), sl_monotonic_ms());
	sl_exchange_end(exchange,
			&(struct sl_reply){ .message = message, .upstream = upstream->text });
}

/* True: it was nothing, go on waiting. */
static bool ignore(struct sl_exchange *exchange)
{
	exchange->resolver->counts[SL_RESOLVER_COUNT_IGNORED]++;
	if (!exchange->tcp)
		return true;
	/* Nothing else will come on a connection of our own. */
	sl_exchange_next(exchange, -EIO);
	return false;
}

/* False: this socket is done with, and the exchange may be. */
static bool take(struct sl_exchange *exchange, const uint8_t *data, size_t size)
{
	ldns_pkt *message = NULL;
	struct sl_head head;
	bool unread;

	if (sl_head_read(data, size, &head) || !is_ours(exchange, data, size, &head))
		return ignore(exchange);
	unread = head.rcode == LDNS_RCODE_FORMERR || head.rcode == LDNS_RCODE_NOTIMPL;
	if (head.cut && !exchange->tcp) {
		begin(exchange, true);
	} else if (unread && !exchange->no_edns) {
		again_without_edns(exchange);
	} else if (head.cut ||
		   (head.rcode != LDNS_RCODE_NOERROR && head.rcode != LDNS_RCODE_NXDOMAIN)) {
		sl_exchange_next(exchange, -EIO);
	} else if (sl_message_read(&message, data, size, SL_RESOLVER_RECORDS)) {
		return ignore(exchange);
	} else if (ldns_pkt_edns(message) && ldns_pkt_edns_extended_rcode(message)) {
		sl_exchange_next(exchange, -EIO);
	} else {
		end_well(exchange, message, data, size);
	}
	ldns_pkt_free(message);
	return false;
}

static void read_datagrams(struct sl_exchange *exchange)
{
	uint8_t data[DATAGRAM_MAX];

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t size = recv(exchange->fd, data, sizeof(data), MSG_TRUNC);

		if (size < 0) {
			if (errno != EAGAIN && errno != EINTR)
				sl_exchange_next(exchange, -errno);
			return;
		}
		if ((size_t)size > sizeof(data)) {
			ignore(exchange);
			continue;
		}
		if (!take(exchange, data, (size_t)size))
			return;
	}
}

static int write_stream(struct sl_exchange *exchange)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = exchange };
	ssize_t n = send(exchange->fd, exchange->buffer + exchange->done,
			 exchange->size - exchange->done, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	exchange->done += (size_t)n;
	if (exchange->done < exchange->size)
		return 0;
	exchange->sent = true;
	exchange->done = exchange->size = 0;
	sl_cleanup_free(&exchange->buffer);
	exchange->buffer = malloc(2 + SL_RESOLVER_ANSWER_SIZE);
	if (!exchange->buffer)
		return -ENOMEM;
	return epoll_ctl(exchange->resolver->epoll, EPOLL_CTL_MOD, exchange->fd, &event) ? -errno
											 : 0;
}

/* 1: the answer is there. */
static int read_stream(struct sl_exchange *exchange)
{
	size_t room = 2 + SL_RESOLVER_ANSWER_SIZE - exchange->done;
	ssize_t n = recv(exchange->fd, exchange->buffer + exchange->done, room, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -EPIPE;
	exchange->done += (size_t)n;
	if (exchange->done < 2)
		return 0;
	exchange->size = 2u + (unsigned int)(exchange->buffer[0] << 8 | exchange->buffer[1]);
	if (exchange->size > 2 + SL_RESOLVER_ANSWER_SIZE)
		return -EMSGSIZE;
	return exchange->done >= exchange->size;
}

void sl_exchange_handle(struct sl_exchange *exchange, unsigned int events)
{
	int ret;

	if (exchange->fd < 0)
		return;
	if (!exchange->tcp) {
		read_datagrams(exchange);
		return;
	}
	if (exchange->sent)
		ret = read_stream(exchange);
	else
		ret = events & EPOLLOUT ? write_stream(exchange) : -EPIPE;
	if (ret < 0) {
		sl_exchange_next(exchange, ret);
	} else if (ret) {
		/* Taken out: who gets the answer may ask again, with this exchange gone. */
		_cleanup_free_ uint8_t *data = TAKE_PTR(exchange->buffer);

		take(exchange, data + 2, exchange->size - 2);
	}
}
