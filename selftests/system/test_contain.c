/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* B16, B20: what a contained command can't do to processes outside, and still can inside. */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "broker/caps.h"
#include "broker/contain.h"
#include "broker/landlock.h"
#include "kernel/cgroup.h"
#include "system/held.h"

#define NOBODY 65534

TestSuite(contain, .timeout = 60);

static const struct sl_contain_options as_root;
static const struct sl_contain_options as_user = { .change_user = true,
						   .uid = NOBODY,
						   .gid = NOBODY };
static int word = 7;

static int become(const struct sl_contain_options *options)
{
	if (!options->change_user)
		return 0;
	return setgroups(0, NULL) || setresgid(options->gid, options->gid, options->gid) ||
	       setresuid(options->uid, options->uid, options->uid);
}

/*
 * A process that does nothing. Of the same user, groups and capabilities as a contained
 * one, so that nothing but the domain is between the two.
 */
static pid_t bystander(const struct sl_contain_options *options)
{
	int fds[2];
	pid_t pid;
	char byte;

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (become(options) || sl_caps_drop(NULL))
			_exit(1);
		/* A change of user makes it undumpable, which is more than is to be tested. */
		prctl(PR_SET_DUMPABLE, 1);
		if (write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	cr_assert_eq(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

/* Runs fn(arg) in a child, contained or (options of `bare`) only as the user. */
static int run(const struct sl_contain_options *options, bool bare, int (*fn)(void *arg), void *arg)
{
	struct sl_contain_plan plan;
	struct sl_err err = {};
	pid_t pid;

	cr_assert_eq(sl_contain_plan(&plan, options, &err), 0, "%s", err.text);
	if (plan.domain == SL_DOMAIN_NONE)
		cr_skip_test("this kernel has no Landlock");
	pid = fork();
	if (!pid) {
		if (bare && become(options))
			_exit(90);
		if (!bare && sl_contain_apply(&plan, &err)) {
			fprintf(stderr, "%s\n", err.text);
			_exit(91);
		}
		prctl(PR_SET_DUMPABLE, 1);
		_exit(fn(arg));
	}
	return held_wait(pid);
}

/* One bit for each way into a process that is open. */
static int ways_into(void *arg)
{
	pid_t pid = *(pid_t *)arg;
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	char path[64];
	int ways = 0, fd;

	ways |= (process_vm_writev(pid, &iov, 1, &iov, 1, 0) == sizeof(word)) << 0;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	ways |= (syscall(SYS_pidfd_getfd, fd, STDERR_FILENO, 0) >= 0) << 1;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	ways |= (open(path, O_RDWR) >= 0) << 2;
	if (!ptrace(PTRACE_SEIZE, pid, 0, 0)) {
		ways |= 1 << 3;
		ptrace(PTRACE_INTERRUPT, pid, 0, 0);
		waitpid(pid, NULL, __WALL);
		ptrace(PTRACE_DETACH, pid, 0, 0);
	}
	return ways;
}

static int ways_inside(void *arg)
{
	pid_t pid = bystander(&as_root);

	(void)arg;
	return ways_into(&pid);
}

static void expect_outside_closed(const struct sl_contain_options *options, int inside)
{
	pid_t pid = bystander(options);

	cr_expect_eq(run(options, true, ways_into, &pid), 15, "what is tested would work");
	cr_expect_eq(run(options, false, ways_into, &pid), 0);
	cr_expect_eq(run(options, false, ways_inside, NULL), inside, "inside it works");
	kill(pid, SIGKILL);
	held_wait(pid);
}

Test(contain, processes_outside_of_the_same_user)
{
	expect_outside_closed(&as_user, 15);
}

Test(contain, processes_outside_for_root)
{
	/* All but /proc/PID/mem, which is for reading only. */
	expect_outside_closed(&as_root, 15 - 4);
}

static int send_signal(void *arg)
{
	return kill(*(pid_t *)arg, SIGCONT) ? errno : 0;
}

/* Who supervises the sandbox above all. */
static void expect_no_signals(const struct sl_contain_options *options)
{
	pid_t pid = bystander(options);

	cr_expect_eq(run(options, true, send_signal, &pid), 0);
	cr_expect_eq(run(options, false, send_signal, &pid), EPERM);
	kill(pid, SIGKILL);
	held_wait(pid);
}

Test(contain, signals_to_processes_outside)
{
	if (sl_landlock_abi() < SL_LANDLOCK_SCOPES)
		cr_skip_test("this kernel's Landlock has no scopes");
	expect_no_signals(&as_user);
	expect_no_signals(&as_root);
}

static int open_settings(void *arg)
{
	static const char *const files[] = { "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
					     "/sys/kernel/rcu_expedited" };
	int opened = 0;

	(void)arg;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		opened += open(files[i], O_WRONLY) >= 0;
	return opened;
}

/* Some name programs that the kernel then executes outside of every sandbox. */
Test(contain, settings_of_the_kernel)
{
	cr_expect_geq(run(&as_root, true, open_settings, NULL), 2);
	cr_expect_eq(run(&as_root, false, open_settings, NULL), 0);
}

/* B16 */
static int enter_cgroup(void *arg)
{
	struct sl_err err = {};

	return -sl_cgroup_enter(arg, 0, &err);
}

static int make_cgroup(void *arg)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/below", (char *)arg);
	return mkdir(path, 0755) ? errno : rmdir(path);
}

Test(contain, other_cgroups)
{
	char mount[PATH_MAX / 2], path[PATH_MAX];

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(path, sizeof(path), "%s/sl-test-%d-contain", mount, getpid());
	cr_assert_eq(sl_cgroup_create(path, NULL), 0);
	cr_expect_eq(run(&as_root, true, enter_cgroup, path), 0);
	cr_expect_eq(run(&as_root, false, enter_cgroup, path), EACCES);
	cr_expect_eq(run(&as_root, true, make_cgroup, path), 0);
	cr_expect_eq(run(&as_root, false, make_cgroup, path), EACCES);
	sl_cgroup_destroy(path, 5000);
}

/* What is not to break: files and renames elsewhere, reading cgroupfs. */
static int everyday(void *arg)
{
	char a[64], b[64], c[64];
	int fd;

	snprintf(a, sizeof(a), "%s/a", (char *)arg);
	snprintf(b, sizeof(b), "%s/b", (char *)arg);
	snprintf(c, sizeof(c), "%s/b/c", (char *)arg);
	fd = open(a, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	if (fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 0))
		return 1;
	if (mkdir(b, 0700) || rename(a, c) || unlink(c) || rmdir(b))
		return 2;
	if (open("/proc/self/cgroup", O_RDONLY) < 0 || open("/dev/null", O_RDWR) < 0)
		return 3;
	if (system("exec /bin/true"))
		return 4;
	return 0;
}

Test(contain, everything_else_works)
{
	char dir[] = "/tmp/sl-test-contain-XXXXXX";

	cr_assert_not_null(mkdtemp(dir));
	cr_expect_eq(run(&as_root, false, everyday, dir), 0);
	cr_assert_eq(chown(dir, NOBODY, NOBODY), 0);
	cr_expect_eq(run(&as_user, false, everyday, dir), 0);
	rmdir(dir);
}

static int look_at_caps(void *arg)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	uint64_t undoing = sl_caps_undoing(), have;

	(void)arg;
	if (syscall(SYS_capget, &header, data))
		return 90;
	have = data[0].effective | data[0].permitted | data[0].inheritable;
	have |= (uint64_t)(data[1].effective | data[1].permitted | data[1].inheritable) << 32;
	if (have & undoing)
		return 1;
	for (int cap = 0; cap < 64; cap++)
		if (undoing & 1ULL << cap &&
		    (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 ||
		     prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1))
			return 2;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 3;
	return (data[0].effective & 1U << CAP_KILL) ? 0 : 4;
}

Test(contain, capabilities)
{
	cr_expect_eq(run(&as_root, true, look_at_caps, NULL), 1);
	cr_expect_eq(run(&as_root, false, look_at_caps, NULL), 0);
	/* 4: none at all. */
	cr_expect_eq(run(&as_user, false, look_at_caps, NULL), 4);
}

static int mount_something(void *arg)
{
	(void)arg;
	return mount("none", "/tmp", "tmpfs", MS_NODEV, NULL) ? errno : 0;
}

Test(contain, mount)
{
	cr_expect_eq(run(&as_root, false, mount_something, NULL), EPERM);
}

static int fd_after_exec(void *arg)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", *(int *)arg);
	execl("/bin/sh", "sh", "-c", "[ -e /proc/self/fd/$0 ] && exit 1; [ -e /proc/self/fd/1 ]",
	      fd, NULL);
	return 99;
}

Test(contain, descriptors_end_at_exec)
{
	/* Without close-on-exec, as one that was inherited. */
	int fd = dup(STDERR_FILENO);

	cr_expect_eq(run(&as_root, true, fd_after_exec, &fd), 1);
	cr_expect_eq(run(&as_root, false, fd_after_exec, &fd), 0);
}

Test(contain, network_socket_as_stdin)
{
	struct sl_contain_options options = as_root;
	struct sl_contain_plan plan = { .line_count = 77 };
	struct sl_err err = {};
	int fds[2];

	close(STDIN_FILENO);
	cr_assert_eq(socket(AF_INET, SOCK_STREAM, 0), STDIN_FILENO);
	cr_expect_eq(sl_contain_plan(&plan, &options, &err), -EPERM);
	cr_expect_neq(strstr(err.text, "descriptor 0"), NULL, "%s", err.text);
	cr_expect_eq(plan.line_count, 77);
	options.pass_socket = true;
	cr_expect_eq(sl_contain_plan(&plan, &options, &err), 0);
	options.pass_socket = false;
	close(STDIN_FILENO);
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	cr_assert_eq(fds[0], STDIN_FILENO);
	cr_expect_eq(sl_contain_plan(&plan, &options, &err), 0);
}

Test(contain, says_what_it_takes)
{
	struct sl_contain_plan plan;
	bool caps = false, tracing = false;

	cr_assert_eq(sl_contain_plan(&plan, &as_root, NULL), 0);
	for (unsigned int i = 0; i < plan.line_count; i++) {
		caps |= strstr(plan.lines[i], "net_raw") &&
			strstr(plan.lines[i], "checkpoint_restore");
		tracing |= !!strstr(plan.lines[i], "trac");
	}
	cr_expect(caps);
	cr_expect(tracing);
}

/* Kernels before 6.12: a domain of files that takes nothing but tracing. */
static int files_domain(void *arg)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sl_landlock_read_only(NULL, 0, NULL))
		return 80;
	return everyday(arg);
}

static int files_domain_ways(void *arg)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || sl_landlock_read_only(NULL, 0, NULL))
		return 80;
	return ways_into(arg);
}

Test(contain, domain_of_files_for_a_user)
{
	char dir[] = "/tmp/sl-test-contain-XXXXXX";
	pid_t pid = bystander(&as_user);

	if (sl_landlock_abi() < SL_LANDLOCK_REFER)
		cr_skip_test("this kernel's Landlock is too old");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chown(dir, NOBODY, NOBODY), 0);
	cr_expect_eq(run(&as_user, true, files_domain, dir), 0);
	cr_expect_eq(run(&as_user, true, files_domain_ways, &pid), 0);
	kill(pid, SIGKILL);
	rmdir(dir);
}
