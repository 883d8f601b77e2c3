/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A YAML document as a tree in which every node knows its place in the file. It takes any
 * bytes: what libyaml would accept beyond need (several documents, deep nesting, millions of
 * nodes, other encodings) is refused here. Aliases and tags are kept as such: who reads the
 * node refuses them.
 */
#ifndef SLUICE_USER_POLICY_YAML_H
#define SLUICE_USER_POLICY_YAML_H

#include "policy/policy.h"

enum sl_yaml_kind {
	SL_YAML_SCALAR,
	SL_YAML_LIST,
	SL_YAML_MAP, /* children are key, value, key, value, … */
	SL_YAML_ALIAS,
};

struct sl_yaml_node {
	const char *text; /* SCALAR: without NUL, terminated; TAG or ALIAS: its name */
	uint32_t len;     /* of text, bytes */
	uint32_t first;   /* child, 0: none */
	uint32_t next;    /* sibling, 0: none */
	struct sl_position at;
	uint8_t kind; /* enum sl_yaml_kind */
	bool plain;   /* a scalar without quotes: may mean a null, number, truth value */
	bool tagged;
};

/* Where errors point to: the file's name as messages show it. */
struct sl_yaml_source {
	const char *file;
	struct sl_err *err;
};

/*
 * Sets "FILE:LINE:COLUMN: <fmt>", and ": 'offending'" if that is not NULL (bounded and
 * escaped). Returns -code.
 */
int sl_yaml_fail(const struct sl_yaml_source *source, int code, struct sl_position at,
		 const char *offending, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Puts a position and the offending text around an error that has neither. -err->code. */
int sl_yaml_locate(const struct sl_yaml_source *source, struct sl_position at,
		   const char *offending, const struct sl_err *bare);

struct sl_yaml;

/* -EINVAL, -E2BIG, -ENOMEM. The tree holds copies: `text` may go. */
int sl_yaml_parse(struct sl_yaml **out, const struct sl_yaml_source *source, const char *text,
		  size_t len);
void sl_yaml_free(struct sl_yaml **yaml);

const struct sl_yaml_node *sl_yaml_root(const struct sl_yaml *yaml);
/* NULL at the end. */
const struct sl_yaml_node *sl_yaml_first(const struct sl_yaml *yaml,
					 const struct sl_yaml_node *node);
const struct sl_yaml_node *sl_yaml_next(const struct sl_yaml *yaml,
					const struct sl_yaml_node *node);

#endif
