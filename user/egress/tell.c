/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decisions that are made here, told as those of the guard are. */
#include <string.h>

#include "base/log.h"
#include "egress/egress_private.h"

/* One that no rule has is kept among those that a workload made up. */
static __u32 name_flags(const struct sl_decision *decision)
{
	bool ruled = decision->rule != SL_RULE_NONE ||
		     /* A rule has the name, and not with this address. */
		     decision->reason == SL_REASON_RESERVED_ADDRESS;

	return ruled ? 0 : SL_NAME_DENIED;
}

__u32 sl_egress_policy(struct sl_egress *egress)
{
	__u32 id;

	pthread_mutex_lock(&egress->lock);
	id = egress->now.id;
	pthread_mutex_unlock(&egress->lock);
	return id;
}

void sl_egress_tell(struct sl_egress *egress, const struct sl_sock *client, __u16 protocol,
		    const struct sl_endpoint *remote, const char *name,
		    const struct sl_decision *decision, __u32 policy_id)
{
	struct sl_refused refused = {
		.key = { .sandbox = egress->sandbox,
			 .policy = policy_id,
			 .protocol = protocol,
			 .reason = decision->reason },
	};
	int rc;

	if (decision->verdict == SL_VERDICT_ALLOW)
		return;
	if (decision->verdict == SL_VERDICT_DENY)
		atomic_fetch_add(&egress->denied, 1);
	if (client) {
		refused.owner = client->owner;
		refused.key.lineage = client->owner.lineage;
	}
	if (remote)
		refused.key.remote = *remote;
	if (name) {
		pthread_mutex_lock(&egress->lock);
		(void)sl_naming_intern(egress->naming, name, name_flags(decision),
				       &refused.key.name);
		pthread_mutex_unlock(&egress->lock);
	}
	rc = sl_decision_tell(egress->set, &refused);
	if (rc)
		sl_log_error("sandbox %u: a denial could not be told: %s", egress->sandbox,
			     strerror(-rc));
}
