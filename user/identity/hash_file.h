/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The bytes of a pinned executable through SHA-256, with one buffer that is reused.
 * Not thread-safe: one hasher a thread.
 */
#ifndef SLUICE_USER_HASH_FILE_H
#define SLUICE_USER_HASH_FILE_H

#include <stdatomic.h>

#include "identity/exe_file.h"

struct sl_hasher;

/* `stop` (may be NULL) is looked at between reads and ends a run with -ECANCELED. */
int sl_hasher_new(struct sl_hasher **out, const atomic_bool *stop);
void sl_hasher_free(struct sl_hasher **hasher);

/*
 * Exactly `size` bytes from the descriptor's position on; `sha256` has 32 bytes. -ESTALE:
 * there are fewer, -ECANCELED, -ELIBBAD from libcrypto, errors of read(2).
 */
int sl_hasher_bytes(struct sl_hasher *hasher, int fd, unsigned long long size,
		    unsigned char *sha256);

/*
 * Verifies, reads and verifies again; fills *out, with the reason when there is no
 * digest. `pin_fd` stays the caller's. -EIO from libcrypto, -ECANCELED.
 */
int sl_hasher_run(struct sl_hasher *hasher, const struct sl_exe_ref *ref, int pin_fd,
		  struct sl_digest *out);

#endif
