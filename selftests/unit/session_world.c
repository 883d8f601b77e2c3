// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session_world.h"

#include <criterion/criterion.h>

#include <string.h>

#include "base/cleanup.h"

struct sl_record_new session_new(unsigned int number, uint64_t epoch)
{
	static const uint8_t sha256[SL_SHA256_LEN] = { 0x5a };
	struct sl_record_new wanted = {
		.epoch = epoch,
		.version = 1,
		.listener = 7000 + number,
		.holds = 3,
		.cgroup_id = 100 + number,
		.cgroup = "/sys/fs/cgroup/box",
		.policy_path = "/var/lib/sluice/policy.yaml",
		.policy_sha256 = sha256,
		.options = { .freeze_on_loss = true,
			     .silence_ms = SESSION_SILENCE_MS,
			     .grace_ms = SESSION_GRACE_MS },
	};

	memset(wanted.key, 0x11, sizeof(wanted.key));
	memcpy(wanted.key, &number, sizeof(number));
	return wanted;
}

void session_same(const struct sl_store_entry *a, const struct sl_store_entry *b)
{
	_cleanup_free_ char *text = NULL, *other = NULL;
	size_t len, other_len;

	cr_assert_eq(sl_store_print(&text, &len, a), 0);
	cr_assert_eq(sl_store_print(&other, &other_len, b), 0);
	cr_assert_eq(len, other_len);
	cr_assert_arr_eq(text, other, len);
}
