/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "session/condition.h"

static struct sl_conditions conditions;

static int report(const char *type, const char *reason, bool bad, uint64_t now_ns)
{
	const struct sl_condition_report one = { .type = type,
						 .reason = reason,
						 .message = reason,
						 .status = bad ? SL_CONDITION_FALSE
							       : SL_CONDITION_TRUE,
						 .bad = bad };

	return sl_conditions_report(&conditions, &one, now_ns);
}

Test(condition, equal_reports_are_one_that_escalates)
{
	unsigned int news = 0;
	const struct sl_condition *at;

	for (unsigned int i = 1; i <= 1000; i++) {
		int ret = report("StatusReported", "Refused", true, i);
		int want = i == 1 ? SL_CONDITION_CHANGED
			   : i == SL_CONDITION_WARN || i == SL_CONDITION_ERROR ? SL_CONDITION_RAISED
									       : SL_CONDITION_SAME;

		cr_assert_eq(ret, want, "report %u: %d", i, ret);
		news += ret > 0;
	}
	cr_assert_eq(news, 3);
	cr_assert_eq(conditions.count, 1);
	at = sl_conditions_find(&conditions, "StatusReported");
	cr_assert_eq(at->count, 1000);
	cr_assert_eq(at->since_ns, 1);
	cr_assert_eq(at->last_ns, 1000);
	cr_assert_eq(sl_condition_level(at), SL_CONDITION_LEVEL_ERROR);
	/* Another reason is a new count of the same fault. */
	cr_assert_eq(report("StatusReported", "TimedOut", true, 1001), SL_CONDITION_CHANGED);
	cr_assert_eq(at->count, 1);
	cr_assert_eq(at->since_ns, 1);
	cr_assert_eq(sl_condition_level(at), SL_CONDITION_LEVEL_ERROR);
	cr_assert_eq(report("StatusReported", "Accepted", false, 1002), SL_CONDITION_CHANGED);
	cr_assert_eq(at->since_ns, 1002);
	cr_assert_eq(sl_condition_level(at), SL_CONDITION_LEVEL_GOOD);
	for (unsigned int i = 0; i < 1000; i++)
		cr_assert_eq(report("StatusReported", "Accepted", false, 2000), SL_CONDITION_SAME);
	cr_assert_eq(sl_condition_level(at), SL_CONDITION_LEVEL_GOOD);
}

Test(condition, full)
{
	char type[16];

	for (unsigned int i = 0; i < SL_CONDITIONS_MAX; i++) {
		snprintf(type, sizeof(type), "Type%u", i);
		cr_assert_eq(report(type, "Why", i != 3 && i != 5, 100 - i), SL_CONDITION_CHANGED);
	}
	cr_assert_eq(report("Another", "Why", true, 200), SL_CONDITION_CHANGED);
	cr_assert_null(sl_conditions_find(&conditions, "Type5"), "the older of the good ones");
	cr_assert_eq(report("Third", "Why", true, 200), SL_CONDITION_CHANGED);
	cr_assert_null(sl_conditions_find(&conditions, "Type3"));
	cr_assert_eq(conditions.dropped, 0);
	cr_assert_eq(report("Fourth", "Why", true, 200), -ENOSPC);
	cr_assert_eq(conditions.dropped, 1);
	cr_assert_eq(conditions.count, SL_CONDITIONS_MAX);
	cr_assert_eq(report("Type0", "Why", true, 201), SL_CONDITION_SAME, "those there go on");
}

Test(condition, words_only)
{
	static const char *const bad[] = { "", "1st", "two words", "a\n", "a.b", "\xc3\xa4", NULL };
	char longest[SL_CONDITION_WORD + 1];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cr_assert_eq(report(bad[i], "Why", true, 1), -EINVAL);
		cr_assert_eq(report("Type", bad[i], true, 1), -EINVAL);
	}
	memset(longest, 'x', sizeof(longest));
	longest[SL_CONDITION_WORD] = '\0';
	cr_assert_eq(report(longest, "Why", true, 1), -EINVAL);
	cr_assert_eq(report("Type", longest, true, 1), -EINVAL);
	cr_assert_eq(conditions.count, 0);
	longest[SL_CONDITION_WORD - 1] = '\0';
	cr_assert_eq(report(longest, longest, true, 1), SL_CONDITION_CHANGED);
	cr_assert_str_eq(conditions.list[0].type, longest);
}

Test(condition, what_somebody_wrote_is_bounded_and_escaped)
{
	char message[4 * SL_CONDITION_MESSAGE], text[8192] = "";
	struct sl_condition_report one = { "Ready", "Broken", "a\x1b[2J\n\xff\"b",
					   SL_CONDITION_FALSE, true };
	struct sl_condition_view view;
	const struct sl_records rows = { &view, 1, sizeof(view) };
	struct sl_output output = { .file = fmemopen(text, sizeof(text), "w") };
	const char *bad = NULL;

	cr_assert_eq(sl_fields_check(sl_condition_fields, &bad), 0, "%s", bad);
	cr_assert_eq(sl_conditions_report(&conditions, &one, 1500000000), SL_CONDITION_CHANGED);
	sl_condition_view(&view, &conditions.list[0]);
	cr_assert_str_eq(view.since, "1970-01-01T00:00:01.500000000Z");
	cr_assert_str_eq(view.level, "notice");
	cr_assert_eq(sl_print_list(&output, sl_condition_fields, &rows), 0);
	output.json = true;
	cr_assert_eq(sl_print_list(&output, sl_condition_fields, &rows), 0);
	fclose(output.file);
	cr_assert_not_null(strstr(text, "a\\x1b[2J\\x0a\xef\xbf\xbd\"b"), "%s", text);
	cr_assert_not_null(strstr(text, "\"message\":\"a\\u001b[2J\\n\xef\xbf\xbd\\\"b\""), "%s",
			   text);
	cr_assert_null(strchr(text, '\x1b'));
	cr_assert_null(strchr(text, '\xff'));

	memset(message, '\xff', sizeof(message));
	message[sizeof(message) - 1] = '\0';
	one.message = message;
	cr_assert_geq(sl_conditions_report(&conditions, &one, 1), 0);
	cr_assert_lt(strlen(conditions.list[0].message), SL_CONDITION_MESSAGE);
	cr_assert(sl_utf8_valid(conditions.list[0].message, strlen(conditions.list[0].message)));
}

Test(condition, the_last_end_has_a_reason)
{
	cr_assert_eq(sl_conditions_end(&conditions, "", 5), -EINVAL);
	cr_assert_eq(sl_conditions_end(&conditions, NULL, 5), -EINVAL);
	cr_assert_eq(conditions.terminal_ns, 0);
	cr_assert_eq(sl_conditions_end(&conditions, "first", 5), 0);
	cr_assert_eq(sl_conditions_end(&conditions, "second", 6), 0);
	cr_assert_str_eq(conditions.terminal, "second");
	cr_assert_eq(conditions.terminal_ns, 6);
}

Test(condition, written_and_read)
{
	struct sl_conditions read = { .count = 7 };
	struct json_object *json = NULL, *again = NULL, *types, *one;

	report("Ready", "Broken", true, UINT64_MAX);
	report("Connected", "Fine", false, 2);
	sl_conditions_end(&conditions, "gone", 9);
	conditions.dropped = 3;
	cr_assert_eq(sl_conditions_json(&json, &conditions), 0);
	cr_assert_eq(sl_conditions_read(&read, json), 0);
	cr_assert_eq(sl_conditions_json(&again, &read), 0);
	cr_assert(json_object_equal(json, again));
	json_object_put(again);

	/* Strict: whatever is missing, added or out of its bounds. */
	read.count = 7;
	json_object_object_get_ex(json, "types", &types);
	json_object_object_get_ex(types, "Ready", &one);
	json_object_object_add(one, "count", json_object_new_string("0"));
	cr_assert_eq(sl_conditions_read(&read, json), -EBADMSG);
	json_object_object_add(one, "count", json_object_new_string("1"));
	cr_assert_eq(sl_conditions_read(&read, json), 0);
	read.count = 7;
	json_object_object_add(one, "reason", json_object_new_string("two words"));
	cr_assert_eq(sl_conditions_read(&read, json), -EBADMSG);
	json_object_object_add(one, "reason", json_object_new_string("Broken"));
	json_object_object_add(types, "no word", json_object_get(one));
	cr_assert_eq(sl_conditions_read(&read, json), -EBADMSG);
	json_object_object_del(types, "no word");
	json_object_object_add(json, "terminal", json_object_new_string(""));
	cr_assert_eq(sl_conditions_read(&read, json), -EBADMSG, "a time and no reason");
	json_object_object_del(json, "terminal");
	cr_assert_eq(sl_conditions_read(&read, json), -EBADMSG);
	cr_assert_eq(read.count, 7);
	json_object_put(json);
}
