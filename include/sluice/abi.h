/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every header in this directory obeys. These types are shared by the BPF
 * programs and user space, sit in pinned maps and may be read by a newer or older
 * program: a change of any layout raises SL_SCHEMA.
 *
 * - Fixed-width types only, members aligned to their size, padding named.
 * - Times are CLOCK_BOOTTIME nanoseconds (the clock of /proc/PID/stat's starttime).
 * - A name ending in _be is network byte order; everything else is host order.
 * - Addresses are 16 bytes, IPv4 as IPv4-mapped IPv6 (RFC 4291, 2.5.5.2).
 * - Id 0 means "none" or "unknown" in every id space.
 */
#ifndef SLUICE_ABI_H
#define SLUICE_ABI_H

#include <linux/types.h>

/* Version of all layouts here: a set of another one is refused (its config says which it has). */
#define SL_SCHEMA 5

/* Task comm as the kernel keeps it (TASK_COMM_LEN, include/linux/sched.h). */
#define SL_COMM_LEN 16

/* Bytes of a path that are recorded, terminator included (PATH_MAX). */
#define SL_PATH_MAX 4096

#endif
