/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The protocol of a session between a sandbox runtime (the client) and the agent, for spin:
 * check.sh verifies it, and sees that each fault in the table below is found. Whoever
 * changes the agent's sessions changes this first. client.pml and worker.pml are its two
 * ends, calls.pml the held calls that must not suffer from either.
 *
 * Who stores what
 *	client	key, token, the last epoch it sent, whether it has released the workload
 *	record	a row for each sandbox, in memory that the keeper made and all workers map:
 *		state and epoch in one 64-bit word; what that relies on (key, token, cgroup,
 *		policy, reason) is written before the word
 *	keeper	the listeners, the in-flight table, the control socket that is listened on: a
 *		connect during a restart waits, it does not fail
 *	worker	connections, which one is the session's, timers, draining. All die with it
 *	kernel	cgroup.freeze, pinned links and maps: the guard holds whoever is dead
 *
 * States of a record
 *	FREE	   no session
 *	PREPARED   being attached; the workload is not released, so it can be undone
 *	LIVE	   attached, the workload runs. Without a connection: after a restart
 *	LOST	   no sign of the client; the workload is frozen, the grace runs
 *	ENDED	   for good; the row keeps the reason
 *
 *	FREE -> PREPARED -> LIVE	Attach
 *	LIVE -> LOST			the connection's end, or silence
 *	LOST, LIVE -> LIVE		Recover with a greater epoch
 *	LOST -> ENDED			the grace is over
 *	PREPARED -> FREE		found by a new worker
 *
 * A connection, as the client sees it; when it ends, or nothing comes: the same once more
 *	connect; Hello (component, versions) -> Welcome, or Incompatible
 *	Attach (key, epoch, cgroup, policy, listener) -> Ok (sandbox, epoch, token), or
 *	Recover (token, epoch) -> Ok, or one of Stale (the record's epoch), Unknown, Over
 *	requests, and heartbeats when there are none
 *
 * Rules
 *  1. Epoch: the client raises it for each Attach or Recover it sends, answered or not. The
 *     agent accepts each one greater than the record's, whatever it believes of the old
 *     connection, and refuses others as Stale. So requests and replies that were lost, and
 *     ends nobody has noticed, need no case of their own.
 *  2. Attach again: the key is random bits of the client's. An Attach with the key of a
 *     session is a Recover by somebody who never saw the token. The workload is released
 *     after Ok, not before.
 *  3. The record comes first: it is written before what follows from it (thaw, freeze,
 *     reply), LIVE after the keeper has the listener and the links are pinned.
 *  4. Only the session's own connection changes a session. A displaced one may still have
 *     messages under way: they are refused. Its end or error ends nothing but itself.
 *  5. The cgroup follows the record: frozen in LOST and ENDED, else not. Whoever waited looks
 *     at the record again before he freezes. Thawing is written unasked: the worker that
 *     froze may be dead.
 *  6. Before freezing, no call is received any more and those in hand are answered: a task
 *     whose call was received does not freeze.
 *  7. Silence and the end of the grace are concluded after all that has arrived was read,
 *     connections not yet accepted included: the agent may be what was late.
 *  8. A new worker undoes PREPARED, starts each grace anew (nobody could recover meanwhile),
 *     gives those LIVE the time of a silence to recover in, and does not freeze them: it was
 *     the agent that went away. Then it answers what the in-flight table holds.
 *  9. The keeper starts a worker when the one before is reaped, its threads too.
 * 10. Final for the client are Incompatible, Over (with the reason) and Unknown. All else, a
 *     refusal that it does not know too, means: once more, next epoch. There is no
 *     "already connected". After Stale it goes on above the epoch it was told.
 * 11. The reason is written before ENDED.
 *
 * Properties
 *	recovery   a client that comes back within the grace is never told that it is over
 *	frozen	   a connected, healthy session is not left frozen
 *	old	   what belongs to an old connection never touches the new one
 *	answer	   a call that was received is answered exactly once
 *	drained	   the workload is not frozen over a call in hand
 *	displaced  a worker that was replaced gives no verdict
 *	whole	   nothing is released before all of its mediation is in place
 *	reason	   no end without its reason
 *	version	   incompatible versions are refused before anything is made
 *	ends	   nobody waits for ever, and a client that stays away ends frozen
 *	cycle	   nothing goes round in circles
 *
 * What is left out, and why that is sound
 * - Time. A timer may fire at any step its rule allows, so each real timing is one of the
 *   runs. One assumption: a client that is not `slow` comes back within the grace. For it
 *   time passes only while there is no worker, which rule 8 must make up for.
 * - One session. Sessions share the worker and the keeper, whose death is here, and nothing
 *   else: key and token pick the row. Guessed tokens are a matter of their length.
 * - One call at a time in one slot. Slots have one writer each and share nothing.
 * - What a verdict says: the guard decides, whoever lives. Deciding is one step.
 * - Accepting is one with reading Hello: a worker that dies between them might as well have
 *   died after both.
 * - A transport keeps order. Where it is cut, what is under way is lost or comes late, each
 *   direction for itself; both ends notice when they like. An agent that cuts by mistake
 *   (silence of a healthy client) is among that.
 * - ENDED is shown with the end state "frozen"; "continue" and "kill" only change what is
 *   done then. A freeze that somebody asks for is one more bit ORed into `wanted`.
 * - The keeper's own death: see broker/keeper.h, rule 2. Workers of another version: the
 *   record has the version agreed on, and a worker that can't speak it must not start.
 * - Upsets (cuts, deaths, silences, slow clients) are bounded, so each run ends, and Monitor
 *   looks at where. Each costs one connection; nothing in the protocol counts them.
 */

/* The faults: check.sh reads this table. View, property that has to fail, what is wrong. */
#define F_NONE 0
#define F_REFUSE_SECOND 1 /* session recovery: Recover before the loss is noticed is refused */
#define F_OLD_END 2	  /* session old: the end of a displaced connection counts */
#define F_ANY_EPOCH 3	  /* session old: a late Recover displaces a newer one */
#define F_LATE_REQUEST 4  /* session old: a displaced connection's request is carried out */
#define F_STALE_FREEZE 5  /* session frozen: freezes after the drain without another look */
#define F_OWN_THAW 6	  /* session frozen: thaws only what this worker froze */
#define F_END_UNREAD 7	  /* session recovery: the grace ends while a Recover is unread */
#define F_GRACE_KEPT 8	  /* session recovery: time without a worker counts */
#define F_SAME_EPOCH 9	  /* session recovery: the client repeats the epoch that got no reply */
#define F_REPLY_FIRST 10  /* session whole: Ok before the record is LIVE */
#define F_KEEP_HALF 11	  /* session whole: a new worker takes PREPARED for attached */
#define F_REASON_LATE 12  /* session reason: ENDED before the reason is written */
#define F_MIXED 13	  /* session version: any version is welcome */
#define F_NO_END 14	  /* session ends: the grace never ends */
#define F_SKIP_TABLE 15	  /* calls answer: a new worker does not look at the table */
#define F_BUSY_LATE 16	  /* calls answer: a slot is taken after RECV */
#define F_CLEAR_EARLY 17  /* calls answer: a slot is freed before the answer */
#define F_NO_DRAIN 18	  /* calls drained: freezes over a call in hand */
#define F_KERNEL_TWICE 19 /* calls answer: a kernel that takes a second answer */
#define F_EARLY_START 20  /* calls displaced: the next worker starts before the last is reaped */
#define F_BUSY_LOOP 21	  /* cycles cycle: an event that stays ready */
#define F_ATTACH_ONCE 22  /* session recovery: an Attach whose reply was lost can't be repeated */

/* From pan's environment, so that it is compiled once. No calls: no workload, no broker. */
hidden byte fault, calls;
#define faulty(name) (fault == F_##name)

c_decl {
\#include <stdio.h>
\#include <stdlib.h>

static int setting(const char *name)
{
	const char *value = getenv(name);

	if (!value) {
		fprintf(stderr, "%s is not set\n", name);
		exit(2);
	}
	return atoi(value);
}
}

#define CONNS 4 /* more than upsets */
#define NOBODY CONNS

/* Never set: they are the properties' names in what pan prints. */
hidden byte P_recovery, P_frozen, P_old, P_answer, P_displaced, P_whole, P_reason, P_version,
	P_ends, P_drained;
#define property(name, x) assert((x) || P_##name)

mtype = { HELLO, ATTACH, RECOVER, UPDATE, BEAT };
mtype = { WELCOME, INCOMPATIBLE, OK, STALE, BUSY, UNKNOWN, OVER };
mtype = { FREE, PREPARED, LIVE, LOST, ENDED };
mtype = { TRYING, CONNECTED, GONE, TOLD_OVER, REFUSED };
mtype = { IDLE, PENDING, RECEIVED };

/* The world. */
byte upsets;
bool interrupt = true; /* a signal: a held call starts over, or its task is dead */
bool slow;	       /* the client may miss the grace, or never come back */
bool spoken;	       /* the agent speaks a version of the client's */

/* Connections: each is used once, in order. */
chan up[CONNS] = [2] of { mtype, byte };
chan down[CONNS] = [1] of { mtype };
bool over[CONNS]; /* cut, or closed by either end: both will see it */

/* Client. */
mtype client = TRYING;
byte cur, epoch;
bool released;

/* Record and keeper. */
mtype state = FREE;
byte kept_epoch;
byte policy; /* by the epoch in which it was sent */
bool reason;
bool past; /* the grace has run out */
bool held; /* the keeper has the listener, the links are pinned */
bool busy; /* the slot of the in-flight table */
byte slot;

/* Kernel. */
bool frozen;
mtype call = IDLE;
byte id, answers, done;

/* Workers: [gen] is the one that counts, the other may have threads left. */
bit gen;
bool running = true;
bool killed[2];
bool serving[2]; /* its broker runs */
bool accepted[CONNS];
byte session = NOBODY;
bool draining;

/* For `recovery` only: the connection with a Recover that was sent in time, unread. */
byte in_time = NOBODY;

#define wanted (state == LOST || state == ENDED)
#define all_read (empty(up[0]) && empty(up[1]) && empty(up[2]) && empty(up[3]))
#define ended(c) (accepted[c] && over[c] && empty(up[c]))

inline forget(c)
{
	if
	:: in_time == c -> in_time = NOBODY
	:: else
	fi
}

inline drop_up(c)
{
	do
	:: nempty(up[c]) -> up[c]?_, _
	:: empty(up[c]) -> break
	od
}

/* The agent's end. */
inline close(c)
{
	over[c] = true;
	accepted[c] = false;
	drop_up(c);
	forget(c)
}

inline reply(c, m)
{
	if
	:: over[c]
	:: else -> down[c]!m
	fi
}

inline send(m, v)
{
	if
	:: over[cur]
	:: else -> up[cur]!m, v
	fi
}

#include "client.pml"
#include "worker.pml"
#include "calls.pml"

proctype World()
{
	do
	:: atomic {
		upsets > 0 && (client == TRYING || client == CONNECTED) && !over[cur] ->
		upsets--;
		over[cur] = true;
		forget(cur);
		if
		:: true
		:: nempty(up[cur]) -> drop_up(cur)
		fi;
		if
		:: true
		:: nempty(down[cur]) -> down[cur]?_
		fi
	}
	:: atomic { upsets > 0 && running && !killed[gen] -> upsets--; killed[gen] = true }
	:: atomic { state == LOST && !past && (slow || !running) -> past = true }
	:: atomic {
		interrupt && call != IDLE ->
		interrupt = false;
		if
		:: true -> call = PENDING; id++
		:: true -> call = IDLE; done = calls
		fi
	}
	od
}

/* Where a run stops: nobody can do anything any more. */
proctype Monitor()
{
	atomic {
		timeout ->
		property(answer, call != RECEIVED && !busy);
		if
		:: client == CONNECTED ->
			property(recovery, state == LIVE && session == cur && kept_epoch == epoch);
			property(frozen, !frozen && !draining);
			property(old, policy == epoch);
			property(answer, call == IDLE && done == calls)
		:: client == GONE -> property(ends, state == FREE || (state == ENDED && frozen))
		:: client == TOLD_OVER -> property(ends, state == ENDED && frozen)
		:: client == REFUSED -> property(version, state == FREE && !released)
		:: else -> property(ends, false)
		fi
	}
}

init {
	atomic {
		c_code {
			fault = setting("FAULT");
			now.upsets = setting("UPSETS");
			calls = setting("CALLS");
		};
		if
		:: upsets > 0 -> slow = true; upsets--
		:: true
		fi;
		if
		:: spoken = true
		:: spoken = false
		fi;
		run Client();
		run Worker();
		run Keeper();
		if
		:: calls -> run Broker(0); run Broker(1); run Workload()
		:: else
		fi;
		run World();
		run Monitor()
	}
}
