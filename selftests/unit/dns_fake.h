/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The upstreams of dns_world.h: never wait, do one thing at a time. */
#ifndef SLUICE_TEST_DNS_FAKE_H
#define SLUICE_TEST_DNS_FAKE_H

#include <poll.h>

#include "dns_world.h"

void dns_fake_open(struct dns_fake *fake);
void dns_fake_close(struct dns_fake *fake);

/* Fills in what to wait for, at most 3; returns how many. */
nfds_t dns_fake_poll(const struct dns_fake *fake, struct pollfd *fds);
void dns_fake_serve(struct dns_fake *fake);

/* What the zone has for a query, or NULL: it is none. */
ldns_pkt *dns_fake_answer(struct dns_fake *fake, const uint8_t *data, size_t size);

#endif
