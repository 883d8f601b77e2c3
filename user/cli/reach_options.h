/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a command reaches what its policy names (run/reach.h), as options of `run`. */
#ifndef SLUICE_USER_CLI_REACH_OPTIONS_H
#define SLUICE_USER_CLI_REACH_OPTIONS_H

#include "cli/options.h"
#include "run/reach.h"

/* The rows of a table whose struct of values has a struct sl_reach_options named `reach`. */
#define SL_REACH_OPTIONS(values)                                                                 \
	SL_OPTION(CHOICE, values, reach.net, "net", 0, NULL,                                     \
		  "with --policy: the host's network, or none but a relay to what the policy "   \
		  "allows (default: host)",                                                      \
		  .choices = sl_reach_net_names),                                                \
		SL_OPTION(CHOICE, values, reach.dns, "dns", 0, NULL,                             \
			  "with --policy: who answers for names: a DNS of the policy's own, or " \
			  "whom the host asks (default: auto, policy if it has names)",          \
			  .choices = sl_reach_dns_names),                                        \
		SL_OPTION(TEXT, values, reach.upstream, "upstream", 0, "ADDRESS[:PORT],…",       \
			  "whom the policy's DNS asks (default: /etc/resolv.conf)"),             \
		SL_OPTION(TEXT, values, reach.proxy, "proxy", 0, "ADDRESS:PORT",                 \
			  "hand all connections to this proxy: with --net relay who and "        \
			  "where to as well (PROXY protocol v2), else it is transparent, and "   \
			  "has one of IPv4, one of IPv6, or both with a comma"),                 \
		SL_OPTION(TEXT, values, reach.proxy_cgroup, "proxy-cgroup", 0, "CGROUP",         \
			  "where a transparent proxy runs, for it to learn where to "            \
			  "(SO_ORIGINAL_DST)"),                                                  \
		SL_OPTION(TEXT, values, reach.inspect, "inspect", 0, "ADDRESS:PORT",             \
			  "with --net relay: the same of those whose endpoints have rules on "   \
			  "requests")

#endif
