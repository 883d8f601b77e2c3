/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of sessions begin with. */
#ifndef SLUICE_TEST_SESSION_WORLD_H
#define SLUICE_TEST_SESSION_WORLD_H

#include "session/store.h"

#define SESSION_SILENCE_MS 1000
#define SESSION_GRACE_MS 5000

/* A session of client `number`, whose key, cgroup and policy follow from it. */
struct sl_record_new session_new(unsigned int number, uint64_t epoch);

/* Fails the test unless the two are written as the same text. */
void session_same(const struct sl_store_entry *a, const struct sl_store_entry *b);

#endif
