/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What lineages earn, computed here as the exec hook does it, and more (bpf/guard.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "guard/guard_private.h"
#include "policy/bits.h"

struct lineages {
	struct sl_set *set;
	const struct sl_compiled *compiled;
	__u32 policy;
	struct sl_exe *exe; /* two: the image's and its script's */
	/* Of an image that is pinned; NULL: nobody has looked at files. */
	sl_guard_digest_fn digest;
	void *arg;
};

static bool earns_more(const struct sl_image_bits *bits)
{
	static const struct sl_grant nothing;

	return memcmp(&bits->missed, &nothing, sizeof(nothing)) != 0;
}

/* What links of the policy lead to has rows in the kernel only (put_target()). */
static void add_linked(const struct lineages *l, const struct sl_image *image,
		       struct sl_image_bits *out)
{
	const struct sl_bits *need = sl_compiled_script_bits(l->compiled);
	struct sl_grant exe, script = { 0 };

	if (!image->path)
		return;
	sl_guard_granted(l->set, l->policy, SL_PATHS_EXE, image->path, &exe);
	if (image->script)
		sl_guard_granted(l->set, l->policy, SL_PATHS_SCRIPT, image->script, &script);
	for (int i = 0; i < SL_POLICY_WORDS; i++) {
		out->granted.own.word[i] |= exe.own.word[i] & (~need->word[i] | script.own.word[i]);
		out->granted.inherited.word[i] |= exe.inherited.word[i] &
						  (~need->word[i] | script.inherited.word[i]);
	}
}

/* As the exec hook computes it (bpf/guard.h). */
static int image_bits(const struct lineages *l, const struct sl_lineage *node,
		      struct sl_image_bits *out)
{
	struct sl_image image = { 0 };
	uint8_t sha256[SL_SHA256_LEN];
	int rc = sl_exe_by_id(l->set, node->key.exe, &l->exe[0]);

	if (!rc && !(l->exe[0].key.flags & SL_EXE_NAMELESS) &&
	    !(node->key.flags & SL_LINEAGE_ELSEWHERE))
		image.path = l->exe[0].path;
	if (node->key.script && !sl_exe_by_id(l->set, node->key.script, &l->exe[1]))
		image.script = l->exe[1].path;
	sl_compiled_image(l->compiled, &image, out);
	if (l->digest && earns_more(out) && !l->digest(&l->exe[0], sha256, l->arg)) {
		image.sha256 = sha256;
		sl_compiled_image(l->compiled, &image, out);
	}
	add_linked(l, &image, out);
	return rc == -ENOENT ? 0 : rc;
}

/*
 * Adds the row of a lineage, or replaces it when files were looked at. 0, or -EAGAIN when
 * the parent's is not there yet.
 */
static int lineage_row(const struct lineages *l, const struct sl_lineage *node)
{
	struct sl_guard_lineage_key key = { l->policy, node->id };
	struct sl_guard_lineage_key up_key = { l->policy, node->key.parent };
	int fd = sl_set_map_fd(l->set, SL_MAP_GUARD_LINEAGES);
	struct sl_guard_lineage row = { 0 }, up;
	struct sl_image_bits image;
	struct sl_lineage parent;
	int rc;

	if (!l->digest && !bpf_map_lookup_elem(fd, &key, &up))
		return 0;
	if (node->key.parent && !sl_lineage_by_id(l->set, node->key.parent, &parent) &&
	    !(parent.key.flags & SL_LINEAGE_OUTSIDE)) {
		if (bpf_map_lookup_elem(fd, &up_key, &up))
			return errno == ENOENT ? -EAGAIN : -errno;
		row.match = row.inherited = up.inherited;
	}
	rc = image_bits(l, node, &image);
	if (rc)
		return rc;
	sl_bits_or(&row.match, &image.granted.own);
	sl_bits_or(&row.inherited, &image.granted.inherited);
	sl_bits_or(&row.missed, &image.missed.own);
	if (!image.identity)
		row.flags = SL_GUARD_NO_IDENTITY;
	if (l->digest)
		return sl_guard_put(l->set, SL_MAP_GUARD_LINEAGES, &key, &row);
	if (bpf_map_update_elem(fd, &key, &row, BPF_NOEXIST) && errno != EEXIST)
		return -errno;
	return 0;
}

/* Parents have lower ids than their children. Returns how many rows could not be made. */
static int lineages_pass(const struct lineages *l, __u32 *last)
{
	struct sl_lineage node;
	struct sl_ids ids;
	__u32 zero = 0;
	int rc, left = 0;

	if (bpf_map_lookup_elem(sl_set_map_fd(l->set, SL_MAP_IDS), &zero, &ids))
		return -errno;
	for (__u32 id = 1; id <= ids.lineage; id++) {
		if (sl_lineage_by_id(l->set, id, &node) || node.key.flags & SL_LINEAGE_OUTSIDE)
			continue;
		rc = lineage_row(l, &node);
		if (rc == -EAGAIN)
			left++;
		else if (rc)
			return rc;
	}
	*last = ids.lineage;
	return left;
}

/* Lineages whose exec began before the policy was pending may come until it has ended. */
#define LINEAGE_PASSES 100

int sl_guard_lineages(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled)
{
	_cleanup_free_ struct sl_exe *exe = malloc(2 * sizeof(*exe));
	struct lineages l = { .set = set, .compiled = compiled, .policy = policy_id, .exe = exe };
	__u32 last = 0, before;
	int left, clean = 0;

	if (!exe)
		return -ENOMEM;
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
	int rc = 0;

	if (!exe)
		return -ENOMEM;
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
