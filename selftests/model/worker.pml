/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's worker, one event at a time. Part of session.pml, whose rules it refers to.
 * An atomic here is one store or one system call that others see: the worker may die before
 * and after each. Replies don't block: a client that does not read is cut off.
 */

inline lose()
{
	session = NOBODY;
	state = LOST
}

/* Before anything is read. The broker first answers what its predecessor had in hand. */
inline adopt()
{
	atomic {
		property(reason, state != ENDED || reason);
		/* Rule 8. */
		if
		:: state == PREPARED && !faulty(KEEP_HALF) -> held = false; state = FREE
		:: state == PREPARED && faulty(KEEP_HALF) -> state = LIVE
		:: else
		fi;
		past = past && faulty(GRACE_KEPT);
		draining = wanted;
		serving[gen] = (calls > 0)
	}
}

inline attach()
{
	atomic { property(version, spoken); state = PREPARED; kept_epoch = e }
	atomic { held = true }
	atomic {
		if
		:: faulty(REPLY_FIRST) -> reply(c, OK)
		:: else -> state = LIVE; session = c
		fi
	}
	atomic {
		if
		:: faulty(REPLY_FIRST) -> state = LIVE; session = c
		:: else -> reply(c, OK)
		fi
	}
}

/* Rule 1. The word of the record is one store, so it is old or new, never half. */
inline recover()
{
	atomic {
		/* Shut down, but what it sent before may yet be read. */
		if
		:: session != NOBODY -> property(old, session != cur); over[session] = true
		:: else
		fi;
		state = LIVE;
		kept_epoch = e;
		session = c
	}
	/* Rule 5. */
	atomic {
		if
		:: draining || !faulty(OWN_THAW) -> frozen = false
		:: else
		fi;
		draining = draining && faulty(STALE_FREEZE)
	}
	atomic { reply(c, OK) }
}

inline refuse(m)
{
	atomic { reply(c, m); close(c) }
}

/* Only the faulty protocols know this answer: rule 10. */
#define taken                                                                                      \
	((faulty(REFUSE_SECOND) && session != NOBODY) || (faulty(ATTACH_ONCE) && m == ATTACH))

/* A message `m` of connection `c`. */
inline handle()
{
	if
	:: m == HELLO && (e || faulty(MIXED)) -> atomic { reply(c, WELCOME) }
	:: m == HELLO && !(e || faulty(MIXED)) -> refuse(INCOMPATIBLE)
	:: m == ATTACH && state == FREE -> attach()
	:: m == RECOVER && state == FREE -> refuse(UNKNOWN)
	:: (m == ATTACH || m == RECOVER) && state != FREE ->
		if
		:: state == ENDED -> refuse(OVER)
		:: state != ENDED && e <= kept_epoch && !faulty(ANY_EPOCH) -> refuse(STALE)
		:: state != ENDED && (e > kept_epoch || faulty(ANY_EPOCH)) ->
			if
			:: taken -> refuse(BUSY)
			:: !taken -> recover()
			fi
		fi
	:: m == UPDATE ->
		/* Rule 4. */
		atomic {
			if
			:: c == session || faulty(LATE_REQUEST) ->
				property(old, e >= policy);
				policy = e
			:: else
			fi
		}
	:: m == BEAT
	fi
}

/* The end of connection `c`. Rule 4. */
inline hang_up()
{
	if
	:: c == session || (session != NOBODY && faulty(OLD_END)) ->
		property(old, c == session);
		lose()
	:: else
	fi;
	close(c);
	m = 0
}

/* Rule 11. */
inline end_session()
{
	atomic {
		property(recovery, slow && in_time == NOBODY);
		if
		:: faulty(REASON_LATE) -> state = ENDED
		:: else -> reason = true
		fi
	}
	atomic { reason = true; state = ENDED }
}

/* Its descriptors close; the broker's threads may take a little longer. */
inline die()
{
	c = 0;
	do
	:: c < CONNS ->
		if
		:: accepted[c] -> close(c)
		:: else
		fi;
		c++
	:: else -> break
	od;
	c = 0;
	e = 0;
	m = 0;
	session = NOBODY;
	draining = false;
	running = false
}

proctype Worker()
{
	byte c, e;
	mtype m;

start:
	running;
	{
		adopt();
next:
		atomic {
			c = 0;
			e = 0;
			m = 0;
			if
			:: up[0]?m, e -> c = 0
			:: up[1]?m, e -> c = 1
			:: up[2]?m, e -> c = 2
			:: up[3]?m, e -> c = 3
			:: ended(0) -> c = 0; hang_up()
			:: ended(1) -> c = 1; hang_up()
			:: ended(2) -> c = 2; hang_up()
			:: ended(3) -> c = 3; hang_up()
			/* Rule 7; after a restart silence is all that can be noticed. */
			:: state == LIVE && session == NOBODY && all_read -> lose()
			:: state == LIVE && session != NOBODY && !over[session] && all_read &&
			   upsets > 0 ->
				upsets--;
				close(session);
				lose()
			:: state == LOST && past && !faulty(NO_END) &&
			   (all_read || faulty(END_UNREAD)) -> goto end
			/* Rules 5 and 6. */
			:: wanted && (!draining || faulty(BUSY_LOOP)) -> draining = true
			:: draining && !frozen && (wanted || faulty(STALE_FREEZE)) &&
			   (!busy || faulty(NO_DRAIN)) ->
				property(drained, !(call == RECEIVED && busy));
				frozen = true
			fi;
			if
			:: m -> accepted[c] = true
			:: else -> goto next
			fi;
			if
			:: m != HELLO -> forget(c)
			:: else
			fi
		}
		handle();
		goto next;
end:
		end_session();
		goto next
	} unless { killed[gen] };
	atomic { die(); goto start }
}
