// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/head_fault.h"

#include "relay/head.h"

/* The sentences say it as a number. */
_Static_assert(SL_RELAY_HEAD_MAX == 16384, "bytes of a head");

const struct sl_head_fault_text sl_head_faults[SL_HEAD_FAULT_MAX] = {
#define X(name, status, word, text) [SL_HEAD_##name] = { status, SL_SOCKS_FAILURE, word, text },
	SL_HEAD_FAULTS_HTTP(X)
#undef X
#define X(name, code, word, text) [SL_HEAD_##name] = { 400, SL_SOCKS_##code, word, text },
		SL_HEAD_FAULTS_SOCKS(X)
#undef X
};
