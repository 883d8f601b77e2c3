/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Policies for tests: from text to verdicts in one call; a fault of the text fails the test. */
#ifndef SLUICE_TEST_POLICY_WORLD_H
#define SLUICE_TEST_POLICY_WORLD_H

#include "policy/decide.h"

struct policy_world {
	struct sl_policy *policy;
	struct sl_compiled *compiled;
};

void policy_world_load(struct policy_world *world, const char *text);
void policy_world_free(struct policy_world *world);
#define _cleanup_world_ __attribute__((cleanup(policy_world_free)))

/* A TCP connection of `exe` (whose parent image is `parent`, may be NULL) to ADDR:PORT. */
struct sl_decision policy_world_ask(const struct policy_world *world, const char *exe,
				    const char *parent, const char *addr, uint16_t port,
				    const char *name);

/* Expects that the answer to that is `expected`, in the words of policy_says(). */
void policy_world_says(const struct policy_world *world, const char *exe, const char *addr,
		       uint16_t port, const char *name, const char *expected);

struct sl_addr policy_addr(const char *text);

/* "deny endpoint", "allow KEY", "deny binary KEY", … in one of a few static buffers. */
const char *policy_says(const struct policy_world *world, const struct sl_decision *decision);

#endif
