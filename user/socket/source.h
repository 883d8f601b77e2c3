/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What views borrow from: executables, lineages and sandboxes by id, in the form that is
 * printed. Filled on demand from the kernel's maps, so that one id costs one look-up.
 *
 *	sl_view_source_new(); sl_view_source_digests(); fill views, print them;
 *	sl_view_source_trim() when no view is in use; sl_view_source_free()
 *
 * What the functions give out is owned by the source, and valid until the next trim (a
 * sandbox' name: until it is forgotten). Not locked.
 */
#ifndef SLUICE_USER_VIEW_SOURCE_H
#define SLUICE_USER_VIEW_SOURCE_H

#include <stdbool.h>

#include <sluice/guard.h>
#include <sluice/name.h>
#include <sluice/sandbox.h>
#include <sluice/sock.h>

#include "base/object.h"
#include "identity/digest.h"
#include "identity/ops.h"

/* Executables, and lineages, that are kept over a trim. */
#define SL_VIEW_ROWS_MAX 4096

struct sl_view_exe {
	const char *path;        /* as the root of the process that ran it shows it */
	const char *global_path; /* from the top of the mount tree; NULL when equal */
	char dev[24];            /* "major:minor" of the super block */
	__u64 ino;
	__u64 size;
	__u64 seen_ns;
	__u32 id;
	__u32 flags;                        /* enum sl_exe_flag */
	char sha256[2 * SL_SHA256_LEN + 1]; /* "" when there is none (yet) */
	const char *sha256_error;           /* why not; NULL when it was not asked for */
};

/* As part of a process, whose column it makes is the path; as a record of its own. */
extern const struct sl_field sl_view_exe_fields[];
extern const struct sl_field sl_view_exe_list_fields[];

/* Paths of the images before the running one, nearest first. */
struct sl_view_lineage {
	struct sl_strings paths;
	__u32 outside; /* so many of them, the last ones, ran before the sandbox' entry */
	bool cut;      /* links are missing */
};

/* Where rows come from. Each returns 0, -ENOENT when there is none, or another -errno. */
struct sl_view_ops {
	struct sl_identity_ops identity;
	int (*sandbox_name)(void *ctx, unsigned int id, char name[SL_SANDBOX_NAME_MAX]);
	int (*sock_more)(void *ctx, const struct sl_sock *sock, struct sl_sock_more *out);
	int (*rule)(void *ctx, const struct sl_decision_record *decision,
		    struct sl_guard_rule *out);
	/* What was found of an executable's file under a policy; may be NULL. */
	int (*file)(void *ctx, unsigned int policy, unsigned int exe, struct sl_guard_grant *out);
	/* The name of that id; may be NULL. */
	int (*name)(void *ctx, unsigned int id, struct sl_name *out);
	void *ctx;
};

/* Reads the maps of `set`, which must outlive every source made with the result. */
struct sl_view_ops sl_view_ops_of_set(struct sl_set *set);

/* The digest of an executable, pending ones too; -ENOENT when nobody asked for it. */
typedef int (*sl_view_digest_fn)(unsigned int exe_id, struct sl_digest *out, void *arg);

struct sl_view_source;

int sl_view_source_new(struct sl_view_source **out, const struct sl_view_ops *ops);
void sl_view_source_free(struct sl_view_source **source);

/* Where digests come from; without one, views have none. */
void sl_view_source_digests(struct sl_view_source *source, sl_view_digest_fn fn, void *arg);

/* Key of the policy's entry that a decision is about; NULL when there is none. */
const char *sl_view_source_rule(struct sl_view_source *source,
				const struct sl_decision_record *decision);

/* The name of that id; NULL for id 0 and for one that is not known (any more). */
const char *sl_view_source_name(struct sl_view_source *source, unsigned int id);

/* The digests behind a decision for integrity. -ENOENT: the file was not looked at. */
int sl_view_source_file(const struct sl_view_source *source,
			const struct sl_decision_record *decision, struct sl_guard_grant *out);

/* Drops rows when there are more than SL_VIEW_ROWS_MAX. */
void sl_view_source_trim(struct sl_view_source *source);

/*
 * The executable or lineage of that id; *out is NULL for id 0 and for one that can't be
 * read (any more). 0 or -ENOMEM.
 */
int sl_view_source_exe(struct sl_view_source *source, unsigned int id,
		       const struct sl_view_exe **out);
int sl_view_source_lineage(struct sl_view_source *source, unsigned int id,
			   const struct sl_view_lineage **out);

/* What few sockets have; all zero when there is nothing. */
void sl_view_source_more(struct sl_view_source *source, const struct sl_sock *sock,
			 struct sl_sock_more *out);

/* NULL when not known. */
const char *sl_view_source_sandbox(struct sl_view_source *source, unsigned int id);

/* Ids of sandboxes are slots and used again: call when one may have changed; 0: all. */
void sl_view_source_forget_sandbox(struct sl_view_source *source, unsigned int id);

/* Fills everything but the digest; `view` borrows from `exe`. */
void sl_view_exe_fill(struct sl_view_exe *view, const struct sl_exe *exe);

/* Puts a digest, or why there is none, into a view. */
void sl_view_exe_digest(struct sl_view_exe *view, const struct sl_digest *digest);

#endif
