/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TEST_SLOWER=N: every test may take N times as long. For machines that are slow, as
 * emulated ones are: a limit is there to end what hangs, not to measure.
 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <stdlib.h>

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	const char *text = getenv("TEST_SLOWER");
	double factor = text ? atof(text) : 1;

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
