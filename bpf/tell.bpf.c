// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A denial that user space has made, told like those of the hooks: a socket that the seccomp
 * filter refuses runs no hook. Run by user space itself (bpf_prog_test_run), so that counters,
 * rows and events have one writer.
 */
#include "kernel.h"
#include "verdict.h"

SEC("syscall")
int on_refused(struct sl_refused *ctx)
{
	struct sl_decision_key key = ctx->key;
	struct sl_owner owner = ctx->owner;

	verdict_tell(&key, &owner, 0, 0);
	return 0;
}
