/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/hash.h"

static uint64_t mix(uint64_t value)
{
	/* Finalizer of MurmurHash3: every input bit reaches every output bit. */
	value ^= value >> 33;
	value *= 0xff51afd7ed558ccdULL;
	value ^= value >> 33;
	value *= 0xc4ceb9fe1a85ec53ULL;
	return value ^ value >> 33;
}

uint64_t sl_hash_bytes(const void *data, size_t len, uint64_t seed)
{
	const unsigned char *at = data;
	uint64_t hash = seed ^ len;

	while (len > 0) {
		size_t n = len < sizeof(uint64_t) ? len : sizeof(uint64_t);
		uint64_t word = 0;

		memcpy(&word, at, n);
		hash = mix(hash ^ word) + seed;
		at += n;
		len -= n;
	}
	return hash;
}

uint64_t sl_hash_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) == (ssize_t)sizeof(seed))
		return seed;
	/* Early at boot: better a guessable seed than none. */
	return mix((uint64_t)time(NULL) ^ (uintptr_t)&seed);
}
