/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of the set share; see set.h. */
#ifndef SLUICE_USER_SET_PRIVATE_H
#define SLUICE_USER_SET_PRIVATE_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <limits.h>

#include "kernel/set.h"

struct sl_set {
	char dir[PATH_MAX];
	int lock_fd; /* the directory; holds the lock of a set that this process created */
	int maps[SL_MAP_MAX];
	unsigned int max_sandboxes;
	unsigned int max_exes;
	unsigned int max_lineages;
	unsigned int sock_slots;
	unsigned int tuple_buckets;
	__u64 hash_seed;
	const void *slots; /* map `socks`, mapped on first use; NULL before */
	bool count_skb;
};

/* When a cgroup program is attached, and where. */
enum sl_prog_when {
	SL_PROG_ALWAYS,    /* to each sandbox's cgroup */
	SL_PROG_COUNT_SKB, /* the same, only where calls can't be counted */
	SL_PROG_GUARD,     /* the same, once it has a policy */
	SL_PROG_REDIRECT,  /* the same, while hooks send it to a policy DNS or a proxy */
	SL_PROG_ROOT,      /* to the root of cgroup2, once any sandbox has a policy */
};

struct sl_cgroup_prog {
	const char *name;
	enum bpf_attach_type type;
	enum sl_prog_when when;
};
extern const struct sl_cgroup_prog sl_cgroup_progs[];
extern const unsigned int sl_cgroup_prog_count;

/* A tracepoint: its trampoline, the map it jumps through, and the program behind it. */
struct sl_tracepoint {
	const char *name;
	const char *target;
	bool optional; /* sock_*_length: 6.3 and later */
};
extern const struct sl_tracepoint sl_tracepoints[];
extern const unsigned int sl_tracepoint_count;

/* Programs that user space runs: to tell a denial, of a relay's client, of what it adopted. */
#define SL_PROG_REFUSED "on_refused"
#define SL_PROG_RELAYED "on_relayed"
#define SL_PROG_ADOPTED "on_adopted"

/* The one that answers a transparent proxy (kernel/proxy.h). */
#define SL_PROG_PROXY "on_proxy_getsockopt"

/* Programs pinned as iterators, where they are loaded. */
extern const char *const sl_iterators[];
extern const unsigned int sl_iterator_count;

/* Subdirectories of a set. */
#define SL_SET_MAPS "maps"
#define SL_SET_PROGS "progs"
#define SL_SET_LINKS "links"
#define SL_SET_ITERS "iters"
#define SL_SET_SANDBOXES "sandbox"
#define SL_SET_PROXIES "proxy"

/* Name of a map's pin. */
const char *sl_map_name(enum sl_map map);

/* "<dir>/<sub>/<name>"; -ENAMETOOLONG. `name` may be NULL. */
int sl_set_path(char out[PATH_MAX], const char *dir, const char *sub, const char *name);

/* Map `socks`, read-only in memory, until the set is freed. NULL with errno. */
const struct sl_sock *sl_set_slots(struct sl_set *set);
void sl_set_slots_unmap(struct sl_set *set);

/* Attaches a program to an open cgroup and pins the link as `dir`/NAME. 0 or -errno. */
int sl_attach_program(const struct sl_set *set, const struct sl_cgroup_prog *prog, const char *dir,
		      int cgroup);

/* The same with the path of the pin. */
int sl_attach_pinned(const struct sl_set *set, const struct sl_cgroup_prog *prog, const char *pin,
		     int cgroup);

/* What a pinned link is, and the id of a pinned program. 0 or -errno. */
int sl_link_info(const char *path, struct bpf_link_info *info);
int sl_program_id(const struct sl_set *set, const char *name, __u32 *id);

/* Ends the root's links now, so that the host's calls don't wait for a worker to do it. */
void sl_root_detach(const char *set_dir);

/* For libbpf_set_print(): its messages are told with -v only. */
int sl_libbpf_log(enum libbpf_print_level level, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

/* "<dir>/sandbox/<id>", the pins of one sandbox. 0 or -ENAMETOOLONG. */
int sl_sandbox_dir(char out[PATH_MAX], const struct sl_set *set, unsigned int id);

/* The lock of whoever reads a ring, 0: the set's. -EBUSY: somebody does. */
int sl_ring_lock(int *out, const struct sl_set *set, unsigned int sandbox);

/* Takes a sandbox's own ring away, if it has one: its reader, or who detaches the sandbox. */
void sl_ring_forget_own(const struct sl_set *set, unsigned int sandbox);

struct sl_ring;

/*
 * 1 when a reader of any ring but `mine` (may be NULL) has not reported yet all that came
 * before `time_ns`, 0 when none, or -errno.
 */
int sl_rings_behind(const struct sl_set *set, const struct sl_ring *mine, __u64 time_ns);

/* Runs one of them, which gets `size` bytes. 0 or -errno. */
int sl_prog_run(const struct sl_set *set, const char *name, void *ctx, __u32 size);

/* bpf(2)'s look-up: 0 or -errno. */
int sl_map_lookup(int fd, const void *key, void *value);

/* Every record that is found by cookie: slots, then what found its slot taken. */
int sl_sock_rows_each(struct sl_set *set, sl_sock_fn fn, void *arg);

/* Deletes the tuples of a sandbox that have rows of their own. 0 or -errno. */
int sl_tuples_forget(struct sl_set *set, unsigned int sandbox);

/*
 * Forgets all sockets of a sandbox whose programs are detached, but those that sit in
 * their own storage. 0 or -errno.
 */
int sl_socks_forget(struct sl_set *set, unsigned int sandbox);

/* Runs an iterator that only acts (seeding): reads it to its end. */
int sl_iter_run(const struct sl_set *set, const char *name);

/* Opens an iterator's pin for reading. */
int sl_iter_open(const struct sl_set *set, const char *name);

/*
 * Waits until every program that runs now has ended: synchronize_rcu(), by membarrier(2)
 * (kernel/sched/membarrier.c). -EOPNOTSUPP where that has no global command (nohz_full).
 */
int sl_grace_period(void);

/* Reads one whole record of an iterator; 0 at the end, 1 for a record, -errno. */
int sl_iter_read(int fd, void *record, size_t size);

#endif
