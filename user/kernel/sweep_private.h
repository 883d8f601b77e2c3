/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the two halves of a sweep: gathering references, removing rows. */
#ifndef SLUICE_USER_SWEEP_PRIVATE_H
#define SLUICE_USER_SWEEP_PRIVATE_H

#include "base/htab.h"
#include "kernel/sweep.h"

struct sl_sweep_marks {
	struct sl_htab *exes;     /* id */
	struct sl_htab *lineages; /* id -> unsigned char: its ancestors are marked too */
};

int sl_sweep_marks_new(struct sl_sweep_marks *marks);
void sl_sweep_marks_free(struct sl_sweep_marks *marks);

/* Marks all that is referred to, but for what lineages refer to. -EAGAIN as in sl_sweep(). */
int sl_sweep_gather(struct sl_set *set, struct sl_sweep_marks *marks);

/* A sl_ref_fn; `arg` is a struct sl_sweep_marks *. */
int sl_sweep_mark(unsigned int lineage, unsigned int exe, unsigned int script, void *arg);

#endif
