/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libsluice: sessions, and what becomes of them when the agent or the connection fails. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit/lib_world.h"

#define LONG_MS 20000
#define SHORT_MS 40 /* of an answer that does not come */

TestSuite(lib_session, .fini = fake_stop, .timeout = 120);

static const struct fake_step good[] = { { 0 } };

static bool is_live(struct sl_runtime *rt)
{
	return sl_runtime_state(rt) == SL_RUNTIME_LIVE;
}

static bool is_over(struct sl_runtime *rt)
{
	return sl_runtime_state(rt) == SL_RUNTIME_OVER;
}

Test(lib_session, attach_says_what_was_asked_for)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt;
	_cleanup_fd_ int came = -1;
	int ends[2], cgroup[2];
	char byte = 0;

	fake_start(good);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(cgroup, O_CLOEXEC), 0);
	rt = runtime_connected(LONG_MS);
	cr_expect_str_eq(fake_last("Hello")->parameters,
			 "{\"component\":{\"name\":\"test\",\"version\":\"1.2\",\"min\":1,"
			 "\"max\":1}}");
	attach.cgroup_fd = cgroup[1];
	attach.listener_fd = ends[1];
	attach.name = "box";
	attach.policy = "version: 1\n";
	attach.policy_name = "/etc/p.yaml";
	attach.plan = SL_PLAN_CONNECT | SL_PLAN_SEND;
	attach.mode = SL_MODE_AUDIT;
	attach.silence_ms = 5000;
	attach.grace_ms = 7000;
	attach.run_on_loss = true;
	attach.end = SL_END_BE_KILLED;
	cr_assert_eq(sl_runtime_attach(rt, &attach), 0, "%s", sl_runtime_error(rt));
	cr_expect_eq(fake_last("Attach")->fds, 2);
	cr_expect_eq(fake_last("Attach")->epoch, 1);
	cr_expect_not_null(
		strstr(fake_last("Attach")->parameters,
		       "\"cgroup_fd\":0,\"name\":\"box\",\"listener_fd\":1,\"options\":{"
		       "\"mode\":\"audit\",\"end\":\"kill\",\"hold\":\"connect\","
		       "\"silence_ms\":5000,\"grace_ms\":7000,\"freeze_on_loss\":false},"
		       "\"policy\":\"version: 1\\n\",\"policy_name\":\"\\/etc\\/p.yaml\","
		       "\"epoch\":1}"),
		"%s", fake_last("Attach")->parameters);
	cr_expect_str_eq(sl_runtime_sandbox(rt), FAKE_SANDBOX);
	cr_expect_str_eq(sl_runtime_token(rt), FAKE_TOKEN);
	came = fake_take_fd();
	cr_expect_eq(write(came, "x", 1), 1);
	cr_expect_eq(read(cgroup[0], &byte, 1), 1);
	/* The library holds none of them any more. */
	close(ends[1]);
	cr_expect_eq(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	close(cgroup[0]);
	close(cgroup[1]);
	sl_runtime_free(&rt);
	cr_expect_null(rt);
}

Test(lib_session, calls_say_what_was_asked_for)
{
	struct sl_runtime_report report = SL_RUNTIME_REPORT_INIT;
	unsigned int plan = 0;
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_live(LONG_MS, 0);
	cr_expect_eq(sl_runtime_plan(rt, "p", "n", SL_HOLD_AT_EXEC, &plan), 0);
	cr_expect_eq(plan, SL_PLAN_EXEC | SL_PLAN_STRICT);
	cr_expect_str_eq(fake_last("Plan")->parameters,
			 "{\"policy\":\"p\",\"policy_name\":\"n\",\"hold\":\"exec\"}");
	cr_expect_eq(sl_runtime_update(rt, "q", NULL, SL_MODE_ENFORCE), 0);
	cr_expect_str_eq(fake_last("UpdatePolicy")->parameters,
			 "{\"policy\":\"q\",\"mode\":\"enforce\"}");
	cr_expect_eq(sl_runtime_freeze(rt), 0);
	cr_expect_str_eq(fake_last("Freeze")->parameters, "{}");
	cr_expect_eq(sl_runtime_thaw(rt), 0);
	cr_expect_eq(fake_count("Thaw"), 1);
	report.type = "Ready";
	report.reason = "Refused";
	report.status = SL_STATUS_FALSE;
	report.message = "m";
	report.bad = true;
	cr_expect_eq(sl_runtime_report(rt, &report), 0);
	cr_expect_str_eq(fake_last("Report")->parameters,
			 "{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Refused\","
			 "\"message\":\"m\",\"bad\":true}");
	cr_expect_eq(sl_runtime_end(rt, SL_END_STAY_FROZEN, "done"), 0);
	cr_expect_str_eq(fake_last("End")->parameters, "{\"reason\":\"done\",\"end\":\"frozen\"}");
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_OVER);
	cr_expect_eq(sl_runtime_dispatch(rt), -ESHUTDOWN);
	cr_expect_eq(sl_runtime_freeze(rt), -ESHUTDOWN);
	cr_expect_eq(sl_runtime_recover(rt, 0), -ESHUTDOWN);
	cr_expect_eq(fake_count("Freeze"), 1);
	cr_expect_eq(sl_runtime_detach(rt, SL_DETACH_KILL), 0, "%s", sl_runtime_error(rt));
	cr_expect_str_eq(fake_last("Detach")->parameters,
			 "{\"sandbox\":\"7\",\"running\":\"kill\"}");
	cr_expect_eq(fake_count("Recover"), 0);
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE);
	cr_expect_str_empty(sl_runtime_token(rt));
	sl_runtime_free(&rt);
}

static bool has_beaten(struct sl_runtime *rt)
{
	(void)rt;
	return fake_count("Heartbeat") >= 3;
}

/* Signs of life when nothing else is said, over one connection. */
Test(lib_session, signs_of_life)
{
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_live(LONG_MS, 100);
	runtime_until(rt, has_beaten);
	cr_expect(is_live(rt));
	cr_expect_eq(fake_last("Heartbeat")->conn, 1);
	cr_expect_eq(sl_runtime_freeze(rt), 0);
	sl_runtime_free(&rt);
}

static int attach_simply(struct sl_runtime *rt)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;

	attach.cgroup = "/c";
	attach.policy = "version: 1\n";
	return sl_runtime_attach(rt, &attach);
}

/* A refusal is an answer; the handle is as before, and what is right then is attached. */
Test(lib_session, attach_is_refused)
{
	static const struct {
		const struct fake_step steps[2];
		int want;
		const char *text;
	} cases[] = {
		{ { { "Attach", FAKE_SAY,
		      ERROR("Refused", "\"code\":\"EEXIST\",\"text\":\"t\",\"hint\":\"h\"") } },
		  -EEXIST,
		  "t" },
		{ { { "Attach", FAKE_SAY, ERROR("Refused", "\"code\":\"NOTHING\"") } },
		  -EREMOTEIO,
		  "refuses" },
		{ { { "Attach", FAKE_SAY, ERROR("Busy", "") } }, -EBUSY, "left" },
		{ { { "Attach", FAKE_SAY, ERROR("Other\\n", "") } }, -EREMOTEIO, "Other\\x0a" },
		{ { { "Attach", FAKE_SAY,
		      "{\"error\":\"org.varlink.service.InvalidParameter\",\"parameters\":"
		      "{\"parameter\":\"key\"}}" } },
		  -EINVAL,
		  "'key'" },
		{ { { "Attach", FAKE_SAY, "{\"error\":\"org.varlink.service.PermissionDenied\"}" } },
		  -EPERM,
		  "user" },
	};

	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_runtime *rt = runtime_connected(LONG_MS);

		fake_script(cases[i].steps);
		cr_expect_eq(attach_simply(rt), cases[i].want, "case %zu: %s", i,
			     sl_runtime_error(rt));
		cr_expect_not_null(strstr(sl_runtime_error(rt), cases[i].text), "case %zu: %s", i,
				   sl_runtime_error(rt));
		cr_expect_str_eq(sl_runtime_hint(rt), i ? "" : "h", "case %zu", i);
		cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE, "case %zu", i);
		cr_expect_eq(attach_simply(rt), 0, "case %zu: %s", i, sl_runtime_error(rt));
		cr_expect_eq(attach_simply(rt), -EBUSY, "case %zu", i);
		sl_runtime_free(&rt);
	}
}

/* Nothing was asked for yet: that is told at once, and nothing is tried behind one's back. */
Test(lib_session, attach_without_an_agent)
{
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	fake_vanish();
	cr_expect_eq(attach_simply(rt), -ENOTCONN, "%s", sl_runtime_error(rt));
	cr_expect_not_null(strstr(sl_runtime_error(rt), fake_path()), "%s", sl_runtime_error(rt));
	cr_expect_not_null(strstr(sl_runtime_hint(rt), "sluiced"));
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE);
	sl_runtime_free(&rt);
}

/* A connection that ends before Attach was said, whatever ends it: another one is as good. */
Test(lib_session, attach_over_the_next_connection)
{
	static const struct fake_step cases[][4] = {
		{ { "Hello", FAKE_END, NULL }, { "Hello", FAKE_HALF, "{\"par" }, { 0 } },
		{ { "Hello", FAKE_SAY, ERROR("Closed", "\"text\":\"full\"") }, { 0 } },
	};

	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_runtime *rt = runtime_connected(LONG_MS);

		fake_cut();
		fake_script(cases[i]);
		cr_expect_eq(attach_simply(rt), 0, "case %zu: %s", i, sl_runtime_error(rt));
		cr_expect(fake_script_done(), "case %zu", i);
		cr_expect_eq(fake_last("Attach")->epoch, 1, "case %zu", i);
		sl_runtime_free(&rt);
	}
}

/* It never comes to that: why is told, and nothing is tried any more. */
Test(lib_session, attach_over_no_connection)
{
	static struct fake_step steps[FAKE_CALLS];
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_connected(SHORT_MS);
	fake_cut();
	for (size_t i = 0; i + 1 < ARRAY_SIZE(steps); i++)
		steps[i] = (struct fake_step){ "Hello", FAKE_SAY,
					       ERROR("Closed", "\"text\":\"full\"") };
	fake_script(steps);
	cr_expect_eq(attach_simply(rt), -ENOTCONN, "%s", sl_runtime_error(rt));
	cr_expect_not_null(strstr(sl_runtime_error(rt), "full"), "%s", sl_runtime_error(rt));
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE);
	cr_expect_eq(fake_count("Attach"), 0);
	sl_runtime_free(&rt);
}

/* The agent tells in a call that it is over. */
Test(lib_session, over_in_a_call)
{
	static const struct fake_step steps[] = {
		{ "Report", FAKE_SAY, ERROR("SessionOver", "\"reason\":\"killed\"") }, { 0 }
	};
	struct sl_runtime_report report = SL_RUNTIME_REPORT_INIT;
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_live(LONG_MS, 0);
	fake_script(steps);
	report.type = report.reason = "A";
	cr_expect_eq(sl_runtime_report(rt, &report), -ESHUTDOWN);
	cr_expect_str_eq(sl_runtime_error(rt), "killed");
	cr_expect(is_over(rt));
	sl_runtime_free(&rt);
}

/* A lost session and no agent: calls end in time, the session stays one to recover. */
Test(lib_session, agent_is_gone)
{
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_live(SHORT_MS, 60);
	fake_vanish();
	cr_expect_eq(sl_runtime_thaw(rt), -ENOTCONN, "%s", sl_runtime_error(rt));
	cr_expect_eq(sl_runtime_recover(rt, 1), -ENOTCONN);
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_LOST);
	cr_expect_eq(sl_runtime_dispatch(rt), 0);
	cr_expect_not_null(strstr(sl_runtime_error(rt), "can't reach"), "%s", sl_runtime_error(rt));
	sl_runtime_free(&rt);
}

/* Another process goes on, though it knows no epoch. */
Test(lib_session, resume)
{
	static const struct fake_step steps[] = {
		{ "Recover", FAKE_SAY, ERROR("StaleEpoch", "\"epoch\":40") }, { 0 }
	};
	struct sl_runtime *rt;

	fake_start(steps);
	rt = runtime_connected(LONG_MS);
	cr_expect_eq(sl_runtime_resume(rt, "12", 0), -EINVAL);
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE);
	cr_expect_eq(sl_runtime_resume(rt, FAKE_TOKEN, 0), 0, "%s", sl_runtime_error(rt));
	cr_expect_eq(fake_last("Recover")->epoch, 41);
	cr_expect_str_eq(sl_runtime_sandbox(rt), FAKE_SANDBOX);
	cr_expect(is_live(rt));
	sl_runtime_free(&rt);
}

Test(lib_session, add_listener)
{
	static const struct fake_step again[] = { { "AddListener", FAKE_SAY, ERROR("Again", "") },
						  { 0 } };
	struct sl_runtime *rt;
	int ends[2], came;

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_expect_eq(sl_runtime_add_listener(rt, ends[1]), -EINVAL, "there is no session");
	sl_runtime_free(&rt);
	rt = runtime_live(LONG_MS, 0);
	cr_expect_eq(sl_runtime_add_listener(rt, -1), -EINVAL);
	cr_expect_eq(sl_runtime_add_listener(rt, ends[1]), 0, "%s", sl_runtime_error(rt));
	cr_expect_str_eq(fake_last("AddListener")->parameters, "{\"listener_fd\":0}");
	cr_expect_eq(fake_last("AddListener")->fds, 1);
	came = fake_take_fd();
	cr_expect_eq(write(came, "x", 1), 1);
	close(came);
	fake_script(again);
	cr_expect_eq(sl_runtime_add_listener(rt, ends[1]), -EAGAIN);
	close(fake_take_fd());
	cr_expect(is_live(rt));
	/* The library holds it no more. */
	close(ends[1]);
	cr_expect_eq(read(ends[0], (char[2]){ 0 }, 2), 1);
	cr_expect_eq(read(ends[0], (char[2]){ 0 }, 2), 0);
	close(ends[0]);
	sl_runtime_free(&rt);
}

#define LIST(sessions) "{\"parameters\":{\"sessions\":[" sessions "]}}"

Test(lib_session, detach_by_cgroup)
{
	static const struct {
		const char *list, *sandbox; /* NULL: nothing is detached */
		int ret;
	} cases[] = {
		{ LIST(""), NULL, 0 },
		{ LIST("{\"sandbox\":\"3\",\"cgroup_id\":\"70\"},"
		       "{\"sandbox\":\"4\",\"cgroup_id\":\"7\"}"),
		  "4", 0 },
		{ LIST("7,{\"sandbox\":\"0\",\"cgroup_id\":\"7\"}"), NULL, -EAGAIN },
		{ "{\"parameters\":{}}", NULL, 0 },
	};
	struct sl_runtime *rt;
	char wanted[64];

	fake_start(good);
	rt = runtime_live(LONG_MS, 0);
	cr_expect_eq(sl_runtime_detach_cgroup(rt, 7, SL_DETACH_KILL), -EBUSY);
	sl_runtime_free(&rt);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct fake_step steps[] = { { "List", FAKE_SAY, cases[i].list }, { 0 } };
		unsigned int before = fake_count("Detach");

		rt = runtime_connected(LONG_MS);
		fake_script(steps);
		cr_expect_eq(sl_runtime_detach_cgroup(rt, 7, SL_DETACH_KILL), cases[i].ret,
			     "case %zu: %s", i, sl_runtime_error(rt));
		cr_expect_eq(fake_count("Detach") - before, cases[i].sandbox != NULL, "case %zu",
			     i);
		if (cases[i].sandbox) {
			snprintf(wanted, sizeof(wanted),
				 "{\"sandbox\":\"%s\",\"running\":\"kill\"}", cases[i].sandbox);
			cr_expect_str_eq(fake_last("Detach")->parameters, wanted);
		}
		sl_runtime_free(&rt);
	}
}

static unsigned int open_descriptors(void)
{
	_cleanup_dir_ DIR *fds = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(fds))
		n++;
	return n;
}

Test(lib_session, no_descriptor_is_left)
{
	static const struct fake_step cut[] = { { "Attach", FAKE_END, NULL },
						{ "Hello", FAKE_END, NULL },
						{ 0 } };
	struct sl_runtime *rt = NULL;
	unsigned int before;

	fake_start(good);
	before = open_descriptors();
	for (int i = 0; i < 3; i++) {
		rt = runtime_connected(LONG_MS);
		fake_script(cut);
		cr_expect_eq(attach_simply(rt), 0, "%s", sl_runtime_error(rt));
		sl_runtime_free(&rt);
	}
	/* Of the agent, connections may still be open. */
	fake_vanish();
	cr_expect_leq(open_descriptors(), before);
	sl_runtime_free(&rt);
	sl_runtime_free(NULL);
}
