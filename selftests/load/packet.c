/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* AF_PACKET: frames of the local experimental Ethernet type, by every way to send them. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "chan.h"
#include "sock.h"
#include "truth.h"

#define FRAME_TYPE 0x88b5 /* IEEE 802, local experimental 1 */
#define FRAME_MAX 1400
#define RING_FRAME 2048
#define RING_FRAMES 16
#define BATCH 4

struct pkt {
	const struct sl_opts *o;
	int fd;
	int type; /* SOCK_RAW or SOCK_DGRAM */
	struct sockaddr_ll to;
	uint8_t frame[ETH_HLEN + FRAME_MAX];
	size_t len; /* of one frame as handed over: with its header for SOCK_RAW */
	uint8_t *ring;
	uint64_t datagrams;
	uint64_t sent;
	uint64_t received;
	const char *step;
};

/* Sends at most `n` frames; how many, or -errno. */
struct mode {
	const char *name;
	int type;
	int (*prepare)(struct pkt *p);
	int (*send)(struct pkt *p, uint64_t n);
};

static int send_one(struct pkt *p, uint64_t n)
{
	(void)n;
	return sendto(p->fd, p->frame, p->len, 0, (struct sockaddr *)&p->to, sizeof(p->to)) < 0
		       ? -errno
		       : 1;
}

static int send_mmsg(struct pkt *p, uint64_t n)
{
	struct mmsghdr msgs[BATCH] = { 0 };
	struct iovec iov = { p->frame, p->len };
	int rc;

	for (int i = 0; i < BATCH; i++) {
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
		msgs[i].msg_hdr.msg_name = &p->to;
		msgs[i].msg_hdr.msg_namelen = sizeof(p->to);
	}
	rc = sendmmsg(p->fd, msgs, n < BATCH ? (unsigned int)n : BATCH, 0);
	return rc < 0 ? -errno : rc;
}

static int prepare_bypass(struct pkt *p)
{
	return setsockopt(p->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &(int){ 1 }, sizeof(int)) < 0
		       ? -errno
		       : 0;
}

static int prepare_ring(struct pkt *p)
{
	struct tpacket_req req = {
		.tp_block_size = RING_FRAME * RING_FRAMES,
		.tp_block_nr = 1,
		.tp_frame_size = RING_FRAME,
		.tp_frame_nr = RING_FRAMES,
	};

	if (setsockopt(p->fd, SOL_PACKET, PACKET_VERSION, &(int){ TPACKET_V2 }, sizeof(int)) < 0 ||
	    setsockopt(p->fd, SOL_PACKET, PACKET_TX_RING, &req, sizeof(req)) < 0)
		return -errno;
	/* The frames of a ring have no address: the bound interface is theirs. */
	if (bind(p->fd, (struct sockaddr *)&p->to, sizeof(p->to)) < 0)
		return -errno;
	p->ring =
		mmap(NULL, RING_FRAME * RING_FRAMES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
	if (p->ring == MAP_FAILED) {
		p->ring = NULL;
		return -errno;
	}
	return 0;
}

/* Fills one frame of the ring and has the kernel send it, waiting until it has. */
static int send_ring(struct pkt *p, uint64_t n)
{
	size_t offset = TPACKET_ALIGN(sizeof(struct tpacket2_hdr));
	uint8_t *slot = p->ring + (p->datagrams % RING_FRAMES) * RING_FRAME;
	struct tpacket2_hdr *header = (struct tpacket2_hdr *)slot;
	uint32_t status;

	(void)n;
	memcpy(slot + offset, p->frame, p->len);
	header->tp_len = (uint32_t)p->len;
	__atomic_store_n(&header->tp_status, TP_STATUS_SEND_REQUEST, __ATOMIC_RELEASE);
	if (send(p->fd, NULL, 0, 0) < 0)
		return -errno;
	do {
		struct pollfd pfd = { .fd = p->fd, .events = POLLOUT };

		status = __atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE);
		if (status & TP_STATUS_WRONG_FORMAT)
			return -EINVAL;
		if (status != TP_STATUS_AVAILABLE)
			(void)poll(&pfd, 1, 1);
	} while (status != TP_STATUS_AVAILABLE);
	return 1;
}

static const struct mode modes[] = {
	{ "sendto", SOCK_RAW, NULL, send_one },
	{ "dgram", SOCK_DGRAM, NULL, send_one },
	{ "tx-ring", SOCK_RAW, prepare_ring, send_ring },
	{ "qdisc-bypass", SOCK_RAW, prepare_bypass, send_one },
	{ "sendmmsg", SOCK_RAW, NULL, send_mmsg },
};

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (!name || !strcmp(name, modes[i].name))
			return &modes[i];
	}
	return NULL;
}

/* Opens the socket and finds the interface; protocol 0 receives nothing. */
static int open_packet(struct pkt *p, uint16_t protocol)
{
	const char *ifname = p->o->ifname ? p->o->ifname : "lo";
	int rc = sl_sock_new(AF_PACKET, p->type, htons(protocol), &p->fd);

	p->step = "socket";
	if (rc < 0)
		return rc;
	p->step = "ifname";
	p->to = (struct sockaddr_ll){
		.sll_family = AF_PACKET,
		.sll_protocol = htons(FRAME_TYPE),
		.sll_ifindex = (int)if_nametoindex(ifname),
		.sll_halen = ETH_ALEN,
	};
	return p->to.sll_ifindex == 0 ? -errno : 0;
}

static void make_frame(struct pkt *p, size_t bytes)
{
	struct ethhdr eth = { .h_proto = htons(FRAME_TYPE) };
	size_t skip = p->type == SOCK_RAW ? ETH_HLEN : 0;

	memcpy(p->frame, &eth, sizeof(eth));
	memcpy(p->frame + skip, sl_payload(), bytes);
	p->len = skip + bytes;
}

static int send_all(struct pkt *p, const struct mode *mode)
{
	uint64_t count = sl_or(p->o->count, 1);
	int rc;

	p->step = "prepare";
	rc = mode->prepare ? mode->prepare(p) : 0;
	if (rc < 0)
		return rc;
	p->step = "send";
	while (p->datagrams < count) {
		rc = mode->send(p, count - p->datagrams);
		if (rc < 0)
			return rc;
		p->datagrams += (uint64_t)rc;
		p->sent += (uint64_t)rc * p->len;
	}
	return 0;
}

static void tell_socket(struct sl_line *line, const struct pkt *p, const char *what)
{
	struct sl_sock_note note = { 0 };

	if (p->fd >= 0)
		sl_sock_note(&note, p->fd);
	sl_line_start(line, what);
	sl_line_self(line);
	sl_line_note(line, &note);
	sl_line_add(line, "ifname", "%s", p->o->ifname ? p->o->ifname : "lo");
}

static int packet_send(const struct sl_opts *o)
{
	const struct mode *mode = find_mode(o->mode);
	uint64_t bytes = sl_or(o->bytes, 64);
	struct pkt p = { .o = o, .fd = -1, .step = "-" };
	struct sl_line line;
	int rc;

	if (!mode || bytes > FRAME_MAX)
		return sl_usage("--mode: no such mode, or more than %d bytes", FRAME_MAX);
	p.type = mode->type;
	rc = open_packet(&p, 0);
	if (rc == 0) {
		make_frame(&p, bytes);
		rc = send_all(&p, mode);
	}
	tell_socket(&line, &p, "sock");
	sl_line_u64(&line, "datagrams", p.datagrams);
	sl_line_u64(&line, "sent", p.sent);
	sl_line_u64(&line, "received", 0);
	sl_line_add(&line, "step", "%s", rc < 0 ? p.step : "-");
	sl_line_errno(&line, "errno", -rc);
	sl_line_end(&line);
	if (p.ring)
		munmap(p.ring, RING_FRAME * RING_FRAMES);
	sl_cleanup_fd(&p.fd);
	return rc < 0 ? sl_fail(p.step, -rc) : 0;
}

/* Counts incoming frames; loopback shows each one as outgoing too. */
static int take_frames(struct pkt *p, uint64_t count)
{
	bool draining = false;

	while (p->datagrams < count) {
		struct sockaddr_ll from = { 0 };
		socklen_t from_len = sizeof(from);
		ssize_t n;
		int rc = sl_sock_next(p->o, p->fd, &draining);

		if (rc <= 0)
			return rc;
		n = recvfrom(p->fd, p->frame, sizeof(p->frame), 0, (struct sockaddr *)&from,
			     &from_len);
		if (n < 0)
			return -errno;
		if (from.sll_pkttype == PACKET_OUTGOING)
			continue;
		p->datagrams++;
		p->received += (uint64_t)n;
	}
	return 0;
}

static int packet_server(const struct sl_opts *o)
{
	struct pkt p = { .o = o, .fd = -1, .type = SOCK_DGRAM, .step = "-" };
	struct sl_line line;
	int rc = open_packet(&p, FRAME_TYPE);

	if (rc == 0)
		sl_sock_buffer(p.fd);
	if (rc == 0 && bind(p.fd, (struct sockaddr *)&p.to, sizeof(p.to)) < 0) {
		p.step = "bind";
		rc = -errno;
	}
	if (rc == 0) {
		p.step = "receive";
		tell_socket(&line, &p, "listen");
		sl_line_end(&line);
		rc = take_frames(&p, sl_or(o->count, o->until_eof ? SL_UNSET : 1));
	}
	sl_line_start(&line, "total");
	sl_line_u64(&line, "datagrams", p.datagrams);
	sl_line_u64(&line, "received", p.received);
	sl_line_end(&line);
	sl_cleanup_fd(&p.fd);
	return rc < 0 ? sl_fail(p.step, -rc) : 0;
}

const struct sl_cmd sl_packet_cmds[] = {
	{ .name = "packet-send",
	  .run = packet_send,
	  .options = "mode ifname bytes count",
	  .help = "COUNT frames (Ethernet type 0x88b5) with BYTES (64) of payload. --mode sendto, "
		  "dgram, tx-ring, qdisc-bypass, sendmmsg; sent= counts the 14 bytes of the header "
		  "but in dgram" },
	{ .name = "packet-server",
	  .run = packet_server,
	  .options = "ifname count until-eof",
	  .help = "counts such frames and their payload" },
	{ 0 },
};
