/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What policy DNS asks: who, may it be asked, may it be told, and what the guard is to know. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/escape.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "egress/egress_private.h"
#include "socket/sock_client.h"

/* The record of the socket that a query came from; of another sandbox' it is a stranger's. */
static int client_of(struct sl_egress *egress, const struct sl_dns_source *source,
		     struct sl_sock *out)
{
	struct sl_endpoint from = { 0 };
	int rc;

	(void)sl_sockaddr_endpoint(&from, &source->client);
	rc = source->tcp ? sl_sock_client(egress->set, source->fd, out)
			 : sl_sock_by_datagram(egress->set, egress->netns_cookie, IPPROTO_UDP,
					       from.port_be, out);
	return rc ?: out->owner.sandbox == egress->sandbox ? 0 : -ENOENT;
}

static void who(void *arg, const struct sl_dns_source *source, struct sl_dns_who *who)
{
	struct sl_egress_loop *loop = arg;
	struct sl_sock client;

	if (client_of(loop->egress, source, &client)) {
		atomic_fetch_add(&loop->egress->strangers, 1);
		return;
	}
	*who = (struct sl_dns_who){
		.tgid = client.owner.tgid,
		.lineage = client.owner.lineage,
		.start_ns = client.owner.start_ns,
		.cookie = client.cookie,
		.known = true,
	};
}

/* Types that are asked for by a service's name as well as by the host's: RFC 2782, 7553, 9460. */
static bool of_service(uint16_t type)
{
	return type == SL_DNS_TYPE_SRV || type == SL_DNS_TYPE_URI || type == SL_DNS_TYPE_SVCB ||
	       type == SL_DNS_TYPE_HTTPS;
}

/*
 * A name that a rule has, behind labels of a service ("_http._tcp."): where there is no such
 * name clients take the host itself.
 */
static bool with_service(const struct sl_compiled *compiled, const char *name, uint16_t type)
{
	const char *host = name;

	while (of_service(type) && *host == '_' && strchr(host, '.'))
		host = strchr(host, '.') + 1;
	return host != name && sl_compiled_host(compiled, host);
}

/* The same, or as it is, with a search domain behind it: clients try these before. */
static bool with_search(const struct sl_egress *egress, const struct sl_compiled *compiled,
			const char *name, uint16_t type)
{
	size_t len = strlen(name), more;
	char bare[SL_LEASE_NAME];

	for (unsigned int i = 0; i < egress->search_count; i++) {
		more = strlen(egress->search[i]) + 1;
		if (len <= more || name[len - more] != '.' ||
		    strcmp(name + len - more + 1, egress->search[i]) != 0)
			continue;
		snprintf(bare, sizeof(bare), "%.*s", (int)(len - more), name);
		if (sl_compiled_host(compiled, bare) || with_service(compiled, bare, type))
			return true;
	}
	return false;
}

/* What the policy in force says, and which one that is. */
static enum sl_dns_say policy_says(struct sl_egress *egress, const char *name, uint16_t type,
				   __u32 *policy_id)
{
	enum sl_dns_say say = SL_DNS_REFUSE;
	struct sl_compiled *compiled;

	pthread_mutex_lock(&egress->lock);
	*policy_id = egress->now.id;
	if (egress->now.apply) {
		compiled = sl_apply_lock(egress->now.apply);
		if (sl_compiled_host(compiled, name))
			say = SL_DNS_ASK;
		else if (with_service(compiled, name, type) ||
			 with_search(egress, compiled, name, type))
			say = SL_DNS_ABSENT;
		sl_apply_unlock(egress->now.apply);
	}
	pthread_mutex_unlock(&egress->lock);
	return say;
}

/* `remote`: an address that was not told; NULL: the name was not asked for. */
static void tell_name(struct sl_egress *egress, const char *name, const struct sl_endpoint *remote,
		      const struct sl_dns_who *who, const struct sl_decision *decision,
		      __u32 policy_id)
{
	struct sl_sock client;

	if (sl_sock_by_cookie(egress->set, who->cookie, &client))
		return sl_egress_tell(egress, NULL, 0, remote, name, decision, policy_id);
	sl_egress_tell(egress, &client, 0, remote, name, decision, policy_id);
}

/* What the sandbox's mode makes of what the policy says; a denial is told. */
static enum sl_dns_say in_mode(struct sl_egress *egress, enum sl_dns_say say, const char *name,
			       const struct sl_dns_who *who, __u32 policy_id)
{
	struct sl_decision decision = { SL_VERDICT_DENY, SL_REASON_ENDPOINT, SL_RULE_NONE };
	struct sl_guard guard;
	bool passes;

	if (sl_guard_read(egress->set, egress->sandbox, &guard))
		return SL_DNS_REFUSE;
	/* Where nothing is refused, it is asked for like any other. */
	if (say != SL_DNS_REFUSE)
		decision = (struct sl_decision){ SL_VERDICT_ALLOW, SL_REASON_NONE, SL_RULE_NONE };
	passes = sl_guard_ask_mode(&guard, &decision);
	if (decision.verdict != SL_VERDICT_ALLOW) {
		atomic_fetch_add(&egress->refused_names, 1);
		tell_name(egress, name, NULL, who, &decision, policy_id);
	}
	if (say == SL_DNS_ABSENT && guard.mode == SL_GUARD_ENFORCE)
		return say;
	return passes ? SL_DNS_ASK : SL_DNS_REFUSE;
}

static enum sl_dns_say eligible(void *arg, const char *name, uint16_t type,
				const struct sl_dns_who *who)
{
	struct sl_egress_loop *loop = arg;
	enum sl_dns_say say;
	__u32 policy_id;

	if (!who->known)
		return SL_DNS_REFUSE;
	say = policy_says(loop->egress, name, type, &policy_id);
	return in_mode(loop->egress, say, name, who, policy_id);
}

/* No rule can have such a name. */
static enum sl_dns_say odd(void *arg, const char *shown, uint16_t type,
			   const struct sl_dns_who *who)
{
	struct sl_egress_loop *loop = arg;
	struct sl_egress *egress = loop->egress;

	(void)type;
	if (!who->known)
		return SL_DNS_REFUSE;
	return in_mode(egress, SL_DNS_REFUSE, shown, who, sl_egress_policy(egress));
}

/* Where denials pass, what no rule has passes here as well. */
static bool answer(void *arg, const char *name, const struct sl_addr *addr,
		   const struct sl_dns_who *who)
{
	struct sl_egress_loop *loop = arg;
	struct sl_egress *egress = loop->egress;
	enum sl_addr_kind kind = sl_egress_kind(egress, addr);
	struct sl_guard guard;
	bool may = false;

	(void)who;
	pthread_mutex_lock(&egress->lock);
	if (egress->now.apply) {
		may = sl_compiled_answer(sl_apply_lock(egress->now.apply), name, addr, kind);
		sl_apply_unlock(egress->now.apply);
	}
	pthread_mutex_unlock(&egress->lock);
	if (may)
		return true;
	return !sl_guard_read(egress->set, egress->sandbox, &guard) &&
	       (guard.mode == SL_GUARD_AUDIT || guard.mode == SL_GUARD_OBSERVE);
}

static int lease(void *arg, const char *name, const struct sl_addr *addr, uint32_t ttl_s,
		 const struct sl_dns_who *who)
{
	const struct sl_lease_client client = { .tgid = who->tgid, .start_ns = who->start_ns };
	const struct sl_process_key process = { .tgid = who->tgid, .start_ns = who->start_ns };
	struct sl_egress_loop *loop = arg;
	struct sl_egress *egress = loop->egress;
	__u32 id;
	int rc;

	pthread_mutex_lock(&egress->lock);
	rc = sl_leases_add(egress->leases, name, addr, ttl_s, &client, sl_monotonic_ms());
	/* For people: without it the name that anybody asked for last is shown. */
	if (!rc && !sl_naming_intern(egress->naming, name, 0, &id))
		(void)sl_naming_put(egress->naming, &process, addr->be, id);
	pthread_mutex_unlock(&egress->lock);
	sl_egress_count_lease(egress, rc);
	return rc;
}

static int synthetic(void *arg, const char *name, int family, struct sl_addr *addr)
{
	struct sl_egress_loop *loop = arg;
	struct sl_egress *egress = loop->egress;
	int rc;

	pthread_mutex_lock(&egress->lock);
	rc = sl_pool_address(egress->pool, name, family, addr);
	pthread_mutex_unlock(&egress->lock);
	sl_egress_count_lease(egress, rc);
	return rc;
}

static bool reverse(void *arg, const struct sl_addr *addr, const struct sl_dns_who *who, char *name)
{
	const struct sl_lease_client client = { .tgid = who->tgid, .start_ns = who->start_ns };
	struct sl_egress_loop *loop = arg;

	return who->known && sl_egress_name(loop->egress, addr, &client, name);
}

/*
 * A name has addresses, none of which it may have: to the client it has none. Where some are
 * left, or the other family's will do, nobody misses these.
 */
static void tell_withheld(struct sl_egress *egress, const struct sl_dns_asked *asked)
{
	const struct sl_decision decision = { SL_VERDICT_DENY, SL_REASON_RESERVED_ADDRESS,
					      SL_RULE_NONE };
	const __u32 policy_id = sl_egress_policy(egress);
	struct sl_endpoint remote = { 0 };

	for (unsigned int i = 0; i < asked->left_out_count; i++) {
		memcpy(remote.addr_be, asked->left_out[i].be, sizeof(remote.addr_be));
		tell_name(egress, asked->name, &remote, asked->who, &decision, policy_id);
	}
}

/* Programs say no more than that the name could not be resolved. */
static void tell_failed(struct sl_egress *egress, const struct sl_dns_asked *asked)
{
	struct sl_sock client;
	bool exact;

	if (sl_sock_by_cookie(egress->set, asked->who->cookie, &client))
		return;
	/* What there is of a wildcard is made up by who asks. */
	pthread_mutex_lock(&egress->lock);
	exact = sl_egress_has(egress, asked->name, sl_compiled_host_exact);
	pthread_mutex_unlock(&egress->lock);
	sl_egress_unresolved(egress, &client, asked->name, exact, asked->error);
}

static void asked(void *arg, const struct sl_dns_asked *asked)
{
	char name[SL_ESCAPE_MAX(SL_LEASE_NAME)];
	struct sl_egress_loop *loop = arg;

	if (asked->outcome == SL_DNS_FILTERED)
		tell_withheld(loop->egress, asked);
	if (asked->error)
		tell_failed(loop->egress, asked);
	atomic_fetch_add(&loop->egress->queries, 1);
	if (asked->outcome == SL_DNS_LIMITED)
		atomic_fetch_add(&loop->egress->limited, 1);
	sl_escape_text(name, sizeof(name), asked->name);
	sl_log_debug("sandbox %u: process %u asked for %s, type %u: %s, %u addresses, %llu us",
		     loop->egress->sandbox, asked->who->tgid, name, asked->type,
		     sl_dns_outcome_name(asked->outcome), asked->addresses,
		     (unsigned long long)asked->duration_us);
}

struct sl_dns_ops sl_egress_dns_ops(const struct sl_egress *egress)
{
	return (struct sl_dns_ops){
		.who = who,
		.eligible = eligible,
		.odd = odd,
		.answer = answer,
		.lease = lease,
		.synthetic = egress->relay ? synthetic : NULL,
		.reverse = reverse,
		.asked = asked,
	};
}
