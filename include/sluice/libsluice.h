/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libsluice: what a runtime of sandboxes, or a proxy, says to sluiced, the agent of sluice.
 * Link with `pkg-config --cflags --libs libsluice`. All of it is in this header.
 *
 * A runtime, for each sandbox:
 *
 *	sl_runtime_new(&rt, "my-runtime", "1.0");
 *	sl_runtime_connect(rt, NULL, 5000);		no common version: nothing was launched
 *	sl_runtime_plan(rt, policy, name, SL_HOLD_AUTO, &plan);
 *	sl_gate_new(&gate); sl_gate_set(gate, plan, 0);
 *	fork()
 *	  child:	enter the cgroup; sl_gate_pass(gate); execve()
 *	  parent:	sl_gate_listener(gate, 5000, &attach.listener_fd);
 *			sl_runtime_attach(rt, &attach);	the sandbox is there, whole
 *			sl_gate_open(gate);		the workload starts
 *	while it runs: poll sl_runtime_fd(rt), then sl_runtime_dispatch(rt)
 *	sl_runtime_detach(rt, SL_DETACH_KILL); sl_runtime_free(&rt); sl_gate_free(&gate);
 *
 * A proxy: new, connect, and sl_runtime_resolve_fd() for each connection it accepted.
 * A display: new, connect, sl_runtime_watch(), poll and dispatch.
 *
 * Rules
 * 1. Errors. Functions that can fail return 0 or a negative errno; what they give is
 *    untouched then. sl_runtime_error() and sl_runtime_hint() have the cause and the next
 *    step, for people. Those of sl_runtime_*(), beside the agent's own refusals, which
 *    changed nothing:
 *	-ENOTCONN		the agent was not reached in time; nothing was done
 *	-ECONNRESET, -ETIMEDOUT	the answer did not come: not known whether it was done.
 *				What is asked for a second time is no mistake
 *	-EPROTONOSUPPORT	no version in common, both ranges in the text
 *	-EKEYREJECTED		the agent knows no such session
 *	-ESHUTDOWN		the session is over, why is in the text
 *	-EPERM			who calls may not
 *	-EPROTO			no agent answers like this
 *	-EINVAL, -ENOMEM, …	as everywhere
 * 2. Loss is no end. A connection that breaks, late answers and refused tries make a session
 *    LOST, and dispatch recovers it: a new connection each time, an epoch above all before.
 *    Only the three of rule 1 that say so are final (SL_RUNTIME_OVER). How long a workload
 *    waits for its runtime is the session's grace time, and the agent's to count.
 * 3. Waiting. Calls wait for the timeout of sl_runtime_connect() at most; dispatch never
 *    waits. Calls on a lost session wait for its recovery first.
 * 4. Threads. The library has none of its own, no signal handler, and nothing global; it
 *    writes nothing to anybody's stdout or stderr. A handle is for one thread at a time, two
 *    handles are independent. After fork() the child uses the gate, and no other handle.
 * 5. Ownership. What is passed in is copied, descriptors duplicated; what is given out
 *    belongs to the handle until the next call with it, unless said otherwise. All
 *    descriptors are close-on-exec. Destructors take NULL and null the pointer.
 * 6. Freeing a handle with a live session leaves the session to its grace time: end or detach
 *    it first, or keep its token to go on in another process.
 * 7. Structs that are passed in start as their _INIT says: so they may grow. Texts that a
 *    workload chose (paths, names) are given as they are: escape them before a terminal.
 * 8. Times are milliseconds. Texts are UTF-8.
 */
#ifndef SLUICE_LIBSLUICE_H
#define SLUICE_LIBSLUICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sl_runtime;

enum sl_runtime_state {
	SL_RUNTIME_NONE,      /* no session was asked for, or it is detached */
	SL_RUNTIME_ATTACHING, /* asked for, the answer has not come */
	SL_RUNTIME_LIVE,      /* also of a watch, whose messages come */
	SL_RUNTIME_LOST,      /* dispatch is about to recover it */
	SL_RUNTIME_OVER       /* final: only detach is left */
};

/* `name` and `version` are the caller's own, for people. -EINVAL, -ENOMEM, -EMFILE. */
int sl_runtime_new(struct sl_runtime **out, const char *name, const char *version);
void sl_runtime_free(struct sl_runtime **rt);

/* Of the latest failure, also one in dispatch; "" without one. NULL: out of memory. */
const char *sl_runtime_error(const struct sl_runtime *rt);
const char *sl_runtime_hint(const struct sl_runtime *rt);

/*
 * Reaches the agent at `path` (NULL: /run/sluice/control.sock) and agrees on a version.
 * `timeout_ms`, above 0, is that of all later calls, too. Who is not root may only resolve by
 * descriptor afterwards.
 */
int sl_runtime_connect(struct sl_runtime *rt, const char *path, int timeout_ms);

/* --- what is to be polled --- */

/* One for the whole life of the handle: readable when dispatch has something to do. */
int sl_runtime_fd(const struct sl_runtime *rt);

/*
 * Sends signs of life, notices loss, recovers, and calls the watch's function. 0 also while
 * the session is lost; the errno when it is over. A try that failed is in sl_runtime_error().
 */
int sl_runtime_dispatch(struct sl_runtime *rt);

enum sl_runtime_state sl_runtime_state(const struct sl_runtime *rt);

/* --- a session --- */

enum sl_mode { SL_MODE_DEFAULT, SL_MODE_OBSERVE, SL_MODE_AUDIT, SL_MODE_ENFORCE };
enum sl_hold_calls { SL_HOLD_AUTO, SL_HOLD_AT_EXEC, SL_HOLD_AT_CONNECT };
/*
 * What becomes of a workload whose session ended. By default it stays frozen. REMOVED: it is
 * killed, and the sandbox with its cgroup goes as well.
 */
enum sl_end {
	SL_END_DEFAULT,
	SL_END_STAY_FROZEN,
	SL_END_GO_ON,
	SL_END_BE_KILLED,
	SL_END_BE_REMOVED
};
/* What becomes of processes that are left when a sandbox is detached. */
enum sl_detach { SL_DETACH_REFUSE, SL_DETACH_KILL, SL_DETACH_RELEASE };

/* What a policy needs of a gate; or-ed. */
enum sl_plan {
	SL_PLAN_EXEC = 1 << 0,
	SL_PLAN_CONNECT = 1 << 1,
	SL_PLAN_SEND = 1 << 2,
	SL_PLAN_LISTEN = 1 << 3,
	SL_PLAN_STRICT = 1 << 4
};

/*
 * Also tells whether `policy`, a text, is valid; `policy_name`, of a file, is for messages. Rules on
 * requests are: sl_runtime_attach() refuses them unless its egress has `inspect`.
 */
int sl_runtime_plan(struct sl_runtime *rt, const char *policy, const char *policy_name,
		    enum sl_hold_calls hold, unsigned int *plan);

#define SL_SILENCE_NEVER UINT32_MAX

enum sl_net_way { SL_NET_HOST, SL_NET_RELAY };
enum sl_dns_way { SL_DNS_AUTO, SL_DNS_POLICY, SL_DNS_HOST };

/* How a sandbox reaches what its policy names: `Egress` of the interface io.sluice. */
struct sl_runtime_egress {
	size_t size;
	enum sl_net_way net;
	enum sl_dns_way dns;
	int netns_fd; /* the sandbox's; -1: that of the process `mounts_of`, or the agent's */
	const char *const *upstreams; /* of policy DNS, ends with NULL; NULL: the agent's */
	/* Relay, each may be NULL: "ADDRESS:PORT" of proxies for all and for inspected streams. */
	const char *proxy, *inspect;
	uint32_t mark;      /* relay: of what the agent dials; 0: none */
	const char *device; /* the same, an interface; NULL: any */
};
#define SL_RUNTIME_EGRESS_INIT                                            \
	{                                                                 \
		.size = sizeof(struct sl_runtime_egress), .netns_fd = -1, \
	}

struct sl_runtime_attach {
	size_t size;
	const char *cgroup; /* an absolute path, or */
	int cgroup_fd;      /* its directory, open; -1 */
	const char *name;   /* of the sandbox; NULL: the cgroup's */
	const char *policy; /* its text; NULL: none, with SL_MODE_OBSERVE alone */
	/* For messages; an absolute path is read again when the agent reloads. NULL: none. */
	const char *policy_name;
	int listener_fd;   /* from a gate; -1: nothing can be held */
	unsigned int plan; /* what the listener's filter was made for */
	enum sl_mode mode;
	/* Nothing heard for so long is a loss; 0: 10,000. NEVER: only the connection's end is. */
	unsigned int silence_ms;
	unsigned int grace_ms; /* a loss for so long is the end; 0: 60,000 */
	bool run_on_loss;      /* not frozen until the recovery */
	enum sl_end end;
	/* A process whose mount namespace the policy's paths mean; 0: they mean the agent's. */
	pid_t mounts_of;
	/* NULL: by its namespace's own network and DNS; the agent looks names up every 30 s. */
	const struct sl_runtime_egress *egress;
};
#define SL_RUNTIME_ATTACH_INIT                                                               \
	{                                                                                    \
		.size = sizeof(struct sl_runtime_attach), .cgroup_fd = -1, .listener_fd = -1 \
	}

/*
 * Makes a sandbox of a cgroup, under a policy: all of it or nothing. -EBUSY: the handle has a
 * session or a watch. After -ETIMEDOUT it is not known: sl_runtime_recover() and dispatch go
 * on with it, free leaves what there is to its grace time.
 */
int sl_runtime_attach(struct sl_runtime *rt, const struct sl_runtime_attach *attach);

/*
 * Calls of one more filter, which a process has that is added to the sandbox, are answered as
 * those of the first. It is in the sandbox's cgroup already, and runs nothing before this is
 * back. -EAGAIN: a policy is just being loaded. After -ETIMEDOUT it is not to be asked again:
 * end the process, and with it its filter.
 */
int sl_runtime_add_listener(struct sl_runtime *rt, int listener_fd);

/* The agent's number for it, "" without one. */
const char *sl_runtime_sandbox(const struct sl_runtime *rt);

/* A secret: whoever has it and may talk to the agent can take the session over. "" */
const char *sl_runtime_token(const struct sl_runtime *rt);

/*
 * Goes on with the session of a process that is gone, or displaces one that is not.
 * `silence_ms` as it was attached with, 0: the default.
 */
int sl_runtime_resume(struct sl_runtime *rt, const char *token, unsigned int silence_ms);

/*
 * Waits `timeout_ms` for a lost session, trying at once; dispatch does the same without
 * waiting. 0: it is live. -ENOTCONN: not yet, and dispatch goes on. Others are final.
 */
int sl_runtime_recover(struct sl_runtime *rt, int timeout_ms);

/* Whole or not at all. */
int sl_runtime_update(struct sl_runtime *rt, const char *policy, const char *policy_name,
		      enum sl_mode mode);

/* Answered when it is so. A loss does not end a freeze, thaw does. */
int sl_runtime_freeze(struct sl_runtime *rt);
int sl_runtime_thaw(struct sl_runtime *rt);

/* The session's end, `reason` is kept and shown. The sandbox stays until it is detached. */
int sl_runtime_end(struct sl_runtime *rt, enum sl_end end, const char *reason);

/* The sandbox's end. -EBUSY: SL_DETACH_REFUSE, and processes are left. */
int sl_runtime_detach(struct sl_runtime *rt, enum sl_detach detach);

/*
 * The same by the id of a cgroup (name_to_handle_at(2), as stat's st_ino), for who has no
 * session with it: its token is lost, or it is over. 0 also when it is nobody's sandbox.
 * -EAGAIN: it is just being attached.
 */
int sl_runtime_detach_cgroup(struct sl_runtime *rt, uint64_t cgroup_id, enum sl_detach detach);

enum sl_status { SL_STATUS_UNKNOWN, SL_STATUS_TRUE, SL_STATUS_FALSE };

struct sl_runtime_report {
	size_t size;
	const char *type, *reason; /* a letter, then letters and digits */
	enum sl_status status;
	const char *message; /* for people; NULL: none */
	bool bad;            /* not as it should be */
};
#define SL_RUNTIME_REPORT_INIT                           \
	{                                                \
		.size = sizeof(struct sl_runtime_report) \
	}

/* A condition of the sandbox: equal ones are counted, bad ones in a row escalate. */
int sl_runtime_report(struct sl_runtime *rt, const struct sl_runtime_report *report);

/* --- looking --- */

/* Of a sandbox. Members may be added at its end. NULL: there is none. */
struct sl_runtime_session {
	const char *sandbox;
	const char *cgroup;
	const char *state;  /* prepared, live, lost, ended */
	const char *wanted; /* running, frozen, dead: what the state asks of the workload */
	const char *cause;  /* why it is lost */
	const char *reason; /* why it is over */
	bool freeze_asked;
	bool connected;
	bool enforced;
	bool gone;        /* watch: it was detached, this is the last of it */
	uint64_t lost;    /* watch: changes that were left out before this one */
	const char *json; /* all of it, `Session` of the interface io.sluice */
};

int sl_runtime_show(struct sl_runtime *rt, const struct sl_runtime_session **out);

/* `session` is valid until it returns; it must not use the handle. */
typedef void sl_runtime_watch_fn(const struct sl_runtime_session *session, void *data);

/*
 * All sandboxes as they are, then each change, by dispatch. A connection that breaks is made
 * anew, and all come once more. The handle is then for nothing else.
 */
int sl_runtime_watch(struct sl_runtime *rt, sl_runtime_watch_fn *fn, void *data);

/* Who is at an end of a connection. Members may be added at its end. NULL: not known. */
struct sl_runtime_owner {
	bool closed; /* its socket has been closed */
	pid_t pid;   /* 0: not known */
	uid_t uid;
	uint64_t start_ns; /* of the process, CLOCK_BOOTTIME: pid and this are never used again */
	const char *exe;   /* path of what the kernel executed */
	const char *comm;
	const char *sandbox; /* its name */
	const char *json;    /* `Socket` of the interface io.sluice, with the lineage */
};

/*
 * Of a connection that was accepted as `socket_fd`: who is at its other end; of another
 * socket: who owns it. -ENOENT: nobody's that is known. Needs no privilege.
 */
int sl_runtime_resolve_fd(struct sl_runtime *rt, int socket_fd,
			  const struct sl_runtime_owner **out);

/*
 * Who owns the socket that is bound to `local` and connected to `remote` (AF_INET, AF_INET6);
 * `type` is SOCK_STREAM or SOCK_DGRAM, `netns_cookie` as of SO_NETNS_COOKIE, 0: any.
 */
int sl_runtime_resolve_tuple(struct sl_runtime *rt, int type, const struct sockaddr *local,
			     const struct sockaddr *remote, uint64_t netns_cookie,
			     const struct sl_runtime_owner **out);

/* --- between fork() and execve() --- */

/*
 * Takes from the workload what could undo its mediation, installs the filter that holds its
 * calls, hands the listener to the parent, and keeps it from running until somebody
 * answers. Network sockets above descriptor 2 are closed, all others at execve(). Who has a gate
 * of his own (an OCI runtime) gives just the listener to attach.
 */
struct sl_gate;

enum sl_gate_flag {
	SL_GATE_IO_URING = 1 << 0,    /* allow io_uring, which leaves AF_VSOCK open */
	SL_GATE_PASS_SOCKET = 1 << 1, /* allow a network socket as descriptor 0 to 2 */
	SL_GATE_UNCONTAINED = 1 << 2, /* filter only: the caller contains the workload himself */
};

int sl_gate_new(struct sl_gate **out);
void sl_gate_free(struct sl_gate **gate);
const char *sl_gate_error(const struct sl_gate *gate);
const char *sl_gate_hint(const struct sl_gate *gate);

/* First, if at all: the child becomes this user; `name` is whose groups it gets, NULL: none. */
int sl_gate_user(struct sl_gate *gate, uid_t uid, gid_t gid, const char *name);

/* Before fork(). `plan`: of sl_runtime_plan(). -ENOTSUP: the kernel lacks what it needs. */
int sl_gate_set(struct sl_gate *gate, unsigned int plan, unsigned int flags);

/*
 * In the child, single-threaded and in its cgroup, right before execve(). Waits for
 * sl_gate_open(). On failure the child must exit: the parent has the reason.
 */
int sl_gate_pass(struct sl_gate *gate);

/* In the parent; *listener is the caller's. On failure the child does not go on: wait for it. */
int sl_gate_listener(struct sl_gate *gate, int timeout_ms, int *listener);

/* In the parent, when all is attached. Freeing the gate instead ends the child's wait. */
int sl_gate_open(struct sl_gate *gate);

#ifdef __cplusplus
}
#endif

#endif
