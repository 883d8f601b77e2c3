/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sl-load: what every part of the test workload shares.
 *
 * A subcommand is one row of a table (struct sl_cmd) in the file that implements it;
 * main.c lists the tables. Options are one table in opts.c; a subcommand names those
 * that it takes. A subcommand returns 0, -errno, -SL_ENOFEATURE or -SL_EUSAGE and
 * prints its ground truth with truth.h.
 */
#ifndef SLUICE_LOAD_LOAD_H
#define SLUICE_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "addr.h"

enum sl_exit {
	SL_EXIT_OK = 0,
	SL_EXIT_FAIL = 1,
	SL_EXIT_USAGE = 2,
	SL_EXIT_SKIP = 77,
};

/* Returned as negative numbers beside errnos; above every errno (MAX_ERRNO is 4095). */
#define SL_ENOFEATURE 5000
#define SL_EUSAGE 5001

#define SL_SERVERS_MAX 16
#define SL_TIMEOUT_S 20
/* Not given on the command line: the subcommand's own default holds. */
#define SL_UNSET UINT64_MAX

struct sl_opts {
	const char *cmd;
	struct sl_addr server[SL_SERVERS_MAX];
	unsigned int n_servers;
	struct sl_addr listen; /* len 0: not given, so are bind and then */
	struct sl_addr bind;
	struct sl_addr then;
	uint64_t bytes; /* SL_UNSET when not given, so are all numbers */
	uint64_t count;
	uint64_t rate;
	uint64_t jobs;
	uint64_t peers;
	uint64_t timeout_s;
	uint64_t seconds;
	uint64_t backlog;
	uint64_t fd;
	uint64_t proto;
	const char *via; /* NULL when not given, so are all texts */
	const char *recv;
	const char *mode;
	const char *connect;
	const char *kind;
	const char *uring;
	const char *ifname;
	const char *name;
	const char *dir;
	bool echo;
	bool close_early;
	bool fork;
	bool until_eof;
	bool no_accept;
	bool fastopen;
	bool half_close;
	bool rst;
	bool connect_only;
	bool v6;
	bool mapped;
	bool v4_on_v6;
	bool mptcp;
	bool disconnect;
	bool connected;
	bool cmsg;
	bool exit_at_once;
	bool identify;
	bool hold;
	bool quiet;
	bool hdrincl;
	bool own_netns;
	bool detach;
	bool copied;
	char **args; /* positional arguments */
	int n_args;
	char **tail; /* what followed "--", NULL-terminated; NULL when nothing did */
};

struct sl_cmd {
	const char *name;
	int (*run)(const struct sl_opts *o);
	const char *args; /* positional arguments as help shows them; NULL for none */
	int min_args;
	int max_args;        /* -1: no limit */
	bool takes_tail;     /* "-- CMD ARGS" is accepted */
	const char *options; /* names from the table in opts.c, separated by blanks */
	const char *help;
};

/* What process shapes do at their end, see tail.c; for `options` above. */
#define SL_TAIL_OPTIONS "server identify bytes count via hold dir "

extern const struct sl_cmd sl_tcp_cmds[];
extern const struct sl_cmd sl_server_cmds[];
extern const struct sl_cmd sl_churn_cmds[];
extern const struct sl_cmd sl_pair_cmds[];
extern const struct sl_cmd sl_udp_cmds[];
extern const struct sl_cmd sl_udp_server_cmds[];
extern const struct sl_cmd sl_raw_cmds[];
extern const struct sl_cmd sl_ping_cmds[];
extern const struct sl_cmd sl_packet_cmds[];
extern const struct sl_cmd sl_tail_cmds[];
extern const struct sl_cmd sl_exec_cmds[];
extern const struct sl_cmd sl_fork_cmds[];
extern const struct sl_cmd sl_thread_cmds[];
extern const struct sl_cmd sl_fd_cmds[];
extern const struct sl_cmd sl_do_cmds[];
extern const struct sl_cmd sl_race_cmds[];

/* Fills *o from the arguments after the subcommand. -SL_EUSAGE, told on stderr. */
int sl_opts_parse(struct sl_opts *o, const struct sl_cmd *cmd, int argc, char **argv);

/* Prints the options that a subcommand takes, one a line. */
void sl_opts_help(const struct sl_cmd *cmd);

/* A decimal number without sign or trailing bytes, at most `max`. 0 or -EINVAL. */
int sl_number(const char *text, uint64_t max, uint64_t *out);

static inline uint64_t sl_or(uint64_t given, uint64_t otherwise)
{
	return given == SL_UNSET ? otherwise : given;
}

/* Tells what is wrong with the command line; returns -SL_EUSAGE. */
int sl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The exit code for a subcommand's result. */
int sl_exit_code(int rc);

#endif
