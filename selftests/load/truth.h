/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ground truth on stdout: one fact a line, "what=KIND key=value ...". A line is
 * written with one write(2) of at most PIPE_BUF bytes, so lines of several processes
 * never mix. In a value every byte that is not printable ASCII, and blank, '=' and '%',
 * is %XX.
 */
#ifndef SLUICE_LOAD_TRUTH_H
#define SLUICE_LOAD_TRUTH_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "addr.h"

struct sl_line {
	size_t len;
	char text[PIPE_BUF];
};

/* Who the caller is, as its /proc shows it; without /proc ticks are 0. */
struct sl_self {
	pid_t pid; /* in the pid namespace of /proc */
	pid_t tid;
	pid_t ns_pid;         /* in the own pid namespace */
	uint64_t start_ticks; /* /proc/PID/stat field 22, since boot */
};

/* What --identify sends as payload; host byte order. */
struct sl_ident {
	uint64_t start_ticks;
	uint32_t pid;
	uint32_t n;
};

/* A socket's facts, kept from when they could be read. */
struct sl_sock_note {
	uint64_t cookie;
	int family;
	int type;
	int protocol;
	struct sl_addr local;
	struct sl_addr remote;
};

void sl_line_start(struct sl_line *line, const char *what);
void sl_line_add(struct sl_line *line, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void sl_line_u64(struct sl_line *line, const char *key, uint64_t value);
void sl_line_addr(struct sl_line *line, const char *key, const struct sl_addr *addr);
/* The name of a positive errno, "0" for none. */
void sl_line_errno(struct sl_line *line, const char *key, int err);
/* pid, tid, ns_pid, start_ticks, start_ns (the tick's first nanosecond since boot). */
void sl_line_self(struct sl_line *line);
/* start_ticks and start_ns of another process. */
void sl_line_start_time(struct sl_line *line, uint64_t ticks);
void sl_line_note(struct sl_line *line, const struct sl_sock_note *note);
void sl_line_end(struct sl_line *line);

/* Reads what can be read of the socket now; what can't be stays as it was. */
void sl_sock_note(struct sl_sock_note *note, int fd);

void sl_self_read(struct sl_self *out);
/* Field 22 of /proc/PID/stat; works for a zombie too. 0 or -errno. */
int sl_start_ticks(pid_t pid, uint64_t *ticks);

/* Uses this directory as /proc from now on (for a chroot); -1 goes back. */
void sl_truth_proc_fd(int fd);

/* "what=proc": the caller, its credentials, comm and executable. */
void sl_truth_proc(void);
/* "what=error", and a line on stderr; returns -err. */
int sl_fail(const char *step, int err);
/* "what=skip": the kernel lacks `feature`, shown by this errno; returns -SL_ENOFEATURE. */
int sl_skip(const char *feature, int err);

#endif
