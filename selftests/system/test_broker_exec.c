/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which files the broker sees for an exec, in all the shapes that an exec has. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "system/held.h"

#define SEEN_MAX 32

/* What was held: the files of each exec, the first to the last, joined by '>'. */
static struct {
	pthread_mutex_t lock;
	unsigned int count;
	char text[SEEN_MAX][1024];
	bool check_only;
	struct sl_task task;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static char dir[] = "/tmp/sl-test-exec-XXXXXX";

static void note(const struct sl_call *call, struct sl_answer *answer)
{
	char text[1024] = "", link[64], path[256];

	cr_assert_eq(call->kind, SL_HELD_EXEC);
	for (unsigned int i = 0; i < call->exec.images.count; i++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", call->exec.images.fds[i]);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		strncat(text, i ? ">" : "", sizeof(text) - strlen(text) - 1);
		strncat(text, path, sizeof(text) - strlen(text) - 1);
	}
	pthread_mutex_lock(&seen.lock);
	if (seen.count < SEEN_MAX)
		strcpy(seen.text[seen.count++], text);
	seen.check_only = call->exec.check_only;
	cr_expect_eq(sl_call_task(call, &seen.task), 0);
	pthread_mutex_unlock(&seen.lock);
	answer->go_on = true;
}

static void make_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	chmod(path, mode);
}

static void up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	held.decide = note;
	held_up(NULL);
}

static void down(void)
{
	char command[128];

	held_down();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(broker_exec, .init = up, .fini = down, .timeout = 60);

static void __attribute__((format(printf, 2, 3))) expect_seen(unsigned int at, const char *fmt, ...)
{
	char want[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(want, sizeof(want), fmt, ap);
	va_end(ap);
	cr_assert_lt(at, seen.count, "only %u execs, not %s", seen.count, want);
	cr_expect_str_eq(seen.text[at], want);
}

/* The real path of a program that may be reached through links. */
static const char *real(const char *path, char out[PATH_MAX])
{
	cr_assert_not_null(realpath(path, out));
	return out;
}

static int exec_words(void *arg)
{
	char **words = arg;

	execv(words[0], words);
	return 100 + (errno == ENOENT) + 2 * (errno == EACCES);
}

Test(broker_exec, plain_and_denied)
{
	char *words[] = { "/bin/true", NULL };
	char path[PATH_MAX];

	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	expect_seen(0, "%s", real("/bin/true", path));
	cr_expect_eq(seen.task.tid, seen.task.tgid);
	cr_expect_neq(seen.task.start_ticks, 0);
	held_balance();
}

static void deny(const struct sl_call *call, struct sl_answer *answer)
{
	(void)call;
	answer->code = EACCES;
}

Test(broker_exec, denial_is_the_errno)
{
	char *words[] = { "/bin/true", NULL };

	held.decide = deny;
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 102);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_DENIED), 1);
}

Test(broker_exec, absent_goes_on_at_once)
{
	char *words[] = { "/nowhere/at/all", NULL };

	held.decide = deny;
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 101);
	held_balance();
	cr_expect_eq(atomic_load(&held.decided), 0);
	cr_expect_eq(held_count(SL_BROKER_ABSENT), 1);
}

static int exec_bad_pointer(void *arg)
{
	(void)arg;
	syscall(SYS_execve, 8, NULL, NULL);
	if (errno != EFAULT)
		return 1;
	syscall(SYS_execveat, 77, "x", NULL, NULL, 0);
	return errno == EBADF ? 0 : 2;
}

Test(broker_exec, bad_arguments_are_the_kernels)
{
	cr_expect_eq(held_call(&hold_exec, exec_bad_pointer, NULL), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_BAD_ARGUMENT), 2);
}

Test(broker_exec, script_chain)
{
	char *words[] = { "./outer", NULL };
	char sh[PATH_MAX], text[256];

	make_file("inner", "#! /bin/sh -e\nexit 3\n", 0755);
	/* A relative interpreter, and no newline at the end. */
	make_file("outer", "#!./inner", 0755);
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 3);
	expect_seen(0, "%s/outer>%s/inner>%s", dir, dir, real("/bin/sh", sh));
	cr_expect_eq(seen.count, 1);
	/* Five interpreters are followed, a sixth is ELOOP, here and in the kernel. */
	for (int i = 0; i < 7; i++) {
		snprintf(text, sizeof(text), "s%d", i);
		make_file(text, "", 0755);
		snprintf(sh, sizeof(sh), i ? "#!./s%d\n" : "#!/bin/true\n", i - 1);
		make_file(text, sh, 0755);
	}
	words[0] = "./s4";
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	cr_expect_eq(seen.count, 2);
	words[0] = "./s5";
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 100);
	cr_expect_eq(seen.count, 2);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_UNRESOLVED), 1);
}

Test(broker_exec, env_chain)
{
	char *words[] = { "./script", NULL };
	char env[PATH_MAX], sh[PATH_MAX];

	make_file("script", "#!/usr/bin/env -S PATH=/none:/bin sh\nexit 4\n", 0755);
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 4);
	expect_seen(0, "%s/script>%s", dir, real("/usr/bin/env", env));
	expect_seen(1, "%s", real("/bin/sh", sh));
	held_balance();
	cr_expect_geq(held_count(SL_BROKER_ABSENT), 1);
}

static int spawn(void *arg)
{
	char *words[] = { "/bin/true", NULL };
	int status;
	pid_t pid;

	(void)arg;
	if (posix_spawn(&pid, words[0], NULL, NULL, words, environ) ||
	    waitpid(pid, &status, 0) != pid || status)
		return 1;
	/* The parent is suspended until the held exec is answered. */
	pid = vfork();
	if (!pid) {
		execv(words[0], words);
		_exit(1);
	}
	return waitpid(pid, &status, 0) != pid || status;
}

Test(broker_exec, spawn_and_vfork)
{
	char path[PATH_MAX];

	cr_expect_eq(held_call(&hold_exec, spawn, NULL), 0);
	expect_seen(0, "%s", real("/bin/true", path));
	expect_seen(1, "%s", path);
	held_balance();
}

static void *exec_in_thread(void *arg)
{
	execv("/bin/true", (char *[]){ "true", NULL });
	return arg;
}

static int thread(void *arg)
{
	pthread_t t;

	(void)arg;
	pthread_create(&t, NULL, exec_in_thread, NULL);
	pthread_join(t, NULL);
	return 1;
}

Test(broker_exec, exec_by_a_thread)
{
	pid_t pid = held_run(1, &hold_exec, thread, NULL);

	cr_expect_eq(held_wait(pid), 0);
	cr_expect_eq(seen.task.tgid, pid);
	cr_expect_neq(seen.task.tid, pid);
	held_balance();
}

static int by_descriptor(void *arg)
{
	char *words[] = { "true", NULL };
	int fd;

	if (arg) {
		fd = open("/bin", O_PATH | O_CLOEXEC);
		syscall(SYS_execveat, fd, "true", words, environ, 0);
	} else {
		fd = open("/bin/true", O_RDONLY | O_CLOEXEC);
		fexecve(fd, words, environ);
	}
	return 1;
}

Test(broker_exec, descriptors)
{
	char path[PATH_MAX];

	cr_expect_eq(held_call(&hold_exec, by_descriptor, NULL), 0);
	expect_seen(0, "%s", real("/bin/true", path));
	cr_expect_eq(held_call(&hold_exec, by_descriptor, &seen), 0);
	expect_seen(1, "%s", path);
	held_balance();
}

static int nofollow(void *arg)
{
	(void)arg;
	syscall(SYS_execveat, AT_FDCWD, "link", (char *[]){ "x", NULL }, environ,
		AT_SYMLINK_NOFOLLOW);
	return errno == ELOOP ? 0 : 1;
}

Test(broker_exec, links)
{
	char *words[] = { "./link", NULL };
	char path[PATH_MAX];

	cr_assert_eq(symlink("/bin/true", "link"), 0);
	cr_expect_eq(held_call(&hold_exec, nofollow, NULL), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_UNRESOLVED), 1);
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	expect_seen(0, "%s", real("/bin/true", path));
	words[0] = "../../../../bin/true";
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	expect_seen(1, "%s", path);
	held_balance();
}

/* The executable of the test is another program than that of the child by then. */
static int proc_self(void *arg)
{
	int fd = open("/bin/true", O_RDONLY);
	char path[64];

	(void)arg;
	/* fd is inherited by the shell, whose own /proc/self/fd it is. */
	snprintf(path, sizeof(path), "exec /dev/fd/%d", fd);
	execl("/bin/sh", "sh", "-c", path, NULL);
	return 1;
}

Test(broker_exec, proc_self_is_the_tasks)
{
	char sh[PATH_MAX], path[PATH_MAX];
	char *words[] = { "/bin/sh", "-c", "exec /proc/self/exe -c 'exit 5'", NULL };

	cr_expect_eq(held_call(&hold_exec, exec_words, words), 5);
	expect_seen(1, "%s", real("/bin/sh", sh));
	cr_expect_eq(held_call(&hold_exec, proc_self, NULL), 0);
	expect_seen(3, "%s", real("/bin/true", path));
	words[2] = "exec /proc/thread-self/root/bin/true";
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	expect_seen(5, "%s", path);
	held_balance();
}

static int in_chroot(void *arg)
{
	char *words[] = { arg, NULL };

	if (chroot("root") || chdir("/sub"))
		return 90;
	execv(words[0], words);
	return 100 + (errno == ENOEXEC) + 2 * (errno == ENOENT);
}

Test(broker_exec, root_of_the_task)
{
	cr_assert_eq(mkdir("root", 0755), 0);
	cr_assert_eq(mkdir("root/bin", 0755), 0);
	cr_assert_eq(mkdir("root/sub", 0755), 0);
	/* Empty: what runs is not the point. The same names exist outside. */
	make_file("root/bin/true", "", 0755);
	cr_assert_eq(symlink("/bin/true", "root/sub/link"), 0);
	cr_assert_eq(symlink("../../../../bin/true", "root/sub/up"), 0);
	cr_expect_eq(held_call(&hold_exec, in_chroot, "/bin/true"), 101);
	cr_expect_eq(held_call(&hold_exec, in_chroot, "link"), 101);
	cr_expect_eq(held_call(&hold_exec, in_chroot, "up"), 101);
	cr_expect_eq(held_call(&hold_exec, in_chroot, "../../../bin/true"), 101);
	cr_expect_eq(seen.count, 4);
	for (unsigned int i = 0; i < seen.count; i++)
		expect_seen(i, "%s/root/bin/true", dir);
	cr_expect_eq(held_call(&hold_exec, in_chroot, "/bin/sh"), 102);
	cr_expect_eq(seen.count, 4);
	held_balance();
}

static int check_only(void *arg)
{
	(void)arg;
	if (!syscall(SYS_execveat, AT_FDCWD, "/bin/true", NULL, NULL, AT_EXECVE_CHECK))
		return 0;
	return errno == EINVAL ? 77 : 1;
}

Test(broker_exec, check_without_exec)
{
	int code = held_call(&hold_exec, check_only, NULL);

	if (code == 77)
		cr_skip_test("the kernel has no AT_EXECVE_CHECK");
	cr_expect_eq(code, 0);
	cr_expect_eq(seen.count, 1);
	cr_expect(seen.check_only);
	held_balance();
}

/* A pipe or device is not opened to look for "#!". */
Test(broker_exec, not_a_file)
{
	char *words[] = { "./fifo", NULL };

	cr_assert_eq(mkfifo("fifo", 0755), 0);
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 102);
	words[0] = "/tmp";
	cr_expect_eq(held_call(&hold_exec, exec_words, words), 102);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_UNRESOLVED), 2);
}

/* N12: each stage is a fork and a held exec, and the shell is signalled all the time. */
Test(broker_exec, pipelines_of_dash)
{
	char *words[] = { "/bin/dash", "-c",
			  "i=0; while [ $i -lt 100 ]; do i=$((i+1));"
			  " x=$(/bin/echo $i | /bin/cat | /bin/cat); [ $x = $i ] || exit 1; done",
			  NULL };

	cr_expect_eq(held_call(&hold_exec, exec_words, words), 0);
	held_balance();
	cr_expect_eq(held_count(SL_BROKER_CONTINUED), 301);
}
