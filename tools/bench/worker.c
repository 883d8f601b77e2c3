/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "bench.h"

#define HANDOFF_MS 10000

/* Commands to a worker, a byte each. */
#define TURN 't'
#define RENEW 'r'

static const struct sl_op *const ops[] = { &sl_op_connect, &sl_op_refused, &sl_op_exec,
					   &sl_op_udp };

/* What a worker answers. */
struct turn {
	int error;
	double ns; /* per operation */
};

/* All that a worker needs to know, kept over its renewal in a memfd. */
struct orders {
	char op[16];
	unsigned int per_turn;
	int go, done; /* its ends of the pipes */
	_Alignas(max_align_t) char arg[SL_OP_ARG_MAX];
};

static int operate(const struct sl_op *op, struct orders *orders, unsigned int count)
{
	int rc = 0;

	for (unsigned int i = 0; i < count && !rc; i++)
		rc = op->run(orders->arg);
	return rc;
}

static void measure(const struct sl_op *op, struct orders *orders, struct turn *turn)
{
	uint64_t start;

	turn->error = op->begin ? op->begin(orders->arg) : 0;
	/* Caches and branch predictors see this mode first. */
	if (!turn->error)
		turn->error = operate(op, orders, orders->per_turn / 10 + 1);
	start = sl_bench_now_ns();
	if (!turn->error)
		turn->error = operate(op, orders, orders->per_turn);
	turn->ns = (double)(sl_bench_now_ns() - start) / orders->per_turn;
}

/* Returns only when it fails, which ends the worker. */
static void renew(const struct orders *orders)
{
	int fd = memfd_create("orders", 0);
	char text[16], *argv[] = { (char *)SL_WORKER_ARGV0, text, NULL };

	if (fd < 0 || write(fd, orders, sizeof(*orders)) != sizeof(*orders) ||
	    fcntl(orders->go, F_SETFD, 0) || fcntl(orders->done, F_SETFD, 0))
		return;
	snprintf(text, sizeof(text), "%d", fd);
	execv("/proc/self/exe", argv);
}

static int work(struct orders *orders)
{
	const struct sl_op *op = NULL;
	struct turn turn;
	char byte;

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		if (!strcmp(ops[i]->name, orders->op))
			op = ops[i];
	}
	while (op && read(orders->go, &byte, 1) == 1) {
		if (byte == RENEW) {
			renew(orders);
			return 1;
		}
		measure(op, orders, &turn);
		if (write(orders->done, &turn, sizeof(turn)) != sizeof(turn))
			return 1;
	}
	return 0;
}

int sl_worker_main(int argc, char **argv)
{
	const struct turn here = { 0 };
	struct orders orders;
	uint32_t fd;

	if (argc != 2 || sl_parse_u32(argv[1], 0, INT32_MAX, &fd) ||
	    pread((int)fd, &orders, sizeof(orders), 0) != sizeof(orders))
		return 1;
	close((int)fd);
	if (fcntl(orders.go, F_SETFD, FD_CLOEXEC) || fcntl(orders.done, F_SETFD, FD_CLOEXEC) ||
	    write(orders.done, &here, sizeof(here)) != sizeof(here))
		return 1;
	return work(&orders);
}

struct start {
	const struct sl_worker *worker;
	const struct sl_worker_spec *spec;
	struct sl_handoff *handoff;
};

static int start_main(void *arg)
{
	const struct start *start = arg;
	const struct sl_worker_spec *spec = start->spec;
	struct orders orders = {
		.per_turn = spec->per_turn,
		.go = start->worker->go[0],
		.done = start->worker->done[1],
	};
	struct sl_err err = { 0 };

	close(start->worker->go[1]);
	snprintf(orders.op, sizeof(orders.op), "%s", spec->op->name);
	if (spec->arg_size)
		memcpy(orders.arg, spec->arg, spec->arg_size);
	if (spec->filter &&
	    sl_handoff_give(start->handoff, spec->filter, spec->filter_flags, &err)) {
		sl_log_err(SL_LOG_ERROR, &err);
		return 1;
	}
	return work(&orders);
}

int sl_worker_start(struct sl_worker *worker, const struct sl_worker_spec *spec, struct sl_err *err)
{
	__attribute__((cleanup(sl_handoff_end))) struct sl_handoff handoff = { -1, -1 };
	struct start start = { worker, spec, &handoff };
	const struct sl_child_spec child = {
		.cgroup = spec->cgroup,
		.cpu = spec->cpu,
		.run = start_main,
		.arg = &start,
	};
	int rc;

	worker->name = spec->name;
	if (spec->arg_size > SL_OP_ARG_MAX)
		return sl_err_sys(err, EOVERFLOW, "%s", spec->name);
	if (pipe2(worker->go, O_CLOEXEC) || pipe2(worker->done, O_CLOEXEC))
		return sl_err_sys(err, errno, "pipe");
	rc = spec->filter ? sl_handoff_new(&handoff, err) : 0;
	rc = rc ?: sl_child_start(&worker->child, &child, err);
	sl_cleanup_fd(&worker->done[1]);
	if (rc || !spec->filter)
		return rc;
	rc = sl_handoff_take(&handoff, HANDOFF_MS, &worker->listener, err);
	return rc ?: sl_handoff_release(&handoff, err);
}

static int command(struct sl_worker *worker, char byte, struct turn *turn, struct sl_err *err)
{
	ssize_t len;

	if (write(worker->go[1], &byte, 1) != 1)
		return sl_err_sys(err, errno, "%s: worker", worker->name);
	len = read(worker->done[0], turn, sizeof(*turn));
	if (len < 0 && errno == EINTR)
		return -EINTR;
	if (len != sizeof(*turn))
		return sl_err_set(err, EIO, "%s: the worker ended", worker->name);
	if (turn->error)
		return sl_err_sys(err, -turn->error, "%s", worker->name);
	return 0;
}

int sl_worker_renew(struct sl_worker *worker, struct sl_err *err)
{
	struct turn turn;

	return command(worker, RENEW, &turn, err);
}

int sl_worker_turn(struct sl_worker *worker, double *ns, struct sl_err *err)
{
	struct turn turn = {};
	int rc = command(worker, TURN, &turn, err);

	if (!rc)
		*ns = turn.ns;
	return rc;
}

void sl_worker_clear(struct sl_worker *worker)
{
	sl_child_stop(&worker->child);
	sl_cleanup_fd(&worker->go[0]);
	sl_cleanup_fd(&worker->go[1]);
	sl_cleanup_fd(&worker->done[0]);
	sl_cleanup_fd(&worker->done[1]);
	sl_cleanup_fd(&worker->listener);
}
