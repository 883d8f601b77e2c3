/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * B6: what a call uses is changed by another thread while the call runs. SL_RACE_SECONDS is
 * the time for each kind of race (60 is what the scenario asks for).
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/parse.h"
#include "system/guarded.h"

#define SHORT_S 2

TestSuite(bypass_race, .init = guarded_up, .fini = guarded_down, .timeout = 1000);

static unsigned int seconds(void)
{
	const char *text = getenv("SL_RACE_SECONDS");
	uint32_t n = SHORT_S;

	if (text)
		cr_assert_eq(sl_parse_u32(text, 1, 900, &n), 0, "SL_RACE_SECONDS=%s", text);
	else
		cr_log_info("%d s, so that all tests end soon; SL_RACE_SECONDS=60 for longer",
			    SHORT_S);
	return n;
}

/* Both outcomes must have been there, thousands of times: else nothing was raced for. */
static void expect_race(const struct load *load, bool refusals)
{
	const char *line = fact_next(load, NULL, "total");
	uint64_t tried = fact_u64(line, "tried");

	cr_log_info("%.200s", line);
	cr_expect_gt(tried, 1000, "%.200s", line);
	cr_expect_gt(fact_u64(line, "ok"), 0, "%.200s", line);
	cr_expect(!refusals || fact_u64(line, "refused") > 0, "%.200s", line);
}

/* A queue of connections must not fill up: calls would wait for room. Datagrams get lost. */
static void drain(struct load *load, struct sink *open)
{
	siginfo_t info = { 0 };

	while (!open->udp && !info.si_pid) {
		sink_take(open);
		cr_assert_eq(waitid(P_PID, (id_t)load->pid, &info, WEXITED | WNOWAIT | WNOHANG), 0);
	}
	cr_expect_eq(load_end(load), 0);
}

/*
 * The other thread alternates between the two addresses; a torn one has the address of the
 * one and the port of the other: OTHER_PORT shares its address with what is allowed, so it
 * is the port alone that changes, and for OTHER_ADDR the address alone.
 */
static void race_address(const char *kind, struct sink *open, struct sink *shut)
{
	unsigned int time = seconds(), arrived;
	struct load load;

	load_start(&load, INSIDE,
		   "race --timeout 950 --kind %s --seconds %u --server %s --server %s", kind, time,
		   open->text, shut->text);
	drain(&load, open);
	arrived = sink_take(shut);
	cr_expect_eq(arrived, 0, "%s: %u arrived at %s", kind, arrived, shut->text);
	expect_race(&load, true);
	load_free(&load);
}

Test(bypass_race, connect_port)
{
	race_address("connect", &guarded.open, &guarded.shut[OTHER_PORT]);
}

Test(bypass_race, connect_address)
{
	race_address("connect", &guarded.open, &guarded.shut[OTHER_ADDR]);
}

Test(bypass_race, sendto_port)
{
	race_address("sendto", &guarded.open_udp, &guarded.shut_udp[OTHER_PORT]);
}

Test(bypass_race, sendto_address)
{
	race_address("sendto", &guarded.open_udp, &guarded.shut_udp[OTHER_ADDR]);
}

/* TCP may go to the address, UDP may not. */
Test(bypass_race, descriptor)
{
	unsigned int time = seconds();
	struct sink udp;
	struct load load;

	sink_open(&udp, true, "127.0.0.1", guarded.open.port);
	load_start(&load, INSIDE,
		   "race --timeout 950 --kind fd --seconds %u --server %s --server %s", time,
		   guarded.open.text, udp.text);
	drain(&load, &guarded.open);
	cr_expect_eq(sink_take(&udp), 0, "datagrams have arrived where only TCP is allowed");
	expect_race(&load, true);
	load_free(&load);
}
