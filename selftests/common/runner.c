/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is the runner's own, of both suites: the limits of its tests, and its memory. Each
 * test is a process of its own, which starts this program anew without PRE_ALL.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <stdlib.h>

static bool is_runner;

/*
 * A weak symbol of the leak sanitizer (sanitizer/lsan_interface.h). Criterion does not free
 * what it knows of workers that ended while others ran; tests are looked at as ever.
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return is_runner;
}

/*
 * TEST_SLOWER=N: every test may take N times as long. For machines that are slow, as
 * emulated ones are: a limit is there to end what hangs, not to measure.
 */
ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	const char *text = getenv("TEST_SLOWER");
	double factor = text ? atof(text) : 1;

	is_runner = true;
	if (factor <= 1)
		return;
	FOREACH_SET(struct criterion_suite_set * suite, tests->suites)
	{
		if (suite->suite.data)
			suite->suite.data->timeout *= factor;
		FOREACH_SET(struct criterion_test * test, suite->tests)
		test->data->timeout *= factor;
	}
}
