/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Leases: from what was told to clients into the guard, under the policy or policies. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "egress/egress_private.h"

enum sl_addr_kind sl_egress_kind(struct sl_egress *egress, const struct sl_addr *addr)
{
	return sl_own_has(egress->own, addr->be) ? SL_ADDR_OWN : SL_ADDR_REAL;
}

static int lease_under(struct sl_egress *egress, const struct sl_egress_policy *policy,
		       const struct sl_addr *addr, const char *const *names, size_t count,
		       struct sl_err *err)
{
	enum sl_addr_kind kind = SL_ADDR_SYNTHETIC;
	struct sl_compiled *compiled;
	int rc;

	if (!policy->apply)
		return 0;
	if (count && !(egress->pool && sl_pool_has(egress->pool, addr)))
		kind = sl_egress_kind(egress, addr);
	compiled = sl_apply_lock(policy->apply);
	rc = count ? sl_guard_lease(egress->set, policy->id, compiled, addr, kind, names, count,
				    err)
		   : sl_guard_unlease(egress->set, policy->id, compiled, addr);
	sl_apply_unlock(policy->apply);
	return rc;
}

/* What the address is called for who has not asked for it; for people, so no error. */
static void name_for_all(struct sl_egress *egress, const struct sl_addr *addr,
			 const char *const *names, size_t count)
{
	__u32 id;

	/* A synthetic one stays the name's: who serves after this process has to know (resume.c). */
	if (!count && !(egress->pool && sl_pool_has(egress->pool, addr)))
		(void)sl_naming_remove(egress->naming, NULL, addr->be);
	else if (count && !sl_naming_intern(egress->naming, names[0], 0, &id))
		(void)sl_naming_put(egress->naming, NULL, addr->be, id);
}

static int changed(void *arg, const struct sl_addr *addr, const char *const *names, size_t count)
{
	struct sl_egress *egress = arg;
	struct sl_err err = { 0 };
	int rc = lease_under(egress, &egress->now, addr, names, count, &err);

	rc = rc ?: lease_under(egress, &egress->next, addr, names, count, &err);
	if (rc)
		sl_log_error("sandbox %u: a name's address: %s", egress->sandbox, err.text);
	else
		name_for_all(egress, addr, names, count);
	return rc;
}

static bool has_under(const struct sl_egress_policy *policy, const char *name, sl_egress_has_fn has)
{
	bool found;

	if (!policy->apply)
		return false;
	found = has(sl_apply_lock(policy->apply), name);
	sl_apply_unlock(policy->apply);
	return found;
}

bool sl_egress_has(const struct sl_egress *egress, const char *name, sl_egress_has_fn has)
{
	return has_under(&egress->now, name, has) || has_under(&egress->next, name, has);
}

static bool exact(void *arg, const char *name)
{
	const struct sl_egress *egress = arg;

	return sl_egress_has(egress, name, sl_compiled_host_exact);
}

static bool client_alive(void *arg, const struct sl_lease_client *client)
{
	const struct sl_process_key key = { .tgid = client->tgid, .start_ns = client->start_ns };
	struct sl_egress *egress = arg;
	struct sl_process process;

	/* A row stays until the process' sockets are gone: as long as it may use the address. */
	return sl_proc_by_key(egress->set, &key, &process) != -ENOENT;
}

struct in_use {
	void (*use)(void *ctx, const struct sl_addr *addr);
	void *ctx;
	unsigned int sandbox;
};

static int use_remote(const struct sl_sock *sock, void *arg)
{
	const struct in_use *in_use = arg;
	struct sl_addr addr;

	if (sock->owner.sandbox != in_use->sandbox)
		return 0;
	memcpy(addr.be, sock->remote.addr_be, sizeof(addr.be));
	in_use->use(in_use->ctx, &addr);
	return 0;
}

static int addresses_in_use(void *arg, void (*use)(void *ctx, const struct sl_addr *addr),
			    void *ctx)
{
	struct sl_egress *egress = arg;
	struct in_use in_use = { use, ctx, egress->sandbox };

	return sl_socks_each(egress->set, use_remote, &in_use);
}

const struct sl_leases_ops sl_egress_lease_ops = {
	.client_alive = client_alive,
	.addresses_in_use = addresses_in_use,
	.changed = changed,
	.exact = exact,
};

int sl_egress_lease_all(struct sl_egress *egress, struct sl_err *err)
{
	int rc = sl_leases_tell(egress->leases);

	return rc ? sl_err_sys(err, -rc, "can't tell the guard the addresses of names") : 0;
}

void sl_egress_count_lease(struct sl_egress *egress, int rc)
{
	if (rc)
		atomic_fetch_add(rc == -EDQUOT ? &egress->crowded : &egress->unleased, 1);
}

bool sl_egress_name(struct sl_egress *egress, const struct sl_addr *addr,
		    const struct sl_lease_client *client, char *name)
{
	const char *synthetic;
	bool found;

	pthread_mutex_lock(&egress->lock);
	synthetic = egress->pool ? sl_pool_name(egress->pool, addr) : NULL;
	if (synthetic)
		snprintf(name, SL_LEASE_NAME, "%s", synthetic);
	found = synthetic || sl_leases_name(egress->leases, addr, client, name);
	pthread_mutex_unlock(&egress->lock);
	return found;
}
