/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tests of sessions begin with. */
#ifndef SLUICE_TEST_SESSION_WORLD_H
#define SLUICE_TEST_SESSION_WORLD_H

#include "session/record.h"

#define SESSION_SILENCE_MS 1000
#define SESSION_GRACE_MS 5000

/* A session of client `number`, whose key, cgroup and policy follow from it. */
struct sl_record_new session_new(unsigned int number, uint64_t epoch);

#endif
