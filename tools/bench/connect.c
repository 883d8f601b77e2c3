/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* socket, connect and close on loopback: recorded, enforced, held. */
#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "bench.h"
#include "child.h"
#include "report.h"
#include "rounds.h"

#define BUDGET_RECORDING 1.08
#define BUDGET_ENFORCED 1.12
#define BUDGET_HELD 1.35
#define BACKLOG 4096

struct connect_options {
	struct sl_bench_common common;
	uint32_t rounds, per_round, segments;
	enum sl_pin pin;
};

static const struct sl_option connect_options[] = {
	SL_BENCH_OPTIONS(struct connect_options),
	SL_OPTION(U32, struct connect_options, rounds, "rounds", 'n', "COUNT",
		  "rounds of each mode", .min = 1, .max = 100000, .fallback = "120"),
	SL_OPTION(U32, struct connect_options, per_round, "per-round", 0, "COUNT",
		  "connections in one turn", .min = 1, .max = 1000000, .fallback = "1000"),
	SL_OPTION(U32, struct connect_options, segments, "segments", 0, "COUNT",
		  "times that the set is loaded", .min = 1, .max = 1000, .fallback = "6"),
	SL_OPTION(CHOICE, struct connect_options, pin, "pin", 0, NULL, "CPUs to use",
		  .choices = sl_pin_names, .fallback = "two"),
	{ 0 },
};

/*
 * Lingering for no time makes close() send RST: nothing stays in TIME_WAIT, so a
 * connection costs the same however many there were before.
 */
static int connect_close(void *arg)
{
	const struct linger linger = { .l_onoff = 1 };
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)))
		return -errno;
	return connect(fd, arg, sizeof(struct sockaddr_in)) ? -errno : 0;
}

/* To a port that refuses: no work of a listener is in it. */
static int connect_refused(void *arg)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (!connect(fd, arg, sizeof(struct sockaddr_in)))
		return -EISCONN;
	return errno == ECONNREFUSED ? 0 : -errno;
}

const struct sl_op sl_op_refused = { .name = "refused", .run = connect_refused };
const struct sl_op sl_op_connect = { .name = "connect", .run = connect_close };

static int listen_any(int *out, struct sockaddr_in *addr, struct sl_err *err)
{
	_cleanup_fd_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*addr);

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	if (fd < 0 || bind(fd, (struct sockaddr *)addr, len) || listen(fd, BACKLOG) ||
	    getsockname(fd, (struct sockaddr *)addr, &len))
		return sl_err_sys(err, errno, "can't listen on loopback");
	*out = TAKE_FD(fd);
	return 0;
}

static int drain(void *arg)
{
	int listener = *(int *)arg, fd;

	for (;;) {
		fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
		else if (errno != ECONNABORTED && errno != EINTR)
			return 1;
	}
}

static int measure(const struct connect_options *opt, struct sl_report *report, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = NULL;
	__attribute__((cleanup(sl_child_stop))) struct sl_child drainer = { 0 };
	_cleanup_fd_ int listener = -1;
	struct sl_child_spec spec = { .cpu = sl_pin_helper(opt->pin), .run = drain };
	struct sockaddr_in addr;
	struct sl_rounds rounds = {
		.modes = SL_MODES_RECORDING | SL_MODES_HOLDING,
		.segments = opt->common.quick ? 1 : opt->segments,
		.rounds = opt->common.quick ? 5 : opt->rounds,
		.pin = opt->pin,
		.op = &sl_op_connect,
		.arg = &addr,
		.arg_size = sizeof(addr),
		.per_turn = opt->common.quick ? 200 : opt->per_round,
		.mediated = { .hold = SL_HOLD_CONNECT, .transport = "tcp" },
		.budgets = { [SL_MODE_DEFAULT] = BUDGET_RECORDING,
			     [SL_MODE_ENFORCED] = BUDGET_ENFORCED,
			     [SL_MODE_FILTERED] = BUDGET_ENFORCED,
			     [SL_MODE_HELD] = BUDGET_HELD },
	};
	int rc;

	rc = sl_world_new(&world, err);
	if (!rc)
		rc = listen_any(&listener, &addr, err);
	if (rc)
		return rc;
	rounds.mediated.port = ntohs(addr.sin_port);
	spec.cgroup = world->plain;
	spec.arg = &listener;
	rc = sl_child_start(&drainer, &spec, err);
	return rc ?: sl_rounds_run(world, &rounds, report, err);
}

static int bench(const void *options, struct sl_report *report, struct sl_err *err)
{
	int rc = measure(options, report, err);

	if (rc)
		return rc;
	sl_report_note(report,
		       "one operation: socket, SO_LINGER 0, connect to 192.0.2.1 on the loopback "
		       "interface, close");
	sl_report_note(report, "the listener is in the plain cgroup, outside of any sandbox, where "
			       "a process accepts and closes in a loop");
	return 0;
}

static int connect_run(struct sl_cli *cli, const void *options, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return sl_report_run(cli, "connect", options, bench);
}

const struct sl_command sl_bench_connect = {
	.name = "connect",
	.summary = "connect and close on loopback: bare, recorded, enforced, held",
	.options = connect_options,
	.options_size = sizeof(struct connect_options),
	.run = connect_run,
};
