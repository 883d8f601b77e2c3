/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sendto on loopback with a socket that is not connected: each runs the sendmsg hook. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bench.h"
#include "report.h"
#include "rounds.h"

#define BUDGET 1.10
#define PAYLOAD 64

struct udp_options {
	struct sl_bench_common common;
	uint32_t rounds, per_round, segments;
	enum sl_pin pin;
};

static const struct sl_option udp_options[] = {
	SL_BENCH_OPTIONS(struct udp_options),
	SL_OPTION(U32, struct udp_options, rounds, "rounds", 'n', "COUNT", "rounds of each mode",
		  .min = 1, .max = 100000, .fallback = "120"),
	SL_OPTION(U32, struct udp_options, per_round, "per-round", 0, "COUNT",
		  "datagrams in one turn", .min = 1, .max = 1000000, .fallback = "5000"),
	SL_OPTION(U32, struct udp_options, segments, "segments", 0, "COUNT",
		  "times that the set is loaded", .min = 1, .max = 1000, .fallback = "6"),
	SL_OPTION(CHOICE, struct udp_options, pin, "pin", 0, NULL, "CPUs to use",
		  .choices = sl_pin_names, .fallback = "two"),
	{ 0 },
};

static int sender = -1; /* each worker's own */

/* A socket of each turn's own, so that one made before the set was loaded is not used. */
static int open_sender(void *arg)
{
	(void)arg;
	sl_cleanup_fd(&sender);
	sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return sender < 0 ? -errno : 0;
}

static int send_one(void *arg)
{
	static const char payload[PAYLOAD];
	ssize_t n = sendto(sender, payload, sizeof(payload), 0, arg, sizeof(struct sockaddr_in));

	if (n < 0)
		return -errno;
	return n == sizeof(payload) ? 0 : -EIO;
}

const struct sl_op sl_op_udp = { .name = "udp", .run = send_one, .begin = open_sender };

/* The receiver's filter takes no datagram, so nobody is woken and no queue fills. */
static int open_sink(int *out, struct sockaddr_in *addr, struct sl_err *err)
{
	struct sock_filter code = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog none = { .len = 1, .filter = &code };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &none, sizeof(none)) ||
	    bind(fd, (struct sockaddr *)addr, len) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		return sl_err_sys(err, errno, "can't bind on loopback");
	*out = TAKE_FD(fd);
	return 0;
}

static int measure(const struct udp_options *opt, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	_cleanup_fd_ int sink = -1;
	struct sockaddr_in addr;
	struct sl_rounds rounds = {
		.modes = SL_MODES_RECORDING | SL_MODE_BIT(SL_MODE_ENFORCED),
		.segments = opt->common.quick ? 1 : opt->segments,
		.rounds = opt->common.quick ? 5 : opt->rounds,
		.pin = opt->pin,
		.op = &sl_op_udp,
		.arg = &addr,
		.arg_size = sizeof(addr),
		.per_turn = opt->common.quick ? 500 : opt->per_round,
		.mediated = { .hold = SL_HOLD_CONNECT, .transport = "udp" },
		.budgets = { [SL_MODE_ENFORCED] = BUDGET },
	};
	int rc;

	rc = sl_world_new(&world, err);
	rc = rc ?: open_sink(&sink, &addr, err);
	if (rc)
		return rc;
	rounds.mediated.port = ntohs(addr.sin_port);
	return sl_rounds_run(world, &rounds, report, err);
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	int rc = measure(options, report, err);

	if (rc)
		return rc;
	sl_report_note(report,
		       "one operation: sendto of %d bytes to 192.0.2.1 on the loopback "
		       "interface, by a socket that is not connected",
		       PAYLOAD);
	sl_report_note(report, "the receiver's socket filter drops each datagram");
	return 0;
}

static int udp_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "udp", options, bench);
}

const struct sl_command sl_bench_udp = {
	.name = "udp",
	.summary = "sendto on loopback: bare, recorded, enforced",
	.options = udp_options,
	.options_size = sizeof(struct udp_options),
	.run = udp_run,
};
