/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What policy DNS has told the clients of one sandbox: which name has which address, until
 * when, and who asked. A lease lives as long as its TTL or any client that resolved it or any
 * socket that uses the address, whichever is longest: who resolves once and connects for an
 * hour keeps working.
 *
 *	sl_leases_new(&leases, &options);
 *	sl_leases_add(leases, name, &addr, ttl_s, &client, now_ms);	at each answer
 *	sl_leases_sweep(leases, now_ms);				every few seconds
 *	sl_leases_name(leases, &addr, &client, name);
 *	sl_leases_free(&leases);
 *
 * Rules
 * 1. Bounded: SL_LEASES leases, SL_LEASE_CLIENTS clients of each. A full table sweeps once,
 *    then refuses (counted): nothing that lives is pushed out. Names that ops->exact() does
 *    not know, which clients make up, have SL_LEASE_NAMES places of one address and leave an
 *    eighth of all to the others; of the rest one client has three quarters at most. Where
 *    they are too many for an address that no socket uses, one past its TTL is given up,
 *    though its client lives: who asked first. A lease with more clients than it can remember
 *    keeps the latest; the others keep it by their sockets alone.
 * 2. `changed` is called whenever the set of names of an address has become another one, so the
 *    guard can be told the whole: adding is refused when it fails.
 * 3. The clock is the caller's: milliseconds that never go back.
 * 4. Not locked.
 */
#ifndef SLUICE_USER_DNS_LEASE_H
#define SLUICE_USER_DNS_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/addr.h"

struct sl_leases;

#define SL_LEASES 16384
#define SL_LEASE_CLIENTS 8
#define SL_LEASE_NAMES 64     /* of one address, that are not exact */
#define SL_LEASE_NAME 254     /* bytes of a name with terminator */
#define SL_LEASE_MIN_MS 2000  /* a TTL of 0 still has to last until the client connects */
#define SL_LEASE_MAX_S 604800 /* a TTL beyond a week is one (RFC 8767, 4) */

/* A process key; all zero: nobody known. */
struct sl_lease_client {
	uint64_t start_ns;
	uint32_t tgid;
};

struct sl_leases_ops {
	bool (*client_alive)(void *arg, const struct sl_lease_client *client);
	/*
	 * Calls `use` for the remote address of every live socket of the sandbox. Asked at most
	 * once a sweep, and only when something has to be decided. -errno: all are in use.
	 */
	int (*addresses_in_use)(void *arg, void (*use)(void *ctx, const struct sl_addr *addr),
				void *ctx);
	/*
	 * The names of an address are these from now on; count 0: none. Whoever asked last first.
	 * When a lease is added an error refuses it.
	 */
	int (*changed)(void *arg, const struct sl_addr *addr, const char *const *names,
		       size_t count);
	/* Whether the policy has the name itself. NULL: it has none. */
	bool (*exact)(void *arg, const char *name);
};

struct sl_leases_options {
	const struct sl_leases_ops *ops;
	void *arg;
	size_t max; /* leases; 0: SL_LEASES */
};

int sl_leases_new(struct sl_leases **out, const struct sl_leases_options *options);
void sl_leases_free(struct sl_leases **leases);

/*
 * `client` may be NULL. -ENOSPC: full; -EDQUOT: the address has too many names that are not
 * exact; -ENAMETOOLONG; -ENOMEM; or what `changed` said. The table is as it was then.
 */
int sl_leases_add(struct sl_leases *leases, const char *name, const struct sl_addr *addr,
		  uint32_t ttl_s, const struct sl_lease_client *client, int64_t now_ms);

/*
 * Ends what nothing keeps. Returns the milliseconds until one may end by its TTL, -1: none
 * will; leases that only clients or sockets keep are looked at in each sweep.
 */
int sl_leases_sweep(struct sl_leases *leases, int64_t now_ms);

/*
 * The name (SL_LEASE_NAME bytes) that the client asked last of those with this address; what
 * anybody did, when the client is NULL or has asked none. False: no name has it.
 */
bool sl_leases_name(const struct sl_leases *leases, const struct sl_addr *addr,
		    const struct sl_lease_client *client, char *name);

/*
 * After a new policy: `changed` is called for all addresses. Returns its first error; all are
 * called.
 */
int sl_leases_tell(struct sl_leases *leases);

struct sl_lease {
	const char *name;
	struct sl_addr addr;
	int64_t expires_ms; /* by TTL; may be past */
	unsigned int clients;
	bool in_use; /* by a socket, at the last sweep that asked */
};

/* Calls `row` for each; returns what it returned, or 0. */
int sl_leases_each(const struct sl_leases *leases,
		   int (*row)(const struct sl_lease *lease, void *arg), void *arg);

enum sl_leases_count {
	SL_LEASES_COUNT_ADDED,
	SL_LEASES_COUNT_RENEWED,
	SL_LEASES_COUNT_ENDED,
	SL_LEASES_COUNT_FULL,     /* refused */
	SL_LEASES_COUNT_GIVEN_UP, /* made room for another name */
	SL_LEASES_COUNT_FORGOT,   /* clients that a lease had no room for */
	SL_LEASES_COUNT_MAX
};

uint64_t sl_leases_count(const struct sl_leases *leases, enum sl_leases_count which);
size_t sl_leases_live(const struct sl_leases *leases);

#endif
