/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Digests of executables: the right bytes or a reason, never a wrong digest, never a wait. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit/digest_world.h"

TestSuite(digest, .init = digest_world_make, .fini = digest_world_remove, .timeout = 120);

static const char *now(const struct sl_exe *exe, int pid)
{
	struct sl_digest digest;

	cr_assert_eq(sl_digest_now(exe, pid, &digest), 0);
	return digest_text(&digest);
}

/* Copies a program that waits, so that it can be unlinked while it runs. */
static void copy_sleep(int to)
{
	_cleanup_fd_ int from = open("/bin/sleep", O_RDONLY | O_CLOEXEC);
	char buf[65536];
	ssize_t n;

	cr_assert_geq(from, 0);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		cr_assert_eq(write(to, buf, (size_t)n), n);
	cr_assert_eq(n, 0);
}

/* Runs what `exec_fd` refers to; returns when the new image is in place. */
static pid_t start_sleep(int exec_fd)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL }, *envp[] = { NULL };
	int ready[2];
	char unused;
	pid_t pid;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		fexecve(exec_fd, argv, envp);
		_exit(127);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &unused, 1), 0); /* closed by the exec */
	close(ready[0]);
	return pid;
}

static void stop_child(pid_t pid)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(digest, error_names)
{
	for (unsigned int i = 0; i < SL_DIGEST_ERROR_MAX; i++) {
		cr_assert_not_null(sl_digest_error_name(i));
		for (unsigned int j = 0; j < i; j++)
			cr_expect_str_neq(sl_digest_error_name(i), sl_digest_error_name(j));
	}
	cr_expect_str_eq(sl_digest_error_name(SL_DIGEST_ERROR_MAX), "unknown");
	cr_expect_str_eq(sl_digest_error_name((enum sl_digest_error) - 1), "unknown");
}

Test(digest, known_content)
{
	_cleanup_free_ char *million = malloc(1000001);
	_cleanup_free_ struct sl_exe *abc = NULL, *empty = NULL, *large = NULL;

	memset(million, 'a', 1000000);
	million[1000000] = '\0';
	put_file(in_dir("abc"), "abc");
	put_file(in_dir("empty"), "");
	put_file(in_dir("large"), million);
	abc = record(in_dir("abc"), 1);
	empty = record(in_dir("empty"), 2);
	large = record(in_dir("large"), 3);
	cr_expect_str_eq(now(abc, 0), SHA_ABC);
	cr_expect_str_eq(now(empty, 0), SHA_EMPTY);
	cr_expect_str_eq(now(large, 0), SHA_MILLION_A);
	/* A pid that runs something else, or nobody, does no harm. */
	cr_expect_str_eq(now(abc, getpid()), SHA_ABC);
	cr_expect_str_eq(now(abc, 0x7ffffff0), SHA_ABC);
	cr_expect_str_eq(now(abc, -1), SHA_ABC);
}

Test(digest, changed_between_record_and_open)
{
	_cleanup_free_ struct sl_exe *exe = NULL;
	char path[256];

	strcpy(path, in_dir("tool"));
	put_file(in_dir("new"), "abc");
	put_file(path, "abc");
	exe = record(path, 1);
	cr_assert_eq(rename(in_dir("new"), path), 0);
	cr_expect_str_eq(now(exe, 0), "mismatch", "replaced");

	free(exe);
	exe = record(path, 1);
	cr_assert_eq(truncate(path, 2), 0);
	cr_expect_str_eq(now(exe, 0), "mismatch", "truncated");

	free(exe);
	exe = record(path, 1);
	cr_assert_eq(truncate(path, 3), 0);
	cr_expect_str_eq(now(exe, 0), "mismatch", "grown");

	free(exe);
	exe = record(path, 1);
	touch_file(path);
	cr_expect_str_eq(now(exe, 0), "mismatch", "touched");

	free(exe);
	exe = record(path, 1);
	exe->key.dev++;
	cr_expect_str_eq(now(exe, 0), "mismatch", "on another device");
	cr_assert_eq(unlink(path), 0);
	cr_expect_str_eq(now(exe, 0), "gone");
}

/* Both when the record is of such a file, and when it took the place of one. */
Test(digest, no_regular_file_is_opened)
{
	_cleanup_free_ struct sl_exe *exe = NULL, *fifo = NULL, *directory = NULL, *null = NULL;
	char path[256];

	strcpy(path, in_dir("tool"));
	put_file(path, "abc");
	exe = record(path, 1);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkfifo(path, 0700), 0);
	fifo = record(path, 2);
	cr_expect_str_eq(now(exe, 0), "not-regular");
	cr_expect_str_eq(now(fifo, 0), "not-regular");
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	directory = record(path, 3);
	cr_expect_str_eq(now(exe, 0), "not-regular");
	cr_expect_str_eq(now(directory, 0), "not-regular");
	null = record("/dev/null", 4);
	cr_expect_str_eq(now(null, 0), "not-regular");
}

Test(digest, links_are_not_followed)
{
	_cleanup_free_ struct sl_exe *exe = NULL, *below = NULL;
	char real[256], path[256];

	strcpy(real, in_dir("real"));
	cr_assert_eq(mkdir(real, 0700), 0);
	put_file(in_dir("real/tool"), "abc");
	strcpy(path, in_dir("link"));
	cr_assert_eq(symlink(real, path), 0);
	below = record(in_dir("link/tool"), 1);
	cr_expect_str_eq(now(below, 0), "gone");
	cr_assert_eq(symlink("real/tool", in_dir("alias")), 0);
	exe = record(in_dir("real/tool"), 2);
	strcpy(exe->path, in_dir("alias"));
	exe->path_len = (unsigned short)strlen(exe->path);
	cr_expect_str_eq(now(exe, 0), "not-regular", "the link itself");
}

Test(digest, records_without_a_file)
{
	_cleanup_free_ struct sl_exe *exe = NULL;

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 1);
	exe->key.flags = SL_EXE_SCRIPT;
	cr_expect_str_eq(now(exe, 0), "no-file");
	exe->key.flags = SL_EXE_DELETED;
	cr_expect_str_eq(now(exe, 0), "gone");
	exe->key.flags = SL_EXE_MEMFD;
	cr_expect_str_eq(now(exe, 0), "memfd");
	exe->key.flags = 0;
	exe->size = SL_DIGEST_FILE_MAX + 1;
	cr_expect_str_eq(now(exe, 0), "too-large");
}

Test(digest, hostile_records)
{
	_cleanup_free_ struct sl_exe *exe = NULL;

	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 1);
	exe->root_off = 65535; /* beyond the path: the global one is used */
	cr_expect_str_eq(now(exe, getpid()), SHA_ABC);
	exe->path_len = 65535; /* ends at the terminator */
	cr_expect_str_eq(now(exe, 0), SHA_ABC);
	memset(exe->path, '/', SL_PATH_MAX); /* no terminator */
	cr_expect_str_neq(now(exe, 0), SHA_ABC);
	exe->path_len = 0;
	cr_expect_str_eq(now(exe, 0), "gone");
	strcpy(exe->path, "relative");
	exe->path_len = 8;
	cr_expect_str_eq(now(exe, 0), "gone");
}

Test(digest, unlinked_through_a_live_process)
{
	_cleanup_free_ struct sl_exe *exe = NULL, *same = NULL;
	char expected[2 * SL_SHA256_LEN + 1];
	_cleanup_fd_ int fd = -1;
	struct stat st;
	pid_t pid;
	int out;

	out = open(in_dir("tool"), O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	cr_assert_geq(out, 0);
	copy_sleep(out);
	close(out);
	same = record(in_dir("tool"), 1);
	strcpy(expected, now(same, 0));
	fd = open(in_dir("tool"), O_RDONLY | O_CLOEXEC);
	cr_assert_eq(unlink(in_dir("tool")), 0);
	pid = start_sleep(fd);
	cr_assert_eq(fstat(fd, &st), 0);
	exe = record_of_stat(&st, in_dir("tool"), 2);
	exe->key.flags = SL_EXE_DELETED;
	cr_expect_str_eq(now(exe, pid), expected);
	cr_expect_str_eq(now(same, pid), "mismatch", "the unlink moved the ctime");
	stop_child(pid);
	cr_expect_str_eq(now(exe, pid), "gone");
}

Test(digest, memfd_through_a_live_process)
{
	_cleanup_fd_ int fd = memfd_create("tool", MFD_CLOEXEC);
	_cleanup_free_ struct sl_exe *exe = NULL;
	char path[64];
	struct stat st;
	pid_t pid;
	int readable;

	cr_assert_geq(fd, 0);
	copy_sleep(fd);
	/* Not executable while it is open for writing. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(readable, 0);
	close(fd);
	fd = readable;
	pid = start_sleep(fd);
	cr_assert_eq(fstat(fd, &st), 0);
	exe = record_of_stat(&st, "memfd:tool", 1);
	exe->key.flags = SL_EXE_MEMFD;
	cr_expect_eq(strlen(now(exe, pid)), 2 * SL_SHA256_LEN);
	stop_child(pid);
	cr_expect_str_eq(now(exe, pid), "memfd");
}

Test(digest, below_the_root_of_a_process)
{
	_cleanup_free_ struct sl_exe *exe = NULL;
	char root[256], byte = 0;
	int ready[2];
	pid_t pid;

	if (geteuid()) {
		digest_world_remove(); /* a skipped test's .fini is not run */
		cr_skip_test("chroot needs root");
	}
	put_file(in_dir("tool"), "abc");
	exe = record(in_dir("tool"), 1);
	strcpy(exe->path, "/not-here/tool"); /* as from another mount namespace */
	exe->path_len = (unsigned short)strlen(exe->path);
	exe->root_off = (unsigned short)strlen("/not-here");
	strcpy(root, in_dir("."));
	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		if (chroot(root) || write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	cr_expect_str_eq(now(exe, pid), SHA_ABC);
	cr_expect_str_eq(now(exe, 0), "gone");
	stop_child(pid);
	close(ready[0]);
	close(ready[1]);
}
