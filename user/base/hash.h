/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The hash of the tables in memory: seeded, so that who chooses keys can't aim at one slot.
 * Not for anything that is stored or compared between processes.
 */
#ifndef SLUICE_USER_HASH_H
#define SLUICE_USER_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sl_hash_seed(void);
uint64_t sl_hash_bytes(const void *data, size_t len, uint64_t seed);

#endif
