/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that become others: real shells, scripts and interpreters, and their lineage. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "system/expect.h"

TestSuite(chain, .init = world_up, .fini = world_down, .timeout = 120);

#define CURL "/usr/bin/curl"
#define BASH "/bin/bash"
#define ENV "/usr/bin/env"
#define PYTHON "/usr/bin/python3"

/* In bash itself, without another process: says who it is and connects. */
#define BASH_CONNECT "echo what=run pid=$$; exec 3<>/dev/tcp/127.0.0.1/$PORT; exec 3>&-\n"

static struct load server;

static void need(const char *program)
{
	if (access(program, X_OK))
		cr_skip_test("%s is not installed", program);
}

static unsigned int serve(void)
{
	return server_start(&server, "tcp-server --quiet --close-early --count 1000");
}

static void end(struct load *load, unsigned int live)
{
	expect_conserved(live);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	load_free(load);
}

/* The one socket of the process that wrote the only what=run line. */
static struct sl_sock sock_of_run(const struct load *load)
{
	const char *line = fact_next(load, NULL, "run");

	cr_assert_eq(fact_count(load, "run"), 1, "%s", load->text);
	return closed_by(fact_u64(line, "pid"), 0);
}

/* I1: the shell that says the pid is replaced by curl, which says the port. */
Test(chain, short_lived_curl_is_named)
{
	static const char *const lineage[] = { CURL, "/bin/sh", NULL };
	unsigned int port, n = 0;
	struct load load;

	need(CURL);
	port = serve();
	/* No reply or a reset (52, 56) is what this server makes of it. */
	load_shell(&load, INSIDE,
		   "i=0; while [ $i -lt 200 ]; do i=$((i+1)); sh -c '"
		   "printf \"what=run pid=$$ \"; exec " CURL " -s -o /dev/null "
		   "-w \"port=%%{local_port}\\n\" http://127.0.0.1:%u/'; "
		   "case $? in 52|56) ;; *) exit 1; esac; done",
		   port);
	for (const char *line = NULL; (line = fact_next(&load, line, "run")); n++) {
		struct sl_sock sock = closed_by(fact_u64(line, "pid"), fact_u64(line, "port"));

		expect_path(sock.owner.exe, CURL);
		expect_lineage(sock.owner.lineage, lineage);
		cr_expect_eq(sock.owner.ns_pid, sock.owner.tgid);
		cr_expect_str_eq(sock.owner.comm, "curl");
	}
	cr_expect_eq(n, 200);
	cr_expect_eq(counter(SL_COUNTER_SOCK_CONNECT), 200);
	end(&load, 0);
}

/* I2: env tries each directory with an exec of its own; those that fail are no images. */
Test(chain, only_the_exec_that_worked)
{
	char dir[PATH_MAX], found[PATH_MAX], set_path[2 * PATH_MAX], to[64];
	char *argv[] = { ENV, "-i", set_path, "found", "tail", "--server", to, NULL };
	const char *const lineage[] = { found, ENV, NULL };
	struct load load;
	struct sl_sock sock;

	snprintf(dir, sizeof(dir), "%s/not-a-directory", world.scratch);
	world_script("not-a-directory", "", dir);
	world_copy("found", found);
	snprintf(set_path, sizeof(set_path), "PATH=/none:%s:%s/none:%s:/bin", dir, world.scratch,
		 world.scratch);
	snprintf(to, sizeof(to), "127.0.0.1:%u", serve());
	load_exec(&load, INSIDE, argv);
	cr_assert_eq(load_end(&load), 0, "%s", load.text);
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	expect_lineage(sock.owner.lineage, lineage);
	cr_expect_eq(counter(SL_COUNTER_EXEC), 2, "%llu images",
		     (unsigned long long)counter(SL_COUNTER_EXEC));
	end(&load, 0);
}

/* I3 */
Test(chain, images_that_were_replaced_stay)
{
	static const char *const lineage[] = { CURL, PYTHON, ENV, "/bin/sh", NULL };
	struct load load;
	struct sl_sock sock;

	need(CURL);
	need(PYTHON);
	load_shell(&load, INSIDE,
		   "printf \"what=run pid=$$ \"; exec env " PYTHON " -I -c '"
		   "import os; os.execv(\"" CURL "\", [\"" CURL "\", \"-s\", \"-w\", "
		   "\"port=%%{local_port}\\n\", \"--retry\", \"0\", \"-m\", \"20\", "
		   "\"telnet://127.0.0.1:%u\"])' </dev/null",
		   serve());
	sock = sock_of_run(&load);
	expect_path(sock.owner.exe, CURL);
	expect_lineage(sock.owner.lineage, lineage);
	end(&load, 0);
}

/* I8: the kernel knew the script: it is the label of its interpreter's image. */
Test(chain, script_with_its_interpreter)
{
	static const char *const lineage[] = { BASH, "/bin/sh", NULL };
	char path[PATH_MAX];
	struct load load;
	struct sl_sock sock;
	struct sl_exe exe;

	need(BASH);
	world_script("script", "#!" BASH "\n" BASH_CONNECT, path);
	load_shell(&load, INSIDE, "cd %s; PORT=%u; export PORT; exec ./script", world.scratch,
		   serve());
	sock = sock_of_run(&load);
	expect_lineage(sock.owner.lineage, lineage);
	expect_path(sock.owner.script, path);
	exe_path(sock.owner.script, &exe);
	cr_expect_eq(exe.key.flags, SL_EXE_SCRIPT);
	cr_expect_eq(exe.key.ino, 0, "a label has no file");
	end(&load, 0);
}

/* Two execs: the second one, by env, is the script's doing as well. */
Test(chain, script_by_env)
{
	static const char *const lineage[] = { BASH, ENV, "/bin/sh", NULL };
	struct sl_lineage leaf, parent;
	char path[PATH_MAX];
	struct load load;
	struct sl_sock sock;

	need(BASH);
	world_script("script", "#!" ENV " bash\n" BASH_CONNECT, path);
	load_shell(&load, INSIDE, "PORT=%u; export PORT; exec %s", serve(), path);
	sock = sock_of_run(&load);
	expect_lineage(sock.owner.lineage, lineage);
	expect_path(sock.owner.script, path);
	cr_assert_eq(sl_lineage_by_id(world.set, sock.owner.lineage, &leaf), 0);
	cr_assert_eq(sl_lineage_by_id(world.set, leaf.key.parent, &parent), 0);
	expect_path(parent.key.script, path);
	end(&load, 0);
}

/* Refused by the kernel (ENOEXEC), read by the shell that tried: nothing but the shell. */
Test(chain, script_without_interpreter)
{
	static const char *const lineage[] = { BASH, "/bin/sh", NULL };
	char path[PATH_MAX];
	struct load load;
	struct sl_sock sock;

	need(BASH);
	world_script("script", BASH_CONNECT, path);
	load_shell(&load, INSIDE, "PORT=%u; export PORT; exec " BASH " -c '%s; exit'", serve(),
		   path);
	sock = sock_of_run(&load);
	expect_lineage(sock.owner.lineage, lineage);
	cr_expect_eq(sock.owner.script, 0);
	cr_expect_eq(counter(SL_COUNTER_EXEC), 2);
	end(&load, 0);
}

/* I13: what a rule for descendants will match. */
Test(chain, child_shows_its_parent)
{
	char parent[PATH_MAX], child[PATH_MAX];
	const char *const lineage[] = { child, parent, "/bin/sh", NULL };
	struct load load;
	struct sl_sock sock;

	load_shell(&load, INSIDE, "%s spawn-storm --count 1 -- %s tail --server 127.0.0.1:%u",
		   world_copy("parent", parent), world_copy("child", child), serve());
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	expect_owner(&sock.owner, fact_next(&load, NULL, "sock"), "owner");
	expect_lineage(sock.owner.lineage, lineage);
	end(&load, 0);
}
