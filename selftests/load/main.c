/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sl-load: makes exactly known network traffic and process shapes, and prints the ground
 * truth, so that a test can compare it with what sluice recorded. A system test runs it
 * inside a sandbox, and its servers outside.
 *
 *	sl-load SUBCOMMAND [ARGUMENTS] [OPTIONS] [-- CMD ARGS]
 *
 * Output: one fact a line on stdout, "what=KIND key=value ...", in one write(2). In a
 * value every byte that is not printable ASCII, and blank, '=' and '%', is %XX.
 *
 *	what=listen   a server is ready; port= comes first, then who and the socket
 *	what=open     a socket that stays open for now (--hold, --disconnect, tcp-idle)
 *	what=sock     a socket at its end, exactly one for each, with its final counts
 *	what=peer     an accepted connection at its end, seen by the server
 *	what=ident    the same, from a client that identified itself: pid and start are
 *	              the client's words
 *	what=source   datagrams and bytes of one source, at the end of a server
 *	what=total    the sums of a server or of many connections
 *	what=proc     a process shape at its end, just before the tail command or connect
 *	what=step     an image or process on the way there
 *	what=child    a child that ended: pid, start, exit (its code, or 128 + signal)
 *	what=did      a call of the subcommand `do`: verb, arg, result, errno
 *	what=error    the step that failed, errno=NAME
 *	what=skip     feature= that the kernel lacks, errno=NAME
 *	what=timeout  the time limit was reached
 *
 * Who: pid and tid as /proc shows them, ns_pid from getpid(); start_ticks is field 22 of
 * /proc/PID/stat, start_ns the same in ns since boot: the real start is in
 * [start_ns, start_ns + 1 tick).
 * Socket: cookie (SO_COOKIE), family, type and protocol as numbers, local and remote as
 * "1.2.3.4:5" or "[::1]:5" ("-" when there is none); an IPv4-mapped address is shown as
 * the IPv4 one, and mapped=1. to= is the destination that was asked for.
 * Counts: sent, what the kernel accepted from this process; received, what it consumed;
 * peeked, what MSG_PEEK showed. Numbers of what the other side saw are the other side's.
 * errno: a name such as ECONNREFUSED, 0 for none; step: what failed.
 *
 * Exit: 0 ok, 1 the traffic failed, 2 usage, 77 the kernel lacks a feature. Everything
 * is bounded by --timeout (20 s, shared by all children and copies).
 *
 * A process shape ends with its tail: the command after "--", else a TCP connection to
 * --server, else nothing. Build it with -static: copies then run in a bare chroot.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/cleanup.h"
#include "load.h"
#include "proc.h"

static const struct sl_cmd *const tables[] = {
	sl_tcp_cmds,    sl_server_cmds,     sl_churn_cmds, sl_pair_cmds,
	sl_udp_cmds,    sl_udp_server_cmds, sl_raw_cmds,   sl_ping_cmds,
	sl_packet_cmds, sl_tail_cmds,       sl_exec_cmds,  sl_fork_cmds,
	sl_thread_cmds, sl_fd_cmds,         sl_do_cmds,    sl_race_cmds,
};

int sl_exit_code(int rc)
{
	switch (rc) {
	case 0:
		return SL_EXIT_OK;
	case -SL_EUSAGE:
		return SL_EXIT_USAGE;
	case -SL_ENOFEATURE:
		return SL_EXIT_SKIP;
	default:
		return SL_EXIT_FAIL;
	}
}

static const struct sl_cmd *find_cmd(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct sl_cmd *cmd = tables[i]; cmd->name; cmd++) {
			if (!strcmp(cmd->name, name))
				return cmd;
		}
	}
	return NULL;
}

static void help_cmd(const struct sl_cmd *cmd)
{
	printf("  %s%s%s [options]%s\n    %s\n", cmd->name, cmd->args ? " " : "",
	       cmd->args ? cmd->args : "", cmd->takes_tail ? " [-- CMD ARGS]" : "", cmd->help);
	sl_opts_help(cmd);
}

static void help_all(void)
{
	puts("usage: sl-load SUBCOMMAND [arguments] [options] [-- CMD ARGS]\n"
	     "\n"
	     "Prints one fact a line, \"what=KIND key=value ...\"; bytes outside printable\n"
	     "ASCII, blank, '=' and '%' are %XX in a value.\n"
	     "  what: listen open sock peer ident source total proc step child error skip "
	     "timeout\n"
	     "  keys: pid tid ns_pid start_ticks (1/CLK_TCK s since boot) start_ns cookie\n"
	     "        family type protocol local remote mapped to sent received peeked\n"
	     "        step errno (a name, 0 for none)\n"
	     "Exit: 0 ok, 1 traffic failed, 2 usage, 77 the kernel lacks a feature.\n"
	     "\n"
	     "subcommands:");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct sl_cmd *cmd = tables[i]; cmd->name; cmd++)
			help_cmd(cmd);
	}
}

static int help(const char *name)
{
	const struct sl_cmd *cmd;

	if (!name) {
		help_all();
		return SL_EXIT_OK;
	}
	cmd = find_cmd(name);
	if (!cmd)
		return sl_exit_code(sl_usage("no subcommand %s", name));
	help_cmd(cmd);
	return SL_EXIT_OK;
}

/*
 * LeakSanitizer asks this before it looks for leaks. It stops the process by tracing it, and
 * dies where a filter refuses that (strict binaries).
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return ptrace(PTRACE_PEEKUSER, -1, NULL, NULL) && errno == EPERM;
}

int main(int argc, char **argv)
{
	const struct sl_cmd *cmd;
	struct sl_opts o;
	int rc;

	if (argc < 2)
		return sl_exit_code(sl_usage("no subcommand; see sl-load help"));
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help"))
		return help(argv[2]);
	cmd = find_cmd(argv[1]);
	if (!cmd)
		return sl_exit_code(sl_usage("no subcommand %s; see sl-load help", argv[1]));
	rc = sl_opts_parse(&o, cmd, argc - 2, argv + 2);
	if (rc < 0)
		return sl_exit_code(rc);
	sl_deadline_arm(o.timeout_s);
	return sl_exit_code(cmd->run(&o));
}
