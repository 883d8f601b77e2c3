/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a denial means for who writes the policy: one line, safe to print. */
#ifndef SLUICE_USER_RUN_ADVICE_H
#define SLUICE_USER_RUN_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

#include <sluice/guard.h>

#define SL_ADVICE_MAX 1024

struct sl_advice {
	enum sl_reason reason;
	struct sl_endpoint remote; /* for reason `listen`: what it would listen on */
	const char *name;          /* that `remote` was looked up by; NULL: none */
	const char *proto;         /* "tcp", … */
	bool tried;                /* only connect() of a UDP socket */
	/* For `reserved-address`: sl_withheld_text() of the name; NULL, "": it is not the name's. */
	const char *withheld;
	const char *exe; /* path of the image; NULL: not known */
	/*
	 * Key of the entry to add to: for reasons `binary` and `integrity` the one that names
	 * the destination, else one that the image matches. NULL: there is none.
	 */
	const char *rule;
	/* For `binary`: the rule has the image, but only for this script. NULL: it has not. */
	const char *script;
	/* For `integrity`: hexadecimal digests, NULL when they are not known. */
	const char *found, *expected;
	bool pinned;         /* the rule expects it, not what was seen at first use */
	const char *set_dir; /* of the set in which another can be accepted */
	unsigned int exe_id;
};

/* "add to 'lo': binaries: [{path: /usr/bin/curl}]"; "" when nothing helps. Returns dst. */
const char *sl_advice_text(char *dst, size_t size, const struct sl_advice *advice);

#endif
