/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Full path of a (dentry, mount) pair by walking up, as d_path() does (fs/d_path.c,
 * prepend_path()), because bpf_d_path() is not offered to tracepoints.
 *
 * The walk does not take rename_lock: a rename meanwhile can mix two paths, so callers
 * walk twice and compare.
 */
#ifndef SLUICE_BPF_PATH_H
#define SLUICE_BPF_PATH_H

#include <bpf/bpf_core_read.h>

#include "scratch.h"

#define PATH_END SL_PATH_MAX

struct path_walk {
	struct dentry *dentry;
	struct mount *mnt;
	struct dentry *root_dentry; /* of the process, where the root-relative path starts */
	struct mount *root_mnt;
	__u32 slot;
	__u32 off;     /* where the path starts in scratch.buf */
	__u32 root_at; /* offset of the root-relative path */
	__u32 flags;   /* enum sl_exe_flag */
};

static __always_inline struct mount *mount_of(struct vfsmount *vfsmnt)
{
	return (void *)vfsmnt - bpf_core_field_offset(struct mount, mnt);
}

/* Puts "/name" before what is in the buffer; false when there is no room. */
static __always_inline bool path_prepend(struct path_walk *w, struct scratch *s,
					 struct dentry *dentry)
{
	__u32 len = BPF_CORE_READ(dentry, d_name.len) & 255, off = w->off;
	const unsigned char *name = BPF_CORE_READ(dentry, d_name.name);

	if (off < len + 2)
		return false;
	off -= len;
	bpf_probe_read_kernel(&s->buf[off & (SL_PATH_MAX - 1)], len, name);
	off--;
	s->buf[off & (SL_PATH_MAX - 1)] = '/';
	w->off = off;
	return true;
}

/*
 * The walk came to its top with nothing gathered: a memfd, whose one dentry is its own
 * parent (d_path() has d_dname for those), or the root of a mount that is a file and was
 * detached. Its name is all there is; a directory at the top is named "/" (d_make_root()).
 */
static __always_inline void path_name_top(struct path_walk *w, struct scratch *s,
					  struct dentry *dentry)
{
	char first = 0;

	bpf_probe_read_kernel(&first, 1, BPF_CORE_READ(dentry, d_name.name));
	if (w->off == PATH_END && first != '/')
		path_prepend(w, s, dentry);
}

static long path_step(__u32 step, void *data)
{
	struct path_walk *w = data;
	struct dentry *dentry = w->dentry, *parent;
	struct mount *mnt = w->mnt, *parent_mnt;
	struct scratch *s = scratch_at(w->slot);

	if (!s)
		return 1;
	if (dentry == w->root_dentry && mnt == w->root_mnt) {
		w->root_at = w->off;
		w->flags &= ~SL_EXE_OUTSIDE;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mnt, mnt.mnt_root)) {
		parent_mnt = BPF_CORE_READ(mnt, mnt_parent);
		if (mnt == parent_mnt)
			goto done;
		w->dentry = BPF_CORE_READ(mnt, mnt_mountpoint);
		w->mnt = parent_mnt;
		return 0;
	}
	if (dentry == parent)
		goto done;
	if (!path_prepend(w, s, dentry))
		return 1; /* stays marked as truncated */
	w->dentry = parent;
	return 0;
done:
	path_name_top(w, s, dentry);
	w->flags &= ~SL_EXE_TRUNCATED;
	return 1;
}

/*
 * Walks up from w->dentry, w->mnt, prepending to what is in the buffer from w->off on.
 * Sets off, root_at and the flags truncated and outside.
 */
static __always_inline void path_walk_up(struct path_walk *w)
{
	w->flags |= SL_EXE_TRUNCATED | SL_EXE_OUTSIDE;
	w->root_at = w->off;
	/* Each mount crossed takes a step of its own. */
	bpf_loop(2 * SL_PATH_STEPS, path_step, w, 0);
}

static __always_inline void path_walk_start(struct path_walk *w, struct path *at,
					    struct task_struct *task, __u32 off)
{
	struct fs_struct *fs = BPF_CORE_READ(task, fs);

	w->dentry = BPF_CORE_READ(at, dentry);
	w->mnt = mount_of(BPF_CORE_READ(at, mnt));
	w->root_dentry = BPF_CORE_READ(fs, root.dentry);
	w->root_mnt = mount_of(BPF_CORE_READ(fs, root.mnt));
	w->off = off;
	w->flags = 0;
}

/* Copies the walk's path into the scratch record, zero-padded. */
static __always_inline void path_store(struct path_walk *w, struct scratch *s)
{
	__u32 off = w->off;

	if (off >= PATH_END) { /* a root itself */
		s->buf[PATH_END - 1] = '/';
		off = PATH_END - 1;
		w->root_at = off;
	}
	bpf_probe_read_kernel(s->exe.path, SL_PATH_MAX, &s->buf[off & (SL_PATH_MAX - 1)]);
	s->exe.path_len = PATH_END - off;
	s->exe.root_off = w->root_at < PATH_END && w->root_at >= off ? w->root_at - off : 0;
}

struct path_hash {
	__u64 hash;
	__u32 slot;
	__u32 pad;
};

static long path_hash_step(__u32 word, void *data)
{
	struct path_hash *h = data;
	struct scratch *s = scratch_at(h->slot);

	if (!s)
		return 1;
	h->hash =
		sl_path_hash_word(h->hash, *(__u64 *)&s->exe.path[(word * 8) & (SL_PATH_MAX - 1)]);
	return 0;
}

static __always_inline __u64 path_hash(struct scratch *s, __u32 slot, __u64 seed)
{
	struct path_hash h = { .hash = sl_path_hash_begin(seed, s->exe.path_len), .slot = slot };

	bpf_loop((s->exe.path_len + 7) / 8, path_hash_step, &h, 0);
	return h.hash;
}

#endif
