/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The compiled policy's vocabulary, as the guard's maps and user space share it.
 *
 * A policy has at most SL_POLICY_BITS binary classes, each a bit: binaries that stand in the
 * same entries under the same condition share one. An image has the bits that its path
 * (and script, and digest) earn it; a destination class has the bits of the binaries that
 * may go there. Allowed is: the two have a bit in common.
 */
#ifndef SLUICE_POLICY_H
#define SLUICE_POLICY_H

#include <sluice/abi.h>

#define SL_POLICY_BITS 512
#define SL_POLICY_WORDS (SL_POLICY_BITS / 64)

struct sl_bits {
	__u64 word[SL_POLICY_WORDS]; /* bit i is word[i / 64] >> (i % 64) & 1 */
};

/* What one path (or script, or digest) grants to the image, and to its descendants. */
struct sl_grant {
	struct sl_bits own;
	struct sl_bits inherited;
};

enum sl_transport { SL_TRANSPORT_TCP, SL_TRANSPORT_UDP, SL_TRANSPORT_MAX };

/*
 * Bytes of a path that the guard matches: an LPM trie's key has 256, and policy and table
 * take 5. A prefix ends in '/'; an exact path includes its terminator. Longer ones are
 * matched by user space, while the exec is held, like wildcards within a path.
 */
#define SL_GUARD_PATH_MAX 251

#endif
