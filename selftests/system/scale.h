/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers of the long tests. With sanitizers, under which `make check` runs them, a tenth:
 * what counts there is that nothing is reported. `make check-system` runs them in full.
 */
#ifndef SLUICE_SYSTEM_SCALE_H
#define SLUICE_SYSTEM_SCALE_H

#ifdef __SANITIZE_ADDRESS__
#define SCALED(n) ((n) / 10)
#else
#define SCALED(n) (n)
#endif

#endif
