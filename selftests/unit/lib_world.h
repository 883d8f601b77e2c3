/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An agent that misbehaves on request, for tests of libsluice: a thread on a socket in a
 * directory of the test's own. It goes through a script, a fault for each call that comes;
 * after the script, and where that says so, it answers as an agent would.
 */
#ifndef SLUICE_TEST_LIB_WORLD_H
#define SLUICE_TEST_LIB_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <sluice/libsluice.h>

#define FAKE_TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define FAKE_SANDBOX "7"

/* An error as answer; `parameters` without braces. */
#define ERROR(name, parameters) "{\"error\":\"io.sluice." name "\",\"parameters\":{" parameters "}}"

enum fake_act {
	FAKE_OK,     /* as an agent would */
	FAKE_OK_END, /* the same, then the connection ends */
	FAKE_END,    /* no answer, the connection ends */
	FAKE_SILENT, /* no answer; should the client come again, the old one gets it then */
	FAKE_SAY,    /* `text` and the NUL */
	FAKE_HALF,   /* `text` without it, and the connection ends */
};

/* What happens at the next call of that method (without the interface; NULL: any). */
struct fake_step {
	const char *method;
	enum fake_act act;
	const char *text;
};

#define FAKE_CALLS 4096

struct fake_call {
	char method[32];
	char parameters[1024];
	uint64_t epoch;    /* 0: the call has none */
	unsigned int conn; /* counted from 1 */
	unsigned int fds;
};

/* `steps` end with act FAKE_OK and no method. Another script may follow, also before the end. */
void fake_start(const struct fake_step *steps);
void fake_script(const struct fake_step *steps);
bool fake_script_done(void);
void fake_stop(void);

/* Ends the connection. */
void fake_cut(void);

/* No connection is accepted any more, nor is there a socket to connect to. */
void fake_vanish(void);

const char *fake_path(void);

/* Calls until now; one of them, of which there is no change any more. */
unsigned int fake_calls(void);
const struct fake_call *fake_call(unsigned int i);
/* How many were of that method; one of them, from 0; the last, NULL when there is none. */
unsigned int fake_count(const char *method);
const struct fake_call *fake_nth(const char *method, unsigned int n);
const struct fake_call *fake_last(const char *method);

/* The descriptor that came first with the latest call that had any, the caller's. */
int fake_take_fd(void);

/* A connected handle, and one with a session, of `silence_ms`. */
struct sl_runtime *runtime_connected(int timeout_ms);
struct sl_runtime *runtime_live(int timeout_ms, unsigned int silence_ms);

/* Polls and dispatches until `done`, or fails the test after a long while. */
void runtime_until(struct sl_runtime *rt, bool (*done)(struct sl_runtime *rt));

#endif
