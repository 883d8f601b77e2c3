/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows that depend on more than the policy: of lineages, of addresses; and their end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "guard/guard_private.h"
#include "policy/bits.h"

/* --- lineages --- */

struct lineages {
	struct sl_set *set;
	const struct sl_compiled *compiled;
	__u32 policy;
	struct sl_exe *exe; /* two: the image's and its script's */
};

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
	int rc = sl_exe_by_id(l->set, node->key.exe, &l->exe[0]);

	if (!rc && !(l->exe[0].key.flags & SL_EXE_NAMELESS) &&
	    !(node->key.flags & SL_LINEAGE_ELSEWHERE))
		image.path = l->exe[0].path;
	if (node->key.script && !sl_exe_by_id(l->set, node->key.script, &l->exe[1]))
		image.script = l->exe[1].path;
	sl_compiled_image(l->compiled, &image, out);
	add_linked(l, &image, out);
	return rc == -ENOENT ? 0 : rc;
}

/* 0, or -EAGAIN when the parent's row is not there yet. */
static int lineage_row(const struct lineages *l, const struct sl_lineage *node)
{
	struct sl_guard_lineage_key key = { l->policy, node->id };
	struct sl_guard_lineage_key up_key = { l->policy, node->key.parent };
	int fd = sl_set_map_fd(l->set, SL_MAP_GUARD_LINEAGES);
	struct sl_guard_lineage row = { 0 }, up;
	struct sl_image_bits image;
	struct sl_lineage parent;
	int rc;

	if (!bpf_map_lookup_elem(fd, &key, &up))
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
	if (!image.identity)
		row.flags = SL_GUARD_NO_IDENTITY;
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
	struct lineages l = { set, compiled, policy_id, exe };
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

/* --- leases --- */

struct lease {
	struct sl_set *set;
	struct sl_compiled *compiled;
	const struct sl_addr *addr;
	const char *const *names;
	size_t count;
	__u32 policy;
	bool end;
};

static int lease_row(const struct sl_port_row *row, void *arg)
{
	struct lease *lease = arg;
	struct sl_guard_dest_key key = {
		.prefix_bits = 128,
		.policy = lease->policy,
		.port_class = row->port_class,
	};
	struct sl_guard_dest dest;
	__u32 class_id;
	int rc;

	memcpy(key.addr_be, lease->addr->be, sizeof(key.addr_be));
	if (lease->end) {
		bpf_map_delete_elem(sl_set_map_fd(lease->set, SL_MAP_GUARD_LEASES), &key);
		return 0;
	}
	rc = sl_compiled_address(lease->compiled, row->transport, row->first, lease->addr,
				 lease->names, lease->count, &class_id);
	if (rc || class_id == sl_compiled_dest(lease->compiled, row->port_class, lease->addr))
		return rc; /* the names add nothing on this port */
	sl_guard_dest_fill(&dest, lease->compiled, class_id);
	return sl_guard_put(lease->set, SL_MAP_GUARD_LEASES, &key, &dest);
}

int sl_guard_lease(struct sl_set *set, __u32 policy_id, struct sl_compiled *compiled,
		   const struct sl_addr *addr, const char *const *names, size_t count,
		   struct sl_err *err)
{
	struct lease lease = { .set = set,
			       .compiled = compiled,
			       .addr = addr,
			       .names = names,
			       .count = count,
			       .policy = policy_id };
	int rc = sl_compiled_ports_each(compiled, lease_row, &lease);

	return rc ? sl_err_sys(err, -rc, "can't tell the kernel an address") : 0;
}

int sl_guard_unlease(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		     const struct sl_addr *addr)
{
	struct lease lease = { .set = set, .addr = addr, .policy = policy_id, .end = true };

	return sl_compiled_ports_each(compiled, lease_row, &lease);
}

/* --- the end of a policy --- */

/* Deletes the rows whose key has the policy's id at `offset`. */
static int delete_rows(int fd, size_t key_size, size_t offset, __u32 policy_id)
{
	_cleanup_free_ char *keys = calloc(2, key_size);
	char *key = keys, *next = keys + key_size;
	bool more;
	__u32 policy;

	if (!keys)
		return -ENOMEM;
	more = !bpf_map_get_next_key(fd, NULL, next);
	while (more) {
		memcpy(key, next, key_size);
		/* The key after a deleted one can't be asked for: it is fetched before. */
		more = !bpf_map_get_next_key(fd, key, next);
		memcpy(&policy, key + offset, sizeof(policy));
		if (policy == policy_id)
			bpf_map_delete_elem(fd, key);
	}
	return 0;
}

int sl_guard_delete(struct sl_set *set, __u32 policy_id)
{
	static const struct {
		enum sl_map map;
		size_t key_size;
		size_t offset;
	} tables[] = {
		{ SL_MAP_GUARD_POLICIES, sizeof(__u32), 0 },
		{ SL_MAP_GUARD_PATHS, sizeof(struct sl_guard_path),
		  offsetof(struct sl_guard_path, policy) },
		{ SL_MAP_GUARD_FILES, sizeof(struct sl_guard_file),
		  offsetof(struct sl_guard_file, policy) },
		{ SL_MAP_GUARD_LINEAGES, sizeof(struct sl_guard_lineage_key),
		  offsetof(struct sl_guard_lineage_key, policy) },
		{ SL_MAP_GUARD_PORTS, sizeof(struct sl_guard_port),
		  offsetof(struct sl_guard_port, policy) },
		{ SL_MAP_GUARD_DESTS, sizeof(struct sl_guard_dest_key),
		  offsetof(struct sl_guard_dest_key, policy) },
		{ SL_MAP_GUARD_LEASES, sizeof(struct sl_guard_dest_key),
		  offsetof(struct sl_guard_dest_key, policy) },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(tables); i++)
		rc = delete_rows(sl_set_map_fd(set, tables[i].map), tables[i].key_size,
				 tables[i].offset, policy_id);
	return rc;
}
