/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All maps, declared once. maps.bpf.c defines them (SL_DEFINE_MAPS); every other object
 * has extern declarations that the BPF linker checks against the definitions. Sizes are
 * defaults; the loader sets them.
 */
#ifndef SLUICE_BPF_MAPS_H
#define SLUICE_BPF_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <sluice/counter.h>
#include <sluice/dns.h>
#include <sluice/event.h>
#include <sluice/exe.h>
#include <sluice/guard.h>
#include <sluice/name.h>
#include <sluice/process.h>
#include <sluice/proxy.h>
#include <sluice/sandbox.h>
#include <sluice/sock.h>

/*
 * A global function: the verifier checks it once a program, knowing nothing of its caller,
 * where it follows a static one anew from each place and state that calls it. That is most
 * of what loading costs. Arguments are numbers, the context, or memory (maybe NULL) of the
 * size of its type. Weak, since each object that includes it has a copy: the linker takes one.
 */
#define SL_GLOBAL __attribute__((weak, noinline))

#ifdef SL_DEFINE_MAPS
#define SL_MAP
#else
#define SL_MAP extern
#endif

/* --- settings and state of the set --- */

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_config);
} config SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sl_ids);
} ids SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_counters);
} counters SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_sandbox);
} sandboxes SEC(".maps");

/* cgroup id -> sandbox id */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

/* --- identity --- */

/*
 * These are preallocated: the allocator behind BPF_F_NO_PREALLOC keeps a few spares a
 * CPU, which a process that enters with its ancestors' images uses up at once.
 */

/* What a socket hook copies; the row in `procs` has the rest. On thread-group leaders. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct sl_owner);
} tasks SEC(".maps");

/* The same by process key, where hooks can't read task storage (task.h); else of one row. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct sl_process_key);
	__type(value, struct sl_owner);
} owners SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct sl_process_key);
	__type(value, struct sl_process);
} procs SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct sl_exe);
} exes SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sl_exe_key);
	__type(value, __u32);
} exe_index SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct sl_lineage);
} lineages SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sl_lineage_key);
	__type(value, __u32);
} lineage_index SEC(".maps");

/* --- sockets --- */

/* See struct sl_sock for what is where. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, struct sl_sock);
} socks SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct sl_sock);
} socks_over SEC(".maps");

/* An accepted socket starts as a copy of its listener's (BPF_F_CLONE). */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, __u32);
	__type(value, struct sl_sock);
} adopted SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct sl_sock_more);
} sock_more SEC(".maps");

/*
 * AF_PACKET sockets by cookie. Nothing tells when one is closed, and a storage would go
 * with it: the rows stay until user space finds that nobody holds the socket any more.
 */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, struct sl_sock);
} packets SEC(".maps");

/* Value: nothing to say. Nobody deletes: what was not used for the longest time goes. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct sl_peer_key);
	__type(value, __u8);
} peers SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct sl_tuple_bucket);
} tuple_buckets SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct sl_tuple);
	__type(value, struct sl_tuple_owner);
} tuples SEC(".maps");

/* --- guard (sluice/guard.h) --- */

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_guard);
} guards SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_guard_policy);
} guard_policies SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct sl_guard_path);
	__type(value, struct sl_grant);
} guard_paths SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SL_GUARD_FILES_MAX);
	__type(key, struct sl_guard_file);
	__type(value, struct sl_guard_grant);
} guard_files SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct sl_guard_trust_key);
	__type(value, struct sl_guard_trust);
} guard_trust SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sl_guard_lineage_key);
	__type(value, struct sl_guard_lineage);
} guard_lineages SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 20);
	__type(key, struct sl_guard_port);
	__type(value, __u32);
} guard_ports SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 22);
	__type(key, struct sl_guard_dest_key);
	__type(value, struct sl_guard_dest);
} guard_dests SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 18);
	__type(key, struct sl_guard_dest_key);
	__type(value, struct sl_guard_dest);
} guard_leases SEC(".maps");

/* Only read by user space, for the names in decisions. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct sl_guard_rule_key);
	__type(value, struct sl_guard_rule);
} guard_rules SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sl_decision_key);
	__type(value, struct sl_decision_row);
} decisions SEC(".maps");

/* --- names (sluice/name.h) --- */

/* Only read by user space. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct sl_name);
} names SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sl_named);
	__type(value, __u32);
} named SEC(".maps");

/* --- policy DNS (sluice/dns.h) --- */

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_dns_listeners);
} dns_listeners SEC(".maps");

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct sl_datagram);
	__type(value, __u64);
} datagrams SEC(".maps");

/* --- transparent proxies (sluice/proxy.h) --- */

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_proxy);
} proxies SEC(".maps");

/* --- events --- */

SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

struct own_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* By sandbox id: rings of sandboxes whose events have a reader of their own. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__array(values, struct own_ring);
} rings SEC(".maps");

/* 0: of `ring`; else by sandbox id. */
SL_MAP struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SL_SANDBOX_MAX);
	__type(key, __u32);
	__type(value, struct sl_ring_ctl);
} ring_ctl SEC(".maps");

#endif
