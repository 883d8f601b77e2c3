/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where traffic goes in the network namespace of a relay sandbox (bpf/steer.bpf.c). */
#ifndef SLUICE_STEER_H
#define SLUICE_STEER_H

#include <sluice/dns.h>

/* What an index of map `listeners` is made of. */
#define SL_STEER_V6 1
#define SL_STEER_UDP 2
#define SL_STEER_DNS 4

/* Index of map `listeners`: what takes connections and datagrams of this kind. */
enum sl_steer_which {
	SL_STEER_TCP_V4 = 0,
	SL_STEER_TCP_V6 = SL_STEER_V6,
	SL_STEER_UDP_V4 = SL_STEER_UDP,
	SL_STEER_UDP_V6 = SL_STEER_UDP | SL_STEER_V6,
	SL_STEER_DNS_TCP_V4 = SL_STEER_DNS,
	SL_STEER_DNS_TCP_V6 = SL_STEER_DNS | SL_STEER_V6,
	SL_STEER_DNS_UDP_V4 = SL_STEER_DNS | SL_STEER_UDP,
	SL_STEER_DNS_UDP_V6 = SL_STEER_DNS | SL_STEER_UDP | SL_STEER_V6,
	SL_STEER_MAX
};

#endif
