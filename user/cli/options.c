/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/options.h"
#include "cli/words.h"

const struct sl_option *sl_option_by_name(const struct sl_option *options, const char *name,
					  size_t len)
{
	for (const struct sl_option *option = options; option && option->name; option++) {
		if (strlen(option->name) == len && !memcmp(option->name, name, len))
			return option;
	}
	return NULL;
}

const struct sl_option *sl_option_by_letter(const struct sl_option *options, char letter)
{
	for (const struct sl_option *option = options; option && option->name; option++) {
		if (option->letter && option->letter == letter)
			return option;
	}
	return NULL;
}

const char *sl_option_value_text(const struct sl_option *option, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	if (option->type != SL_OPTION_CHOICE && option->metavar)
		snprintf(out, size, " %s", option->metavar);
	for (size_t i = 0; option->type == SL_OPTION_CHOICE && option->choices[i] && used < size;
	     i++)
		used += (size_t)snprintf(out + used, size - used, "%c%s", i ? '|' : ' ',
					 option->choices[i]);
	return out;
}

static int parse_choice(const struct sl_option *option, const char *value, void *member,
			struct sl_err *err)
{
	struct sl_words words = { 0 };

	for (unsigned int i = 0; option->choices[i]; i++) {
		if (!strcmp(option->choices[i], value)) {
			memcpy(member, &i, sizeof(i));
			return 0;
		}
		sl_words_add(&words, option->choices[i]);
	}
	sl_err_set(err, EINVAL, "--%s: '%s' is none of its values", option->name, value);
	return sl_err_hint(err, "it is one of: %s", words.text);
}

/* What a value should have looked like. */
static const char *expected(const struct sl_option *option)
{
	switch (option->type) {
	case SL_OPTION_SIZE:
		return "a number of bytes, K, M, G or T may follow: 64K";
	case SL_OPTION_DURATION_US:
		return "a number and one of us, ms, s, m, h, d: 500ms";
	case SL_OPTION_ENDPOINT:
		return "ADDRESS:PORT or [IPV6-ADDRESS]:PORT";
	default:
		return "a decimal number";
	}
}

static int refuse(const struct sl_option *option, const char *value, int ret, struct sl_err *err)
{
	uint32_t max = option->max ? option->max : UINT32_MAX;

	if (ret != -ERANGE) {
		sl_err_set(err, EINVAL, "--%s: '%s' is no valid value", option->name, value);
		sl_err_hint(err, "expected is %s", expected(option));
	} else {
		sl_err_set(err, EINVAL, "--%s: '%s' is out of range", option->name, value);
		if (option->type == SL_OPTION_U32)
			sl_err_hint(err, "expected is %u to %u", option->min, max);
	}
	return -EINVAL;
}

static int store(const struct sl_option *option, const char *value, void *values,
		 struct sl_err *err)
{
	void *member = (char *)values + option->offset;
	int ret = 0;

	switch (option->type) {
	case SL_OPTION_FLAG:
		*(bool *)member = true;
		return 0;
	case SL_OPTION_TEXT:
		*(const char **)member = value;
		return 0;
	case SL_OPTION_CHOICE:
		return parse_choice(option, value, member, err);
	case SL_OPTION_CUSTOM:
		return option->parse(value, member, err);
	case SL_OPTION_U32:
		ret = sl_parse_u32(value, option->min, option->max ? option->max : UINT32_MAX,
				   member);
		break;
	case SL_OPTION_SIZE:
		ret = sl_parse_size(value, member);
		break;
	case SL_OPTION_DURATION_US:
		ret = sl_parse_duration_us(value, member);
		break;
	case SL_OPTION_ENDPOINT:
		ret = sl_parse_endpoint(value, member);
		break;
	default:
		return sl_err_set(err, EINVAL, "--%s: option of no known type", option->name);
	}
	return ret ? refuse(option, value, ret, err) : 0;
}

int sl_options_default(const struct sl_option_set *set, struct sl_err *err)
{
	for (const struct sl_option *option = set->options; option && option->name; option++) {
		int ret = option->fallback ? store(option, option->fallback, set->values, err) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

static int unknown(const struct sl_option_set *sets, size_t count, const char *name, size_t len,
		   struct sl_err *err)
{
	struct sl_closest closest = { 0 };
	char typed[64];

	snprintf(typed, sizeof(typed), "%.*s", (int)len, name);
	for (size_t i = 0; i < count; i++) {
		for (const struct sl_option *o = sets[i].options; o && o->name; o++)
			sl_closest_offer(&closest, typed, o->name);
	}
	sl_err_set(err, EINVAL, "unknown option '--%s'", typed);
	if (closest.word)
		sl_err_hint(err, "did you mean '--%s'?", closest.word);
	return -EINVAL;
}

static int take_long(const struct sl_option_set *sets, size_t count, int argc, char **argv, int *at,
		     struct sl_err *err)
{
	const char *name = argv[*at] + 2;
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const char *value = equals ? equals + 1 : NULL;
	int next = *at + 1;
	int ret;

	for (size_t i = 0; i < count; i++) {
		const struct sl_option *option = sl_option_by_name(sets[i].options, name, len);

		if (!option)
			continue;
		if (option->type == SL_OPTION_FLAG && value)
			return sl_err_set(err, EINVAL, "--%s takes no value", option->name);
		if (option->type != SL_OPTION_FLAG && !value) {
			if (next >= argc)
				return sl_err_set(err, EINVAL, "--%s needs a value", option->name);
			value = argv[next++];
		}
		ret = store(option, value, sets[i].values, err);
		if (!ret)
			*at = next;
		return ret;
	}
	return unknown(sets, count, name, len, err);
}

/* A bundle: flags, then at most one option with a value, which is the rest or the next word. */
static int take_short(const struct sl_option_set *sets, size_t count, int argc, char **argv,
		      int *at, struct sl_err *err)
{
	int next = *at + 1;
	int ret;

	for (const char *letter = argv[*at] + 1; *letter; letter++) {
		const struct sl_option *option = NULL;
		const char *value = NULL;
		size_t i;

		for (i = 0; i < count && !option; i++)
			option = sl_option_by_letter(sets[i].options, *letter);
		if (!option)
			return strlen(argv[*at]) == 2
				       ? sl_err_set(err, EINVAL, "unknown option '%s'", argv[*at])
				       : sl_err_set(err, EINVAL, "unknown option '-%c' in '%s'",
						    *letter, argv[*at]);
		if (option->type != SL_OPTION_FLAG) {
			value = letter[1] ? letter + 1 : next < argc ? argv[next++] : NULL;
			if (!value)
				return sl_err_set(err, EINVAL, "-%c needs a value", *letter);
		}
		ret = store(option, value, sets[i - 1].values, err);
		if (ret)
			return ret;
		if (value)
			break;
	}
	*at = next;
	return 0;
}

int sl_options_take(const struct sl_option_set *sets, size_t count, int argc, char **argv, int *at,
		    struct sl_err *err)
{
	if (argv[*at][1] == '-')
		return take_long(sets, count, argc, argv, at, err);
	return take_short(sets, count, argc, argv, at, err);
}
