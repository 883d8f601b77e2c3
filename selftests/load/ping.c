/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ICMP echo by ping sockets (SOCK_DGRAM) and by raw ones; the kernel answers. */
#include <errno.h>
#include <fcntl.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chan.h"
#include "sock.h"
#include "truth.h"

#define PING_MAX 1400
#define ECHO_HEADER 8

#define PING_RANGE "/proc/sys/net/ipv4/ping_group_range"

struct ping {
	const struct sl_opts *o;
	bool raw;
	int family;
	int fd;
	struct sl_addr to;
	size_t bytes; /* payload after the 8 bytes of the echo header */
	uint64_t datagrams;
	uint64_t sent;
	uint64_t replies;
	uint64_t received;
};

static int set_loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	return ioctl(fd, SIOCSIFFLAGS, &ifr) < 0 ? -errno : 0;
}

static int open_range(void)
{
	static const char all[] = "0 2147483647";
	_cleanup_fd_ int fd = open(PING_RANGE, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, all, sizeof(all) - 1) < 0 ? -errno : 0;
}

/* A namespace of one's own is the only place where the range may be changed. */
static int enter_netns(void)
{
	int rc;

	if (unshare(CLONE_NEWNET) < 0)
		return sl_skip("a network namespace of its own", errno);
	rc = set_loopback_up();
	if (rc == 0)
		rc = open_range();
	return rc < 0 ? sl_skip("net.ipv4.ping_group_range", -rc) : 0;
}

/* Whether the kernel itself, rather than a policy, refuses ping sockets to this group. */
static bool range_excludes(void)
{
	_cleanup_file_ FILE *file = fopen(PING_RANGE, "re");
	unsigned int low, high;

	if (!file || fscanf(file, "%u %u", &low, &high) != 2)
		return false;
	return getgid() < low || getgid() > high;
}

static int only_replies(const struct ping *p)
{
	struct icmp6_filter filter6;
	struct icmp_filter filter = { .data = ~(1U << ICMP_ECHOREPLY) };

	if (!p->raw)
		return 0;
	if (p->family == AF_INET)
		return setsockopt(p->fd, SOL_RAW, ICMP_FILTER, &filter, sizeof(filter));
	ICMP6_FILTER_SETBLOCKALL(&filter6);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter6);
	return setsockopt(p->fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter6, sizeof(filter6));
}

static uint16_t checksum(const uint8_t *data, size_t len)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)(data[i] << 8 | data[i + 1]);
	if (len & 1)
		sum += (uint32_t)data[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* An echo request; for IPv6 and for ping sockets the kernel makes the checksum. */
static size_t make_request(const struct ping *p, uint8_t *buf, uint16_t sequence)
{
	uint16_t id = (uint16_t)getpid(), sum;

	buf[0] = p->family == AF_INET ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	buf[1] = buf[2] = buf[3] = 0;
	buf[4] = (uint8_t)(id >> 8);
	buf[5] = (uint8_t)id;
	buf[6] = (uint8_t)(sequence >> 8);
	buf[7] = (uint8_t)sequence;
	memcpy(buf + ECHO_HEADER, sl_payload(), p->bytes);
	sum = checksum(buf, ECHO_HEADER + p->bytes);
	if (p->raw && p->family == AF_INET) {
		buf[2] = (uint8_t)(sum >> 8);
		buf[3] = (uint8_t)sum;
	}
	return ECHO_HEADER + p->bytes;
}

static int exchange(struct ping *p)
{
	uint8_t buf[PING_MAX + ECHO_HEADER], reply[PING_MAX + 128];
	ssize_t n;

	for (uint64_t i = 0; i < sl_or(p->o->count, 1); i++) {
		size_t len = make_request(p, buf, (uint16_t)i);

		n = p->o->connected ? send(p->fd, buf, len, 0)
				    : sendto(p->fd, buf, len, 0, &p->to.sa, p->to.len);
		if (n < 0)
			return -errno;
		p->datagrams++;
		p->sent += (uint64_t)n;
		n = recv(p->fd, reply, sizeof(reply), 0);
		if (n < 0)
			return -errno;
		p->replies++;
		p->received += (uint64_t)n;
	}
	return 0;
}

static int open_ping(struct ping *p)
{
	int protocol = p->family == AF_INET ? IPPROTO_ICMP : (int)IPPROTO_ICMPV6;
	int rc = sl_sock_new(p->family, p->raw ? SOCK_RAW : SOCK_DGRAM, protocol, &p->fd);

	if (rc == -EACCES && !p->raw && range_excludes())
		return sl_skip("ping sockets (net.ipv4.ping_group_range)", -rc);
	if (rc == 0 && only_replies(p) < 0)
		rc = -errno;
	if (rc == 0 && p->o->connected && connect(p->fd, &p->to.sa, p->to.len) < 0)
		rc = -errno;
	return rc;
}

static void tell(const struct ping *p, int err)
{
	struct sl_sock_note note = { 0 };
	struct sl_line line;

	if (p->fd >= 0)
		sl_sock_note(&note, p->fd);
	sl_line_start(&line, "sock");
	sl_line_self(&line);
	sl_line_note(&line, &note);
	sl_line_addr(&line, "to", &p->to);
	sl_line_u64(&line, "datagrams", p->datagrams);
	sl_line_u64(&line, "sent", p->sent);
	sl_line_u64(&line, "replies", p->replies);
	sl_line_u64(&line, "received", p->received);
	sl_line_add(&line, "step", "%s", err ? "ping" : "-");
	sl_line_errno(&line, "errno", err);
	sl_line_end(&line);
}

static int ping_send(const struct sl_opts *o)
{
	struct ping p = { .o = o, .fd = -1, .bytes = sl_or(o->bytes, 56) };
	int rc;

	if (o->kind && strcmp(o->kind, "dgram") != 0 && strcmp(o->kind, "raw") != 0)
		return sl_usage("--kind: dgram or raw");
	if (o->n_servers == 0 || p.bytes > PING_MAX)
		return sl_usage("%s needs --server and at most %d bytes", o->cmd, PING_MAX);
	p.raw = o->kind && !strcmp(o->kind, "raw");
	p.to = o->server[0];
	p.family = p.to.sa.sa_family;
	rc = o->own_netns ? enter_netns() : 0;
	if (rc < 0)
		return rc;
	rc = open_ping(&p);
	if (rc == -SL_ENOFEATURE)
		return rc;
	if (rc == 0)
		rc = exchange(&p);
	tell(&p, -rc);
	sl_cleanup_fd(&p.fd);
	return rc < 0 ? sl_fail("ping", -rc) : 0;
}

const struct sl_cmd sl_ping_cmds[] = {
	{ .name = "ping-send",
	  .run = ping_send,
	  .options = "server bytes count kind connected own-netns",
	  .help = "COUNT ICMP or ICMPv6 echo requests with BYTES (56) after the header, and their "
		  "replies. --kind dgram (ping socket) or raw. Exit 77 when the group range "
		  "excludes this group; --own-netns makes a namespace where it does not" },
	{ 0 },
};
