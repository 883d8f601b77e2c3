/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Options as data: one table gives parsing, defaults, help and completion.
 *
 *	struct list_options { bool all; enum order order; uint32_t max; };
 *	static const struct sl_option options[] = {
 *		SL_OPTION(FLAG, struct list_options, all, "all", 'a', NULL, "closed ones too"),
 *		SL_OPTION(CHOICE, struct list_options, order, "order", 0, NULL, "sort by",
 *			  .choices = orders, .fallback = "time"),
 *		SL_OPTION(U32, struct list_options, max, "max", 'n', "COUNT", "stop after COUNT",
 *			  .min = 1, .fallback = "100"),
 *		{ 0 },
 *	};
 *
 * A value is "--name VALUE", "--name=VALUE", "-nVALUE" or "-n VALUE"; flags may be
 * bundled ("-jq"). The last one wins. Names are never abbreviated. A fallback is parsed
 * like a typed value; without one, a value that is not given is zero.
 */
#ifndef SLUICE_USER_OPTIONS_H
#define SLUICE_USER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum sl_option_type {
	SL_OPTION_FLAG,        /* bool, takes no value */
	SL_OPTION_TEXT,        /* const char *, borrowed from argv */
	SL_OPTION_U32,         /* uint32_t, min to max (0: no upper bound) */
	SL_OPTION_SIZE,        /* uint64_t, bytes */
	SL_OPTION_DURATION_US, /* uint64_t, microseconds */
	SL_OPTION_ENDPOINT,    /* struct sl_endpoint */
	SL_OPTION_CHOICE,      /* an enum: index into `choices` */
	SL_OPTION_CUSTOM,      /* what `parse` makes of it; called once for each occurrence */
	SL_OPTION_TYPE_MAX
};

struct sl_option {
	const char *name; /* without dashes; NULL ends a table */
	enum sl_option_type type;
	char letter;         /* 0: none */
	const char *metavar; /* what help calls the value; a CHOICE lists its words */
	const char *help;
	size_t offset; /* of the member in the struct of values, and its size */
	size_t size;
	const char *fallback;
	const char *const *choices; /* ends with NULL */
	uint32_t min, max;
	/* Fills err and returns -errno when it refuses `value`. */
	int (*parse)(const char *value, void *member, struct sl_err *err);
};

#define SL_OPTION(kind, values, member, text, short_name, value_name, help_text, ...)              \
	{                                                                                          \
		.name = (text), .letter = (short_name), .metavar = (value_name),                   \
		.help = (help_text), .type = SL_OPTION_##kind, .offset = offsetof(values, member), \
		.size = sizeof(((values *)0)->member), ##__VA_ARGS__                               \
	}

/* One table and the struct its values go to. An option table may be NULL. */
struct sl_option_set {
	const struct sl_option *options;
	void *values;
};

/* Puts the fallbacks into place. -EINVAL when one does not parse: a fault of the table. */
int sl_options_default(const struct sl_option_set *set, struct sl_err *err);

/*
 * Parses the option at argv[*at] (it begins with '-' and is neither "-" nor "--"), and its
 * value, against `count` sets, the first match wins; *at is then the next word. -EINVAL
 * with what is wrong and what would be right.
 */
int sl_options_take(const struct sl_option_set *sets, size_t count, int argc, char **argv, int *at,
		    struct sl_err *err);

const struct sl_option *sl_option_by_name(const struct sl_option *options, const char *name,
					  size_t len);
const struct sl_option *sl_option_by_letter(const struct sl_option *options, char letter);

/* What stands for its value in help, " VALUE" or " a|b", or "" for a flag. */
const char *sl_option_value_text(const struct sl_option *option, char *out, size_t size);

#endif
