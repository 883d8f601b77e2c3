/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A set: one load of sluice's BPF programs with their maps, pinned in a directory of
 * its own on bpffs.
 *
 *	<dir>/maps/NAME, <dir>/progs/NAME       what the programs share
 *	<dir>/links/NAME                        tracepoints, one set-wide
 *	<dir>/iters/NAME                        iterators that can be read as files
 *	<dir>/sandbox/<id>/NAME                 the cgroup links of one sandbox
 *	<dir>/proxy/<cgroup id>                 what answers a proxy (kernel/proxy.h)
 *
 * Order of use: create or open; attach sandboxes; detach; free. Pins outlive the
 * process; destroy() removes them.
 *
 * Invariants
 * 1. A tracepoint runs before any cgroup program does: no socket call meets a task
 *    whose identity could not have been recorded.
 * 2. The directory is root-only (0700) and its owner holds a lock on it (flock) for as
 *    long as a private set is in use; an unlocked private set is stale.
 * 3. A set is opened only if its schema equals SL_SCHEMA.
 */
#ifndef SLUICE_USER_SET_H
#define SLUICE_USER_SET_H

#include <stdbool.h>
#include <sys/types.h>

#include <sluice/counter.h>
#include <sluice/dns.h>
#include <sluice/event.h>
#include <sluice/exe.h>
#include <sluice/guard.h>
#include <sluice/iter.h>
#include <sluice/process.h>
#include <sluice/proxy.h>
#include <sluice/sandbox.h>
#include <sluice/sock.h>

#include "base/array.h"
#include "base/err.h"

/* The set that `sluice sandbox attach` uses and every query reads by default. */
#define SL_BPFFS "/sys/fs/bpf"
#define SL_SET_ROOT SL_BPFFS "/sluice"
#define SL_SET_DEFAULT SL_SET_ROOT "/v1"

enum sl_map {
	SL_MAP_CONFIG,
	SL_MAP_IDS,
	SL_MAP_COUNTERS,
	SL_MAP_SANDBOXES,
	SL_MAP_CGROUPS,
	SL_MAP_OWNERS,
	SL_MAP_PROCS,
	SL_MAP_EXES,
	SL_MAP_EXE_INDEX,
	SL_MAP_LINEAGES,
	SL_MAP_LINEAGE_INDEX,
	SL_MAP_SOCKS,
	SL_MAP_SOCKS_OVER,
	SL_MAP_ADOPTED,
	SL_MAP_SOCK_MORE,
	SL_MAP_PEERS,
	SL_MAP_TUPLE_BUCKETS,
	SL_MAP_TUPLES,
	SL_MAP_PACKETS,
	SL_MAP_GUARDS,
	SL_MAP_GUARD_POLICIES,
	SL_MAP_GUARD_PATHS,
	SL_MAP_GUARD_FILES,
	SL_MAP_GUARD_TRUST,
	SL_MAP_GUARD_LINEAGES,
	SL_MAP_GUARD_PORTS,
	SL_MAP_GUARD_DESTS,
	SL_MAP_GUARD_LEASES,
	SL_MAP_GUARD_RULES,
	SL_MAP_DECISIONS,
	SL_MAP_NAMES,
	SL_MAP_NAMED,
	SL_MAP_DNS_LISTENERS,
	SL_MAP_DATAGRAMS,
	SL_MAP_PROXIES,
	SL_MAP_RING,
	SL_MAP_RINGS,
	SL_MAP_RING_CTL,
	SL_MAP_MAX
};

/* Sizes, 0 for the default; a size that is no power of two is rounded up. */
struct sl_set_options {
	unsigned int max_procs;
	unsigned int max_exes;
	unsigned int max_lineages;
	unsigned int max_closed; /* slots: sockets that are remembered, open and closed */
	unsigned int max_socks;  /* open ones beyond the slots; tuples, peers beyond the first */
	unsigned int ring_bytes;
	unsigned int max_sandboxes;
	unsigned int events; /* SL_EVENT_BIT mask of kinds to record from the start */
	bool count_skb;      /* count UDP bytes by cgroup_skb even where calls can be counted */
	bool owners_by_key;  /* keep members in a hash even where hooks can read task storage */
};

struct sl_set;

/* The size of a ring buffer as it is made. */
unsigned int sl_set_ring_bytes(const struct sl_set_options *options);

/*
 * Loads the programs, attaches the tracepoints and pins everything below `dir`, which
 * must not exist; its parents are made. bpffs is mounted at /sys/fs/bpf when it isn't.
 * On failure nothing of `dir` is left. The caller owns *out and frees it.
 */
int sl_set_create(struct sl_set **out, const char *dir, const struct sl_set_options *options,
		  struct sl_err *err);

/* Opens a set from its pins. -ENOENT when there is none, -EPROTO for another schema. */
int sl_set_open(struct sl_set **out, const char *dir, struct sl_err *err);

/*
 * Whether its pins are gone, or are another set's by now: it records nothing any more. What
 * can't be found out counts as still there.
 */
bool sl_set_gone(const struct sl_set *set);

/* Closes descriptors; pins stay, and with them all that is attached. */
void sl_set_free(struct sl_set **set);

/*
 * Chooses the kinds of events that are put into the ring buffer (SL_EVENT_BIT mask, 0
 * for none): a consumer's business, since without one they would only fill it.
 */
int sl_set_want_events(struct sl_set *set, unsigned int events);

/* Detaches and unpins all of the set at `dir`. Missing pins are no error. */
int sl_set_destroy(const char *dir, struct sl_err *err);

/* Borrowed descriptor of a map, valid as long as the set; never negative. */
int sl_set_map_fd(const struct sl_set *set, enum sl_map map);

/*
 * Calls `fn` once for each row of a hash or trie that is there from the start of the walk to
 * its end; rows that come or go meanwhile may be missed. `value` is a copy of its own, a
 * little older than the call, that `fn` may change. `fn` may delete rows, of a trie none.
 * Stops when `fn` returns non-zero and returns that; or -errno.
 */
typedef int (*sl_row_fn)(const void *key, void *value, void *arg);
int sl_map_each(int fd, sl_row_fn fn, void *arg);
/*
 * Rows whose key (`of_value`: whose value) has the 32 bits `id` at `offset`: their keys are
 * added to an empty array, or they are deleted. 0 or -errno.
 */
int sl_map_find_rows(int fd, bool of_value, size_t offset, __u32 id, struct sl_array *out);
int sl_map_delete_rows(int fd, bool of_value, size_t offset, __u32 id);
/* How many there are, or -errno. */
long long sl_map_count_rows(int fd);

const char *sl_set_dir(const struct sl_set *set);

/* "sluice COMMAND" for people, as a line that works with the set at `dir`. Returns dst. */
const char *sl_set_command(char *dst, size_t size, const char *dir, const char *command);

/* The hash of a path as the set's programs make it (sl_exe_key.path_hash). */
__u64 sl_set_path_hash(const struct sl_set *set, const char *path);

/*
 * Makes a sandbox of the cgroup at `cgroup` (a path in the cgroup2 file system), seeds
 * its processes and their sockets, and attaches the cgroup programs. All or nothing.
 * `name` may be NULL: the cgroup's last component then. *id is the new sandbox's.
 * -EEXIST when the cgroup, or one above or below it, is a sandbox of this set already.
 */
int sl_sandbox_attach(struct sl_set *set, const char *cgroup, const char *name, unsigned int *id,
		      struct sl_err *err);

/*
 * Attaches what enforcing needs beyond recording: programs on the sandbox's packets, and
 * those at the root of cgroup2 that decide for members that have left it. Before a policy
 * comes into force; again is no error.
 */
int sl_sandbox_guard(struct sl_set *set, unsigned int id, struct sl_err *err);

/*
 * Takes the programs off the sandbox's packets, once it only observes: they cost each of
 * them. Those at the root stay as long as the set does, since another sandbox may be about
 * to need them.
 */
void sl_sandbox_unguard(struct sl_set *set, unsigned int id);

/*
 * Attaches or takes off what tells applications the address that they asked for, where hooks
 * send them elsewhere. Again is no error.
 */
int sl_sandbox_redirect(struct sl_set *set, unsigned int id, bool on, struct sl_err *err);

/*
 * Removes the cgroup links, then the sandbox's rows. -ENOENT when there is none. Who is killed in
 * it leaves a sandbox that can be detached again, or an id that the next attach tidies up.
 */
int sl_sandbox_detach(struct sl_set *set, unsigned int id, struct sl_err *err);

/* The sandbox of that cgroup, also one that was being made or detached. -ENOENT, -errno. */
int sl_sandbox_of_cgroup(struct sl_set *set, unsigned long long cgroup_id, unsigned int *id);

/* Whether its programs are taken off: it was being detached, or its cgroup is gone. */
bool sl_sandbox_unhooked(const struct sl_set *set, unsigned int id);

/* Calls `fn` for each sandbox, stops when it returns non-zero and returns that. */
int sl_sandbox_each(struct sl_set *set, int (*fn)(const struct sl_sandbox *sandbox, void *arg),
		    void *arg);

/*
 * What exec would record of the regular file that this process has open as `fd`, O_PATH or
 * not: of the inode that is opened, while stat(2) tells device and ctime of the one below on
 * overlayfs, and a device of the subvolume's on btrfs. -ENOENT: no regular file.
 */
int sl_file_identity(const struct sl_set *set, int fd, struct sl_iter_file *out);

/* Inode number of a process' mount namespace, pid 0: the caller's. */
int sl_mount_ns(pid_t pid, __u32 *out);

/* Sum of a sandbox's counters over all CPUs; id 0 is what belongs to no sandbox. */
int sl_counters_read(struct sl_set *set, unsigned int id, struct sl_counters *out);

/* Sum over all sandboxes and id 0. */
int sl_counters_total(struct sl_set *set, struct sl_counters *out);

/*
 * Calls `fn` once for each descriptor of a recorded socket, on the whole host: with the
 * record, its byte counts and state as of now, and the holder. A socket that several
 * hold comes several times.
 */
typedef int (*sl_holder_fn)(const struct sl_sock *sock, const struct sl_iter_sock *holder,
			    void *arg);
int sl_holders_each(struct sl_set *set, sl_holder_fn fn, void *arg);

/*
 * The same once a socket, then those that no descriptor holds: on their way in a message
 * (SCM_RIGHTS). `fn` as in sl_sandbox_each.
 */
typedef int (*sl_sock_fn)(const struct sl_sock *sock, void *arg);
int sl_socks_each(struct sl_set *set, sl_sock_fn fn, void *arg);

/*
 * AF_PACKET sockets that nobody holds any more: calls `fn` with each final record
 * (closed_ns is now) and forgets it. Their close runs no hook, so it must be looked for.
 * Of `sandbox`, whose ring the caller reads; 0: of those without a ring of their own.
 * Returns how many, or -errno.
 */
int sl_packets_sweep(struct sl_set *set, unsigned int sandbox, sl_sock_fn fn, void *arg);

/* Sockets that were closed lately, in the order of their close. */
int sl_closed_each(struct sl_set *set, sl_sock_fn fn, void *arg);

/*
 * The record of an open socket by its descriptor, in this process. For an accepted one
 * that is one look-up in the socket's own storage. -ENOENT when sluice has none.
 */
int sl_sock_by_fd(struct sl_set *set, int fd, struct sl_sock *out);

/* Of a socket that is open, or was closed lately. -ENOENT when sluice has none. */
int sl_sock_by_cookie(struct sl_set *set, __u64 cookie, struct sl_sock *out);

/*
 * Of the socket that has sent a datagram from this port of a network namespace last, where
 * that is published (guard/dns.h): asked by who has just received it. The port may have
 * changed hands meanwhile: whose sandbox it is has to be looked at. `port_be` in network
 * order. -ENOENT when it was not seen, or sluice has no record.
 */
int sl_sock_by_datagram(struct sl_set *set, __u64 netns_cookie, unsigned int protocol,
			__be16 port_be, struct sl_sock *out);

/* What few sockets have; all zero, and -ENOENT, for the others. */
int sl_sock_more_read(const struct sl_set *set, const struct sl_sock *sock,
		      struct sl_sock_more *out);

/*
 * The record of the connection with this local and remote end, as seen from `local`, live
 * or closed lately, in the network namespace with that cookie (0: any is accepted, found
 * by a scan). -ENOENT when there is none.
 */
int sl_tuple_resolve(struct sl_set *set, const struct sl_endpoint *local,
		     const struct sl_endpoint *remote, __u64 netns_cookie, struct sl_sock *out);

/* How many connections are published by their ends now. Or -errno. */
int sl_tuples_count(struct sl_set *set);

/*
 * Kinds of denials (audited ones too) of a sandbox, 0: of all, ordered by their keys: what
 * the kernel has counted, and of that what events have told. Bounded: under more kinds than
 * the map takes, those that were met longest ago are missing, and counted in sl_counters
 * only. `fn` as in sl_sandbox_each, for rows as they were; it may change the map.
 */
typedef int (*sl_decision_fn)(const struct sl_decision_key *key, const struct sl_decision_row *row,
			      void *arg);
int sl_decisions_each(struct sl_set *set, unsigned int sandbox, sl_decision_fn fn, void *arg);

/* What no event has told of a row, as the event that would tell it; count may be 0. */
void sl_decision_untold(const struct sl_decision_key *key, const struct sl_decision_row *row,
			struct sl_decision_record *out);

/* The entry's key that a decision is about; -ENOENT when there is none, or not any more. */
int sl_decision_rule(struct sl_set *set, const struct sl_decision_record *decision,
		     struct sl_guard_rule *out);

/* Counts and tells a denial that no hook has seen, as the hooks do. 0 or -errno. */
int sl_decision_tell(const struct sl_set *set, struct sl_refused *refused);

/* Counts and tells what has become of a relay's client (sluice/event.h). 0 or -errno. */
int sl_relayed_tell(const struct sl_set *set, struct sl_relayed *relayed);

/* Ends the rows of a sandbox that is detached. */
int sl_decisions_forget(struct sl_set *set, unsigned int sandbox);

/* Rows of the process, executable and lineage maps. -ENOENT when missing. */
int sl_procs_each(struct sl_set *set, int (*fn)(const struct sl_process *process, void *arg),
		  void *arg);
int sl_proc_by_key(const struct sl_set *set, const struct sl_process_key *key,
		   struct sl_process *out);
/* Executables come in the order of their ids, in which they were first seen. */
int sl_exe_by_id(const struct sl_set *set, unsigned int id, struct sl_exe *out);
int sl_exes_each(struct sl_set *set, int (*fn)(const struct sl_exe *exe, void *arg), void *arg);
/* What user space found of an executable's file under a policy; -ENOENT: it did not look. */
struct sl_guard_file sl_file_key(__u32 policy, const struct sl_exe *exe);
int sl_file_by_exe(const struct sl_set *set, __u32 policy, const struct sl_exe *exe,
		   struct sl_guard_grant *out);
int sl_lineage_by_id(const struct sl_set *set, unsigned int id, struct sl_lineage *out);

#endif
