/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an image earns (compile.h). */
#include <string.h>

#include "policy/bits.h"
#include "policy/compile_private.h"

static void apply_pin(const struct sl_pin_row *pin, const struct sl_image *image,
		      struct sl_image_bits *out)
{
	bool right = image->sha256 && !memcmp(pin->sha256, image->sha256, SL_SHA256_LEN);

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

void sl_compiled_image(const struct sl_compiled *compiled, const struct sl_image *image,
		       struct sl_image_bits *out)
{
	const struct sl_bits *mask = &compiled->script_bits;
	struct sl_grant script = { 0 };

	memset(out, 0, sizeof(*out));
	if (!image->path)
		return;
	out->identity = true;
	sl_paths_find(&compiled->paths[SL_PATHS_EXE], image->path,
		      image->changed ? &out->missed : &out->granted);
	apply_pins(compiled, image, out);
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
}
