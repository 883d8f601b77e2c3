/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The runtime, or libsluice in it. Part of session.pml, whose rules it refers to. */

proctype Client()
{
	mtype m;
	bool unanswered;

again:
	atomic {
		if
		:: slow -> client = GONE; goto out
		:: true -> send(HELLO, spoken)
		fi
	}
	if
	:: atomic {
		down[cur]?m ->
		if
		:: m == INCOMPATIBLE -> client = REFUSED; over[cur] = true; goto out
		:: else -> assert(m == WELCOME); m = 0
		fi
	}
	:: atomic { over[cur] && empty(down[cur]) -> goto lost }
	fi;
	atomic {
		/* Rule 1: also when the last one got no reply. */
		if
		:: unanswered && faulty(SAME_EPOCH)
		:: else -> epoch++; unanswered = faulty(SAME_EPOCH)
		fi;
		if
		:: over[cur] || past
		:: else -> in_time = cur
		fi;
		send((released -> RECOVER : ATTACH), epoch)
	}
	if
	:: atomic {
		down[cur]?m ->
		if
		:: m == OK ->
			property(whole, held);
			client = CONNECTED;
			released = true;
			unanswered = false;
			m = 0
		:: else ->
			/* Rule 10, and that a right client never sees the others. */
			property(recovery, m == OVER && slow);
			property(reason, reason);
			client = TOLD_OVER;
			over[cur] = true;
			goto out
		fi
	}
	:: atomic { over[cur] && empty(down[cur]) -> goto lost }
	fi;
	atomic { send(UPDATE, epoch); send(BEAT, 0) }
	atomic { over[cur] && empty(down[cur]) -> goto lost }
lost:
	atomic {
		client = TRYING;
		cur++;
		property(old, cur < CONNS);
		goto again
	}
out:
	skip
}
