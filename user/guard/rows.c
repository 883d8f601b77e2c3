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
	enum sl_addr_kind kind;
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
				 lease->kind, lease->names, lease->count, &class_id);
	if (rc || class_id == sl_compiled_dest(lease->compiled, row->port_class, lease->addr))
		return rc; /* the names add nothing on this port */
	sl_guard_dest_fill(&dest, lease->compiled, class_id);
	sl_guard_rule_put(lease->set, lease->policy, lease->compiled, class_id);
	return sl_guard_put(lease->set, SL_MAP_GUARD_LEASES, &key, &dest, BPF_ANY);
}

int sl_guard_lease(struct sl_set *set, __u32 policy_id, struct sl_compiled *compiled,
		   const struct sl_addr *addr, enum sl_addr_kind kind, const char *const *names,
		   size_t count, struct sl_err *err)
{
	struct lease lease = { .set = set,
			       .compiled = compiled,
			       .addr = addr,
			       .kind = kind,
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

int sl_guard_delete(struct sl_set *set, __u32 policy_id)
{
	static const struct {
		enum sl_map map;
		size_t offset;
	} tables[] = {
		{ SL_MAP_GUARD_POLICIES, 0 },
		{ SL_MAP_GUARD_PATHS, offsetof(struct sl_guard_path, policy) },
		{ SL_MAP_GUARD_FILES, offsetof(struct sl_guard_file, policy) },
		{ SL_MAP_GUARD_LINEAGES, offsetof(struct sl_guard_lineage_key, policy) },
		{ SL_MAP_GUARD_PORTS, offsetof(struct sl_guard_port, policy) },
		{ SL_MAP_GUARD_DESTS, offsetof(struct sl_guard_dest_key, policy) },
		{ SL_MAP_GUARD_LEASES, offsetof(struct sl_guard_dest_key, policy) },
		{ SL_MAP_GUARD_RULES, offsetof(struct sl_guard_rule_key, policy) },
	};
	int rc = 0;

	for (size_t i = 0; !rc && i < ARRAY_SIZE(tables); i++)
		rc = sl_map_delete_rows(sl_set_map_fd(set, tables[i].map), false, tables[i].offset,
					policy_id);
	return rc;
}
