/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "run/reach.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/sockaddr.h"
#include "kernel/netns.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define HOSTS "/etc/hosts"

struct sl_reach {
	struct sl_reach_options options;
	struct sl_egress_options egress_options;
	struct sl_egress *egress; /* NULL: nothing to serve */
	struct sigaction pipe;    /* of before; relay */
	int netns;                /* relay; -1: direct */
};

static bool relayed(const struct sl_reach_options *options)
{
	return options->net == SL_REACH_NET_RELAY;
}

bool sl_reach_asked(const struct sl_reach_options *options)
{
	return relayed(options) || options->dns != SL_REACH_DNS_AUTO || options->upstream ||
	       options->proxy || options->inspect;
}

void sl_reach_free(struct sl_reach **out)
{
	struct sl_reach *reach = *out;

	if (!reach)
		return;
	sl_egress_free(&reach->egress);
	if (reach->netns >= 0)
		sigaction(SIGPIPE, &reach->pipe, NULL);
	sl_cleanup_fd(&reach->netns);
	free(reach);
	*out = NULL;
}

static int take_proxy(struct sockaddr_storage *out, const char *text, const char *option,
		      struct sl_err *err)
{
	struct sl_endpoint endpoint;

	if (!text)
		return 0;
	if (sl_parse_endpoint(text, &endpoint) || !endpoint.port_be) {
		sl_err_set(err, EINVAL, "%s: '%s' is no address with a port", option, text);
		return sl_err_hint(err, "write 192.0.2.1:3128 or [2001:db8::1]:3128");
	}
	sl_endpoint_sockaddr(out, &endpoint);
	return 0;
}

static int take_upstreams(struct sl_resolver_config *config, const char *list, struct sl_err *err)
{
	_cleanup_free_ char *copy = list ? strdup(list) : NULL;
	char *rest = copy, *word;
	int rc = 0;

	if (!list)
		return sl_resolver_config_read(config, RESOLV_CONF, err);
	if (!copy)
		return sl_err_sys(err, ENOMEM, "--upstream");
	while (!rc && (word = strsep(&rest, ",")))
		rc = sl_resolver_config_add(config, word, err);
	return rc ? sl_err_prefix(err, "--upstream") : 0;
}

/* What makes no sense together, or without a relay. */
static int check(const struct sl_reach_options *options, struct sl_err *err)
{
	if (!relayed(options) && (options->proxy || options->inspect)) {
		sl_err_set(err, EINVAL, "%s needs a relay",
			   options->proxy ? "--proxy" : "--inspect");
		return sl_err_hint(err, "add --net relay: only what is relayed can be handed on");
	}
	if (relayed(options) && options->dns == SL_REACH_DNS_HOST) {
		sl_err_set(err, EINVAL, "behind a relay there is no DNS but policy DNS");
		return sl_err_hint(err, "leave --dns host out");
	}
	if (options->dns == SL_REACH_DNS_HOST && options->upstream) {
		sl_err_set(err, EINVAL, "--upstream is for policy DNS, and --dns is host");
		return sl_err_hint(err, "leave one of the two out");
	}
	return 0;
}

int sl_reach_open(struct sl_reach **out, const struct sl_reach_options *options, struct sl_err *err)
{
	_cleanup_(sl_reach_free) struct sl_reach *reach = calloc(1, sizeof(*reach));
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sl_egress_options *egress;
	int rc;

	if (!reach)
		return sl_err_sys(err, ENOMEM, "reach");
	reach->netns = -1;
	reach->options = *options;
	egress = &reach->egress_options;
	egress->search = RESOLV_CONF;
	egress->hosts = HOSTS;
	rc = check(options, err);
	rc = rc ?: take_upstreams(&egress->resolver, options->upstream, err);
	rc = rc ?: take_proxy(&egress->proxy, options->proxy, "--proxy", err);
	rc = rc ?: take_proxy(&egress->inspector, options->inspect, "--inspect", err);
	if (!rc && relayed(options))
		rc = sl_netns_new(&reach->netns, err);
	/* splice(2), by which the relay moves bytes, can't be told to send no signal. */
	if (!rc && relayed(options))
		sigaction(SIGPIPE, &ignore, &reach->pipe);
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
	options->inspects = reach->options.inspect != NULL;
}

bool sl_reach_serves(const struct sl_reach *reach, const struct sl_apply *apply)
{
	if (!reach)
		return false;
	if (relayed(&reach->options) || reach->options.dns == SL_REACH_DNS_POLICY)
		return true;
	return reach->options.dns == SL_REACH_DNS_AUTO && sl_apply_wants_dns(apply);
}

int sl_reach_listen(struct sl_reach *reach, struct sl_set *set, unsigned int sandbox,
		    const char *name, const struct sl_apply *apply, struct sl_err *err)
{
	if (!sl_reach_serves(reach, apply))
		return 0;
	reach->egress_options.set = set;
	reach->egress_options.sandbox = sandbox;
	reach->egress_options.name = name;
	reach->egress_options.netns = reach->netns;
	return sl_egress_new(&reach->egress, &reach->egress_options, err);
}

int sl_reach_ready(struct sl_reach *reach, struct sl_apply *apply, __u32 policy_id,
		   struct sl_err *err)
{
	return reach && reach->egress ? sl_egress_ready(reach->egress, apply, policy_id, err) : 0;
}

int sl_reach_start(struct sl_reach *reach, struct sl_err *err)
{
	if (!reach || !reach->egress)
		return 0;
	sl_egress_switch(reach->egress, true);
	return sl_egress_start(reach->egress, err);
}

int sl_reach_enter(const struct sl_reach *reach)
{
	if (reach->netns < 0)
		return 0;
	sigaction(SIGPIPE, &reach->pipe, NULL);
	return setns(reach->netns, CLONE_NEWNET) ? -errno : 0;
}

void sl_reach_tell(const struct sl_reach *reach)
{
	struct sl_egress_stats stats;

	if (!reach->egress)
		return;
	sl_egress_stats(reach->egress, &stats);
	if (stats.unleased)
		sl_log_warning("%llu answers of policy DNS were withheld: too many names or "
			       "addresses at a time",
			       (unsigned long long)stats.unleased);
	if (stats.strangers)
		sl_log_notice("%llu queries or connections came from nobody known, and got nothing",
			      (unsigned long long)stats.strangers);
	if (stats.dial_failed)
		sl_log_notice("%llu connections could not be made by the relay",
			      (unsigned long long)stats.dial_failed);
}
