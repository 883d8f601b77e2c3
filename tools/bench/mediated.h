/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What enforcement adds to a worker of a benchmark: a policy in the guard, the seccomp
 * filter, and who answers what the filter holds: the broker, or a loop that does nothing
 * but let go on, which shows what holding itself costs.
 *
 *	sl_mediated_new(&m, &options, &err);
 *	sl_mediated_filter(m, kind)		for workers, started before the threads
 *	sl_mediated_listen(m, kind, &fd, &err)
 *	sl_mediated_start(m, &err);		starts threads
 *	sl_mediated_load(m, world, &err);	each time that the set was loaded: observes
 *	sl_mediated_unload(m);			before it is unloaded; no call is held
 *	sl_mediated_free(&m);			once the workers have ended
 */
#ifndef SLUICE_BENCH_MEDIATED_H
#define SLUICE_BENCH_MEDIATED_H

#include "broker/filter.h"
#include "policy/compile.h"
#include "world.h"

enum sl_filtering {
	SL_FILTERING_NONE,
	SL_FILTERING_PLAIN,   /* refuses families, holds nothing */
	SL_FILTERING_HELD,    /* holds, the broker answers */
	SL_FILTERING_MINIMAL, /* holds, the smallest loop answers */
	SL_FILTERING_MAX
};

struct sl_mediated_options {
	enum sl_hold hold;     /* what SL_FILTERING_HELD and MINIMAL hold */
	const char *transport; /* "tcp", "udp" */
	uint16_t port;         /* that the policy allows, at SL_WORLD_ADDR */
};

struct sl_mediated;

int sl_mediated_new(struct sl_mediated **out, const struct sl_mediated_options *options,
		    struct sl_err *err);
void sl_mediated_free(struct sl_mediated **mediated);

/* NULL: none. */
const struct sl_filter *sl_mediated_filter(const struct sl_mediated *mediated,
					   enum sl_filtering kind);
unsigned long sl_mediated_flags(const struct sl_mediated *mediated);

/* Takes over the listener of a filter, if *fd is one; then it is -1. */
int sl_mediated_listen(struct sl_mediated *mediated, enum sl_filtering kind, int *fd,
		       struct sl_err *err);

int sl_mediated_start(struct sl_mediated *mediated, struct sl_err *err);
int sl_mediated_load(struct sl_mediated *mediated, struct sl_world *world, struct sl_err *err);
void sl_mediated_unload(struct sl_mediated *mediated);

/* Calls that the broker let go on, and calls that the minimal loop did. */
uint64_t sl_mediated_held(const struct sl_mediated *mediated);
uint64_t sl_mediated_minimal(const struct sl_mediated *mediated);
/* Outcomes of the broker that are faults. */
uint64_t sl_mediated_faults(const struct sl_mediated *mediated);

/* Compiles sl_policy_text() with this program as the image; both are the caller's. */
int sl_mediated_policy(struct sl_policy **policy, struct sl_compiled **compiled, uint32_t rules,
		       const char *transport, uint16_t port, struct sl_err *err);

#endif
