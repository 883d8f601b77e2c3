/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of egress/ share.
 *
 *	egress.c	making, threads, policies
 *	listen.c	sockets in the sandbox's namespace
 *	lease.c		leases into the guard
 *	hosts.c		hosts(5)
 *	resume.c	leases that a process before this one has given
 *	serve_dns.c	operations of policy DNS
 *	serve_relay.c	operations of the relay
 *	passage.c	one stream or flow on its way through it
 *	head.c		who it is, for proxies
 *	tell.c		decisions
 *	account.c	what clients of the relay asked, and what could not be made
 *
 * Locks: `lock` is over policies, leases and the pool; the compiled policy's own (sl_apply_lock)
 * is taken inside of it. What a loop has is its thread's.
 */
#ifndef SLUICE_USER_EGRESS_PRIVATE_H
#define SLUICE_USER_EGRESS_PRIVATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/array.h"
#include "dns/lease.h"
#include "dns/pool.h"
#include "dns/server.h"
#include "egress/egress.h"
#include "guard/ask.h"
#include "guard/dns.h"
#include "kernel/name.h"
#include "kernel/own_addr.h"
#include "kernel/steer.h"
#include "relay/relay.h"
#include "socket/source.h"

#define SL_EGRESS_LOOPS 4
#define SL_EGRESS_SEARCH 6 /* domains of resolv.conf(5) that count, as there */

/* A policy, and its id in the guard. */
struct sl_egress_policy {
	struct sl_apply *apply; /* NULL: none */
	__u32 id;
};

struct sl_passage;

/* One thread: a relay with its resolver; the first one serves DNS as well. */
struct sl_egress_loop {
	struct sl_egress *egress;
	struct sl_resolver *resolver;
	struct sl_dns *dns;
	struct sl_dns_ops dns_ops; /* its */
	struct sl_relay *relay;
	struct sl_view_source *source; /* texts of executables and lineages */
	TAILQ_HEAD(, sl_passage) passages;
	int epoll, wake;
	pthread_t thread;
	bool running;
	int64_t sweep_ms, hosts_ms;
	atomic_bool reconsider; /* the policy has changed */
};

struct sl_egress {
	struct sl_set *set;
	unsigned int sandbox;
	char name[SL_SANDBOX_NAME_MAX];
	bool relay;
	int netns; /* own descriptor; -1: direct */
	__u64 netns_cookie;
	struct sl_resolver_config upstreams;
	struct sockaddr_storage proxy, inspector;
	uint32_t mark;
	char device[SL_RELAY_DEVICE_MAX];
	unsigned int idle_ms;
	char search[SL_EGRESS_SEARCH][SL_LEASE_NAME];
	unsigned int search_count;
	char *hosts_path; /* NULL: none is read */

	struct sl_steer *steer;
	int listeners[SL_STEER_MAX]; /* relay: by enum sl_steer_which */
	int proxies[2];              /* relay: explicit proxy, IPv4 and IPv6 */
	int dns_fds[4];              /* direct: UDP and TCP of both families */

	pthread_mutex_t lock;
	struct sl_egress_policy now, next;
	struct sl_leases *leases;
	struct sl_array hosts; /* hosts.c */
	struct sl_pool *pool;  /* relay only */
	struct sl_naming *naming;
	struct sl_own *own; /* addresses of where it dials, or members do, and of the host */

	struct sl_egress_loop loops[SL_EGRESS_LOOPS];
	unsigned int loop_count;
	atomic_bool begun; /* a policy is in force */
	atomic_bool stop;
	atomic_ullong queries, refused_names, unleased, crowded, limited, lost, denied, dial_failed,
		strangers, streams, flows;
};

/* --- listen.c --- */

int sl_egress_listen(struct sl_egress *egress, struct sl_err *err);
void sl_egress_unlisten(struct sl_egress *egress);

/* --- lease.c --- */

extern const struct sl_leases_ops sl_egress_lease_ops;

/* Of an address that is or would be dialled, which is never a synthetic one. Any thread. */
enum sl_addr_kind sl_egress_kind(struct sl_egress *egress, const struct sl_addr *addr);
/* All leases, under a policy; `lock` is held. */
int sl_egress_lease_all(struct sl_egress *egress, struct sl_err *err);
/* Whether a policy in force, or about to be, has the name, as `has` says; `lock` is held. */
typedef bool (*sl_egress_has_fn)(const struct sl_compiled *compiled, const char *name);
bool sl_egress_has(const struct sl_egress *egress, const char *name, sl_egress_has_fn has);
/* Counts what found no room, by why; 0 is no error. */
void sl_egress_count_lease(struct sl_egress *egress, int rc);
/* The name of an address (SL_LEASE_NAME): the one that the client asked for. False: none. */
bool sl_egress_name(struct sl_egress *egress, const struct sl_addr *addr,
		    const struct sl_lease_client *client, char *name);

/* --- hosts.c --- */

/* Reads it, and leases what it says of names that a rule has. Any thread. */
void sl_egress_read_hosts(struct sl_egress *egress);
/* The addresses that it has for such a name, as of then; how many. Any thread. */
size_t sl_egress_hosts(struct sl_egress *egress, const char *name, struct sl_addr *addresses,
		       size_t max);

/* --- resume.c --- */

/* Names and their addresses as the kernel has them. Before any thread. */
int sl_egress_resume(struct sl_egress *egress);

/* --- serve_dns.c, serve_relay.c --- */

struct sl_dns_ops sl_egress_dns_ops(const struct sl_egress *egress);
extern const struct sl_relay_ops sl_egress_relay_ops;

/* --- account.c --- */

/* A look-up of policy DNS has failed, with this errno; `named`: a rule has the very name. */
void sl_egress_unresolved(struct sl_egress *egress, const struct sl_sock *client, const char *name,
			  bool named, int code);
/* What was sent to the explicit proxy was no request. */
void sl_egress_malformed(struct sl_egress *egress, enum sl_head_fault fault);

/* --- tell.c --- */

/* The policy in force now; `lock` is not held. */
__u32 sl_egress_policy(struct sl_egress *egress);
/* A decision on what a client of a record asked: `remote` may be empty, `name` NULL. */
void sl_egress_tell(struct sl_egress *egress, const struct sl_sock *client, __u16 protocol,
		    const struct sl_endpoint *remote, const char *name,
		    const struct sl_decision *decision, __u32 policy_id);

#endif
