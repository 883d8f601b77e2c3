/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an image earns (compile.h). */
#include <string.h>

#include "policy/bits.h"
#include "policy/compile_private.h"

static void apply_pin(const struct sl_pin_row *pin, const struct sl_image *image,
		      struct sl_image_bits *out)
{
	bool right = image->sha256 && !memcmp(pin->sha256, image->sha256, SL_SHA256_LEN);

	out->pinned = true;
	out->pin_right |= right;
	if (!right && !out->expected)
		out->expected = pin->sha256;
	sl_grant_or(right ? &out->granted : &out->missed, &pin->grant);
}

/* The first exact pin of a path, or where it would be. */
static size_t first_pin(const struct sl_compiled *compiled, const char *path)
{
	const struct sl_pin_row *pins = compiled->pins.data;
	size_t low = 0, high = compiled->exact_pins;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(pins[middle].pattern, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void apply_pins(const struct sl_compiled *compiled, const struct sl_image *image,
		       struct sl_image_bits *out)
{
	const struct sl_pin_row *pins = compiled->pins.data;

	for (size_t i = first_pin(compiled, image->path);
	     i < compiled->exact_pins && !strcmp(pins[i].pattern, image->path); i++)
		apply_pin(&pins[i], image, out);
	for (size_t i = compiled->exact_pins; i < compiled->pins.count; i++) {
		if (sl_path_match(pins[i].pattern, image->path))
			apply_pin(&pins[i], image, out);
	}
}

static void narrow(struct sl_bits *bits, const struct sl_bits *script_bits,
		   const struct sl_bits *script)
{
	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++)
		bits->word[i] &= ~script_bits->word[i] | script->word[i];
}

void sl_compiled_script(const struct sl_compiled *compiled, const char *name, struct sl_grant *out)
{
	sl_paths_find(&compiled->paths[SL_PATHS_SCRIPT], name, out);
}

/* After all else: of an image that the loader may have put code into. */
static void withhold(const struct sl_compiled *compiled, struct sl_image_bits *out)
{
	const struct sl_bits *strict = &compiled->strict_bits;

	for (unsigned int i = 0; i < SL_POLICY_WORDS; i++)
		out->withheld.word[i] = strict->word[i] &
					(out->granted.own.word[i] | out->missed.own.word[i]);
	sl_bits_remove(&out->granted.own, strict);
	sl_bits_remove(&out->granted.inherited, strict);
	sl_bits_remove(&out->missed.own, strict);
	sl_bits_remove(&out->missed.inherited, strict);
}

void sl_compiled_image(const struct sl_compiled *compiled, const struct sl_image *image,
		       struct sl_image_bits *out)
{
	const struct sl_bits *mask = &compiled->script_bits;
	struct sl_grant path = { 0 }, script = { 0 };
	bool changed = image->changed;

	memset(out, 0, sizeof(*out));
	if (image->loader)
		out->strict = &compiled->strict_bits;
	if (!image->path)
		return;
	out->identity = true;
	apply_pins(compiled, image, out);
	if (compiled->policy->first_use && out->pinned)
		changed = !out->pin_right;
	sl_paths_find(&compiled->paths[SL_PATHS_EXE], image->path, &path);
	sl_grant_or(changed ? &out->missed : &out->granted, &path);
	if (image->script)
		sl_compiled_script(compiled, image->script, &script);
	if (!image->any_script) {
		narrow(&out->granted.own, mask, &script.own);
		narrow(&out->granted.inherited, mask, &script.inherited);
		narrow(&out->missed.own, mask, &script.own);
		narrow(&out->missed.inherited, mask, &script.inherited);
	}
	sl_bits_remove(&out->missed.own, &out->granted.own);
	sl_bits_remove(&out->missed.inherited, &out->granted.inherited);
	if (image->loader)
		withhold(compiled, out);
}
