/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "egress/unreachable.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *lookup_text(int code)
{
	switch (code) {
	case ENOENT:
		return "there is no such name";
	case ENODATA:
		return "the name has no address";
	case ETIMEDOUT:
		return "no DNS server answered";
	case EIO:
		return "the DNS servers failed";
	case ENOBUFS:
		return "too many names were being looked up";
	default:
		return NULL;
	}
}

const char *sl_unreachable_text(int code, bool lookup)
{
	const char *text = lookup ? lookup_text(code) : NULL;

	/* Not strerror(): that is of a language. */
	return text ?: strerrordesc_np(code) ?: "Unknown error";
}
