/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "egress/passage.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "egress/unreachable.h"
#include "policy/withheld.h"

/* What a verdict was given on. */
struct verdict {
	struct sl_decision decision;
	__u32 policy_id;
	bool passes;
	bool inspect;
};

static __u16 protocol_of(const struct sl_passage *passage)
{
	return passage->transport == SL_TRANSPORT_UDP ? IPPROTO_UDP : IPPROTO_TCP;
}

/* The verdict on one address, under the policy in force. Any fault denies. */
static void ask(struct sl_passage *passage, const struct sl_addr *addr, struct verdict *out)
{
	struct sl_egress *egress = passage->loop->egress;
	const char *names[] = { passage->name };
	const struct sl_query query = {
		.transport = passage->transport,
		.port = passage->port,
		.addr = *addr,
		.kind = sl_egress_kind(egress, addr),
		.names = names,
		.name_count = passage->name[0] != '\0',
	};
	struct sl_compiled *compiled;
	struct sl_guard_who who;
	struct sl_guard guard;

	*out = (struct verdict){
		.decision = { SL_VERDICT_DENY, SL_REASON_INTERNAL, SL_RULE_NONE },
	};
	sl_guard_who(&who, egress->set, &passage->client);
	pthread_mutex_lock(&egress->lock);
	out->policy_id = egress->now.id;
	if (egress->now.apply) {
		compiled = sl_apply_lock(egress->now.apply);
		(void)sl_guard_ask(egress->set, egress->now.id, compiled, &who, &query,
				   &out->decision);
		out->inspect = passage->transport == SL_TRANSPORT_TCP &&
			       sl_policy_inspects(sl_compiled_policy(compiled),
						  query.name_count ? passage->name : NULL, addr,
						  passage->port);
		sl_apply_unlock(egress->now.apply);
	}
	pthread_mutex_unlock(&egress->lock);
	out->passes = !sl_guard_read(egress->set, egress->sandbox, &guard) &&
		      sl_guard_ask_mode(&guard, &out->decision);
}

static void tell(struct sl_passage *passage, const struct sl_addr *addr,
		 const struct verdict *verdict)
{
	struct sl_endpoint remote = { .port_be = htons(passage->port) };

	memcpy(remote.addr_be, addr->be, sizeof(remote.addr_be));
	sl_egress_tell(passage->loop->egress, &passage->client, protocol_of(passage), &remote,
		       passage->name[0] ? passage->name : NULL, &verdict->decision,
		       verdict->policy_id);
}

/* A line that works as it stands, wherever the set is. */
static void hint_decision(char *dst, size_t size, const struct sl_egress *egress)
{
	char command[64], line[PATH_MAX];

	snprintf(command, sizeof(command), "decision list --sandbox %u", egress->sandbox);
	sl_set_command(line, sizeof(line), sl_set_dir(egress->set), command);
	snprintf(dst, size, "the decision is in `%s`; who runs the sandbox is told what to add",
		 line);
}

static void refuse_with(struct sl_passage *passage, enum sl_relay_refusal refusal,
			const char *reason, const char *hint)
{
	sl_passage_asked(passage);
	if (passage->flow)
		(void)sl_relay_flow_refuse(passage->flow);
	else
		(void)sl_relay_refuse(passage->stream, refusal, reason, hint);
}

void sl_passage_refuse(struct sl_passage *passage, enum sl_relay_refusal refusal,
		       const char *reason)
{
	char hint[PATH_MAX + 128] = "";

	if (refusal == SL_RELAY_DENIED)
		hint_decision(hint, sizeof(hint), passage->loop->egress);
	refuse_with(passage, refusal, reason, hint[0] ? hint : NULL);
}

/* The name has no address to go to. */
static void unresolved(struct sl_passage *passage, int code)
{
	const struct sl_addr none = { { 0 } };

	sl_passage_unreachable(passage, &none, passage->port, code);
	refuse_with(passage, SL_RELAY_UNRESOLVED, NULL, sl_unreachable_text(code, true));
}

/* The client of a proxy is told what the log says of an address that its name may not have. */
static void refuse_address(struct sl_passage *passage, const struct sl_addr *addr,
			   enum sl_reason reason)
{
	struct sl_egress *egress = passage->loop->egress;
	char hint[SL_WITHHELD_TEXT] = "";

	if (reason == SL_REASON_RESERVED_ADDRESS && passage->name[0]) {
		pthread_mutex_lock(&egress->lock);
		if (egress->now.apply)
			sl_withheld_text(hint, sizeof(hint), sl_apply_policy(egress->now.apply),
					 passage->name, passage->port, addr);
		pthread_mutex_unlock(&egress->lock);
	}
	if (hint[0])
		refuse_with(passage, SL_RELAY_DENIED, sl_reason_name(reason), hint);
	else
		sl_passage_refuse(passage, SL_RELAY_DENIED, sl_reason_name(reason));
}

/* Dials what the verdict has left, or the proxy that it is to be handed to. */
static int dial(struct sl_passage *passage, bool inspect)
{
	struct sl_egress *egress = passage->loop->egress;
	const struct sockaddr_storage *proxy = inspect ? &egress->inspector : &egress->proxy;
	char head[SL_RELAY_FIRST_MAX];
	struct sl_relay_target target = {
		.addresses = passage->targets,
		.count = passage->target_count,
		.port = passage->port,
		.mark = egress->mark,
		.device = egress->device[0] ? egress->device : NULL,
	};
	struct sl_endpoint end;
	struct sl_addr to;
	int len;

	if (passage->flow)
		return sl_relay_flow_dial(passage->flow, &target);
	if (proxy->ss_family) {
		len = sl_passage_head(passage, head, sizeof(head));
		if (len < 0 || !sl_sockaddr_endpoint(&end, proxy))
			return len < 0 ? len : -EINVAL;
		memcpy(to.be, end.addr_be, sizeof(to.be));
		target.port = ntohs(end.port_be);
		target.addresses = &to;
		target.count = 1;
		target.head = head;
		target.head_size = (size_t)len;
	}
	return sl_relay_dial(passage->stream, &target);
}

/*
 * Of `addresses` those that the verdict lets it have are dialled. If none is left the last
 * denial is told; what is denied and passes all the same (audit) is told as well.
 */
static void decide(struct sl_passage *passage, const struct sl_addr *addresses, size_t count)
{
	struct verdict verdict = { 0 };
	bool inspect = false;
	int rc;

	passage->target_count = 0;
	for (size_t i = 0; i < count && passage->target_count < SL_RELAY_ADDRESSES_MAX; i++) {
		ask(passage, &addresses[i], &verdict);
		if (!verdict.passes)
			continue;
		inspect |= verdict.inspect;
		passage->targets[passage->target_count++] = addresses[i];
	}
	if (count && (!passage->target_count || verdict.decision.verdict == SL_VERDICT_AUDIT))
		tell(passage, &addresses[count - 1], &verdict);
	if (!passage->target_count) {
		if (count)
			refuse_address(passage, &addresses[count - 1], verdict.decision.reason);
		else
			sl_passage_refuse(passage, SL_RELAY_DENIED,
					  sl_reason_name(SL_REASON_ENDPOINT));
		return;
	}
	/* The policy was loaded for somebody who inspects; if nobody does, it is not weaker. */
	if (inspect && !passage->loop->egress->inspector.ss_family) {
		sl_passage_refuse(passage, SL_RELAY_DENIED, "inspection");
		return;
	}
	sl_passage_asked(passage);
	rc = dial(passage, inspect);
	if (rc) {
		sl_log_error("a stream could not be dialled: %s", strerror(-rc));
		sl_passage_refuse(passage, SL_RELAY_BUSY, NULL);
	}
}

static void resolved(void *arg, int error, const struct sl_addr *addresses, size_t count)
{
	struct sl_passage *passage = arg;

	passage->request = NULL;
	if (error) {
		unresolved(passage, -error);
		return;
	}
	decide(passage, addresses, count);
}

/* Before anything is asked upstream for a name: some rule has it. */
static bool name_may_be_asked(struct sl_passage *passage)
{
	struct sl_egress *egress = passage->loop->egress;
	struct verdict verdict = {
		.decision = { SL_VERDICT_DENY, SL_REASON_ENDPOINT, SL_RULE_NONE },
	};
	struct sl_guard guard;
	bool named = false;

	pthread_mutex_lock(&egress->lock);
	verdict.policy_id = egress->now.id;
	if (egress->now.apply) {
		named = sl_compiled_host(sl_apply_lock(egress->now.apply), passage->name);
		sl_apply_unlock(egress->now.apply);
	}
	pthread_mutex_unlock(&egress->lock);
	if (sl_guard_read(egress->set, egress->sandbox, &guard))
		return false;
	passage->named = named;
	if (named)
		verdict.decision =
			(struct sl_decision){ SL_VERDICT_ALLOW, SL_REASON_NONE, SL_RULE_NONE };
	if (sl_guard_ask_mode(&guard, &verdict.decision) &&
	    verdict.decision.verdict == SL_VERDICT_ALLOW)
		return true;
	tell(passage, &(struct sl_addr){ { 0 } }, &verdict);
	return verdict.decision.verdict == SL_VERDICT_AUDIT;
}

void sl_passage_go(struct sl_passage *passage)
{
	struct sl_addr addresses[SL_RELAY_ADDRESSES_MAX];
	size_t count;
	int rc;

	if (passage->has_addr) {
		decide(passage, &passage->addr, 1);
		return;
	}
	if (!name_may_be_asked(passage)) {
		sl_passage_refuse(passage, SL_RELAY_DENIED, sl_reason_name(SL_REASON_ENDPOINT));
		return;
	}
	count = sl_egress_hosts(passage->loop->egress, passage->name, addresses,
				ARRAY_SIZE(addresses));
	if (count) {
		decide(passage, addresses, count);
		return;
	}
	rc = sl_resolver_addresses(passage->loop->resolver, passage->name, resolved, passage,
				   &passage->request);
	if (rc == -EINVAL)
		unresolved(passage, ENOENT);
	else if (rc)
		sl_passage_refuse(passage, SL_RELAY_BUSY, NULL);
}

void sl_passage_refuse_odd(struct sl_passage *passage, const char *host)
{
	const struct verdict verdict = {
		.decision = { SL_VERDICT_DENY, SL_REASON_ENDPOINT, SL_RULE_NONE },
		.policy_id = sl_egress_policy(passage->loop->egress),
	};

	snprintf(passage->name, sizeof(passage->name), "%s", host);
	tell(passage, &(struct sl_addr){ { 0 } }, &verdict);
	refuse_with(passage, SL_RELAY_DENIED, sl_reason_name(SL_REASON_ENDPOINT),
		    "neither a name nor an address as a.b.c.d or IPv6: no rule can have it");
}

bool sl_passage_may_stay(struct sl_passage *passage)
{
	struct verdict verdict;

	for (unsigned int i = 0; i < passage->target_count; i++) {
		ask(passage, &passage->targets[i], &verdict);
		if (verdict.passes)
			return true;
	}
	if (!passage->target_count)
		return true; /* not decided yet */
	verdict.decision.reason = SL_REASON_STALE_POLICY;
	tell(passage, &passage->targets[0], &verdict);
	return false;
}

void sl_passage_free(struct sl_passage *passage)
{
	if (passage->request)
		sl_resolver_cancel(&passage->request);
	TAILQ_REMOVE(&passage->loop->passages, passage, entry);
	free(passage);
}
