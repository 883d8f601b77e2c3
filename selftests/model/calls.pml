/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Held calls: keeper, a thread of the worker's broker, and a task whose calls are notified.
 * Part of session.pml, whose rules it refers to; see also broker/inflight.h.
 */

proctype Keeper()
{
	do
	:: atomic {
		/* Rule 9. */
		killed[gen] && !running && (!serving[gen] || faulty(EARLY_START)) ->
		gen = 1 - gen;
		killed[gen] = false;
		running = true
	}
	od
}

/* The thread of a killed worker stops at some step, not at once. */
proctype Broker(bit i)
{
start:
	serving[i];
	if
	:: atomic { busy && slot && !faulty(SKIP_TABLE) -> goto answer }
	/* A RECV that had not come back. */
	:: atomic { !(busy && slot) || faulty(SKIP_TABLE) -> busy = false }
	:: killed[i] -> goto out
	fi;
receive:
	if
	/* Rule 6. In the table before RECV: the kernel itself writes the id into the slot. */
	:: atomic { call == PENDING && !draining -> busy = !faulty(BUSY_LATE) }
	:: killed[i] -> goto out
	fi;
	if
	:: atomic {
		call == PENDING ->
		call = RECEIVED;
		slot = id;
		busy = busy && !faulty(CLEAR_EARLY)
	}
	:: atomic { call == IDLE -> busy = false; goto receive }
	:: killed[i] -> goto out
	fi;
answer:
	/* The kernel refuses one for an id that does not wait for it. */
	if
	:: atomic {
		(call == RECEIVED || faulty(KERNEL_TWICE)) && slot == id ->
		property(displaced, i == gen);
		property(answer, answers == 0);
		answers++;
		call = IDLE
	}
	:: slot != id || (call != RECEIVED && !faulty(KERNEL_TWICE))
	:: killed[i] -> goto out
	fi;
	if
	:: atomic { true -> busy = false; slot = 0; goto receive }
	:: killed[i] -> goto out
	fi;
out:
	atomic { serving[i] = false; goto start }
}

proctype Workload()
{
	released;
	do
	:: atomic {
		done < calls && !frozen ->
		property(whole, held);
		id++;
		answers = 0;
		call = PENDING
	}
		if
		:: atomic {
			call == IDLE && done < calls && !frozen ->
			property(answer, answers == 1);
			done++
		}
		:: done == calls
		fi
	:: done == calls -> break
	od
}
