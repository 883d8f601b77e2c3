/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "guard/guard_private.h"
#include "guard/trust.h"
#include "policy/bits.h"

/* The kernel's spares come back within a tick or two. */
#define PUT_TRIES 200
#define PUT_PAUSE_MS 2

static const char *const mode_names[] = {
#define X(name, text) text,
	SL_GUARD_MODES(X)
#undef X
};

const char *sl_guard_mode_name(enum sl_guard_mode mode)
{
	return mode < ARRAY_SIZE(mode_names) ? mode_names[mode] : "unknown";
}

int sl_guard_put(struct sl_set *set, enum sl_map map, const void *key, const void *value,
		 __u64 flags)
{
	for (int i = 0;; i++) {
		if (!bpf_map_update_elem(sl_set_map_fd(set, map), key, value, flags))
			return 0;
		if (errno != ENOMEM || i == PUT_TRIES)
			return errno == ENOSPC ? -E2BIG : -errno;
		poll(NULL, 0, PUT_PAUSE_MS);
	}
}

struct load {
	struct sl_set *set;
	const struct sl_compiled *compiled;
	__u32 id;
	enum sl_path_table table;
	bool elsewhere; /* paths are not this process' own */
};

/* The key of a path's first `len` bytes; false when it is too long for the kernel. */
static bool path_key(struct sl_guard_path *key, __u32 policy, int table, const char *path,
		     size_t len)
{
	*key = (struct sl_guard_path){ .table = (__u8)table };
	if (len > sizeof(key->path))
		return false;
	memcpy(key->policy, &policy, sizeof(key->policy));
	memcpy(key->path, path, len);
	key->prefix_bits = 8 * (offsetof(struct sl_guard_path, path) - sizeof(__u32) + len);
	return true;
}

static int put_path(const struct sl_path_row *row, void *arg)
{
	const struct load *load = arg;
	struct sl_guard_path key;

	if (row->kind == SL_PATH_GLOB)
		return 0; /* user space matches these: see sl_compiled_needs() */
	/* An exact path is a prefix that ends with its terminator. It fits, or it is a glob. */
	if (!path_key(&key, load->id, load->table, row->text,
		      row->len + (row->kind == SL_PATH_EXACT)))
		return -ENAMETOOLONG;
	return sl_guard_put(load->set, SL_MAP_GUARD_PATHS, &key, row->grant, BPF_ANY);
}

void sl_guard_granted(struct sl_set *set, __u32 policy, enum sl_path_table table, const char *path,
		      struct sl_grant *out)
{
	size_t len = strnlen(path, SL_GUARD_PATH_MAX - 1) + 1;
	struct sl_guard_path key;

	/* Of a longer one the kernel reads as much: prefixes match it, exact paths can't. */
	if (!path_key(&key, policy, table, path, len) ||
	    bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_GUARD_PATHS), &key, out))
		memset(out, 0, sizeof(*out));
}

int sl_guard_grant(struct sl_set *set, __u32 policy, enum sl_path_table table, const char *path,
		   const struct sl_grant *more)
{
	struct sl_guard_path key;
	struct sl_grant before, grant;

	if (!path_key(&key, policy, table, path, strlen(path) + 1))
		return -ENAMETOOLONG;
	sl_guard_granted(set, policy, table, path, &before);
	grant = before;
	sl_grant_or(&grant, more);
	if (!memcmp(&grant, &before, sizeof(grant)))
		return 0;
	return sl_guard_put(set, SL_MAP_GUARD_PATHS, &key, &grant, BPF_ANY) ?: 1;
}

/*
 * The kernel knows files by their own path: what an exact path grants that leads there over
 * a link, as it stands now, is granted to that one as well. After all other rows, since it
 * adds to what these grant it.
 */
static int put_target(const struct sl_path_row *row, void *arg)
{
	const struct load *load = arg;
	char target[PATH_MAX];
	int rc;

	if (row->kind == SL_PATH_PREFIX || sl_path_kind(row->text) != SL_PATH_EXACT ||
	    !realpath(row->text, target) || !strcmp(target, row->text))
		return 0;
	sl_log_notice("'%s' of the policy is '%s'", row->text, target);
	rc = sl_guard_grant(load->set, load->id, load->table, target, row->grant);
	if (rc == -ENAMETOOLONG) {
		sl_log_warning("that is longer than %u bytes: a rule that is to match it has to "
			       "name it itself",
			       SL_GUARD_PATH_MAX - 1U);
		return 0;
	}
	return rc < 0 ? rc : 0;
}

static int put_ports(const struct load *load, __u8 transport, __u16 first, __u16 last, __u32 value)
{
	struct sl_port_prefix prefixes[SL_PORT_PREFIXES_MAX];
	size_t count = sl_port_prefixes(first, last, prefixes);
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++) {
		struct sl_guard_port key = {
			.prefix_bits = SL_GUARD_PORT_BITS(prefixes[i].bits),
			.policy = load->id,
			.transport = transport,
			.port_be = __builtin_bswap16(prefixes[i].port),
		};

		rc = sl_guard_put(load->set, SL_MAP_GUARD_PORTS, &key, &value, BPF_ANY);
	}
	return rc;
}

static int put_port(const struct sl_port_row *row, void *arg)
{
	return put_ports(arg, row->transport, row->first, row->last, row->port_class);
}

void sl_guard_dest_fill(struct sl_guard_dest *out, const struct sl_compiled *compiled,
			__u32 class_id)
{
	struct sl_class class = sl_compiled_class(compiled, class_id);

	*out = (struct sl_guard_dest){ .class_id = class_id };
	if (class.allowed)
		out->allowed = *class.allowed;
	if (class.flags & SL_CLASS_RESERVED)
		out->flags |= SL_GUARD_RESERVED;
	if (class.first_rule != SL_RULE_NONE)
		out->flags |= SL_GUARD_RULE;
}

static int put_prefix(struct sl_set *set, __u32 policy, __u32 port_class,
		      const struct sl_prefix *prefix, const struct sl_guard_dest *dest)
{
	struct sl_guard_dest_key key = {
		.prefix_bits = SL_GUARD_DEST_BITS(prefix->len),
		.policy = policy,
		.port_class = port_class,
	};

	memcpy(key.addr_be, prefix->addr.be, sizeof(key.addr_be));
	return sl_guard_put(set, SL_MAP_GUARD_DESTS, &key, dest, BPF_ANY);
}

static int put_dest(const struct sl_dest_row *row, void *arg)
{
	const struct load *load = arg;
	struct sl_guard_dest dest;

	sl_guard_dest_fill(&dest, load->compiled, row->class_id);
	return put_prefix(load->set, load->id, row->port_class, &row->prefix, &dest);
}

/*
 * So that a denial on a port without rules still says when the address is reserved. The same
 * for all policies: rows of none.
 */
static int put_reserved(struct sl_set *set)
{
	const struct sl_guard_dest dest = { .flags = SL_GUARD_RESERVED };
	const struct sl_range *range;
	int rc = 0;

	for (size_t i = 0; !rc && (range = sl_reserved_at(i)); i++)
		rc = put_prefix(set, 0, SL_PORT_CLASS_NONE, &range->prefix, &dest);
	return rc;
}

/* A listening port's class stands under a port class of its own: the class' id. */
static int put_listen(const struct sl_listen_row *row, void *arg)
{
	const struct load *load = arg;
	struct sl_guard_dest_key key = {
		.prefix_bits = 128,
		.policy = load->id,
		.port_class = SL_GUARD_LISTEN_CLASS | row->class_id,
	};
	struct sl_guard_dest dest;
	int rc;

	sl_guard_dest_fill(&dest, load->compiled, row->class_id);
	rc = sl_guard_put(load->set, SL_MAP_GUARD_LEASES, &key, &dest, BPF_ANY);
	return rc ? rc
		  : put_ports(load, SL_GUARD_LISTEN + row->transport, row->first, row->last,
			      key.port_class);
}

static int put_all(struct load *load, unsigned int sandbox)
{
	struct sl_guard_policy policy = {
		.script_bits = *sl_compiled_script_bits(load->compiled),
		.strict_bits = *sl_compiled_strict_bits(load->compiled),
		.sandbox = sandbox,
		.first_use = sl_compiled_policy(load->compiled)->first_use,
	};
	int rc = 0;

	policy.has_scripts = sl_bits_any(&policy.script_bits);
	for (load->table = 0; !rc && load->table < SL_PATHS_MAX; load->table++)
		rc = sl_compiled_paths_each(load->compiled, load->table, put_path, load);
	for (load->table = 0; !rc && !load->elsewhere && load->table < SL_PATHS_MAX; load->table++)
		rc = sl_compiled_paths_each(load->compiled, load->table, put_target, load);
	rc = rc ?: sl_compiled_ports_each(load->compiled, put_port, load);
	rc = rc ?: sl_compiled_dests_each(load->compiled, put_dest, load);
	rc = rc ?: sl_compiled_listens_each(load->compiled, put_listen, load);
	for (__u32 i = 0; !rc && i < sl_compiled_class_count(load->compiled); i++)
		sl_guard_rule_put(load->set, load->id, load->compiled, i);
	return rc ?: sl_guard_put(load->set, SL_MAP_GUARD_POLICIES, &load->id, &policy, BPF_ANY);
}

int sl_guard_read(struct sl_set *set, unsigned int sandbox, struct sl_guard *out)
{
	__u32 key = sandbox;

	return bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_GUARDS), &key, out) ? -errno : 0;
}

int sl_guard_write(struct sl_set *set, unsigned int sandbox, const struct sl_guard *guard)
{
	__u32 key = sandbox;

	return sl_guard_put(set, SL_MAP_GUARDS, &key, guard, BPF_ANY);
}

/* Ids go up for as long as the set lives: row 0, of no sandbox, remembers the last. */
static int new_id(struct sl_set *set, __u32 *out)
{
	struct sl_guard last;
	int rc = sl_guard_read(set, 0, &last);

	if (rc)
		return rc;
	if (last.policy == UINT32_MAX)
		return -EOVERFLOW;
	/* Before the first of all. */
	rc = last.policy ? 0 : put_reserved(set);
	if (rc)
		return rc;
	last.policy++;
	*out = last.policy;
	return sl_guard_write(set, 0, &last);
}

struct others {
	unsigned int sandbox;
	__u32 keep[2];
	struct sl_set *set;
};

/* Policies of a sandbox, but those to keep. */
static int delete_others(const struct others *others)
{
	_cleanup_array_ struct sl_array ids = { 0 };
	int rc = sl_map_find_rows(sl_set_map_fd(others->set, SL_MAP_GUARD_POLICIES), true,
				  offsetof(struct sl_guard_policy, sandbox), others->sandbox, &ids);

	for (size_t i = 0; !rc && i < ids.count; i++) {
		__u32 id = *(__u32 *)sl_array_at(&ids, i);

		if (id != others->keep[0] && id != others->keep[1])
			rc = sl_guard_delete(others->set, id);
	}
	return rc;
}

static int load_failed(int rc, struct sl_err *err)
{
	sl_err_sys(err, -rc, "can't load the policy into the kernel");
	if (rc == -E2BIG)
		return sl_err_hint(err,
				   "it has more rows than the maps of the guard take: split it, "
				   "or use wider prefixes");
	return rc;
}

/*
 * While `pending` names the policy, exec computes rows for it; those of the lineages that
 * were there before are computed here. Only then may it come into force.
 */
static int switch_to(const struct load *load, unsigned int sandbox,
		     const struct sl_guard_options *options)
{
	bool strict = sl_bits_any(sl_compiled_strict_bits(load->compiled));
	struct sl_guard guard;
	int rc = sl_guard_read(load->set, sandbox, &guard);

	if (rc)
		return rc;
	guard.pending = load->id;
	/* Costs something and decides nothing if the load fails. */
	if (strict)
		guard.flags |= SL_GUARD_STRICT;
	rc = sl_guard_write(load->set, sandbox, &guard);
	rc = rc ?: sl_guard_carry(load->set, sandbox, guard.policy, load->id, load->compiled);
	rc = rc ?: sl_guard_lineages(load->set, load->id, false);
	if (rc)
		return rc;
	guard.policy = load->id;
	guard.pending = 0;
	/* Only thaw ends a freeze. */
	if (guard.mode == SL_GUARD_FROZEN)
		guard.thawed = options->mode;
	else
		guard.mode = options->mode;
	guard.flags = (guard.flags & SL_GUARD_LASTING) | options->flags |
		      (strict ? SL_GUARD_STRICT : 0);
	guard.deny_errno = options->deny_errno ? options->deny_errno : EACCES;
	return sl_guard_write(load->set, sandbox, &guard);
}

static void unload(const struct load *load, unsigned int sandbox)
{
	struct sl_guard guard;

	if (!sl_guard_read(load->set, sandbox, &guard) && guard.pending == load->id) {
		guard.pending = 0;
		(void)sl_guard_write(load->set, sandbox, &guard);
	}
	(void)sl_guard_delete(load->set, load->id);
}

int sl_guard_load(struct sl_set *set, unsigned int sandbox, const struct sl_compiled *compiled,
		  const struct sl_guard_options *options, __u32 *policy_id, struct sl_err *err)
{
	struct load load = { .set = set, .compiled = compiled };
	struct others others = { .set = set, .sandbox = sandbox };
	struct sl_guard guard;
	__u32 own = 0;
	int rc = sl_guard_read(set, sandbox, &guard);

	rc = rc ?: sl_mount_ns(0, &own);
	if (!rc) {
		load.elsewhere = guard.mnt_ns != own;
		others.keep[0] = guard.policy;
		rc = delete_others(&others);
	}
	rc = rc ?: new_id(set, &load.id);
	if (rc)
		return load_failed(rc, err);
	rc = options->mode == SL_GUARD_OBSERVE ? 0 : sl_sandbox_guard(set, sandbox, err);
	if (rc)
		return rc;
	rc = put_all(&load, sandbox);
	if (!rc && options->prepare) {
		rc = options->prepare(set, load.id, options->arg, err);
		if (rc) {
			unload(&load, sandbox);
			return rc;
		}
	}
	rc = rc ?: switch_to(&load, sandbox, options);
	if (rc) {
		unload(&load, sandbox);
		return load_failed(rc, err);
	}
	*policy_id = load.id;
	return 0;
}

int sl_guard_mounts_of(struct sl_set *set, unsigned int sandbox, pid_t pid, struct sl_err *err)
{
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	rc = rc ?: sl_mount_ns(pid, &guard.mnt_ns);
	rc = rc ?: sl_guard_write(set, sandbox, &guard);
	return rc ? sl_err_sys(err, -rc, "can't tell the mounts of process %d", pid) : 0;
}

int sl_guard_mode(struct sl_set *set, unsigned int sandbox, enum sl_guard_mode mode,
		  struct sl_err *err)
{
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (!rc && !guard.policy && mode != SL_GUARD_OBSERVE && mode != SL_GUARD_FROZEN)
		return sl_err_set(err, ENOENT, "sandbox %u has no policy to %s", sandbox,
				  sl_guard_mode_name(mode));
	/* A policy that was loaded to observe has attached nothing that enforces. */
	if (!rc && mode != SL_GUARD_OBSERVE) {
		rc = sl_sandbox_guard(set, sandbox, err);
		if (rc)
			return rc;
	}
	if (!rc) {
		if (mode == SL_GUARD_FROZEN && guard.mode != SL_GUARD_FROZEN)
			guard.thawed = guard.mode;
		guard.mode = mode;
		rc = sl_guard_write(set, sandbox, &guard);
	}
	if (!rc && mode == SL_GUARD_OBSERVE)
		sl_sandbox_unguard(set, sandbox);
	return rc ? sl_err_sys(err, -rc, "can't change the mode of sandbox %u", sandbox) : 0;
}

int sl_guard_thaw(struct sl_set *set, unsigned int sandbox, struct sl_err *err)
{
	struct sl_guard guard;
	int rc = sl_guard_read(set, sandbox, &guard);

	if (!rc && guard.mode != SL_GUARD_FROZEN)
		return 0;
	return rc ? sl_err_sys(err, -rc, "can't read the mode of sandbox %u", sandbox)
		  : sl_guard_mode(set, sandbox, guard.thawed, err);
}

int sl_guard_forget(struct sl_set *set, unsigned int sandbox)
{
	const struct others others = { .set = set, .sandbox = sandbox };
	const struct sl_guard none = { 0 };
	int rc = sl_guard_write(set, sandbox, &none);

	rc = rc ?: delete_others(&others);
	return rc ?: sl_trust_forget(set, sandbox);
}
