/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Containers of runc with an agent and a `sluice oci serve` of the test's own.
 *
 * Order of use: oci_up() as .init; oci_config(), oci_runc(); oci_down() as .fini, which kills
 * and deletes what is left. Nothing here returns an error: what can't be made fails the test.
 */
#ifndef SLUICE_SYSTEM_OCI_H
#define SLUICE_SYSTEM_OCI_H

#include <stdbool.h>

#include "system/agent.h"
#include "system/cli.h"

struct oci {
	char listen[128], policies[128], state[128], bundle[128], root[128];
	struct cli serve; /* pid 0: it has ended */
};

extern struct oci oci;

void oci_up(void);
void oci_down(void);

/* The policies that are there: web (sl-load as the host has it), own and glob (/sl-l*d), bad. */
void oci_write(const char *dir, const char *name, const char *text);
#define OCI_OWN_POLICY(more, path)                                               \
	"version: 1\n" more "network_policies:\n"                                \
	"  own:\n"                                                               \
	"    endpoints: [{cidr: 127.0.0.1/32, port: 9, allow_reserved: true}]\n" \
	"    binaries: [{path: '" path "'}]\n"

/* Starts it again, and waits until it serves. */
void oci_serve_start(void);
/* Ends it; its log, valid until it is started again. */
const char *oci_serve_end(int signal);
/* A connection to it. */
int oci_dial(void);

/* What a container does, as JSON strings: one denied or refused connect, or nothing till it ends. */
#define OCI_CONNECT "\"/sl-load\",\"tcp-send\",\"--connect-only\",\"--server\",\"127.0.0.1:9\""
#define OCI_WAIT "\"/sl-load\",\"tcp-idle\",\"--count\",\"0\",\"--server\",\"127.0.0.1:9\""

/* The seccomp profile with this listenerPath; freed with json_object_put(). */
struct json_object *oci_profile(void);
/* config.json of a container; `policy` NULL: one without a profile. */
void oci_config(const char *container, const char *policy, const char *args);

/* The cgroup of a container. */
void oci_cgroup(char *out, size_t size, const char *container);

/* runc, both outputs in one; the caller frees it. A container's stdin does not end. */
void oci_runc(struct cli *cli, const char *const argv[]);
#define OCI_RUNC(cli, ...) oci_runc((cli), (const char *const[]){ __VA_ARGS__, NULL })
/* The same for one that must work. */
#define OCI_MUST(...)                                               \
	do {                                                        \
		struct cli oci_cli;                                 \
		OCI_RUNC(&oci_cli, __VA_ARGS__);                    \
		cr_assert_eq(oci_cli.status, 0, "%s", oci_cli.out); \
		cli_free(&oci_cli);                                 \
	} while (0)
/* Skips the test where a container does not run at all. */
void oci_need(void);

/* Starts a container that waits under a policy, and is attached when this returns. */
void oci_start(const char *container, const char *policy);
/* One more copy of sl-load in the file system of all containers: a file not seen before. */
void oci_copy(const char *name);
/* What a second process in it, which connects by such a copy, is told. */
void oci_exec(const char *container, const char *name, const char *errno_name);

/* Waits until the agent has so many sessions. */
void oci_await_sessions(size_t count);
/* Waits until so many containers are kept for the next one. */
void oci_await_kept(size_t count);

#endif
