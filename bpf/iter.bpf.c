// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Iterators: seeding a sandbox with what was there before it, and reading the records.
 *
 * Seeding is get-or-create and runs while the tracepoints are live, so a task that forks
 * or execs meanwhile is recorded by whichever comes first.
 */
#include "kernel.h"
#include "bytes.h"
#include "identity.h"

#include <sluice/iter.h>

SEC("iter/task")
int seed_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u32 sandbox;

	if (!task || task->pid != task->tgid)
		return 0;
	sandbox = task_cgroup_sandbox(task);
	if (sandbox)
		process_enter(task, sandbox, SL_PROC_SEEDED);
	return 0;
}

/* Membership ends with the sandbox: what detaching leaves of those whose row has gone. */
SEC("iter/task")
int unseed_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sl_process_key key;
	struct sl_owner *state;

	if (!task)
		return 0;
	state = task_state(task);
	if (!state || sandbox_exists(state->sandbox))
		return 0;
	key = process_key(task);
	bpf_map_delete_elem(&procs, &key);
	task_state_delete(task);
	return 0;
}

/* What each member refers to: for a sweep, which must not miss one without a row. */
SEC("iter/task")
int dump_members(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task; /* once: each read may be NULL anew */
	struct sl_iter_member out = {};
	struct sl_owner *state;

	if (!task)
		return 0;
	state = task_state(task);
	if (!state)
		return 0;
	out.lineage = state->lineage;
	out.exe = state->exe;
	out.script = state->script;
	out.sandbox = state->sandbox;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

static __always_inline struct sock *file_sock(struct file *file)
{
	struct socket *socket = bpf_sock_from_file(file);

	return socket ? socket->sk : NULL;
}

static __always_inline void endpoint_here(struct sl_endpoint *local, const struct sl_sock *rec,
					  struct sock *sk)
{
	__be16 sport_be = 0;
	__be32 addr_be[4];

	if (rec->type != SOCK_RAW) /* which has its protocol there */
		sport_be = BPF_CORE_READ((struct inet_sock *)sk, inet_sport);
	if (rec->family == AF_INET) {
		endpoint_v4(local, BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr), sport_be);
		return;
	}
	BPF_CORE_READ_INTO(&addr_be, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32);
	endpoint_v6(local, addr_be, sport_be);
}

static __always_inline void seed_endpoints(struct sl_sock *rec, struct sock *sk)
{
	__be16 dport_be = BPF_CORE_READ(sk, __sk_common.skc_dport);
	__be32 addr_be[4];

	endpoint_here(&rec->local, rec, sk);
	if (rec->family == AF_INET) {
		endpoint_v4(&rec->remote, BPF_CORE_READ(sk, __sk_common.skc_daddr), dport_be);
	} else {
		BPF_CORE_READ_INTO(&addr_be, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
		endpoint_v6(&rec->remote, addr_be, dport_be);
	}
	if (!dport_be)
		__builtin_memset(&rec->remote, 0, sizeof(rec->remote));
}

/* Flags a socket's state implies, when its history was not seen. */
static __always_inline __u32 seed_flags(struct sock *sk, __u8 state)
{
	if (state == TCP_LISTEN)
		return SL_SOCK_LISTENING;
	if (!BPF_CORE_READ(sk, __sk_common.skc_dport))
		return 0;
	return SL_SOCK_CONNECTED | SL_SOCK_ESTABLISHED;
}

/*
 * A socket remembers the cgroup that it was made in: with that in the sandbox it is the
 * members' own, whoever of them made it.
 */
static __always_inline __u32 seed_origin(struct sock *sk, __u32 sandbox)
{
	__u32 made_in = cgroup_sandbox(BPF_CORE_READ(sk, sk_cgrp_data.cgroup));

	return SL_SOCK_PREEXISTING | (made_in == sandbox ? 0 : SL_SOCK_FOREIGN);
}

/* What is known of a socket that a member held before. */
static __always_inline void seed_record(struct sl_sock *rec, struct task_struct *task,
					const struct sl_owner *state, struct sock *sk)
{
	rec->owner.tid = state->tgid;
	BPF_CORE_READ_STR_INTO(&rec->owner.comm, task, comm);
	rec->owner.uid = BPF_CORE_READ(task, cred, uid.val);
	rec->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	rec->type = BPF_CORE_READ(sk, sk_type);
	rec->protocol = BPF_CORE_READ(sk, sk_protocol);
	rec->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	seed_endpoints(rec, sk);
	rec->flags |= seed_flags(sk, rec->state);
}

/* Sockets that members held before: the first holder found stands as the owner. */
SEC("iter/task_file")
int seed_socks(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sl_owner *state;
	struct sl_sock *rec;
	struct sock *sk;
	__u16 family;

	if (!task || !file)
		return 0;
	state = task_state(task->group_leader);
	if (!state)
		return 0;
	sk = file_sock(file);
	if (!sk)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	if (sock_find(sk, bpf_get_socket_cookie(sk)))
		return 0;
	rec = sock_adopt(sk, bpf_get_socket_cookie(sk), state, seed_origin(sk, state->sandbox));
	if (rec)
		seed_record(rec, task, state, sk);
	return 0;
}

/* Storages of sockets whose sandbox has gone. */
SEC("iter/task_file")
int unseed_socks(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct sl_sock *rec;
	struct sock *sk;

	if (!ctx->task || !file)
		return 0;
	sk = file_sock(file);
	if (!sk)
		return 0;
	rec = bpf_sk_storage_get(&adopted, sk, NULL, 0);
	if (rec && !sandbox_exists(rec->owner.sandbox))
		bpf_sk_storage_delete(&adopted, sk);
	return 0;
}

/* What exec would record of each file: the kernel's own, which stat's are not on overlayfs. */
SEC("iter/task_file")
int dump_files(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct sl_iter_file out = {};
	struct inode *inode;

	if (!ctx->task || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode || (BPF_CORE_READ(inode, i_mode) & 0170000) != 0100000) /* S_ISREG() */
		return 0;
	out.ino = BPF_CORE_READ(inode, i_ino);
	out.ctime_ns = inode_ctime_ns(inode);
	out.size = BPF_CORE_READ(inode, i_size);
	out.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	out.generation = BPF_CORE_READ(inode, i_generation);
	out.fd = ctx->fd;
	bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
	return 0;
}

static __always_inline void live_bytes(struct sl_iter_sock *out, struct sl_sock *rec,
				       struct sock *sk)
{
	struct tcp_bytes bytes;

	out->bytes_sent = rec->bytes_sent;
	out->bytes_received = rec->bytes_received;
	out->state = BPF_CORE_READ(sk, __sk_common.skc_state);
	if (rec->protocol != IPPROTO_TCP || rec->family == AF_PACKET || out->state == TCP_LISTEN)
		return;
	tcp_bytes_read(&bytes, (void *)sk, out->state, !(rec->flags & SL_SOCK_ACCEPTED));
	out->bytes_sent = bytes.sent;
	out->bytes_acked = bytes.acked;
	out->bytes_received = bytes.received;
}

static __always_inline void live_holder(struct sl_iter_sock *out, struct task_struct *leader,
					const struct sl_owner *state)
{
	out->holder = process_key(leader);
	out->holder_ns_pid = process_ns_pid(leader);
	out->holder_uid = BPF_CORE_READ(leader, cred, uid.val);
	BPF_CORE_READ_STR_INTO(&out->holder_comm, leader, comm);
	if (!state) /* a holder outside the sandbox, whom nobody traced */
		return;
	out->holder_sandbox = state->sandbox;
	out->holder_lineage = state->lineage;
	out->holder_exe = state->exe;
	out->holder_script = state->script;
}

/*
 * Its local end. A socket that was never bound got its port after the last hook that saw
 * it, and may lose it again: then the socket is asked, and the record left as it is.
 */
static __always_inline void live_local(struct sl_endpoint *local, const struct sl_sock *rec,
				       struct sock *sk)
{
	*local = rec->local;
	if (!local->port_be && rec->family != AF_PACKET)
		endpoint_here(local, rec, sk);
}

#define AFTER_LOCAL (offsetof(struct sl_sock, local) + sizeof(struct sl_endpoint))

static __always_inline void write_sock(struct seq_file *seq, const struct sl_sock *rec,
				       struct sock *sk, struct sl_iter_sock *out)
{
	struct sl_endpoint local;

	live_local(&local, rec, sk);
	bpf_seq_write(seq, rec, offsetof(struct sl_sock, local));
	bpf_seq_write(seq, &local, sizeof(local));
	bpf_seq_write(seq, (char *)rec + AFTER_LOCAL, sizeof(*rec) - AFTER_LOCAL);
	bpf_seq_write(seq, out, sizeof(*out));
}

/*
 * Every descriptor of a recorded socket, in every network namespace: the record, what
 * the socket itself says now, and who holds it. (iter/bpf_sk_storage_map would list the
 * records themselves but does not load everywhere, and knows no holders.)
 */
SEC("iter/task_file")
int dump_socks(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sl_iter_sock out = {};
	struct sl_sock *rec;
	struct sock *sk;
	__u64 cookie;

	if (!task || !file)
		return 0;
	sk = file_sock(file);
	if (!sk)
		return 0;
	rec = sock_find(sk, bpf_get_socket_cookie(sk));
	if (!rec && BPF_CORE_READ(sk, __sk_common.skc_family) == AF_PACKET) {
		cookie = bpf_get_socket_cookie(sk);
		rec = bpf_map_lookup_elem(&packets, &cookie);
	}
	if (!rec)
		return 0;
	live_bytes(&out, rec, sk);
	live_holder(&out, task->group_leader, task_state(task->group_leader));
	out.fd = ctx->fd;
	write_sock(ctx->meta->seq, rec, sk, &out);
	return 0;
}

/*
 * --- without socket storage ---
 *
 * Since a stable of 6.18 a socket that was read from a file is no pointer for helpers any
 * more: neither its storage nor its cookie can be asked for here. Then user space does both
 * by descriptor (kernel/adopt.c), for the sockets that these two find.
 */

/* Kfuncs of 6.2 and later, as are hooks that read task storage. */
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;

/*
 * The state of the process of a task that iter/task_file gave, where what is read from such
 * a task is no pointer for helpers: a thread with descriptors of its own is rare, and asks
 * for its leader by pid.
 */
static __always_inline struct sl_owner *holder_state(struct task_struct *task)
{
	struct task_struct *leader;
	struct sl_owner *state;

	if (owners_by_key)
		return task_state(BPF_CORE_READ(task, group_leader));
	if (task->pid == task->tgid)
		return task_state(task);
	leader = bpf_task_from_pid(task->tgid);
	if (!leader)
		return NULL;
	state = task_state(leader);
	bpf_task_release(leader);
	return state;
}

/* The record of a socket that a member made, by the cookie that it has, if any. */
static __always_inline struct sl_sock *known_sock(__u64 cookie)
{
	struct sl_sock *rec;

	if (!cookie)
		return NULL;
	rec = sock_by_cookie(cookie);
	return rec ?: bpf_map_lookup_elem(&packets, &cookie);
}

/* One whose record may be in its storage; an accepted MPTCP socket has its listener's cookie. */
static __always_inline bool maybe_adopted(const struct sl_sock *rec, __u64 cookie, __u16 family)
{
	if (!cookie || (family != AF_INET && family != AF_INET6))
		return false;
	return !rec || rec->flags & SL_SOCK_LISTENING;
}

/* Sockets that members hold and that have no record by cookie: as seed_socks() would make one. */
SEC("iter/task_file")
int find_socks(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sl_iter_sock out = {};
	struct sl_owner *state;
	struct sl_sock rec = {};
	struct sock *sk;
	__u16 family;
	__u64 cookie;

	if (!task || !file)
		return 0;
	state = holder_state(task);
	sk = state ? file_sock(file) : NULL;
	if (!state || !sk)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != AF_INET && family != AF_INET6)
		return 0;
	cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (known_sock(cookie))
		return 0;
	rec.cookie = cookie;
	rec.owner = *state;
	rec.flags = seed_origin(sk, state->sandbox);
	seed_record(&rec, task, state, sk);
	live_holder(&out, BPF_CORE_READ(task, group_leader), state);
	out.fd = ctx->fd;
	out.holder_tid = BPF_CORE_READ(task, pid);
	write_sock(ctx->meta->seq, &rec, sk, &out);
	return 0;
}

static __always_inline void write_found(struct bpf_iter__task_file *ctx, struct task_struct *task,
					struct sl_sock *rec, struct sock *sk, bool maybe_adopted)
{
	struct sl_iter_sock out = { .maybe_adopted = maybe_adopted };

	live_bytes(&out, rec, sk);
	live_holder(&out, BPF_CORE_READ(task, group_leader), holder_state(task));
	out.fd = ctx->fd;
	out.holder_tid = BPF_CORE_READ(task, pid);
	write_sock(ctx->meta->seq, rec, sk, &out);
}

/* As dump_socks(). A row of a socket that may have its record in storage names no sandbox. */
SEC("iter/task_file")
int dump_socks_found(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sl_sock unknown = {}, *rec;
	struct sock *sk;
	__u16 family;
	__u64 cookie;

	if (!task || !file)
		return 0;
	sk = file_sock(file);
	if (!sk)
		return 0;
	cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	rec = known_sock(cookie);
	if (rec) {
		write_found(ctx, task, rec, sk, maybe_adopted(rec, cookie, family));
		return 0;
	}
	if (!maybe_adopted(NULL, cookie, family))
		return 0;
	unknown.cookie = cookie;
	unknown.flags = SL_SOCK_ACCEPTED; /* bytes without a SYN */
	unknown.family = family;
	unknown.type = BPF_CORE_READ(sk, sk_type);
	unknown.protocol = BPF_CORE_READ(sk, sk_protocol);
	write_found(ctx, task, &unknown, sk, true);
	return 0;
}
