/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types sluice's programs read, trimmed by hand to the members used. CO-RE
 * relocates every access by name against the running kernel's BTF, so member order and
 * the missing members do not matter, and one header serves x86-64 and arm64: no program
 * touches registers or syscall numbers, the only things that differ between them.
 *
 * Members that were renamed have `struct name___flavour` variants; programs choose with
 * bpf_core_field_exists(). UAPI types come from <linux/...>.
 */
#ifndef SLUICE_VMLINUX_KERNEL_H
#define SLUICE_VMLINUX_KERNEL_H

#include <linux/types.h>

typedef _Bool bool;
enum { false = 0, true = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* --- time, ids --- */

typedef struct {
	__u32 val;
} kuid_t;

typedef struct {
	__u32 val;
} kgid_t;

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	__s64 counter;
} atomic64_t;

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

/* --- files and paths --- */

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__s64 i_size;
	__u32 i_generation;
	__s64 i_ctime_sec; /* 6.11 and later */
	__u32 i_ctime_nsec;
};

struct inode___ctime { /* before 6.6 */
	struct timespec64 i_ctime;
};

struct inode___ctime2 { /* 6.6 to 6.10 */
	struct timespec64 __i_ctime;
};

struct qstr {
	union {
		struct {
			__u32 hash;
			__u32 len;
		};
		__u64 hash_len;
	};
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node *next, **pprev;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
	struct mnt_namespace *mnt_ns;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

/* --- tasks --- */

struct mm_struct {
	struct file *exe_file;
	long unsigned int env_start;
	long unsigned int env_end;
};

struct cred {
	kuid_t uid;
	kgid_t gid;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup_root {
	int hierarchy_id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup_root *root;
	struct cgroup *ancestors[];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct task_struct {
	int pid;
	int tgid;
	int exit_code;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_boottime;
	struct mm_struct *mm;
	const struct cred *cred;
	struct fs_struct *fs;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	char comm[16];
};

struct linux_binprm {
	unsigned int secureexec : 1;
	struct file *file;
	const char *filename;
	const char *interp;
};

/* --- sockets --- */

struct in6_addr___kernel {
	union {
		__u8 u6_addr8[16];
		__u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	int skc_bound_dev_if;
	struct in6_addr___kernel skc_v6_daddr;
	struct in6_addr___kernel skc_v6_rcv_saddr;
	atomic64_t skc_cookie;
	unsigned long skc_flags;
};

struct socket;

struct sock_cgroup_data {
	struct cgroup *cgroup;
};

struct sock {
	struct sock_common __sk_common;
	struct sock_cgroup_data sk_cgrp_data;
	int sk_err;
	int sk_err_soft;
	struct socket *sk_socket;
	__u16 sk_type;
	__u16 sk_protocol;
	__u8 sk_shutdown;
};

/* What the context of the sock_addr hooks is. */
struct bpf_sock_addr_kern {
	struct sock *sk;
};

struct socket {
	short type;
	struct sock *sk;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 snd_una;
	__u64 bytes_sent;
	__u64 bytes_retrans;
	__u64 bytes_acked;
	__u64 bytes_received;
};

struct mptcp_sock {
	struct inet_connection_sock sk;
	__u32 token;
};

struct packet_sock {
	struct sock sk;
	int ifindex;
	__be16 num;
};

/* --- iterators --- */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

#pragma clang attribute pop

#endif
