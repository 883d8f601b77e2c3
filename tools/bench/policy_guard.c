/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A sandbox a size, each with a policy and a worker of its own, all in one set: what one
 * policy costs, with all of them in the maps, is compared in rounds that alternate.
 */
#include "policy_guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "faults.h"
#include "guard/guard.h"
#include "kernel/cgroup.h"
#include "mediated.h"
#include "stats.h"
#include "worker.h"
#include "world.h"

#define BUDGET_RATIO 1.5

static const uint32_t sizes[] = { 10, 1000, 10000 };
#define SIZES ARRAY_SIZE(sizes)

struct box {
	char name[32];
	char cgroup[PATH_MAX];
	unsigned int sandbox; /* 0: not attached */
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_worker worker;
	uint64_t load_ns;
	double *ns;
};

struct run {
	struct sl_world *world;
	struct box boxes[SIZES];
	unsigned int rounds, per_turn;
	int port_holder; /* bound, never listening: connect() is refused after the verdict */
	struct sockaddr_in addr;
};

static void run_clear(struct run *run)
{
	struct sl_err err = { 0 };

	for (size_t i = 0; i < SIZES; i++) {
		struct box *box = &run->boxes[i];

		sl_worker_clear(&box->worker);
		if (box->sandbox && sl_sandbox_detach(run->world->set, box->sandbox, &err))
			sl_log_err(SL_LOG_WARNING, &err);
		sl_compiled_free(&box->compiled);
		sl_policy_free(&box->policy);
		free(box->ns);
	}
	sl_cleanup_fd(&run->port_holder);
	sl_world_free(&run->world);
}

static int bind_port(struct run *run, struct sl_err *err)
{
	socklen_t len = sizeof(run->addr);

	run->addr = (struct sockaddr_in){ .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };
	run->port_holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (run->port_holder < 0 || bind(run->port_holder, (struct sockaddr *)&run->addr, len) ||
	    getsockname(run->port_holder, (struct sockaddr *)&run->addr, &len))
		return sl_err_sys(err, errno, "can't bind on loopback");
	return 0;
}

static int load(struct run *run, struct box *box, struct sl_err *err)
{
	struct sl_guard_options options = { .mode = SL_GUARD_ENFORCE };
	uint64_t start;
	__u32 policy_id;
	int rc;

	start = sl_bench_now_ns();
	rc = sl_guard_load(run->world->set, box->sandbox, box->compiled, &options, &policy_id, err);
	box->load_ns = sl_bench_now_ns() - start;
	return rc;
}

static int make_box(struct run *run, struct box *box, uint32_t rules, struct sl_err *err)
{
	const struct sl_worker_spec spec = {
		.name = box->name,
		.cgroup = box->cgroup,
		.cpu = sl_pin_worker(SL_PIN_TWO),
		.op = &sl_op_refused,
		.arg = &run->addr,
		.arg_size = sizeof(run->addr),
		.per_turn = run->per_turn,
	};
	int rc;

	box->ns = calloc(run->rounds, sizeof(*box->ns));
	if (!box->ns)
		return sl_err_sys(err, ENOMEM, "samples");
	snprintf(box->name, sizeof(box->name), "%u rules", rules);
	if (snprintf(box->cgroup, sizeof(box->cgroup), "%s/rules-%u", run->world->cgroup, rules) >=
	    (int)sizeof(box->cgroup))
		return sl_err_sys(err, ENAMETOOLONG, "cgroup");
	rc = sl_cgroup_create(box->cgroup, err);
	rc = rc ?: sl_sandbox_attach(run->world->set, box->cgroup, box->name, &box->sandbox, err);
	rc = rc
		     ?: sl_mediated_policy(&box->policy, &box->compiled, rules, "tcp",
					   ntohs(run->addr.sin_port), err);
	rc = rc ?: load(run, box, err);
	rc = rc ?: sl_worker_start(&box->worker, &spec, err);
	return rc ?: sl_worker_renew(&box->worker, err);
}

static void report_boxes(struct run *run, struct sl_report *report, unsigned int rounds)
{
	double scratch[rounds + 1], ratio;

	for (size_t i = 0; i < SIZES; i++) {
		struct box *box = &run->boxes[i];

		ratio = sl_paired_ratio(box->ns, run->boxes[0].ns, scratch, rounds);
		sl_report_row(report, "guard", box->name);
		sl_report_float(report, "load_ms", (double)box->load_ns / 1e6);
		memcpy(scratch, box->ns, rounds * sizeof(double));
		sl_report_float(report, "connect_ns", sl_median(scratch, rounds));
		memcpy(scratch, box->ns, rounds * sizeof(double));
		sl_report_float(report, "mad_ns", sl_mad(scratch, rounds));
		sl_report_float(report, "ratio", ratio);
		sl_report_samples(report, "samples_ns", box->ns, rounds);
	}
	sl_report_at_most(report, "guard, 10000 rules, against 10", ratio, BUDGET_RATIO);
}

static int measure(struct run *run, struct sl_report *report, struct sl_err *err)
{
	struct sl_counters counters;
	unsigned int round = 0;
	int rc = 0;

	for (; round < run->rounds && !sl_world_stopped(); round++) {
		for (size_t i = 0; i < SIZES && !rc; i++) {
			struct box *box = &run->boxes[(round + i) % SIZES];

			rc = sl_worker_turn(&box->worker, &box->ns[round], err);
		}
		if (rc)
			return rc;
	}
	rc = sl_counters_total(run->world->set, &counters);
	if (rc)
		return sl_err_sys(err, -rc, "can't read counters");
	report_boxes(run, report, round);
	sl_report_equal(report, "guard, calls allowed", (int64_t)counters.n[SL_COUNTER_ALLOWED],
			(int64_t)SIZES * round * (run->per_turn + run->per_turn / 10 + 1));
	sl_report_equal(report, "guard, calls denied", (int64_t)counters.n[SL_COUNTER_DENIED], 0);
	sl_faults_report(report, &counters);
	sl_report_note(report, "guard: connect to a port that refuses, and close, with an "
			       "in-kernel verdict that allows it; all policies are loaded at once");
	return 0;
}

int sl_policy_guard_run(struct sl_report *report, unsigned int rounds, unsigned int per_turn,
			struct sl_err *err)
{
	__attribute__((cleanup(run_clear))) struct run run = { .rounds = rounds,
							       .per_turn = per_turn,
							       .port_holder = -1 };
	int rc;

	for (size_t i = 0; i < SIZES; i++)
		run.boxes[i].worker = (struct sl_worker)SL_WORKER_NONE;
	rc = sl_world_new(&run.world, err);
	rc = rc ?: sl_world_load(run.world, 0, err);
	rc = rc ?: bind_port(&run, err);
	for (size_t i = 0; i < SIZES && !rc; i++)
		rc = make_box(&run, &run.boxes[i], sizes[i], err);
	return rc ?: measure(&run, report, err);
}
