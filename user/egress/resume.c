/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * After a process that served before: whoever resolved a name goes on with the address it was
 * told. What is known of that is in the kernel (kernel/name.h): for each address and client the
 * name, and of synthetic addresses all that were given out, also those whose lease has ended.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "egress/egress_private.h"

/* How long a TTL still lasts is not known; clients that live keep a lease by themselves. */
#define RESUMED_TTL_S 60

struct known {
	struct sl_addr addr;
	struct sl_lease_client client; /* all zero: of nobody's in particular */
	uint32_t number;               /* of a synthetic address */
	__u32 id;
};

struct find {
	struct sl_egress *egress;
	struct sl_array *all;
};

static int find(const struct sl_named *named, __u32 id, void *arg)
{
	const struct find *find = arg;
	struct known *known = sl_array_add(find->all);

	if (!known)
		return -ENOMEM;
	*known = (struct known){
		.client = { .tgid = named->tgid, .start_ns = named->start_ns },
		.id = id,
	};
	memcpy(known->addr.be, named->addr_be, sizeof(known->addr.be));
	if (find->egress->pool)
		known->number = sl_pool_number(find->egress->pool, &known->addr);
	return 0;
}

/* The pool's order; and of a name the latest is added last, as it was asked for. */
static int by_number(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	if (x->number != y->number)
		return x->number > y->number ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static int resume(struct sl_egress *egress, const struct known *known)
{
	bool anybody = !known->client.tgid;
	struct sl_name name;
	int rc = 0;

	/* What is too much for the tables has no name any more: as if it had not been asked for. */
	if (sl_name_read(egress->set, known->id, &name) || name.flags & SL_NAME_DENIED ||
	    strlen(name.text) >= SL_LEASE_NAME)
		return 0;
	if (egress->pool)
		rc = sl_pool_restore(egress->pool, name.text, &known->addr);
	/* Of an address that is none of the pool's, or was another name's meanwhile. */
	if (rc == -EINVAL || rc == -EEXIST)
		return 0;
	if (!rc)
		sl_egress_count_lease(egress,
				      sl_leases_add(egress->leases, name.text, &known->addr,
						    RESUMED_TTL_S, anybody ? NULL : &known->client,
						    sl_monotonic_ms()));
	return rc;
}

int sl_egress_resume(struct sl_egress *egress)
{
	struct sl_array all = SL_ARRAY(struct known);
	struct find wanted = { egress, &all };
	int rc = sl_named_each(egress->set, egress->sandbox, find, &wanted);
	const struct known *known = all.data;

	if (!rc && all.count)
		qsort(all.data, all.count, all.item, by_number);
	for (size_t i = 0; !rc && i < all.count; i++)
		rc = resume(egress, &known[i]);
	sl_array_free(&all);
	return rc;
}
