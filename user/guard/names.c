/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "guard/names.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "kernel/own_addr.h"
#include "policy/withheld.h"

/* Addresses of one name that count: a resolver may answer with many. */
#define ADDRESSES_MAX 64

struct name {
	const char *host; /* of the compiled policy */
	struct sl_addr addrs[ADDRESSES_MAX];
	unsigned int count;
};

struct sl_names {
	struct sl_compiled *compiled;
	struct sl_own *own;     /* NULL: nothing was looked up yet */
	struct sl_array names;  /* struct name */
	struct sl_array leased; /* struct sl_addr: what the guard was told */
	size_t wildcards;
};

static int add_name(const struct sl_name_row *row, void *arg)
{
	struct sl_names *names = arg;
	struct name *name = names->names.data;

	if (sl_host_is_wild(row->host)) {
		names->wildcards++;
		return 0;
	}
	/* Rows of one name on several ports follow one another or not: few enough to look. */
	for (size_t i = 0; i < names->names.count; i++)
		if (!strcmp(name[i].host, row->host))
			return 0;
	name = sl_array_add(&names->names);
	if (!name)
		return -ENOMEM;
	name->host = row->host;
	return 0;
}

void sl_names_free(struct sl_names **names)
{
	if (!*names)
		return;
	sl_own_free(&(*names)->own);
	sl_array_free(&(*names)->names);
	sl_array_free(&(*names)->leased);
	free(*names);
	*names = NULL;
}

int sl_names_new(struct sl_names **out, struct sl_compiled *compiled)
{
	_cleanup_(sl_names_free) struct sl_names *names = calloc(1, sizeof(*names));
	int rc;

	if (!names)
		return -ENOMEM;
	names->compiled = compiled;
	names->names = (struct sl_array)SL_ARRAY(struct name);
	names->leased = (struct sl_array)SL_ARRAY(struct sl_addr);
	rc = sl_compiled_names_each(compiled, add_name, names);
	if (rc)
		return rc;
	*out = TAKE_PTR(names);
	return 0;
}

static bool same_addr(const struct sl_addr *a, const struct sl_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void take(struct name *name, const struct addrinfo *info)
{
	struct sl_addr addr = { { 0, 0, htonl(0xffff), 0 } };

	if (info->ai_family == AF_INET)
		addr.be[3] = ((const struct sockaddr_in *)info->ai_addr)->sin_addr.s_addr;
	else if (info->ai_family == AF_INET6)
		memcpy(addr.be, &((const struct sockaddr_in6 *)info->ai_addr)->sin6_addr,
		       sizeof(addr.be));
	else
		return;
	for (unsigned int i = 0; i < name->count; i++)
		if (same_addr(&name->addrs[i], &addr))
			return;
	if (name->count < ADDRESSES_MAX)
		name->addrs[name->count++] = addr;
}

static void resolve(struct name *name, struct sl_names_report *report)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(name->host, NULL, &hints, &found);

	if (rc) {
		if (!report->failed++) {
			snprintf(report->first_failed, sizeof(report->first_failed), "%s",
				 name->host);
			snprintf(report->first_error, sizeof(report->first_error), "%s",
				 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
		}
		return;
	}
	/* A rotating answer shows a part at a time: what was seen stays until it is full. */
	if (name->count + 8 > ADDRESSES_MAX)
		name->count = 0;
	for (const struct addrinfo *info = found; info; info = info->ai_next)
		take(name, info);
	freeaddrinfo(found);
}

size_t sl_names_wildcards(const struct sl_names *names)
{
	return names->wildcards;
}

size_t sl_names_count(const struct sl_names *names)
{
	return names->names.count;
}

static enum sl_addr_kind kind_of(const struct sl_names *names, const struct sl_addr *addr)
{
	return sl_own_has(names->own, addr->be) ? SL_ADDR_OWN : SL_ADDR_REAL;
}

/* Those that no rule lets the name have. */
static void find_withheld(const struct sl_names *names, const struct name *name,
			  struct sl_names_report *report)
{
	for (unsigned int i = 0; i < name->count; i++) {
		if (sl_compiled_answer(names->compiled, name->host, &name->addrs[i],
				       kind_of(names, &name->addrs[i])))
			continue;
		if (!report->withheld++) {
			report->first_withheld = name->host;
			report->first_addr = name->addrs[i];
		}
	}
}

static int open_own(struct sl_names *names, struct sl_err *err)
{
	_cleanup_(sl_own_free) struct sl_own *own = NULL;
	int rc = sl_own_new(&own, 0, NULL, err);

	rc = rc ?: sl_own_add(own, -1, err);
	if (!rc)
		names->own = TAKE_PTR(own);
	return rc;
}

int sl_names_resolve(struct sl_names *names, struct sl_names_report *report, struct sl_err *err)
{
	struct name *name = names->names.data;
	int rc = names->own || !names->names.count ? 0 : open_own(names, err);

	if (rc)
		return rc;
	*report = (struct sl_names_report){
		.policy = sl_compiled_policy(names->compiled),
		.names = names->names.count,
		.wildcards = names->wildcards,
	};
	for (size_t i = 0; i < names->names.count; i++) {
		resolve(&name[i], report);
		find_withheld(names, &name[i], report);
		report->addresses += name[i].count;
	}
	return 0;
}

void sl_names_tell(const struct sl_names_report *report)
{
	if (report->failed)
		sl_log_warning("%zu of %zu names have no address now, first '%s': %s",
			       report->failed, report->names, report->first_failed,
			       report->first_error);
	if (report->withheld) {
		char text[SL_WITHHELD_TEXT];

		sl_log_warning("%zu of %zu addresses of names are not for them; '%s': %s",
			       report->withheld, report->addresses, report->first_withheld,
			       sl_withheld_text(text, sizeof(text), report->policy,
						report->first_withheld, 0, &report->first_addr));
	}
	if (report->wildcards)
		sl_log_warning("names with a wildcard match nothing yet: they need policy DNS");
}

static bool known(const struct sl_array *addrs, const struct sl_addr *addr)
{
	const struct sl_addr *have = addrs->data;

	for (size_t i = 0; i < addrs->count; i++)
		if (same_addr(&have[i], addr))
			return true;
	return false;
}

/* One lease, with all names that share the address. */
static int lease(struct sl_names *names, struct sl_set *set, __u32 policy_id,
		 const struct sl_addr *addr, struct sl_err *err)
{
	struct sl_array shared = SL_ARRAY(const char *);
	const struct name *name = names->names.data;
	const char **slot;
	int rc = 0;

	for (size_t i = 0; !rc && i < names->names.count; i++)
		for (unsigned int j = 0; j < name[i].count; j++) {
			if (!same_addr(&name[i].addrs[j], addr))
				continue;
			slot = sl_array_add(&shared);
			if (slot)
				*slot = name[i].host;
			else
				rc = sl_err_sys(err, ENOMEM, "names");
			break;
		}
	rc = rc
		     ?: sl_guard_lease(set, policy_id, names->compiled, addr, kind_of(names, addr),
				       shared.data, shared.count, err);
	sl_array_free(&shared);
	return rc;
}

int sl_names_apply(struct sl_names *names, struct sl_set *set, __u32 policy_id, struct sl_err *err)
{
	struct sl_array now = SL_ARRAY(struct sl_addr);
	const struct name *name = names->names.data;
	const struct sl_addr *old = names->leased.data;
	struct sl_addr *slot;
	int rc = 0;

	for (size_t i = 0; !rc && i < names->names.count; i++)
		for (unsigned int j = 0; !rc && j < name[i].count; j++) {
			if (known(&now, &name[i].addrs[j]))
				continue;
			rc = lease(names, set, policy_id, &name[i].addrs[j], err);
			slot = rc ? NULL : sl_array_add(&now);
			if (slot)
				*slot = name[i].addrs[j];
			else if (!rc)
				rc = sl_err_sys(err, ENOMEM, "names");
		}
	for (size_t i = 0; !rc && i < names->leased.count; i++)
		if (!known(&now, &old[i]))
			(void)sl_guard_unlease(set, policy_id, names->compiled, &old[i]);
	if (rc) {
		sl_array_free(&now);
		return rc;
	}
	sl_array_free(&names->leased);
	names->leased = now;
	return 0;
}
