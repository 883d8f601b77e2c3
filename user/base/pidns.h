/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SLUICE_BASE_PIDNS_H
#define SLUICE_BASE_PIDNS_H

#include <stdbool.h>

/* Whether pids that the kernel's programs record are pids for this process too. */
bool sl_in_first_pid_ns(void);

#endif
