// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "guard/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "guard/guard_private.h"

static struct sl_guard_trust_key trust_key(struct sl_set *set, unsigned int sandbox,
					   const char *path)
{
	return (struct sl_guard_trust_key){
		.path_hash = sl_set_path_hash(set, path),
		.sandbox = sandbox,
	};
}

int sl_trust_read(struct sl_set *set, unsigned int sandbox, const char *path,
		  uint8_t sha256[SL_SHA256_LEN])
{
	const struct sl_guard_trust_key key = trust_key(set, sandbox, path);
	struct sl_guard_trust row;

	if (bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_GUARD_TRUST), &key, &row))
		return -errno;
	if (strncmp(row.path, path, sizeof(row.path)) != 0)
		return -EEXIST;
	memcpy(sha256, row.sha256, SL_SHA256_LEN);
	return 0;
}

int sl_trust_first(struct sl_set *set, unsigned int sandbox, const char *path,
		   const uint8_t found[SL_SHA256_LEN], uint8_t trusted[SL_SHA256_LEN])
{
	const struct sl_guard_trust_key key = trust_key(set, sandbox, path);
	struct sl_guard_trust row = { .since_ns = sl_boottime_ns() };
	int rc = sl_trust_read(set, sandbox, path, trusted);

	if (rc != -ENOENT)
		return rc;
	if (snprintf(row.path, sizeof(row.path), "%s", path) >= (int)sizeof(row.path))
		return -ENAMETOOLONG;
	memcpy(row.sha256, found, SL_SHA256_LEN);
	/* Two that come first at once: the map decides, and both read what it says. */
	rc = sl_guard_put(set, SL_MAP_GUARD_TRUST, &key, &row, BPF_NOEXIST);
	return rc && rc != -EEXIST ? rc : sl_trust_read(set, sandbox, path, trusted);
}

/* --- accepting --- */

struct accept {
	struct sl_set *set;
	const char *path;
	const uint8_t *sha256;
	struct sl_trust_report *report;
	struct sl_array sandboxes; /* unsigned int */
	struct sl_array policies;  /* __u32: of those, whose rows have changed */
};

static bool has(const struct sl_array *ids, __u32 id)
{
	const __u32 *have = ids->data;

	for (size_t i = 0; i < ids->count; i++)
		if (have[i] == id)
			return true;
	return false;
}

static int add(struct sl_array *ids, __u32 id)
{
	__u32 *slot = has(ids, id) ? &id : sl_array_add(ids);

	if (!slot)
		return -ENOMEM;
	*slot = id;
	return 0;
}

static int accept_in_sandbox(struct accept *accept, const struct sl_guard_trust_key *key)
{
	struct sl_trust_report *report = accept->report;
	struct sl_guard_trust row;
	int fd = sl_set_map_fd(accept->set, SL_MAP_GUARD_TRUST);

	if (bpf_map_lookup_elem(fd, key, &row) ||
	    strncmp(row.path, accept->path, sizeof(row.path)) != 0)
		return 0;
	if (memcmp(row.sha256, accept->sha256, SL_SHA256_LEN) != 0) {
		memcpy(report->before, row.sha256, SL_SHA256_LEN);
		report->changed++;
	}
	report->sandboxes++;
	memcpy(row.sha256, accept->sha256, SL_SHA256_LEN);
	row.since_ns = sl_boottime_ns();
	return sl_guard_put(accept->set, SL_MAP_GUARD_TRUST, key, &row, BPF_ANY)
		       ?: add(&accept->sandboxes, key->sandbox);
}

static int accept_in_sandboxes(struct accept *accept)
{
	struct sl_guard_trust_key key = trust_key(accept->set, 0, accept->path);
	int rc = 0;

	for (key.sandbox = 1; !rc && key.sandbox < SL_SANDBOX_MAX; key.sandbox++)
		rc = accept_in_sandbox(accept, &key);
	return rc;
}

/* What a broker has found of files at the path is judged again. */
static int accept_file(const void *file, void *value, void *arg)
{
	const struct sl_guard_file *key = file;
	struct accept *accept = arg;
	int fd = sl_set_map_fd(accept->set, SL_MAP_GUARD_FILES);
	struct sl_guard_policy policy;
	struct sl_guard_grant row;

	(void)value; /* read anew: others prepare files meanwhile */
	if (key->path_hash != sl_set_path_hash(accept->set, accept->path) ||
	    bpf_map_lookup_elem(sl_set_map_fd(accept->set, SL_MAP_GUARD_POLICIES), &key->policy,
				&policy) ||
	    !policy.first_use || !has(&accept->sandboxes, policy.sandbox) ||
	    bpf_map_lookup_elem(fd, key, &row) || !(row.flags & SL_GUARD_FILE_HASHED))
		return 0;
	if (row.flags & SL_GUARD_FILE_PINNED) {
		accept->report->pinned++;
		return 0;
	}
	row.flags &= ~SL_GUARD_FILE_TRUSTED;
	if (!memcmp(row.found, accept->sha256, SL_SHA256_LEN))
		row.flags |= SL_GUARD_FILE_TRUSTED;
	memcpy(row.expected, accept->sha256, SL_SHA256_LEN);
	row.flags |= SL_GUARD_FILE_EXPECTED;
	return sl_guard_put(accept->set, SL_MAP_GUARD_FILES, key, &row, BPF_ANY)
		       ?: add(&accept->policies, key->policy);
}

int sl_trust_accept(struct sl_set *set, const char *path, const uint8_t sha256[SL_SHA256_LEN],
		    struct sl_trust_report *report)
{
	struct accept accept = {
		.set = set,
		.path = path,
		.sha256 = sha256,
		.report = report,
		.sandboxes = SL_ARRAY(__u32),
		.policies = SL_ARRAY(__u32),
	};
	const __u32 *policies;
	int rc;

	*report = (struct sl_trust_report){ 0 };
	/* Trust before rows: whoever prepares a file reads it again after putting its row. */
	rc = accept_in_sandboxes(&accept);
	rc = rc ?: sl_map_each(sl_set_map_fd(set, SL_MAP_GUARD_FILES), accept_file, &accept);
	policies = accept.policies.data;
	for (size_t i = 0; !rc && i < accept.policies.count; i++)
		rc = sl_guard_lineages(set, policies[i], true);
	sl_array_free(&accept.sandboxes);
	sl_array_free(&accept.policies);
	return rc ? rc : report->sandboxes ? 0 : -ENOENT;
}

struct found {
	struct sl_set *set;
	const struct sl_exe *exe;
	uint8_t *sha256;
};

static int found_by_policy(const void *policy, void *value, void *arg)
{
	const struct found *found = arg;
	struct sl_guard_grant row;

	(void)value;
	if (sl_file_by_exe(found->set, *(const __u32 *)policy, found->exe, &row) ||
	    !(row.flags & SL_GUARD_FILE_HASHED))
		return 0;
	memcpy(found->sha256, row.found, SL_SHA256_LEN);
	return 1;
}

int sl_trust_found(struct sl_set *set, const struct sl_exe *exe, uint8_t sha256[SL_SHA256_LEN])
{
	struct found found = { set, exe, sha256 };
	int rc = sl_map_each(sl_set_map_fd(set, SL_MAP_GUARD_POLICIES), found_by_policy, &found);

	return rc < 0 ? rc : rc ? 0 : -ENOENT;
}

int sl_trust_forget(struct sl_set *set, unsigned int sandbox)
{
	return sl_map_delete_rows(sl_set_map_fd(set, SL_MAP_GUARD_TRUST), false,
				  offsetof(struct sl_guard_trust_key, sandbox), sandbox);
}
