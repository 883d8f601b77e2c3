/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the resolve benchmark. Clients connect to a server, send what they know
 * of themselves and end; the server asks for the owner of the other end by its accepted
 * descriptor and compares. All run in one sandbox; what they share is struct resolve.
 *
 * Two kinds of spawner: the crowd makes clients as fast as it can, and the sampler makes
 * one when the server asks (a byte on `command`), while the crowd pauses: then a client
 * is accepted at once, which is the best a search of /proc can hope for.
 */
#ifndef SLUICE_BENCH_RESOLVE_H
#define SLUICE_BENCH_RESOLVE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "kernel/set.h"

#define RESOLVE_JOBS_MAX 64
#define RESOLVE_LISTENERS 16
/* Clients that may be on their way to the server: below its backlog. */
#define RESOLVE_WINDOW 2000

union resolve_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* What a client says of itself. */
struct resolve_truth {
	uint32_t pid; /* in its own pid namespace */
	uint32_t seq;
	uint64_t start_ticks; /* field 22 of its /proc/self/stat */
};

enum resolve_method {
	RESOLVE_ACCEPT,     /* by descriptor, right after accept() */
	RESOLVE_EXITED,     /* by descriptor, after the client's end was closed */
	RESOLVE_QUIET,      /* by descriptor, right after accept(), while the crowd pauses */
	RESOLVE_PROC,       /* the same clients, by /proc */
	RESOLVE_PROC_ALIVE, /* by /proc, of a client that waits: shows that the search works */
	RESOLVE_METHOD_MAX
};

/* Outcomes of one method. times[] has room for `room` clients, nanoseconds. */
struct resolve_result {
	uint64_t asked, unresolved, wrong;
	uint32_t *times;
	uint64_t room;
};

/* Bytes on `command`: what the sampler's next client does after it has sent. */
enum resolve_command { RESOLVE_GO = 'g', RESOLVE_WAIT = 'w' };

struct resolve {
	/* Set before the processes start. */
	struct sl_set *set;
	uint64_t clients;
	uint64_t proc_samples;
	unsigned int jobs;
	char exe[256];  /* of all processes here: the image that every answer must name */
	int command[2]; /* pipe, server to sampler */

	/* Set by the server before `ready`; descriptors are its own. */
	int listeners[RESOLVE_LISTENERS];
	union resolve_addr addrs[RESOLVE_LISTENERS];
	unsigned int listener_count;
	int ready; /* 1: it listens */

	/* Written by the processes, atomically where several do. */
	int stop;   /* 1: end early */
	int paused; /* the crowd waits */
	uint64_t started[RESOLVE_JOBS_MAX];
	uint64_t failed; /* clients that could not connect or send */
	int failed_errno;
	uint64_t served;
	uint64_t proc_entries; /* lines and descriptors that the last search read */
	uint64_t elapsed_ns;   /* of the crowd, pauses not counted */
	struct resolve_result results[RESOLVE_METHOD_MAX];
};

/*
 * Main functions of the processes (struct sl_child_spec.run), started in the sandbox; the
 * server first, the others once it is ready.
 */
int resolve_server(void *arg);  /* struct resolve */
int resolve_sampler(void *arg); /* the same */

struct resolve_job {
	struct resolve *resolve;
	unsigned int index;
};
int resolve_crowd(void *arg);

/* Field 22 of a process' stat file, by the file's path. -errno, -EPROTO. */
int resolve_start_ticks(const char *path, uint64_t *ticks);

/*
 * The process that holds the other end of a connection on this host, the way it is done
 * without sluice: the socket's inode by address from /proc/net/tcp or tcp6, then every
 * descriptor of every process. -ENOENT: not found. *entries counts what was read.
 */
int resolve_proc(int fd, struct resolve_truth *out, uint64_t *entries);

#endif
