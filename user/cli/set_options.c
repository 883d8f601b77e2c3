/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/set_options.h"

#include <errno.h>

#include "base/parse.h"

/* A page, of which the kernel makes a ring at least; and what an unsigned int holds well. */
#define RING_MIN 4096
#define RING_MAX (1U << 30)

int sl_set_parse_ring(const char *value, void *member, struct sl_err *err)
{
	uint64_t bytes;

	if (!sl_parse_size(value, &bytes) && bytes >= RING_MIN && bytes <= RING_MAX) {
		*(unsigned int *)member = (unsigned int)bytes;
		return 0;
	}
	sl_err_set(err, EINVAL, "--ring-bytes: '%s' is no size of a ring buffer", value);
	return sl_err_hint(err, "expected is 4K to 1G: 16M");
}
