/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libsluice: whatever fails on the way, a session is recovered, or its end is told. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "unit/lib_world.h"

#define LONG_MS 20000
#define SHORT_MS 40   /* of an answer that does not come */
#define SILENCE_MS 60 /* a sign of life each 20 */

/* {"key":"…" */
#define KEY_LEN (8 + 32)

TestSuite(lib_recover, .fini = fake_stop, .timeout = 120);

static const struct fake_step good[] = { { 0 } };
static unsigned int recovers; /* had before */

static bool is_live(struct sl_runtime *rt)
{
	return sl_runtime_state(rt) == SL_RUNTIME_LIVE;
}

static bool is_over(struct sl_runtime *rt)
{
	return sl_runtime_state(rt) == SL_RUNTIME_OVER;
}

static bool has_recovered(struct sl_runtime *rt)
{
	return fake_count("Recover") > recovers && is_live(rt);
}

/* Every Attach and Recover has an epoch above all before, and a connection of its own. */
static void expect_epochs_rise(void)
{
	uint64_t epoch = 0;
	unsigned int conn = 0;

	for (unsigned int i = 0; i < fake_calls(); i++) {
		const struct fake_call *call = fake_call(i);

		if (!call->epoch)
			continue;
		cr_expect_gt(call->epoch, epoch, "call %u", i);
		cr_expect_gt(call->conn, conn, "call %u", i);
		epoch = call->epoch;
		conn = call->conn;
	}
}

/* What may go wrong with an answer: nobody knows what was done. */
#define NO_ANSWERS(method)                                                    \
	{ { method, FAKE_END, NULL } }, { { method, FAKE_SILENT, NULL } },    \
		{ { method, FAKE_SAY, "" } }, { { method, FAKE_SAY, "[]" } }, \
		{ { method, FAKE_SAY, "{\"parameters\":[1]}" } },             \
		{ { method, FAKE_SAY, "{\"parameters\":{\"epoch\":999}}" } }, \
		{ { method, FAKE_SAY, "\xff\xfe" } },                         \
		{ { method, FAKE_HALF, "{\"parameters\":{" } },               \
	{                                                                     \
		{                                                             \
			method, FAKE_SAY, ERROR("Again", "")                  \
		}                                                             \
	}

/* Answers, and none of them final. */
#define REFUSALS(method)                                                           \
	{ { method, FAKE_SAY, "{\"error\":7}" } },                                 \
		{ { method, FAKE_SAY, ERROR("Refused", "\"code\":\"ENOMEM\"") } }, \
		{ { method, FAKE_SAY, ERROR("NotTheSession", "") } },              \
		{ { method, FAKE_SAY, ERROR("Nonsense", "") } },                   \
	{                                                                          \
		{                                                                  \
			method, FAKE_OK_END, NULL                                  \
		}                                                                  \
	}

static const struct fake_step faults[][2] = {
	NO_ANSWERS("Heartbeat"),
	REFUSALS("Heartbeat"),
	NO_ANSWERS("Hello"),
	REFUSALS("Hello"),
	NO_ANSWERS("Recover"),
	REFUSALS("Recover"),
	{ { "Recover", FAKE_SAY, ERROR("StaleEpoch", "\"epoch\":50") } },
	{ { "Recover", FAKE_SAY, ERROR("StaleEpoch", "") } },
	{ { "Recover", FAKE_SAY, "{\"parameters\":{\"epoch\":2}}" } },
	{ { "Recover", FAKE_SAY, "{\"parameters\":{\"epoch\":2,\"sandbox\":7}}" } },
	{ { "Hello", FAKE_SAY, "{\"parameters\":{\"protocol\":2}}" } },
	{ { "Hello", FAKE_SAY, "{\"parameters\":{\"protocol\":\"1\"}}" } },
};

Test(lib_recover, every_fault)
{
	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct sl_runtime *rt = runtime_live(SHORT_MS, SILENCE_MS);
		const struct fake_step cut[] = { { "Heartbeat", FAKE_END, NULL },
						 faults[i][0],
						 { 0 } };
		bool beat = !strcmp(faults[i][0].method, "Heartbeat");
		int ret;

		recovers = fake_count("Recover");
		fake_script(beat ? faults[i] : cut);
		runtime_until(rt, has_recovered);
		/* It may have been recovered for a moment only. */
		ret = sl_runtime_freeze(rt);
		if (ret == -ECONNRESET)
			ret = sl_runtime_freeze(rt);
		cr_expect_eq(ret, 0, "case %zu: %s", i, sl_runtime_error(rt));
		cr_expect(fake_script_done(), "case %zu", i);
		cr_expect_geq(fake_last("Recover")->epoch, 2, "case %zu", i);
		if (strstr(faults[i][0].text ?: "", ":50"))
			cr_expect_eq(fake_last("Recover")->epoch, 51);
		fake_script(good);
		sl_runtime_free(&rt);
	}
}

/* Over several failures in a row, too. */
Test(lib_recover, epochs_rise)
{
	static const struct fake_step row[] = {
		{ "Heartbeat", FAKE_END, NULL },
		{ "Hello", FAKE_HALF, "{" },
		{ "Recover", FAKE_SILENT, NULL },
		{ "Recover", FAKE_OK_END, NULL },
		{ "Recover", FAKE_SAY, ERROR("StaleEpoch", "\"epoch\":9") },
		{ "Hello", FAKE_END, NULL },
		{ "Recover", FAKE_SAY, ERROR("Again", "") },
		{ "Heartbeat", FAKE_SAY, ERROR("NotTheSession", "") },
		{ "Recover", FAKE_END, NULL },
		{ 0 },
	};
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_live(SHORT_MS, SILENCE_MS);
	fake_script(row);
	do {
		recovers = fake_count("Recover");
		runtime_until(rt, has_recovered);
	} while (!fake_script_done());
	cr_expect_eq(fake_last("Recover")->epoch, 13);
	cr_expect_str_eq(fake_last("Recover")->parameters,
			 "{\"token\":\"" FAKE_TOKEN "\",\"epoch\":13}");
	expect_epochs_rise();
	sl_runtime_free(&rt);
}

/* The three that are final, with their reason, and what is left to do. */
Test(lib_recover, final_answers)
{
	static const struct {
		const struct fake_step steps[3];
		int want;
		const char *text;
	} cases[] = {
		{ { { "Heartbeat", FAKE_END, NULL },
		    { "Recover", FAKE_SAY, ERROR("UnknownToken", "") } },
		  -EKEYREJECTED,
		  "no such session" },
		{ { { "Heartbeat", FAKE_END, NULL },
		    { "Recover", FAKE_SAY,
		      ERROR("SessionOver", "\"reason\":\"gone \\u001b[31m\"") } },
		  -ESHUTDOWN,
		  "gone \\x1b[31m" },
		{ { { "Heartbeat", FAKE_END, NULL },
		    { "Hello", FAKE_SAY,
		      ERROR("IncompatibleVersion", "\"text\":\"a and b\",\"hint\":\"upgrade\"") } },
		  -EPROTONOSUPPORT,
		  "a and b" },
	};

	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_runtime *rt = runtime_live(LONG_MS, SILENCE_MS);
		struct pollfd pollfd = { .events = POLLIN };
		unsigned int calls;

		fake_script(cases[i].steps);
		runtime_until(rt, is_over);
		cr_expect_eq(sl_runtime_dispatch(rt), cases[i].want, "case %zu", i);
		cr_expect_eq(sl_runtime_recover(rt, LONG_MS), cases[i].want, "case %zu", i);
		cr_expect_eq(sl_runtime_thaw(rt), cases[i].want, "case %zu", i);
		cr_expect_not_null(strstr(sl_runtime_error(rt), cases[i].text), "case %zu: %s", i,
				   sl_runtime_error(rt));
		cr_expect_str_eq(sl_runtime_hint(rt), i == 2 ? "upgrade" : "", "case %zu", i);
		/* Nothing is tried any more. */
		calls = fake_calls();
		pollfd.fd = sl_runtime_fd(rt);
		cr_expect_eq(poll(&pollfd, 1, 0), 0, "case %zu", i);
		cr_expect_eq(fake_calls(), calls, "case %zu", i);
		fake_script(good);
		cr_expect_eq(sl_runtime_detach(rt, SL_DETACH_RELEASE), 0, "case %zu: %s", i,
			     sl_runtime_error(rt));
		sl_runtime_free(&rt);
	}
}

static int attach_simply(struct sl_runtime *rt)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;

	attach.cgroup = "/c";
	attach.policy = "version: 1\n";
	return sl_runtime_attach(rt, &attach);
}

/* An Attach whose answer never came is asked for again: same key, greater epoch. */
Test(lib_recover, attach_without_an_answer)
{
	static const struct fake_step unknown[][2] = { NO_ANSWERS("Attach") };

	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		bool silent = unknown[i][0].act == FAKE_SILENT;
		unsigned int first = fake_count("Attach");
		struct sl_runtime *rt = runtime_connected(silent ? SHORT_MS : LONG_MS);

		fake_script(unknown[i]);
		cr_expect_eq(attach_simply(rt), silent ? -ETIMEDOUT : 0, "case %zu: %s", i,
			     sl_runtime_error(rt));
		cr_expect_eq(sl_runtime_recover(rt, LONG_MS), 0, "case %zu: %s", i,
			     sl_runtime_error(rt));
		cr_expect_eq(fake_count("Attach"), first + 2, "case %zu", i);
		cr_expect_eq(fake_last("Attach")->epoch, 2, "case %zu", i);
		/* The key comes first. */
		cr_expect_eq(strncmp(fake_nth("Attach", first)->parameters,
				     fake_last("Attach")->parameters, KEY_LEN),
			     0, "case %zu: %s", i, fake_last("Attach")->parameters);
		cr_expect(is_live(rt), "case %zu", i);
		fake_script(good);
		sl_runtime_free(&rt);
	}
}

Test(lib_recover, calls_without_an_answer)
{
	static const struct {
		const struct fake_step steps[2];
		int want;
		bool again;
	} cases[] = {
		{ { { "Freeze", FAKE_END, NULL } }, -ECONNRESET, false },
		{ { { "Freeze", FAKE_HALF, "{\"para" } }, -ECONNRESET, false },
		{ { { "Freeze", FAKE_SAY, "{\"a\"" } }, -ECONNRESET, false },
		{ { { "Freeze", FAKE_SILENT, NULL } }, -ETIMEDOUT, false },
		/* It was not done, so it is said again. */
		{ { { "Freeze", FAKE_SAY, ERROR("NotTheSession", "") } }, 0, true },
		{ { { "Freeze", FAKE_SAY, ERROR("Closed", "\"text\":\"\",\"taken\":false") } },
		  0,
		  true },
		{ { { "Freeze", FAKE_SAY, ERROR("Closed", "\"text\":\"\",\"taken\":true") } },
		  -ECONNRESET,
		  false },
		{ { { "Freeze", FAKE_SAY, ERROR("Closed", "\"text\":\"\"") } }, -ECONNRESET, false },
		{ { { "Freeze", FAKE_OK_END, NULL } }, 0, false },
	};

	fake_start(good);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_runtime *rt = runtime_live(SHORT_MS, SILENCE_MS);
		unsigned int frozen = fake_count("Freeze");

		recovers = fake_count("Recover");
		fake_script(cases[i].steps);
		cr_expect_eq(sl_runtime_freeze(rt), cases[i].want, "case %zu: %s", i,
			     sl_runtime_error(rt));
		cr_expect_eq(fake_count("Freeze"), frozen + 1 + cases[i].again, "case %zu", i);
		runtime_until(rt, has_recovered);
		cr_expect_eq(sl_runtime_thaw(rt), 0, "case %zu: %s", i, sl_runtime_error(rt));
		cr_expect_gt(fake_last("Recover")->epoch, 1, "case %zu", i);
		sl_runtime_free(&rt);
	}
}
