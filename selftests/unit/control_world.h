/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A control service with methods of a test's own, over a socket in a directory of the test's own.
 *
 * Order of use: control_make() in the test, calls, control_unmake() as .fini. The server works in
 * the test's thread, when it is told to: control_serve().
 */
#ifndef SLUICE_TEST_CONTROL_WORLD_H
#define SLUICE_TEST_CONTROL_WORLD_H

#include <json-c/json.h>

#include "control/server.h"

extern char control_path[128];
extern int control_listener;
extern struct sl_server *control_server;
extern struct sl_request *control_kept;  /* the call that method Keep or Watch has not answered */
extern struct sl_client *control_latest; /* who has called */
extern unsigned int control_gone_count;
extern const char *control_cause; /* of the latest that has gone */

void control_make(struct sl_server_options options);
void control_unmake(void);

/* Connected. */
int control_dial(void);
/* Lets the server work until it has nothing to do. */
void control_serve(void);
/* Sends bytes, lets the server work, and reads all that it answers; ended with a NUL. */
size_t control_exchange(int fd, const void *data, size_t size, char *out, size_t room);

struct json_object *control_text(const char *key, const char *text);

#endif
