// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Rows of lineages, and of the files that they run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/htab.h"
#include "guard/files.h"
#include "guard/guard_private.h"
#include "kernel/sweep.h"
#include "policy/bits.h"

struct lineages {
	struct sl_set *set;
	__u32 policy;
	bool again;
	struct sl_guard_policy row;
	struct sl_exe *exe; /* two: the image's and its script's */
	/* Of an image that is pinned; NULL: what was found of files is in the kernel's rows. */
	sl_guard_digest_fn digest;
	void *arg;
	const struct sl_compiled *compiled; /* with `digest` */
};

/* As guard_earn() of bpf/guard.h: the script narrows what the image earns. */
static void add_grant(const struct lineages *l, struct sl_guard_lineage *row,
		      const struct sl_grant *grant, const struct sl_grant *script, bool granted)
{
	const struct sl_bits *need = &l->row.script_bits;

	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		__u64 own = grant->own.word[i] & (~need->word[i] | script->own.word[i]);
		__u64 inherited = grant->inherited.word[i] &
				  (~need->word[i] | script->inherited.word[i]);

		row->missed.word[i] |= granted ? 0 : own;
		row->match.word[i] |= granted ? own : 0;
		row->inherited.word[i] |= granted ? inherited : 0;
	}
}

/* What the script's name earns: rows of the kernel's, and wildcards where we look ourselves. */
static void script_grant(const struct lineages *l, __u32 script, struct sl_grant *out)
{
	struct sl_grant more;

	*out = (struct sl_grant){ 0 };
	if (!script || sl_exe_by_id(l->set, script, &l->exe[1]))
		return;
	sl_guard_granted(l->set, l->policy, SL_PATHS_SCRIPT, l->exe[1].path, out);
	if (!l->digest)
		return;
	sl_compiled_script(l->compiled, l->exe[1].path, &more);
	sl_grant_or(out, &more);
}

/* What user space finds of the file now: it was not looked at before its exec. */
static void look_at(const struct lineages *l, struct sl_guard_grant *out)
{
	static const struct sl_grant nothing;
	struct sl_image image = { .path = l->exe[0].path, .any_script = true };
	uint8_t sha256[SL_SHA256_LEN];
	struct sl_image_bits bits;

	sl_compiled_image(l->compiled, &image, &bits);
	if (memcmp(&bits.missed, &nothing, sizeof(nothing)) != 0 &&
	    !l->digest(&l->exe[0], sha256, l->arg)) {
		image.sha256 = sha256;
		sl_compiled_image(l->compiled, &image, &bits);
	}
	*out = (struct sl_guard_grant){ .granted = bits.granted, .missed = bits.missed };
}

/* As guard_leaf() of bpf/guard.h. */
static int add_leaf(const struct lineages *l, const struct sl_lineage *node,
		    struct sl_guard_lineage *row)
{
	struct sl_guard_grant file = { 0 };
	struct sl_grant path, script;
	bool trusted;
	int rc = sl_exe_by_id(l->set, node->key.exe, &l->exe[0]);

	if (rc == -ENOENT || (!rc && (l->exe[0].key.flags & SL_EXE_NAMELESS)) ||
	    node->key.flags & SL_LINEAGE_ELSEWHERE) {
		row->flags |= SL_GUARD_NO_IDENTITY;
		return 0;
	}
	if (!rc && l->digest)
		look_at(l, &file);
	else
		rc = rc ?: sl_file_by_exe(l->set, l->policy, &l->exe[0], &file);
	if (rc && rc != -ENOENT)
		return rc;
	trusted = file.flags & SL_GUARD_FILE_TRUSTED;
	sl_guard_granted(l->set, l->policy, SL_PATHS_EXE, l->exe[0].path, &path);
	script_grant(l, node->key.script, &script);
	add_grant(l, row, &path, &script, trusted || !l->row.first_use);
	add_grant(l, row, &file.granted, &script, true);
	add_grant(l, row, &file.missed, &script, false);
	add_grant(l, row, &file.trusted, &script, trusted);
	return 0;
}

/* As guard_strict() of bpf/guard.h. */
static void take_strict(const struct lineages *l, const struct sl_lineage *node,
			struct sl_guard_lineage *row)
{
	const struct sl_bits *strict = &l->row.strict_bits;

	if (node->key.flags & SL_LINEAGE_CHECKED)
		return;
	if (sl_bits_meet(&row->match, strict))
		row->flags |= SL_GUARD_UNCHECKED;
	for (int i = 0; i < SL_POLICY_WORDS; i++)
		row->missed.word[i] |= row->match.word[i] & strict->word[i];
	sl_bits_remove(&row->match, strict);
	sl_bits_remove(&row->inherited, strict);
}

/*
 * As guard_compute() of bpf/guard.h; when we look at files ourselves, also in place of what it
 * has made. 0, or -EAGAIN when the parent's row is not there yet.
 */
static int lineage_row(const struct lineages *l, const struct sl_lineage *node)
{
	struct sl_guard_lineage_key key = { l->policy, node->id };
	struct sl_guard_lineage_key up_key = { l->policy, node->key.parent };
	int fd = sl_set_map_fd(l->set, SL_MAP_GUARD_LINEAGES);
	struct sl_guard_lineage row = { 0 }, old, up;
	bool there = !bpf_map_lookup_elem(fd, &key, &old);
	struct sl_lineage parent;
	int rc;

	if (!l->digest && there != l->again)
		return 0;
	if (l->again) {
		row.match = old.match;
		row.inherited = old.inherited;
	}
	if (node->key.parent && !sl_lineage_by_id(l->set, node->key.parent, &parent) &&
	    !(parent.key.flags & SL_LINEAGE_OUTSIDE)) {
		if (bpf_map_lookup_elem(fd, &up_key, &up))
			return errno != ENOENT ? -errno : l->again ? 0 : -EAGAIN;
		sl_bits_or(&row.match, &up.inherited);
		sl_bits_or(&row.inherited, &up.inherited);
	}
	rc = add_leaf(l, node, &row);
	if (rc)
		return rc;
	take_strict(l, node, &row);
	if (there && !memcmp(&row, &old, sizeof(row)))
		return 0;
	if (l->digest)
		return sl_guard_put(l->set, SL_MAP_GUARD_LINEAGES, &key, &row, BPF_ANY);
	if (bpf_map_update_elem(fd, &key, &row, there ? BPF_EXIST : BPF_NOEXIST) &&
	    errno != EEXIST && errno != ENOENT)
		return -errno;
	return 0;
}

/* --- all of a policy --- */

struct used {
	struct sl_set *set;
	struct sl_htab *ids; /* lineages, each with those that it came from */
};

static int use_lineage(unsigned int lineage, unsigned int exe, unsigned int script, void *arg)
{
	struct used *used = arg;
	struct sl_lineage node;
	bool added;

	(void)exe;
	(void)script;
	while (lineage) {
		if (!sl_htab_add(used->ids, &lineage, &added))
			return -ENOMEM;
		/* One that was swept is referred to by what is closed. */
		if (!added || sl_lineage_by_id(used->set, lineage, &node))
			return 0;
		lineage = node.key.parent;
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? -1 : x > y;
}

struct with_row {
	__u32 policy;
	struct sl_htab *ids;
};

static int add_with_row(const void *row, void *value, void *arg)
{
	const struct sl_guard_lineage_key *key = row;
	const struct with_row *with = arg;

	(void)value;
	return key->policy == with->policy && !sl_htab_add(with->ids, &key->lineage, NULL) ? -ENOMEM
											   : 0;
}

/* Those that have a row under this policy; none is made. */
static int with_row(const struct lineages *l, struct used *used)
{
	struct with_row with = { l->policy, used->ids };

	return sl_map_each(sl_set_map_fd(l->set, SL_MAP_GUARD_LINEAGES), add_with_row, &with);
}

/* Parents have lower ids than their children. */
static int sorted(const struct used *used, struct sl_array *out)
{
	const void *id;
	__u32 *slot;

	for (size_t at = 0; sl_htab_next(used->ids, &at, &id, NULL);) {
		slot = sl_array_add(out);
		if (!slot)
			return -ENOMEM;
		*slot = *(const __u32 *)id;
	}
	if (out->count)
		qsort(out->data, out->count, sizeof(__u32), compare_ids);
	return 0;
}

/* The lineages that count for the policy, parents before children. */
static int wanted(const struct lineages *l, struct sl_array *out)
{
	struct used used = { .set = l->set };
	int rc = sl_htab_new(&used.ids, sizeof(__u32), 0);

	if (!rc)
		rc = l->again ? with_row(l, &used)
			      : sl_sandbox_refs(l->set, l->row.sandbox, use_lineage, &used);
	rc = rc ?: sorted(&used, out);
	sl_htab_free(&used.ids);
	return rc;
}

/* Returns how many rows could not be made. */
static int lineages_pass(const struct lineages *l, __u32 *last)
{
	_cleanup_array_ struct sl_array ids = SL_ARRAY(__u32);
	struct sl_lineage node;
	struct sl_ids now;
	__u32 zero = 0;
	int rc, left = 0;

	if (bpf_map_lookup_elem(sl_set_map_fd(l->set, SL_MAP_IDS), &zero, &now))
		return -errno;
	rc = wanted(l, &ids);
	for (size_t i = 0; !rc && i < ids.count; i++) {
		if (sl_lineage_by_id(l->set, *(__u32 *)sl_array_at(&ids, i), &node) ||
		    node.key.flags & SL_LINEAGE_OUTSIDE)
			continue;
		rc = lineage_row(l, &node);
		if (rc == -EAGAIN) {
			left++;
			rc = 0;
		}
	}
	*last = now.lineage;
	return rc ? rc : left;
}

/* Lineages whose exec began before the policy was pending may come until it has ended. */
#define LINEAGE_PASSES 100

static int read_policy(struct lineages *l)
{
	return bpf_map_lookup_elem(sl_set_map_fd(l->set, SL_MAP_GUARD_POLICIES), &l->policy,
				   &l->row)
		       ? -errno
		       : 0;
}

int sl_guard_lineages(struct sl_set *set, __u32 policy_id, bool again)
{
	_cleanup_free_ struct sl_exe *exe = malloc(2 * sizeof(*exe));
	struct lineages l = { .set = set, .policy = policy_id, .again = again, .exe = exe };
	__u32 last = 0, before;
	int left, clean = 0;
	int rc = exe ? read_policy(&l) : -ENOMEM;

	if (rc)
		return rc;
	for (int pass = 0; pass < LINEAGE_PASSES && clean < 2; pass++) {
		before = last;
		left = lineages_pass(&l, &last);
		if (left < 0)
			return left;
		clean = !left && before == last ? clean + 1 : 0;
	}
	return 0; /* under a storm of execs the hook has made the rest */
}

int sl_guard_lineage(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		     __u32 lineage, sl_guard_digest_fn digest, void *arg)
{
	_cleanup_free_ struct sl_exe *exe = malloc(2 * sizeof(*exe));
	struct lineages l = {
		.set = set,
		.compiled = compiled,
		.policy = policy_id,
		.exe = exe,
		.digest = digest,
		.arg = arg,
	};
	struct sl_lineage chain[SL_LINEAGE_DEPTH];
	unsigned int n = 0;
	int rc = exe ? read_policy(&l) : -ENOMEM;

	if (rc)
		return rc;
	for (; lineage && n < SL_LINEAGE_DEPTH; lineage = chain[n++].key.parent) {
		rc = sl_lineage_by_id(set, lineage, &chain[n]);
		if (rc)
			return rc;
		if (chain[n].key.flags & SL_LINEAGE_OUTSIDE)
			break;
	}
	while (!rc && n)
		rc = lineage_row(&l, &chain[--n]);
	return rc;
}

/* --- files --- */

struct carry {
	struct sl_set *set;
	const struct sl_compiled *compiled;
	unsigned int sandbox;
	__u32 before, policy;
	struct sl_compiled_needs needs;
	unsigned int scripts;
};

/* What has no room, or too long a name, is narrower than it might be until its next exec. */
static int carry_script(struct carry *carry, const char *name)
{
	struct sl_grant grant;
	int rc;

	if (!carry->needs.scripts || carry->scripts == SL_FILES_SCRIPTS_MAX)
		return 0;
	sl_compiled_script(carry->compiled, name, &grant);
	rc = sl_guard_grant(carry->set, carry->policy, SL_PATHS_SCRIPT, name, &grant);
	if (rc == 1)
		carry->scripts++;
	return rc < 0 && rc != -ENAMETOOLONG ? rc : 0;
}

static int carry_file(const struct sl_exe *exe, void *arg)
{
	struct carry *carry = arg;
	const struct sl_guard_file key = sl_file_key(carry->policy, exe);
	struct sl_guard_grant old, row;
	int rc;

	if (exe->key.flags & SL_EXE_SCRIPT)
		return carry_script(carry, exe->path);
	if (exe->key.flags & SL_EXE_NAMELESS || (!carry->needs.globs && !carry->needs.digests) ||
	    !sl_guard_file_concerns(carry->set, carry->policy, carry->compiled, exe->path))
		return 0;
	rc = sl_file_by_exe(carry->set, carry->before, exe, &old);
	if (rc && rc != -ENOENT)
		return rc;
	rc = sl_guard_file_judge(carry->set, carry->sandbox, carry->compiled, exe->path,
				 !rc && (old.flags & SL_GUARD_FILE_HASHED) ? old.found : NULL,
				 &row);
	/* No room to remember it in: it stays untrusted. */
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	return sl_guard_put(carry->set, SL_MAP_GUARD_FILES, &key, &row, BPF_ANY);
}

int sl_guard_carry(struct sl_set *set, unsigned int sandbox, __u32 before, __u32 policy_id,
		   const struct sl_compiled *compiled)
{
	struct carry carry = {
		.set = set,
		.compiled = compiled,
		.sandbox = sandbox,
		.before = before,
		.policy = policy_id,
	};

	sl_compiled_needs(compiled, &carry.needs);
	if (!carry.needs.globs && !carry.needs.digests && !carry.needs.scripts)
		return 0;
	return sl_exes_each(set, carry_file, &carry);
}
