/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "do.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "truth.h"

static const struct sl_verb *const tables[] = {
	sl_socket_verbs,
	sl_entry_verbs,
	sl_leave_verbs,
};

int sl_do_addr(const char *arg, struct sl_addr *out)
{
	return sl_addr_parse(arg, out) < 0 ? sl_usage("do: '%s' is no address", arg) : 0;
}

long sl_do_use(struct sl_doer *doer, long fd)
{
	if (fd < 0)
		return fd;
	sl_cleanup_fd(&doer->fd);
	doer->fd = (int)fd;
	return 0;
}

static const struct sl_verb *find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct sl_verb *verb = tables[i]; verb->name; verb++) {
			if (strlen(verb->name) == len && !strncmp(verb->name, name, len))
				return verb;
		}
	}
	return NULL;
}

/* One "VERB" or "VERB=ARG", and its what=did line. */
static int do_one(struct sl_doer *doer, const char *word)
{
	size_t len = strcspn(word, "=");
	const struct sl_verb *verb = find(word, len);
	const char *arg = word[len] ? word + len + 1 : "";
	struct sl_line line;
	long rc;

	if (!verb)
		return sl_usage("do: no verb '%s'", word);
	rc = verb->run(doer, arg);
	if (rc <= -SL_ENOFEATURE)
		return (int)rc;
	sl_line_start(&line, "did");
	sl_line_add(&line, "verb", "%s", verb->name);
	sl_line_add(&line, "arg", "%s", arg);
	sl_line_u64(&line, "result", rc < 0 ? 0 : (uint64_t)rc);
	sl_line_errno(&line, "errno", rc < 0 ? (int)-rc : 0);
	sl_line_end(&line);
	return 0;
}

static int do_stdin(struct sl_doer *doer)
{
	char word[1024];
	int rc = 0;

	while (rc == 0 && fgets(word, sizeof(word), stdin)) {
		word[strcspn(word, "\n")] = '\0';
		rc = do_one(doer, word);
	}
	return rc;
}

static int do_all(const struct sl_opts *o)
{
	struct sl_doer doer = { .o = o, .fd = -1 };
	int rc = 0;

	for (int i = 0; rc == 0 && i < o->n_args; i++)
		rc = do_one(&doer, o->args[i]);
	if (rc == 0 && o->until_eof)
		rc = do_stdin(&doer);
	sl_cleanup_fd(&doer.fd);
	return rc;
}

const struct sl_cmd sl_do_cmds[] = {
	{ .name = "do",
	  .run = do_all,
	  .args = "VERB[=ARG]...",
	  .max_args = -1,
	  .options = "until-eof uring",
	  .help = "calls one after the other, on one current socket; what=did with the result of "
		  "each. --until-eof: more of them from stdin, one a line. socket=tcp (tcp6 udp "
		  "udp6 mptcp, or FAMILY.TYPE.PROTOCOL) adopt=FD bind=ADDR listen connect=ADDR "
		  "port drain accept disconnect sendto=ADDR send await-end lengths=ADDR ifaddrs source-route=ADDR routing-header=ADDR; "
		  "by other entries: int80-socket=tcp int80-connect=ADDR int80-sendto=ADDR "
		  "socketcall-connect=ADDR x32-connect=ADDR uring-socket=FAMILY.TYPE.PROTOCOL "
		  "uring-connect=ADDR uring-sendto=ADDR; leaving: cgroup=DIR netns userns "
		  "setns=FILE fork setuid=UID detach poke=PID mem=PID getfd=PID.FD attach=PID trace" },
	{ 0 },
};
