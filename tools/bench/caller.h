/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that run in sandboxes of the agent: this one executed anew under another name.
 *
 *	once	connects to a port of the world that its policy allows, and to the next one,
 *		which it does not; its exit status says whether both ended as they must
 *	loop	executes `once` over and over, whenever its group's turn is, and writes down in
 *		shared memory how long each took
 *
 * The memory is a memfd: sl_callers_new(); each loop has the slot of its number.
 */
#ifndef SLUICE_BENCH_CALLER_H
#define SLUICE_BENCH_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"

#define SL_CALLERS_MAX 160
#define SL_HIST 256

struct sl_caller_slot {
	uint64_t begun, done, wrong;
	uint64_t max_us, since_us; /* longest; when the one under way was begun */
	uint32_t hist[SL_HIST];    /* of microseconds, see sl_hist_bucket() */
	int32_t why;               /* of the latest wrong one: errno of the spawn, or exit status */
};

struct sl_callers {
	uint32_t stop;
	uint32_t groups; /* bits of those whose turn is */
	uint32_t ready;  /* loops that have begun */
	struct sl_caller_slot slot[SL_CALLERS_MAX];
};

int sl_callers_new(struct sl_callers **out, int *fd, struct sl_err *err);
void sl_callers_free(struct sl_callers **callers, int *fd);
/* Forgets what slots counted; none of them runs. */
void sl_callers_reset(struct sl_callers *callers);

/* What of a slot is summed up over several. */
struct sl_callers_sum {
	uint64_t begun, done, wrong, max_us;
	uint32_t p50_us, p99_us;
	int32_t why;
};
void sl_callers_sum(const struct sl_callers *callers, unsigned int first, unsigned int count,
		    struct sl_callers_sum *out);

#define SL_CALLER_ARGV0 "sluice-bench-caller"

/* Arguments, with their texts; good for as long as the struct. */
struct sl_caller_args {
	const char *argv[10];
	char text[7][16];
};
/* `denied`: the second connection must be. */
void sl_caller_once(struct sl_caller_args *args, uint16_t port, bool denied);
struct sl_caller_loop {
	int fd;
	unsigned int slot, group;
	uint16_t port;
	bool denied;
	unsigned int pause_us; /* between two */
	unsigned int copies;   /* processes, in the slots that follow; 0: one */
};
void sl_caller_loop(struct sl_caller_args *args, const struct sl_caller_loop *loop);

/* A loop that is in no sandbox. */
int sl_caller_start(struct sl_child *child, const char *cgroup, const struct sl_caller_loop *loop,
		    struct sl_err *err);

/* Accepts and closes, at a port that is told. */
int sl_caller_server(struct sl_child *child, uint16_t *port, struct sl_err *err);

/* Main function of what is executed. */
int sl_caller_main(int argc, char **argv);

/* Eight buckets for each power of two; a value is told as the end of its bucket. */
unsigned int sl_hist_bucket(uint64_t us);
uint32_t sl_hist_end(unsigned int bucket);

#endif
