/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From binaries to bits. Binaries that are written alike are one "spec"; specs that stand
 * in the same entries, with the same script and strictness, are one bit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/bits.h"
#include "policy/compile_private.h"

/* Spec `spec` stands in entry `rule`; or: entry `rule` has bit `spec`. */
struct member {
	uint32_t spec;
	uint32_t rule;
};

struct work {
	struct sl_compiled *compiled;
	struct sl_intern *specs;  /* as write_spec() */
	struct sl_array binaries; /* const struct sl_policy_binary *, by spec: one of them */
	struct sl_array members;  /* struct member */
	struct sl_intern *bits;   /* as write_bit() */
	struct sl_array bit_of;   /* uint32_t by spec */
	struct sl_array text;     /* char: scratch for keys */
};

static int put(struct sl_array *text, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char *c = sl_array_add(text);

		if (!c)
			return -ENOMEM;
		*c = ((const char *)data)[i];
	}
	return 0;
}

/* Text with its terminator, or one byte that begins no path. */
static int put_text(struct sl_array *text, const char *value)
{
	return value ? put(text, value, strlen(value) + 1) : put(text, "-", 1);
}

static int write_spec(struct sl_array *text, const struct sl_policy_binary *binary)
{
	const char flags =
		(char)(binary->descendants | binary->strict << 1 | (binary->sha256 != NULL) << 2);
	int ret = put(text, &flags, 1);

	if (!ret)
		ret = put_text(text, binary->path);
	if (!ret)
		ret = put_text(text, binary->script);
	return ret || !binary->sha256 ? ret : put(text, binary->sha256, SL_SHA256_LEN);
}

static int add_member(struct sl_array *members, uint32_t spec, uint32_t rule)
{
	struct member *member = sl_array_add(members);

	if (!member)
		return -ENOMEM;
	member->spec = spec;
	member->rule = rule;
	return 0;
}

static int collect_specs(struct work *work)
{
	const struct sl_policy *policy = work->compiled->policy;

	for (uint32_t rule = 0; rule < policy->entry_count; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		for (size_t i = 0; i < entry->binary_count; i++) {
			const struct sl_policy_binary **binary;
			bool added = false;
			uint32_t spec;

			work->text.count = 0;
			if (write_spec(&work->text, &entry->binaries[i]))
				return -ENOMEM;
			spec = sl_intern_add(work->specs, work->text.data, work->text.count,
					     &added);
			if (spec == SL_INTERN_NONE)
				return -ENOMEM;
			binary = added ? sl_array_add(&work->binaries)
				       : sl_array_at(&work->binaries, spec);
			if (!binary || add_member(&work->members, spec, rule))
				return -ENOMEM;
			*binary = &entry->binaries[i];
		}
	}
	return 0;
}

static int by_spec(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->spec != y->spec)
		return x->spec < y->spec ? -1 : 1;
	return (x->rule > y->rule) - (x->rule < y->rule);
}

/* Sorts, and keeps one of equal ones. */
static void sort_members(struct sl_array *members)
{
	struct member *items = members->data;
	size_t used = 0;

	if (!members->count)
		return;
	qsort(items, members->count, sizeof(*items), by_spec);
	for (size_t i = 0; i < members->count; i++) {
		if (!used || by_spec(&items[used - 1], &items[i]) != 0)
			items[used++] = items[i];
	}
	members->count = used;
}

/* The key of the bit of the spec whose members are at [from, to). */
static int write_bit(struct work *work, size_t from, size_t to)
{
	const struct member *members = work->members.data;
	const struct sl_policy_binary *binary =
		*(const struct sl_policy_binary **)sl_array_at(&work->binaries, members[from].spec);
	char strict = (char)binary->strict;
	int ret;

	work->text.count = 0;
	ret = put(&work->text, &strict, 1);
	if (!ret)
		ret = put_text(&work->text, binary->script);
	for (size_t i = from; i < to && !ret; i++)
		ret = put(&work->text, &members[i].rule, sizeof(members[i].rule));
	return ret;
}

/* Gives each spec its bit; replaces the members by those of bits. */
static int number_bits(struct work *work)
{
	struct sl_array bits = SL_ARRAY(struct member);
	const struct member *members;
	size_t to;
	int ret = 0;

	sort_members(&work->members);
	members = work->members.data;
	for (size_t from = 0; from < work->members.count && !ret; from = to) {
		uint32_t *bit_of = sl_array_add(&work->bit_of);
		uint32_t bit = SL_INTERN_NONE;
		bool added = false;

		for (to = from; to < work->members.count; to++) {
			if (members[to].spec != members[from].spec)
				break;
		}
		ret = bit_of ? write_bit(work, from, to) : -ENOMEM;
		if (!ret)
			bit = sl_intern_add(work->bits, work->text.data, work->text.count, &added);
		if (bit == SL_INTERN_NONE) {
			ret = -ENOMEM;
			break;
		}
		*bit_of = bit;
		for (size_t i = from; i < to && added && !ret; i++)
			ret = add_member(&bits, bit, members[i].rule);
	}
	sl_array_free(&work->members);
	work->members = bits;
	return ret;
}

static int by_rule(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	return (x->spec > y->spec) - (x->spec < y->spec);
}

/* The bits of each entry. */
static int spread_bits(struct work *work)
{
	struct sl_compiled *compiled = work->compiled;
	size_t count = work->members.count, entries = compiled->policy->entry_count, at = 0;
	struct member *members = work->members.data;

	compiled->rule_bits = calloc(count + 1, sizeof(*compiled->rule_bits));
	compiled->rules = calloc(entries + 1, sizeof(*compiled->rules));
	if (!compiled->rule_bits || !compiled->rules)
		return -ENOMEM;
	if (count)
		qsort(members, count, sizeof(*members), by_rule);
	for (size_t rule = 0; rule < entries; rule++) {
		compiled->rules[rule].bits = compiled->rule_bits + at;
		for (; at < count && members[at].rule == rule; at++)
			compiled->rule_bits[at] = (uint16_t)members[at].spec;
		compiled->rules[rule].count =
			(size_t)(compiled->rule_bits + at - compiled->rules[rule].bits);
	}
	return 0;
}

static int grant_pin(struct sl_compiled *compiled, const struct sl_policy_binary *binary,
		     const struct sl_grant *grant)
{
	struct sl_pin_row *pin = sl_array_add(&compiled->pins);

	if (!pin)
		return -ENOMEM;
	pin->pattern = binary->path;
	pin->sha256 = binary->sha256;
	pin->grant = *grant;
	return 0;
}

static int grant_spec(struct sl_compiled *compiled, const struct sl_policy_binary *binary,
		      uint32_t bit)
{
	struct sl_grant grant = { 0 };
	int ret;

	sl_bits_set(&grant.own, bit);
	if (binary->descendants)
		sl_bits_set(&grant.inherited, bit);
	if (binary->strict)
		sl_bits_set(&compiled->strict_bits, bit);
	ret = binary->sha256 ? grant_pin(compiled, binary, &grant)
			     : sl_paths_add(&compiled->paths[SL_PATHS_EXE], binary->path, &grant);
	if (ret || !binary->script)
		return ret;
	/* One half each: an image needs the bit from its path and from its script. */
	sl_bits_set(&compiled->script_bits, bit);
	return sl_paths_add(&compiled->paths[SL_PATHS_SCRIPT], binary->script, &grant);
}

static int by_pattern(const void *a, const void *b)
{
	const struct sl_pin_row *x = a, *y = b;
	bool wild_x = sl_path_kind(x->pattern) != SL_PATH_EXACT;
	bool wild_y = sl_path_kind(y->pattern) != SL_PATH_EXACT;
	int order = wild_x - wild_y;

	if (!order)
		order = strcmp(x->pattern, y->pattern);
	return order ? order : memcmp(x->sha256, y->sha256, SL_SHA256_LEN);
}

/* Sorts the pins and joins those of one path and digest. -E2BIG: too many wildcards. */
static int close_pins(struct sl_compiled *compiled)
{
	struct sl_pin_row *pins = compiled->pins.data;
	size_t used = 0;

	if (!compiled->pins.count)
		return 0;
	qsort(pins, compiled->pins.count, sizeof(*pins), by_pattern);
	for (size_t i = 0; i < compiled->pins.count; i++) {
		if (used && !by_pattern(&pins[used - 1], &pins[i]))
			sl_grant_or(&pins[used - 1].grant, &pins[i].grant);
		else
			pins[used++] = pins[i];
	}
	compiled->pins.count = used;
	while (compiled->exact_pins < used &&
	       sl_path_kind(pins[compiled->exact_pins].pattern) == SL_PATH_EXACT)
		compiled->exact_pins++;
	return used - compiled->exact_pins > SL_POLICY_GLOBS_MAX ? -E2BIG : 0;
}

static int make_grants(struct work *work)
{
	struct sl_compiled *compiled = work->compiled;
	int ret = 0;

	for (size_t spec = 0; spec < work->binaries.count && !ret; spec++)
		ret = grant_spec(compiled,
				 *(const struct sl_policy_binary **)sl_array_at(&work->binaries,
										spec),
				 *(uint32_t *)sl_array_at(&work->bit_of, spec));
	if (!ret)
		ret = close_pins(compiled);
	for (int table = 0; table < SL_PATHS_MAX && !ret; table++)
		sl_paths_close(&compiled->paths[table]);
	return ret;
}

static int compile(struct work *work, struct sl_err *err)
{
	struct sl_compiled *compiled = work->compiled;
	int ret = sl_intern_new(&work->specs);

	if (!ret)
		ret = sl_intern_new(&work->bits);
	for (int table = 0; table < SL_PATHS_MAX && !ret; table++)
		ret = sl_paths_init(&compiled->paths[table]);
	if (!ret)
		ret = collect_specs(work);
	if (!ret)
		ret = number_bits(work);
	if (ret)
		return sl_compile_fail(compiled, err, ret, "", 0);
	compiled->bit_count = sl_intern_count(work->bits);
	if (compiled->bit_count > SL_POLICY_BITS) {
		sl_err_set(err, E2BIG,
			   "%s: its binaries fall into %zu classes; at most %u are possible",
			   compiled->policy->file, compiled->bit_count, SL_POLICY_BITS);
		return sl_err_hint(err, "binaries that stand in the same entries share a class: "
					"join entries, or use a directory's \"/**\"");
	}
	ret = spread_bits(work);
	if (!ret)
		ret = make_grants(work);
	return ret ? sl_compile_fail(
			     compiled, err, ret,
			     "paths with wildcards inside, or longer than the kernel matches",
			     SL_POLICY_GLOBS_MAX)
		   : 0;
}

int sl_compile_binaries(struct sl_compiled *compiled, struct sl_err *err)
{
	struct work work = {
		.compiled = compiled,
		.binaries = SL_ARRAY(const struct sl_policy_binary *),
		.members = SL_ARRAY(struct member),
		.bit_of = SL_ARRAY(uint32_t),
		.text = SL_ARRAY(char),
	};
	int ret;

	compiled->pins = (struct sl_array)SL_ARRAY(struct sl_pin_row);
	ret = compile(&work, err);
	sl_intern_free(&work.specs);
	sl_intern_free(&work.bits);
	sl_array_free(&work.binaries);
	sl_array_free(&work.members);
	sl_array_free(&work.bit_of);
	sl_array_free(&work.text);
	return ret;
}
