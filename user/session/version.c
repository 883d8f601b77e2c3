// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session/version.h"

#include <errno.h>
#include <stdio.h>

#include "base/escape.h"

#define WORD_MAX 64 /* bytes shown of a name or a version */

struct words {
	char text[3 * WORD_MAX];
};

/* "name version (protocol 1 to 3)" */
static struct words describe(const struct sl_component *component)
{
	char name[WORD_MAX], version[WORD_MAX];
	struct words words;

	sl_escape_text(name, sizeof(name), component->name);
	sl_escape_text(version, sizeof(version), component->version);
	if (component->min == component->max)
		snprintf(words.text, sizeof(words.text), "%s %s (protocol %u)", name, version,
			 component->min);
	else
		snprintf(words.text, sizeof(words.text), "%s %s (protocol %u to %u)", name, version,
			 component->min, component->max);
	return words;
}

int sl_version_agree(uint32_t *out, const struct sl_component *self,
		     const struct sl_component *peer, struct sl_err *err)
{
	uint32_t min = self->min > peer->min ? self->min : peer->min;
	uint32_t max = self->max < peer->max ? self->max : peer->max;
	char older[WORD_MAX];

	if (!peer->min || peer->min > peer->max)
		return sl_err_set(err, EINVAL, "%s names no range of versions",
				  describe(peer).text);
	if (min <= max) {
		*out = max;
		return 0;
	}
	sl_err_set(err, EPROTONOSUPPORT, "%s and %s have no protocol version in common",
		   describe(self).text, describe(peer).text);
	sl_escape_text(older, sizeof(older), self->max < peer->min ? self->name : peer->name);
	return sl_err_hint(err, "upgrade %s, the older of the two", older);
}
