// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a set consists of, as data: programs and where each is attached, maps, pins. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "kernel/set_private.h"

const struct sl_cgroup_prog sl_cgroup_progs[] = {
	{ "on_sock_create", BPF_CGROUP_INET_SOCK_CREATE, SL_PROG_ALWAYS },
	{ "on_connect4", BPF_CGROUP_INET4_CONNECT, SL_PROG_ALWAYS },
	{ "on_connect6", BPF_CGROUP_INET6_CONNECT, SL_PROG_ALWAYS },
	{ "on_sendmsg4", BPF_CGROUP_UDP4_SENDMSG, SL_PROG_ALWAYS },
	{ "on_sendmsg6", BPF_CGROUP_UDP6_SENDMSG, SL_PROG_ALWAYS },
	{ "on_post_bind4", BPF_CGROUP_INET4_POST_BIND, SL_PROG_ALWAYS },
	{ "on_post_bind6", BPF_CGROUP_INET6_POST_BIND, SL_PROG_ALWAYS },
	{ "on_sockops", BPF_CGROUP_SOCK_OPS, SL_PROG_ALWAYS },
	{ "on_sock_release", BPF_CGROUP_INET_SOCK_RELEASE, SL_PROG_ALWAYS },
	{ "on_skb_egress", BPF_CGROUP_INET_EGRESS, SL_PROG_COUNT_SKB },
	{ "on_skb_ingress", BPF_CGROUP_INET_INGRESS, SL_PROG_COUNT_SKB },
	{ "on_guard_egress", BPF_CGROUP_INET_EGRESS, SL_PROG_GUARD },
	{ "on_guard_ingress", BPF_CGROUP_INET_INGRESS, SL_PROG_GUARD },
	{ "on_recvmsg4", BPF_CGROUP_UDP4_RECVMSG, SL_PROG_REDIRECT },
	{ "on_recvmsg6", BPF_CGROUP_UDP6_RECVMSG, SL_PROG_REDIRECT },
	{ "on_getpeername4", BPF_CGROUP_INET4_GETPEERNAME, SL_PROG_REDIRECT },
	{ "on_getpeername6", BPF_CGROUP_INET6_GETPEERNAME, SL_PROG_REDIRECT },
	{ "on_escaped_create", BPF_CGROUP_INET_SOCK_CREATE, SL_PROG_ROOT },
	{ "on_escaped_connect4", BPF_CGROUP_INET4_CONNECT, SL_PROG_ROOT },
	{ "on_escaped_connect6", BPF_CGROUP_INET6_CONNECT, SL_PROG_ROOT },
	{ "on_escaped_sendmsg4", BPF_CGROUP_UDP4_SENDMSG, SL_PROG_ROOT },
	{ "on_escaped_sendmsg6", BPF_CGROUP_UDP6_SENDMSG, SL_PROG_ROOT },
};
const unsigned int sl_cgroup_prog_count = ARRAY_SIZE(sl_cgroup_progs);

const struct sl_tracepoint sl_tracepoints[] = {
	{ "sched_process_fork", "on_fork", false },
	{ "sched_process_exec", "on_exec", false },
	{ "sched_process_exit", "on_exit", false },
	{ "cgroup_attach_task", "on_cgroup_attach", false },
	{ "inet_sk_error_report", "on_sk_error", false },
	{ "sock_send_length", "on_send_length", true },
	{ "sock_recv_length", "on_recv_length", true },
};
const unsigned int sl_tracepoint_count = ARRAY_SIZE(sl_tracepoints);

const char *const sl_iterators[] = { "seed_tasks",   "unseed_tasks", "seed_socks",
				     "unseed_socks", "dump_socks",   "dump_members",
				     "dump_files",   "find_socks",   "dump_socks_found" };
const unsigned int sl_iterator_count = ARRAY_SIZE(sl_iterators);

static const char *const map_names[] = {
	[SL_MAP_CONFIG] = "config",
	[SL_MAP_IDS] = "ids",
	[SL_MAP_COUNTERS] = "counters",
	[SL_MAP_SANDBOXES] = "sandboxes",
	[SL_MAP_CGROUPS] = "cgroups",
	[SL_MAP_OWNERS] = "owners",
	[SL_MAP_PROCS] = "procs",
	[SL_MAP_EXES] = "exes",
	[SL_MAP_EXE_INDEX] = "exe_index",
	[SL_MAP_LINEAGES] = "lineages",
	[SL_MAP_LINEAGE_INDEX] = "lineage_index",
	[SL_MAP_SOCKS] = "socks",
	[SL_MAP_SOCKS_OVER] = "socks_over",
	[SL_MAP_ADOPTED] = "adopted",
	[SL_MAP_SOCK_MORE] = "sock_more",
	[SL_MAP_PEERS] = "peers",
	[SL_MAP_TUPLE_BUCKETS] = "tuple_buckets",
	[SL_MAP_TUPLES] = "tuples",
	[SL_MAP_PACKETS] = "packets",
	[SL_MAP_GUARDS] = "guards",
	[SL_MAP_GUARD_POLICIES] = "guard_policies",
	[SL_MAP_GUARD_PATHS] = "guard_paths",
	[SL_MAP_GUARD_FILES] = "guard_files",
	[SL_MAP_GUARD_TRUST] = "guard_trust",
	[SL_MAP_GUARD_LINEAGES] = "guard_lineages",
	[SL_MAP_GUARD_PORTS] = "guard_ports",
	[SL_MAP_GUARD_DESTS] = "guard_dests",
	[SL_MAP_GUARD_LEASES] = "guard_leases",
	[SL_MAP_GUARD_RULES] = "guard_rules",
	[SL_MAP_DECISIONS] = "decisions",
	[SL_MAP_NAMES] = "names",
	[SL_MAP_NAMED] = "named",
	[SL_MAP_DNS_LISTENERS] = "dns_listeners",
	[SL_MAP_DATAGRAMS] = "datagrams",
	[SL_MAP_PROXIES] = "proxies",
	[SL_MAP_RING] = "ring",
	[SL_MAP_RINGS] = "rings",
	[SL_MAP_RING_CTL] = "ring_ctl",
};
_Static_assert(ARRAY_SIZE(map_names) == SL_MAP_MAX, "a name for every map");

const char *sl_map_name(enum sl_map map)
{
	return map < SL_MAP_MAX ? map_names[map] : NULL;
}

int sl_set_path(char out[PATH_MAX], const char *dir, const char *sub, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s%s%s", dir, sub, name ? "/" : "", name ? name : "");

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}
