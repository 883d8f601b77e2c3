/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What /proc says of a process that is measured. 0 for one that has gone. */
#ifndef SLUICE_BENCH_PROC_H
#define SLUICE_BENCH_PROC_H

#include <stdint.h>
#include <sys/types.h>

uint64_t sl_proc_rss_bytes(pid_t pid);
/* Of that what is not mapped from files or the kernel's maps, which comes and goes. */
uint64_t sl_proc_own_bytes(pid_t pid);
/* Open descriptors. */
unsigned int sl_proc_fds(pid_t pid);
struct sl_proc_kinds {
	unsigned int sockets, pipes, others; /* descriptors; each pipe has two */
};
void sl_proc_kinds(pid_t pid, struct sl_proc_kinds *out);
unsigned int sl_proc_threads(pid_t pid);
/* How often its threads have waited since they were started: each wake-up ends a wait. */
uint64_t sl_proc_waits(pid_t pid);
/* Time on a CPU that its threads, those that live, have had. */
uint64_t sl_proc_cpu_ns(pid_t pid);
/* Its first child. */
pid_t sl_proc_child(pid_t pid);

/* Entries of a directory, those of its directories included; none are 0. */
unsigned int sl_dir_entries(const char *path);

#endif
