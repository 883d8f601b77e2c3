/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A small internet for `sluice run`: the test's own network namespace with documentation
 * addresses on loopback, dnsmasq on 192.0.2.53 whose log is the truth of what was asked, and
 * servers. In mounts of the test's own: REACH_DIR, resolv.conf(5) and hosts(5), of which nothing is
 * left. No set, no cgroup: those are the run's.
 *
 * Order of use: reach_up() as .init; reach_policy(); reach_run() as often as it takes, and
 * what it printed, reach_asked(), reach_event(); reach_down() as .fini. Nothing here returns
 * an error: what can't be made fails the test.
 *
 *	one.reach.test, *.wild.test	192.0.2.10	HTTP on 8080; UDP echo on 5353; on 7000
 *	two.reach.test			192.0.2.11	the bytes of a connection are counted
 *	six.reach.test			2001:db8::10	to its end, and the number sent back
 *	hosted.reach.test		192.0.2.11, in hosts(5) only
 *	here.reach.test			127.0.0.1, there only
 *	app.search.test			192.0.2.10; search.test is searched, ndots is 5
 *	private.wild.test, p.bare.test	10.0.0.5
 *	own.reach.test			192.0.2.10
 *	mixed.wild.test			10.0.0.5, 192.0.2.10
 *	meta.reach.test			169.254.169.254
 *	loop.reach.test			127.0.0.1
 *
 * All of these are the machine's own addresses, which a rule has to list for a name (allowed_ips).
 */
#ifndef SLUICE_SYSTEM_REACH_H
#define SLUICE_SYSTEM_REACH_H

#include "system/cli.h"

#define REACH_DIR "/mnt"
#define REACH_EVENTS REACH_DIR "/events"
#define REACH_POLICY REACH_DIR "/policy.yaml"

enum reach_net { REACH_DIRECT, REACH_RELAY };

void reach_up(void);
void reach_down(void);

/* The DNS server of that internet, for who wants it to be silent. */
pid_t reach_dns_pid(void);

/* Makes a file in REACH_DIR. */
void reach_file(const char *name, const char *text, mode_t mode);
/* The file's text; freed by the caller. */
char *reach_read(const char *path);

/* The policy of the runs to come: the lines of YAML below network_policies. */
void reach_policy(const char *entries);

/*
 * `sluice run` under the policy with these options (up to a NULL) and `script` for /bin/sh. The
 * events go to REACH_EVENTS. reach_start() does not wait for its end.
 */
void reach_start(struct cli *cli, enum reach_net net, const char *const options[],
		 const char *script);
void reach_run(struct cli *cli, enum reach_net net, const char *script);
#define REACH_WITH(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Whether dnsmasq was asked for the name since reach_up(). */
bool reach_asked(const char *name);

/*
 * The first event of this kind ("close", "decision") of which `path` ("process.exe.path",
 * "name", …) has this text; NULL: there is none. Freed with json_object_put().
 */
struct json_object *reach_event(const char *kind, const char *path, const char *text);

/* Fails unless the line is in what the run printed. */
void reach_expect(const struct cli *cli, const char *line);

#endif
