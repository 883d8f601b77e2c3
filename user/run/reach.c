/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "run/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/sockaddr.h"
#include "dns/lease.h"
#include "guard/dns.h"
#include "kernel/netns.h"
#include "kernel/proxy.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define HOSTS "/etc/hosts"

const char *const sl_reach_net_names[] = { "host", "relay", NULL };
const char *const sl_reach_dns_names[] = { "auto", "policy", "host", NULL };

struct sl_reach {
	struct sl_reach_options options;
	const char *prefix; /* of options in messages */
	struct sl_egress_options egress_options;
	struct sl_egress *egress; /* NULL: nothing to serve */
	struct sl_proxy proxy;    /* direct: a transparent one, if there is any */
	int netns;                /* relay; -1: direct, in this process' */
};

static bool relayed(const struct sl_reach_options *options)
{
	return options->net == SL_REACH_NET_RELAY;
}

bool sl_reach_asked(const struct sl_reach_options *options)
{
	return relayed(options) || options->dns != SL_REACH_DNS_AUTO || options->upstream ||
	       options->proxy || options->proxy_cgroup || options->inspect;
}

void sl_reach_free(struct sl_reach **out)
{
	struct sl_reach *reach = *out;

	if (!reach)
		return;
	sl_egress_free(&reach->egress);
	sl_cleanup_fd(&reach->netns);
	free(reach);
	*out = NULL;
}

static int take_proxy(struct sockaddr_storage *out, const char *text, const char *prefix,
		      const char *option, struct sl_err *err)
{
	struct sl_endpoint endpoint;

	if (!text)
		return 0;
	if (sl_parse_endpoint(text, &endpoint) || !endpoint.port_be) {
		sl_err_set(err, EINVAL, "%s%s: '%s' is no address with a port", prefix, option,
			   text);
		return sl_err_hint(err, "write 192.0.2.1:3128 or [2001:db8::1]:3128");
	}
	sl_endpoint_sockaddr(out, &endpoint);
	return 0;
}

/* A transparent one: an address for each family that it takes. */
static int take_transparent(struct sl_proxy *out, const char *list, const char *prefix,
			    struct sl_err *err)
{
	_cleanup_free_ char *copy = list ? strdup(list) : NULL;
	char *rest = copy, *word;
	struct sockaddr_storage addr;
	struct sl_endpoint *end;

	if (!list)
		return 0;
	if (!copy)
		return sl_err_sys(err, ENOMEM, "%sproxy", prefix);
	while ((word = strsep(&rest, ","))) {
		int rc = take_proxy(&addr, word, prefix, "proxy", err);

		if (rc)
			return rc;
		end = addr.ss_family == AF_INET ? &out->v4 : &out->v6;
		if (end->port_be) {
			sl_err_set(err, EINVAL, "%sproxy: '%s' is its second address of one family",
				   prefix, word);
			return sl_err_hint(err,
					   "a transparent proxy has one for IPv4, one for IPv6");
		}
		(void)sl_sockaddr_endpoint(end, &addr);
	}
	return 0;
}

static int take_upstreams(struct sl_resolver_config *config, const char *list, const char *prefix,
			  struct sl_err *err)
{
	_cleanup_free_ char *copy = list ? strdup(list) : NULL;
	char *rest = copy, *word;
	int rc = 0;

	if (!list)
		return sl_resolver_config_read(config, RESOLV_CONF, err);
	if (!copy)
		return sl_err_sys(err, ENOMEM, "%supstream", prefix);
	while (!rc && (word = strsep(&rest, ",")))
		rc = sl_resolver_config_add(config, word, err);
	return rc ? sl_err_prefix(err, "%supstream", prefix) : 0;
}

/* What makes no sense together, or without a relay. */
static int check(const struct sl_reach_options *options, const char *prefix, struct sl_err *err)
{
	if (!relayed(options) && options->inspect) {
		sl_err_set(err, EINVAL, "%sinspect needs a relay", prefix);
		return sl_err_hint(err, "add %snet relay: only what is relayed can be handed on",
				   prefix);
	}
	if (options->proxy_cgroup && (relayed(options) || !options->proxy)) {
		sl_err_set(err, EINVAL, "--proxy-cgroup is for a transparent proxy");
		return sl_err_hint(err,
				   "name it with --proxy; behind a relay it is told otherwise");
	}
	if (relayed(options) && options->dns == SL_REACH_DNS_HOST) {
		sl_err_set(err, EINVAL, "behind a relay there is no DNS but policy DNS");
		return sl_err_hint(err, "leave %sdns host out", prefix);
	}
	if (options->dns == SL_REACH_DNS_HOST && options->upstream) {
		sl_err_set(err, EINVAL, "%supstream is for policy DNS, and %sdns is host", prefix,
			   prefix);
		return sl_err_hint(err, "leave one of the two out");
	}
	return 0;
}

/* The caller's word on where, or a relay's namespace that is made. */
static int take_place(struct sl_reach *reach, const struct sl_reach_place *place,
		      struct sl_err *err)
{
	struct sl_egress_options *egress = &reach->egress_options;

	egress->direct = !relayed(&reach->options);
	if (!place)
		return egress->direct ? 0 : sl_netns_new(&reach->netns, err);
	egress->resume = place->resume;
	egress->mark = place->mark;
	egress->device = place->device;
	egress->threads = place->relays;
	reach->netns = place->netns < 0 ? -1 : fcntl(place->netns, F_DUPFD_CLOEXEC, 0);
	return reach->netns < 0 && place->netns >= 0
		       ? sl_err_sys(err, errno, "can't keep the network namespace")
		       : 0;
}

int sl_reach_open(struct sl_reach **out, const struct sl_reach_options *options,
		  const struct sl_reach_place *place, struct sl_err *err)
{
	_cleanup_(sl_reach_free) struct sl_reach *reach = calloc(1, sizeof(*reach));
	struct sl_egress_options *egress;
	int rc;

	if (!reach)
		return sl_err_sys(err, ENOMEM, "reach");
	reach->netns = -1;
	reach->options = *options;
	reach->prefix = place ? "" : "--";
	egress = &reach->egress_options;
	egress->search = RESOLV_CONF;
	egress->hosts = HOSTS;
	rc = check(options, reach->prefix, err);
	rc = rc ?: take_upstreams(&egress->resolver, options->upstream, reach->prefix, err);
	if (relayed(options))
		rc = rc ?: take_proxy(&egress->proxy, options->proxy, reach->prefix, "proxy", err);
	else
		rc = rc ?: take_transparent(&reach->proxy, options->proxy, reach->prefix, err);
	rc = rc ?: take_proxy(&egress->inspector, options->inspect, reach->prefix, "inspect", err);
	rc = rc ?: take_place(reach, place, err);
	if (!rc)
		*out = TAKE_PTR(reach);
	return rc;
}

void sl_reach_apply_options(const struct sl_reach *reach, struct sl_apply_options *options)
{
	if (!reach)
		return;
	options->names_by_dns = reach->options.dns != SL_REACH_DNS_HOST;
	options->own_netns = relayed(&reach->options);
	options->relayed = relayed(&reach->options);
	options->inspects = reach->options.inspect != NULL;
}

bool sl_reach_leads(const struct sl_reach *reach)
{
	return reach && !relayed(&reach->options) && reach->options.proxy;
}

bool sl_reach_serves(const struct sl_reach *reach, const struct sl_apply *apply)
{
	if (!reach)
		return false;
	if (relayed(&reach->options) || reach->options.dns == SL_REACH_DNS_POLICY)
		return true;
	return reach->options.dns == SL_REACH_DNS_AUTO && sl_apply_wants_dns(apply);
}

/* One that is attached already is told by the set that has it. */
static int lead_to_proxy(const struct sl_reach *reach, struct sl_set *set, unsigned int sandbox,
			 struct sl_err *err)
{
	const char *cgroup = reach->options.proxy_cgroup;
	struct sl_err why = { 0 };
	int rc = cgroup ? sl_proxy_attach(set, cgroup, &why) : 0;

	if (rc && rc != -EEXIST) {
		*err = why;
		return rc;
	}
	return sl_guard_proxy(set, sandbox, &reach->proxy, err);
}

int sl_reach_listen(struct sl_reach *reach, struct sl_set *set, unsigned int sandbox,
		    const struct sl_apply *apply, struct sl_err *err)
{
	int rc = 0;

	if (sl_reach_leads(reach))
		rc = lead_to_proxy(reach, set, sandbox, err);
	if (rc || !sl_reach_serves(reach, apply) || reach->egress)
		return rc;
	reach->egress_options.set = set;
	reach->egress_options.sandbox = sandbox;
	reach->egress_options.netns = reach->netns;
	rc = sl_egress_new(&reach->egress, &reach->egress_options, err);
	rc = rc ?: sl_egress_start(reach->egress, err);
	if (rc)
		sl_egress_free(&reach->egress);
	return rc;
}

void sl_reach_unlisten(struct sl_reach *reach)
{
	const struct sl_egress_options *options = &reach->egress_options;
	struct sl_err err = { 0 };

	if (!reach->egress)
		return;
	sl_egress_free(&reach->egress);
	/* Behind a relay there is nobody else to ask; after another process they were led away. */
	if (options->direct && !options->resume &&
	    sl_guard_dns(options->set, options->sandbox, NULL, &err))
		sl_log_err(SL_LOG_ERROR, &err);
}

int sl_reach_netns(const struct sl_reach *reach)
{
	return reach->netns;
}

int sl_reach_ready(struct sl_reach *reach, struct sl_apply *apply, __u32 policy_id,
		   struct sl_err *err)
{
	return reach && reach->egress ? sl_egress_ready(reach->egress, apply, policy_id, err) : 0;
}

void sl_reach_switch(struct sl_reach *reach, bool loaded)
{
	if (reach && reach->egress)
		sl_egress_switch(reach->egress, loaded);
}

int sl_reach_enter(const struct sl_reach *reach)
{
	return reach->netns >= 0 && setns(reach->netns, CLONE_NEWNET) ? -errno : 0;
}

void sl_reach_stats(const struct sl_reach *reach, struct sl_egress_stats *out)
{
	if (reach->egress)
		sl_egress_stats(reach->egress, out);
}

void sl_reach_tell(const struct sl_egress_stats *stats)
{
	if (stats->unleased)
		sl_log_warning("%llu answers of policy DNS were withheld: its table of names and "
			       "addresses was full, or one process had its share, until TTLs end",
			       (unsigned long long)stats->unleased);
	if (stats->crowded)
		sl_log_warning("%llu answers of policy DNS were withheld: of names that a wildcard "
			       "stands for, an address has %d at a time; what the policy names in "
			       "full, and any name with --net relay, always has room",
			       (unsigned long long)stats->crowded, SL_LEASE_NAMES);
	if (stats->limited)
		sl_log_warning("%llu questions to policy DNS were refused: too many waited at a "
			       "time",
			       (unsigned long long)stats->limited);
	if (stats->lost)
		sl_log_warning("%llu questions to policy DNS got no answer: they came faster than "
			       "it reads them",
			       (unsigned long long)stats->lost);
	if (stats->strangers)
		sl_log_notice("%llu queries or connections came from nobody known, and got nothing",
			      (unsigned long long)stats->strangers);
}
