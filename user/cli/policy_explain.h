/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `policy explain`: a file of its own for its size. */
#ifndef SLUICE_USER_POLICY_EXPLAIN_H
#define SLUICE_USER_POLICY_EXPLAIN_H

#include "cli/command.h"
#include "policy/decide.h"

extern const struct sl_command sl_cmd_policy_explain;

/* A loaded and compiled policy file; zeroed at first, closed in the end. */
struct sl_policy_open {
	struct sl_policy *policy;
	struct sl_compiled *compiled;
};

/* -errno with cli->err filled. */
int sl_policy_open(struct sl_policy_open *open, struct sl_cli *cli, const char *file);
void sl_policy_close(struct sl_policy_open *open);

/* Descriptions in one line; cut when `size` is too small. Return dst. */
const char *sl_policy_endpoint_text(char *dst, size_t size,
				    const struct sl_policy_endpoint *endpoint);
const char *sl_policy_binary_text(char *dst, size_t size, const struct sl_policy_binary *binary);
const char *sl_prefixes_text(char *dst, size_t size, const struct sl_prefixes *prefixes);

/* Bytes that are enough for most of these. */
#define SL_POLICY_TEXT 512

#endif
