/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executables: from what the kernel opened to an interned id. A key that is met again
 * gives the id it has; the full path is compared, since a hash can be made to collide.
 */
#ifndef SLUICE_BPF_EXE_H
#define SLUICE_BPF_EXE_H

#include "path.h"
#include "ring.h"

/* Paths of equal hash, device, inode and times that are kept apart. */
#define EXE_PROBES 4

/* Walks of one path until two agree. */
#define EXE_WALKS 4

#define EXE_RACED -1

struct exe_compare {
	__u32 slot;
	__u32 id;
	__u32 equal;
	__u32 pad;
};

static long exe_compare_step(__u32 word, void *data)
{
	struct exe_compare *c = data;
	struct scratch *s = scratch_at(c->slot);
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &c->id);
	__u32 at = (word * 8) & (SL_PATH_MAX - 1);

	if (!s || !exe || *(__u64 *)&s->exe.path[at] != *(__u64 *)&exe->path[at]) {
		c->equal = 0;
		return 1;
	}
	return 0;
}

static __always_inline bool exe_key_equal(const struct sl_exe_key *a, const struct sl_exe_key *b)
{
	return a->ino == b->ino && a->ctime_ns == b->ctime_ns && a->path_hash == b->path_hash &&
	       a->dev == b->dev && a->generation == b->generation && a->flags == b->flags &&
	       a->probe == b->probe;
}

/* The round of sweeping. */
static __always_inline __u32 round_now(void)
{
	__u32 zero = 0;
	struct sl_ids *last = bpf_map_lookup_elem(&ids, &zero);

	return last ? last->round : 0;
}

/* Keeps the row of an executable that a process is about to refer to. */
static __always_inline void exe_touch(struct sl_exe *exe)
{
	__u32 now = round_now();

	if (exe->round != now)
		exe->round = now;
}

/*
 * Whether `id` is the scratch record's, and if so keeps its row. The key is compared too:
 * a row of the index that is swept meanwhile may by now say another executable's id.
 */
SL_GLOBAL int exe_take(__u32 slot, __u32 id)
{
	struct sl_exe *exe = bpf_map_lookup_elem(&exes, &id);
	struct exe_compare c = { .slot = slot, .id = id, .equal = 1 };
	struct scratch *s = scratch_at(slot);

	if (!s || !exe || !exe_key_equal(&exe->key, &s->exe.key) ||
	    exe->path_len != s->exe.path_len || exe->root_off != s->exe.root_off)
		return 0;
	bpf_loop((s->exe.path_len + 7) / 8, exe_compare_step, &c, 0);
	if (c.equal)
		exe_touch(exe);
	return c.equal;
}

static __always_inline __u32 exe_next_id(void)
{
	__u32 zero = 0;
	struct sl_ids *last = bpf_map_lookup_elem(&ids, &zero);

	return last ? __sync_fetch_and_add(&last->exe, 1) + 1 : 0;
}

/*
 * Adds the scratch record under a new id, which it returns; 0: it can't be (counted).
 * EXE_RACED: another got in first, look up again.
 */
SL_GLOBAL long exe_insert(__u32 slot)
{
	struct scratch *s = scratch_at(slot);
	__u32 id = exe_next_id();
	long err;

	if (!s)
		return 0;
	s->exe.id = id;
	s->exe.round = round_now();
	err = bpf_map_update_elem(&exes, &id, &s->exe, BPF_NOEXIST);
	if (!err) {
		err = bpf_map_update_elem(&exe_index, &s->exe.key, &id, BPF_NOEXIST);
		if (!err)
			return id;
		bpf_map_delete_elem(&exes, &id);
		if (err == -17) { /* EEXIST */
			count(0, SL_COUNTER_EXE_RACE);
			return EXE_RACED;
		}
	}
	count_map_error(0, SL_COUNTER_EXES_FULL, err);
	return 0;
}

/* Interns the scratch record, whose key and path are complete but for `probe`. */
SL_GLOBAL __u32 exe_intern(__u32 slot)
{
	struct scratch *s = scratch_at(slot);
	__u32 *found, id;
	long added;

	if (!s)
		return 0;
	for (__u32 probe = 0; probe < EXE_PROBES; probe++) {
		s->exe.key.probe = probe;
		found = bpf_map_lookup_elem(&exe_index, &s->exe.key);
		if (!found) {
			added = exe_insert(slot);
			if (added != EXE_RACED)
				return added;
			found = bpf_map_lookup_elem(&exe_index, &s->exe.key);
		}
		id = found ? *found : 0;
		if (exe_take(slot, id))
			return id;
	}
	count(0, SL_COUNTER_EXE_COLLISION);
	return 0;
}

static __always_inline __u64 inode_ctime_ns(struct inode *inode)
{
	struct inode___ctime2 *inode2 = (void *)inode;
	struct inode___ctime *inode1 = (void *)inode;

	/* Bit 31 of the nanoseconds is I_CTIME_QUERIED (6.13, include/linux/fs.h). */
	if (bpf_core_field_exists(inode->i_ctime_sec))
		return BPF_CORE_READ(inode, i_ctime_sec) * 1000000000ULL +
		       (BPF_CORE_READ(inode, i_ctime_nsec) & ~(1U << 31));
	if (bpf_core_field_exists(inode2->__i_ctime))
		return BPF_CORE_READ(inode2, __i_ctime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(inode2, __i_ctime.tv_nsec);
	return BPF_CORE_READ(inode1, i_ctime.tv_sec) * 1000000000ULL +
	       BPF_CORE_READ(inode1, i_ctime.tv_nsec);
}

/* Marks of a file without a name that can be trusted. */
static __always_inline __u32 file_flags(struct file *file)
{
	struct mount *mnt = mount_of(BPF_CORE_READ(file, f_path.mnt));
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	void *ns = BPF_CORE_READ(mnt, mnt_ns);
	__u32 flags = 0;

	/* Kernel-internal mounts have MNT_NS_INTERNAL = ERR_PTR(-EINVAL) (fs/mount.h). */
	if ((long)ns == -22)
		flags |= SL_EXE_MEMFD;
	else if (!ns)
		flags |= SL_EXE_DETACHED;
	/* d_unhashed() (include/linux/dcache.h); a memfd never was hashed. */
	if (!BPF_CORE_READ(dentry, d_hash.pprev) && !(flags & SL_EXE_MEMFD))
		flags |= SL_EXE_DELETED;
	return flags;
}

/* Puts the path of a struct file, as a struct task_struct sees it, into the scratch record. */
SL_GLOBAL __u32 exe_walk(__u32 slot, __u64 file_at, __u64 task_at)
{
	struct path_walk w = { .slot = slot };
	struct scratch *s = scratch_at(slot);
	struct file *file = (void *)file_at;
	struct sl_config *cfg = config_get();

	if (!s || !cfg)
		return SL_EXE_TRUNCATED;
	path_walk_start(&w, __builtin_preserve_access_index(&file->f_path), (void *)task_at,
			PATH_END);
	path_walk_up(&w);
	path_store(&w, s);
	s->exe.key.path_hash = path_hash(s, slot, cfg->hash_seed);
	return w.flags;
}

/* Flags of the path. */
static __always_inline __u32 exe_walk_stable(struct scratch *s, __u32 slot, __u64 file_at,
					     __u64 task_at)
{
	__u64 before = 0;
	__u32 flags = 0;

	for (int i = 0; i < EXE_WALKS; i++) {
		flags = exe_walk(slot, file_at, task_at);
		if (i && s->exe.key.path_hash == before)
			return flags;
		if (i > 0)
			count(0, SL_COUNTER_PATH_RETRY);
		before = s->exe.key.path_hash;
	}
	return flags | SL_EXE_UNSTABLE;
}

/*
 * Id of the executable, a struct file, as a struct task_struct runs it; 0 when it can't be
 * recorded (counted).
 */
SL_GLOBAL __u32 exe_of_file(__u64 file_at, __u64 task_at)
{
	struct file *file = (void *)file_at;
	struct inode *inode;
	struct scratch *s;
	__u32 slot, id = 0;

	slot = scratch_take();
	s = scratch_at(slot);
	if (!s)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	if (!inode) {
		count(0, SL_COUNTER_EXE_READ);
		goto out;
	}
	s->exe.key.flags = exe_walk_stable(s, slot, file_at, task_at) | file_flags(file);
	s->exe.key.ino = BPF_CORE_READ(inode, i_ino);
	s->exe.key.ctime_ns = inode_ctime_ns(inode);
	s->exe.key.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	s->exe.key.generation = BPF_CORE_READ(inode, i_generation);
	s->exe.size = BPF_CORE_READ(inode, i_size);
	s->exe.seen_ns = bpf_ktime_get_boot_ns();
	id = exe_intern(slot);
out:
	scratch_give(slot);
	return id;
}

#endif
