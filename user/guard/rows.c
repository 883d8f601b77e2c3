/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of addresses and names of rules, and the end of a policy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "guard/guard_private.h"

/* --- names of rules --- */

void sl_guard_rule_put(struct sl_set *set, __u32 policy_id, const struct sl_compiled *compiled,
		       __u32 class_id)
{
	const struct sl_policy *policy = sl_compiled_policy(compiled);
	__u32 rule = sl_compiled_class(compiled, class_id).first_rule;
	const struct sl_guard_rule_key key = { policy_id, class_id };
	struct sl_guard_rule value = { 0 };

	if (rule == SL_RULE_NONE)
		return;
	snprintf(value.key, sizeof(value.key), "%s", policy->entries[rule].key);
	(void)sl_guard_put(set, SL_MAP_GUARD_RULES, &key, &value, BPF_ANY);
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
	sl_guard_rule_put(lease->set, lease->policy, lease->compiled, class_id);
	return sl_guard_put(lease->set, SL_MAP_GUARD_LEASES, &key, &dest, BPF_ANY);
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

int sl_guard_delete_rows(int fd, size_t key_size, size_t offset, __u32 id)
{
	_cleanup_free_ char *keys = calloc(2, key_size);
	char *key = keys, *next = keys + key_size;
	bool more;
	__u32 has;

	if (!keys)
		return -ENOMEM;
	more = !bpf_map_get_next_key(fd, NULL, next);
	while (more) {
		memcpy(key, next, key_size);
		/* The key after a deleted one can't be asked for: it is fetched before. */
		more = !bpf_map_get_next_key(fd, key, next);
		memcpy(&has, key + offset, sizeof(has));
		if (has == id)
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
		{ SL_MAP_GUARD_RULES, sizeof(struct sl_guard_rule_key),
		  offsetof(struct sl_guard_rule_key, policy) },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(tables); i++)
		rc = sl_guard_delete_rows(sl_set_map_fd(set, tables[i].map), tables[i].key_size,
					  tables[i].offset, policy_id);
	return rc;
}
