/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executables and lineages: interned identities of binaries and chains of binaries.
 *
 * Rows that nothing refers to any more are swept by user space (user/kernel/sweep.h). An
 * id is never given out twice. `round` is the round of sweeping (sl_ids.round) in which
 * the kernel last gave the row's id to a process: a row of the current round is in use,
 * whatever else was found.
 */
#ifndef SLUICE_EXE_H
#define SLUICE_EXE_H

#include <sluice/abi.h>

enum sl_exe_flag {
	SL_EXE_MEMFD = 1 << 0,     /* lives on the kernel's internal shm mount */
	SL_EXE_DELETED = 1 << 1,   /* had no name any more when it was executed */
	SL_EXE_DETACHED = 1 << 2,  /* its mount belongs to no namespace */
	SL_EXE_TRUNCATED = 1 << 3, /* path longer than SL_PATH_MAX or SL_PATH_STEPS deep */
	SL_EXE_OUTSIDE = 1 << 4,   /* not below the root of the process that ran it */
	SL_EXE_SCRIPT = 1 << 5,    /* a script's name as passed to exec: a label, no file */
	SL_EXE_UNSTABLE = 1 << 6,  /* renamed while its path was read, several times */
};

/* Of one that has no name to match a policy's path by. */
#define SL_EXE_NAMELESS                                                                        \
	(SL_EXE_MEMFD | SL_EXE_DELETED | SL_EXE_DETACHED | SL_EXE_TRUNCATED | SL_EXE_OUTSIDE | \
	 SL_EXE_UNSTABLE)

/*
 * The one program through which a script's name goes on to what it executes: behind
 * "#!/usr/bin/env NAME" the kernel starts env for the script, and env becomes NAME.
 */
#define SL_ENV_PATH "/usr/bin/env"

/* Path components that are walked before a path is cut (SL_EXE_TRUNCATED). */
#define SL_PATH_STEPS 256

/*
 * Identity of an executable, as the kernel knows it. `dev` is the super block's
 * s_dev, which differs from stat's st_dev on overlayfs and btrfs.
 */
struct sl_exe_key {
	__u64 ino;
	__u64 ctime_ns; /* CLOCK_REALTIME */
	__u64 path_hash;
	__u32 dev; /* kernel encoding: major << 20 | minor */
	__u32 generation;
	__u32 flags; /* enum sl_exe_flag */
	__u32 probe; /* distinguishes paths of equal hash; 0 for the first */
};

/* Value of map `exes`, keyed by id. */
struct sl_exe {
	struct sl_exe_key key;
	__u64 size;    /* of the file, bytes */
	__u64 seen_ns; /* first time */
	__u32 id;
	__u16 path_len; /* without terminator */
	__u16 root_off; /* path + root_off is the path as the process' root sees it */
	__u32 round;
	__u32 pad;
	char path[SL_PATH_MAX];
};

/* Steps of the hash of a path: its words of 8 bytes, the last one padded with zeros. */
static inline __u64 sl_path_hash_begin(__u64 seed, __u64 len)
{
	return seed ^ len;
}

static inline __u64 sl_path_hash_word(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * 0x9fb21c651e98df25ULL;
	return hash ^ hash >> 32;
}

enum sl_lineage_flag {
	SL_LINEAGE_OUTSIDE = 1 << 0,   /* ran before the sandbox's entry: shown, never matched */
	SL_LINEAGE_CUT = 1 << 1,       /* deeper than SL_LINEAGE_DEPTH: a link was dropped */
	SL_LINEAGE_ELSEWHERE = 1 << 2, /* executed in a mount namespace of its own: any path */
	SL_LINEAGE_CHECKED = 1 << 3,   /* started without variables of the loader */
};

/* Images a lineage may hold. A longer chain replaces its leaf. */
#define SL_LINEAGE_DEPTH 64

struct sl_lineage_key {
	__u32 parent; /* lineage id, 0 at the root */
	__u32 exe;
	__u32 script;
	__u32 flags; /* enum sl_lineage_flag */
};

/* Value of map `lineages`, keyed by id: one image and the lineage it came from. */
struct sl_lineage {
	struct sl_lineage_key key;
	__u32 depth; /* 1 for a root */
	__u32 id;
	__u32 round;
	__u32 pad;
};

#endif
