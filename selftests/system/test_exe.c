/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which program a socket belongs to: path and flags. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "kernel/cgroup.h"
#include "system/expect.h"

TestSuite(exe, .init = world_up, .fini = world_down, .timeout = 60);

static struct sl_sock connected(struct load *load, const char *shape)
{
	struct load server;
	unsigned int port = server_start(&server, "tcp-server --quiet --count 100");
	const char *line;
	struct sl_sock sock;

	load_run(load, INSIDE, "%s --server 127.0.0.1:%u --dir %s", shape, port, world.scratch);
	line = fact_next(load, NULL, "sock");
	cr_assert_not_null(line);
	sock = closed_sock(fact_u64(line, "cookie"));
	expect_owner(&sock.owner, line, "owner");
	cr_expect_eq(sock.owner.ns_pid, fact_u64(line, "ns_pid"));
	expect_conserved(0);
	expect_no_faults();
	load_end(&server);
	load_free(&server);
	return sock;
}

static void expect_copy(unsigned int id, const char *name)
{
	char want[PATH_MAX];

	snprintf(want, sizeof(want), "%s/%s", world.scratch, name);
	expect_path(id, want);
}

Test(exe, chain_is_in_the_lineage)
{
	static const char *const names[] = { "c-with-a-name-longer-than-a-comm", "b", "a" };
	struct load load;
	struct sl_sock sock = connected(&load, "exec-chain a b c-with-a-name-longer-than-a-comm");
	unsigned int exes[8], n = lineage_exes(sock.owner.lineage, exes, 8);

	cr_assert_geq(n, 3);
	cr_expect_eq(exes[0], sock.owner.exe);
	for (int i = 0; i < 3; i++)
		expect_copy(exes[i], names[i]);
	load_free(&load);
}

Test(exe, unlinked)
{
	struct load load;
	struct sl_sock sock = connected(&load, "unlink-self");
	struct sl_exe exe;

	exe_path(sock.owner.exe, &exe);
	expect_copy(sock.owner.exe, "sl-load-unlinked");
	/* It had its name when it was executed. */
	cr_expect_not(exe.key.flags & SL_EXE_MEMFD);
	load_free(&load);
}

Test(exe, memfd)
{
	struct load load;
	struct sl_sock sock = connected(&load, "memfd-exec");
	struct sl_exe exe;

	exe_path(sock.owner.exe, &exe);
	cr_expect(exe.key.flags & SL_EXE_MEMFD);
	cr_expect_not(exe.key.flags & SL_EXE_DELETED);
	cr_expect_str_eq(exe.path, "/memfd:sl-load-memfd");
	load_free(&load);
}

/*
 * The one connection of a command line, in which $P is a copy of sl-load in the scratch
 * directory, $D that directory, $C the words that have sl-load connect.
 */
static struct sl_exe run_copy(const char *name, const char *line, struct sl_owner *owner)
{
	char copy[PATH_MAX], words[64];
	struct load server, load;
	struct sl_sock sock;
	struct sl_exe exe;

	world_copy(name, copy);
	snprintf(words, sizeof(words), "tail --server 127.0.0.1:%u",
		 server_start(&server, "tcp-server --quiet --count 100"));
	load_shell(&load, INSIDE, "P=%s; D=%s; C='%s'; export P D C; %s", copy, world.scratch,
		   words, line);
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	expect_owner(&sock.owner, fact_next(&load, NULL, "sock"), "owner");
	exe_path(sock.owner.exe, &exe);
	expect_conserved(0);
	expect_no_faults();
	if (owner)
		*owner = sock.owner;
	load_end(&server);
	load_free(&server);
	load_free(&load);
	return exe;
}

/* `global` is the path in the mount tree, `own` as the process' root sees it. */
static void expect_paths(const struct sl_exe *exe, const char *global, const char *own)
{
	char want[PATH_MAX];

	snprintf(want, sizeof(want), "%s%s", world.scratch, global);
	cr_expect_str_eq(exe->path, want);
	cr_expect_eq(exe->path_len, strlen(exe->path));
	if (own)
		snprintf(want, sizeof(want), "%s", own);
	cr_expect_str_eq(exe->path + exe->root_off, want);
}

static void expect_plain(const char *name, const char *line, const char *path)
{
	struct sl_exe exe = run_copy(name, line, NULL);

	expect_paths(&exe, path, NULL);
	cr_expect_eq(exe.key.flags, 0);
}

/* I4: however it was named, it is the file that the kernel opened. */
Test(exe, relative_path)
{
	expect_plain("prog", "mkdir $D/d; cd $D/d; exec ../d/.././prog $C", "/prog");
}

Test(exe, symbolic_link)
{
	expect_plain("prog", "ln -s $P $D/link; exec $D/link $C", "/prog");
}

/* A path of its own, and the same inode. */
Test(exe, hard_link)
{
	expect_plain("prog", "ln $P $D/hard; exec $D/hard $C", "/hard");
}

/* I7: longer than a comm, and than SL_COMM_LEN has room for. */
Test(exe, long_name)
{
	struct sl_owner owner;
	struct sl_exe exe =
		run_copy("a-name-of-exactly-forty-characters-so-it", "exec $P $C", &owner);

	expect_paths(&exe, "/a-name-of-exactly-forty-characters-so-it", NULL);
	cr_expect_str_eq(owner.comm, "a-name-of-exact");
}

#define IN_MOUNTS "exec unshare -m /bin/sh -ec '"

Test(exe, bind_mount)
{
	expect_plain("prog",
		     "" IN_MOUNTS "cd $D; mkdir d m; ln prog d/; mount --bind d m; "
		     "exec m/prog $C'",
		     "/m/prog");
}

/* A file mounted over another one. */
Test(exe, bind_mount_of_a_file)
{
	expect_plain("prog",
		     IN_MOUNTS ": >$D/over; mount --bind $P $D/over; "
			       "exec $D/over $C'",
		     "/over");
}

Test(exe, overlay)
{
	expect_plain("prog",
		     "" IN_MOUNTS "cd $D; mkdir l o m; ln prog l/; "
		     "mount -t tmpfs none o; mkdir o/u o/w; "
		     "mount -t overlay -o lowerdir=l,upperdir=o/u,workdir=o/w none m; "
		     "exec m/prog $C'",
		     "/m/prog");
}

/* All of the file system appears below the new root, so nothing is missing there. */
Test(exe, chroot)
{
	struct sl_exe exe = run_copy("prog",
				     IN_MOUNTS "mkdir $D/root; mount --rbind / $D/root; "
					       "exec chroot $D/root $P $C'",
				     NULL);
	char own[PATH_MAX], global[PATH_MAX];

	snprintf(own, sizeof(own), "%s/prog", world.scratch);
	snprintf(global, sizeof(global), "/root%s/prog", world.scratch);
	expect_paths(&exe, global, own);
	cr_expect_eq(exe.key.flags, 0);
}

/* The program is not below the root of who runs it: shown in full, and marked. */
Test(exe, outside_of_the_root)
{
	struct sl_exe exe = run_copy("prog",
				     IN_MOUNTS "mkdir $D/root; mount --rbind / $D/root; "
					       "exec 3<$P; exec chroot $D/root "
					       "/proc/self/fd/3 $C'",
				     NULL);

	expect_paths(&exe, "/prog", NULL);
	cr_expect_eq(exe.key.flags, SL_EXE_OUTSIDE);
	cr_expect_eq(exe.root_off, 0);
}

/* I5: the name it had, without " (deleted)", and a mark. */
Test(exe, deleted_before_exec)
{
	struct sl_exe exe = run_copy("prog",
				     "exec 3<$P; rm $P; "
				     "exec /proc/self/fd/3 $C",
				     NULL);

	expect_paths(&exe, "/prog", NULL);
	cr_expect_eq(exe.key.flags, SL_EXE_DELETED);
}

/* A mount that is in no namespace any more: a path from its own top. */
Test(exe, detached_mount)
{
	struct sl_exe exe = run_copy("prog",
				     "" IN_MOUNTS "cd $D; mkdir d m; ln prog d/; "
				     "mount --bind d m; exec 3<m/prog; umount -l m; "
				     "exec /proc/self/fd/3 $C'",
				     NULL);

	cr_expect_str_eq(exe.path, "/prog");
	cr_expect_eq(exe.key.flags, SL_EXE_DETACHED | SL_EXE_OUTSIDE);
}

Test(exe, detached_mount_of_a_file)
{
	struct sl_exe exe = run_copy("prog",
				     IN_MOUNTS ": >$D/over; mount --bind $P $D/over; "
					       "exec 3<$D/over; umount -l $D/over; "
					       "exec /proc/self/fd/3 $C'",
				     NULL);

	cr_expect_str_eq(exe.path, "/prog");
	cr_expect_eq(exe.key.flags, SL_EXE_DETACHED | SL_EXE_OUTSIDE);
}

/* An image from before the entry is read from its task, and has a name all the same. */
Test(exe, memfd_before_the_entry)
{
	struct load server, load;
	struct sl_process process;
	struct sl_lineage leaf;
	struct sl_exe exe;
	uint64_t pid;

	load_start(&load, OUTSIDE, "memfd-exec --name outside --hold --server 127.0.0.1:%u",
		   server_start(&server, "tcp-server --quiet --count 100"));
	load_await(&load, "open", 1);
	pid = fact_u64(fact_next(&load, NULL, "open"), "pid");
	cr_assert_eq(sl_cgroup_enter(world.cgroup, (pid_t)pid, NULL), 0);
	cr_assert(process_by_pid(pid, &process));
	exe_path(process.exe, &exe);
	cr_expect_str_eq(exe.path, "/memfd:outside");
	cr_expect(exe.key.flags & SL_EXE_MEMFD);
	cr_assert_eq(sl_lineage_by_id(world.set, process.lineage, &leaf), 0);
	cr_expect_eq(leaf.key.exe, process.exe);
	cr_expect_eq(leaf.key.flags, SL_LINEAGE_OUTSIDE);
	cr_expect_eq(load_end(&load), 0);
	expect_conserved(0);
	load_end(&server);
	load_free(&server);
	load_free(&load);
}
