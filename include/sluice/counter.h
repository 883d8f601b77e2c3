/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Per-CPU counters, one row a sandbox; row 0 is what belongs to none. The total of a
 * counter is the sum over all rows.
 */
#ifndef SLUICE_COUNTER_H
#define SLUICE_COUNTER_H

#include <sluice/abi.h>

/* Class of a counter, as in the outcome classes: what a reader should make of it. */
enum sl_counter_class {
	SL_COUNTER_FLOW,  /* ordinary work; conservation is stated over these */
	SL_COUNTER_RACE,  /* expected, harmless */
	SL_COUNTER_FAULT, /* something is wrong or too small; deserves a look */
	SL_COUNTER_CLASS_MAX
};

/* X(NAME, class, "name", "what it means") */
#define SL_COUNTERS(X)                                                                            \
	X(PROC_ENTERED, FLOW, "proc_entered", "processes that became members other than by fork") \
	X(PROC_FORKED, FLOW, "proc_forked", "processes forked by members")                        \
	X(PROC_EXITED, FLOW, "proc_exited", "member processes whose last thread exited")          \
	X(EXEC, FLOW, "exec", "images executed by members")                                       \
	X(SOCK_CREATED, FLOW, "sock_created", "socket records created")                           \
	X(SOCK_ADOPTED, FLOW, "sock_adopted",                                                     \
	  "of those created, records in the socket's own storage")                                \
	X(ADOPTED_ENDED, FLOW, "adopted_ended", "of the adopted ones, those that were closed")    \
	X(SOCK_DELETED, FLOW, "sock_deleted", "recorded sockets that were closed")                \
	X(SOCK_CONNECT, FLOW, "sock_connect", "connect() calls that reached the hook")            \
	X(SOCK_ACCEPT, FLOW, "sock_accept", "connections accepted by a member's listener")        \
	X(SOCK_PEER_KNOWN, FLOW, "sock_peer_known",                                               \
	  "accepted connections whose other end is known")                                        \
	X(SOCK_EVICTED, FLOW, "sock_evicted",                                                     \
	  "records of closed sockets that made room for others")                                  \
	X(TUPLE_CREATED, FLOW, "tuple_created", "connections published by their tuple")           \
	X(TUPLE_DELETED, FLOW, "tuple_deleted", "published connections that have ended")          \
	X(CLOSED_KEPT, FLOW, "closed_kept", "records kept after the close of their socket")       \
	X(ALLOWED, FLOW, "allowed", "calls that the policy allowed")                              \
	X(DENIED, FLOW, "denied", "calls that the policy denied")                                 \
	X(REVOKED, FLOW, "revoked",                                                               \
	  "packets dropped: the policy no longer allows their connection")                        \
	X(NOT_LISTENING, FLOW, "not_listening",                                                   \
	  "packets dropped: no rule lets their socket listen")                                    \
	X(UNSOLICITED, FLOW, "unsolicited",                                                       \
	  "datagrams dropped: nothing was sent there, and no rule lets their socket listen")      \
	X(SOURCE_ROUTED, FLOW, "source_routed", "packets dropped for a route that they name")     \
	X(AUDITED, FLOW, "audited", "calls that the policy would have denied, and let pass")      \
	X(EVENT_SUBMITTED, FLOW, "event_submitted", "events put into the ring buffer")            \
	X(EVENT_WAKEUP, FLOW, "event_wakeup", "wake-ups of a sleeping consumer")                  \
	X(SOCK_DISCONNECT, RACE, "sock_disconnect", "sockets connected anew after a disconnect")  \
	X(CLOSED_DROPPED, RACE, "closed_dropped",                                                 \
	  "records not kept: live sockets have their slots")                                       \
	X(SOCK_OVERFLOW, RACE, "sock_overflow", "sockets whose slots were taken by live ones")     \
	X(TUPLE_OVERFLOW, RACE, "tuple_overflow", "connections whose bucket of tuples was full")  \
	X(EXE_RACE, RACE, "exe_race", "two processes interned one executable at once")            \
	X(LINEAGE_RACE, RACE, "lineage_race", "two processes interned one lineage at once")       \
	X(PATH_RETRY, RACE, "path_retry", "a path changed while it was read, and was read again") \
	X(PROC_ADOPTED, RACE, "proc_adopted",                                                     \
	  "a task's record was rebuilt from the map of processes")                                \
	X(NO_IDENTITY, FAULT, "no_identity", "a socket call by a task that is no known member")   \
	X(SOCK_UNSEEN, FAULT, "sock_unseen", "a socket used without a record of its creation")    \
	X(EVENT_LOST, FAULT, "event_lost", "events dropped because the ring buffer was full")     \
	X(TASK_NOMEM, FAULT, "task_nomem", "no memory for a task's record")                       \
	X(SOCK_NOMEM, FAULT, "sock_nomem", "no memory for an adopted socket's record")            \
	X(SOCKS_FULL, FAULT, "socks_full", "map of further live sockets full")                    \
	X(MORE_FULL, FAULT, "more_full", "map of sockets' further owners full")                   \
	X(PROCS_FULL, FAULT, "procs_full", "map of processes full")                               \
	X(EXES_FULL, FAULT, "exes_full", "map of executables full")                               \
	X(LINEAGES_FULL, FAULT, "lineages_full", "map of lineages full")                          \
	X(TUPLES_FULL, FAULT, "tuples_full", "map of tuples full")                                \
	X(PACKETS_FULL, FAULT, "packets_full", "map of AF_PACKET sockets full")                   \
	X(GUARD_FULL, FAULT, "guard_full", "map of lineages' policy bits full")                   \
	X(DECISIONS_FULL, FAULT, "decisions_full", "a decision could not be kept for its event")  \
	X(EXE_COLLISION, FAULT, "exe_collision", "too many executables with one path hash")       \
	X(EXE_READ, FAULT, "exe_read", "a task's executable could not be read")                   \
	X(SCRATCH_BUSY, FAULT, "scratch_busy", "no scratch buffer free")                          \
	X(PROG_MISSING, FAULT, "prog_missing", "a trampoline found no program behind it")         \
	X(MAP_NOMEM, FAULT, "map_nomem", "no memory for a row of a map that is not full")         \
	X(MAP_BUSY, FAULT, "map_busy", "a row could not be added, for another reason than room")  \
	X(PACKET_CREATED, FLOW, "packet_created",                                                 \
	  "of those created, records of AF_PACKET sockets")                                       \
	X(PROC_LEFT, FAULT, "proc_left",                                                          \
	  "members that left the cgroup: sockets they make elsewhere are not recorded")           \
	X(RELAY_UNREACHABLE, FLOW, "relay_unreachable",                                           \
	  "connections and flows that the relay could not make: see events `unreachable`")        \
	X(PROXY_BAD_REQUEST, FLOW, "proxy_bad_request",                                           \
	  "requests to the relay's explicit proxy that were malformed: their clients were told why")

enum sl_counter {
#define X(name, class, text, help) SL_COUNTER_##name,
	SL_COUNTERS(X)
#undef X
		SL_COUNTER_MAX
};

/* Value of map `counters` (per-CPU), keyed by sandbox id. */
struct sl_counters {
	__u64 n[SL_COUNTER_MAX];
	__u64 event_lost[16]; /* by enum sl_event_kind */
	__u64 denied[16];     /* by enum sl_reason; audited ones too */
};

#endif
