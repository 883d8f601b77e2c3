/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "tail.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "stream.h"
#include "truth.h"

int sl_tail(const struct sl_opts *o)
{
	sl_truth_proc();
	if (o->tail) {
		execvp(o->tail[0], o->tail);
		return sl_fail("exec", errno);
	}
	return o->n_servers > 0 ? sl_stream_run(o, 0) : 0;
}

void sl_tail_argv(struct sl_argv *argv, const char *path, const struct sl_opts *o)
{
	sl_argv_start(argv, path, "tail");
	sl_argv_tail(argv, o);
}

void sl_tail_step(const char *name)
{
	struct sl_line line;

	sl_line_start(&line, "step");
	sl_line_self(&line);
	sl_line_add(&line, "name", "%s", name);
	sl_line_end(&line);
}

/* Also the entry of copies: a chroot leaves them the real /proc as a descriptor. */
static int tail(const struct sl_opts *o)
{
	if (o->fd != SL_UNSET)
		sl_truth_proc_fd((int)o->fd);
	return sl_tail(o);
}

static int sleep_for(const struct sl_opts *o)
{
	uint64_t seconds;

	if (sl_number(o->args[0], 86400, &seconds) < 0)
		return sl_usage("sleep: not a number of seconds");
	/* The time asked for is the bound, when none is given. */
	if (o->timeout_s == SL_UNSET)
		sl_deadline_arm(seconds + 5);
	sl_truth_proc();
	sl_sleep_ms((unsigned int)seconds * 1000);
	return 0;
}

const struct sl_cmd sl_tail_cmds[] = {
	{ .name = "tail",
	  .run = tail,
	  .takes_tail = true,
	  .options = SL_TAIL_OPTIONS "fd",
	  .help = "the end of every process shape: what=proc, then the command, or a connection to "
		  "--server (--identify, --bytes, --count), or nothing. --fd: a directory to use "
		  "as /proc" },
	{ .name = "sleep",
	  .run = sleep_for,
	  .args = "SECONDS",
	  .min_args = 1,
	  .max_args = 1,
	  .options = "",
	  .help = "what=proc, then sleeps" },
	{ 0 },
};
