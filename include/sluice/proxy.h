/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A transparent proxy in the way of a sandbox that has a network of its own to go out by. */
#ifndef SLUICE_PROXY_H
#define SLUICE_PROXY_H

#include <sluice/sock.h>

/*
 * Value of array `proxies`, by sandbox id: what takes the TCP connections that the policy
 * allows, with SL_GUARD_PROXY. Port 0: none for that family, whose connections are denied.
 */
struct sl_proxy {
	struct sl_endpoint v4;
	struct sl_endpoint v6;
};

#endif
