/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sandboxes and the settings of a set of programs. */
#ifndef SLUICE_SANDBOX_H
#define SLUICE_SANDBOX_H

#include <sluice/abi.h>

/* Sandbox ids are slots: 1 .. SL_SANDBOX_MAX - 1. */
#define SL_SANDBOX_MAX 1024

#define SL_SANDBOX_NAME_MAX 64

/* Value of map `sandboxes`, keyed by id. */
struct sl_sandbox {
	__u64 cgroup_id; /* kernfs id, as in bpf_link_info and name_to_handle_at */
	__u64 attached_ns;
	__u32 id;
	__u32 pad;
	char name[SL_SANDBOX_NAME_MAX];
	char cgroup[SL_PATH_MAX]; /* below the cgroup2 mount, starting with '/' */
};

/*
 * Map `config`, one element: what programs read and what must outlive the loader, so
 * it is not in .bss.
 */
struct sl_config {
	__u32 schema;
	__u32 events;        /* SL_EVENT_BIT of the kinds that are wanted */
	__u32 sock_slots;    /* elements of `socks`, a power of two */
	__u32 tuple_buckets; /* a power of two */
	__u32 count_skb;     /* no sock_*_length tracepoints: UDP bytes from cgroup_skb */
	__u64 hash_seed;     /* of path hashes and tuple hashes */
	__u64 wake_bytes;    /* unread bytes at which a busy consumer is woken */
	char version[32];    /* of the loader */
	__s64 realtime_ns;   /* CLOCK_REALTIME less CLOCK_BOOTTIME when the set was made */
};

/*
 * Map `ids`, one element, mmapable: the last id given out, and the round of sweeping (see
 * <sluice/exe.h>), which only sweepers change.
 */
struct sl_ids {
	__u32 exe;
	__u32 lineage;
	__u32 round;
	__u32 name; /* given out by user space */
};

#endif
