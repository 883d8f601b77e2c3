// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kernel/cgroup.h"

static void user_of(struct sl_run_user *user, const struct passwd *pw)
{
	user->change = true;
	user->uid = pw->pw_uid;
	user->gid = pw->pw_gid;
	snprintf(user->name, sizeof(user->name), "%s", pw->pw_name);
	snprintf(user->home, sizeof(user->home), "%s", pw->pw_dir);
}

static int user_hint(struct sl_err *err, int rc)
{
	sl_err_hint(err, "--user takes a name of this system, or numbers: 1000:1000");
	return rc;
}

int sl_run_user_find(struct sl_run_user *user, const char *text, struct sl_err *err)
{
	const struct passwd *pw;
	char word[64];
	uint32_t id;
	char *colon;

	*user = (struct sl_run_user){ 0 };
	if (!text)
		text = getenv("SUDO_UID");
	if (!text)
		return 0;
	snprintf(word, sizeof(word), "%s", text);
	colon = strchr(word, ':');
	if (colon)
		*colon++ = '\0';
	if (!sl_parse_u32(word, 0, UINT32_MAX - 1, &id)) {
		pw = getpwuid(id);
		if (pw)
			user_of(user, pw);
		else
			user->change = true;
		user->uid = id;
		if (!pw)
			user->gid = id;
	} else {
		pw = getpwnam(word);
		if (!pw)
			return user_hint(err,
					 sl_err_set(err, ENOENT, "there is no user '%s'", word));
		user_of(user, pw);
	}
	if (colon) {
		if (sl_parse_u32(colon, 0, UINT32_MAX - 1, &id))
			return user_hint(err,
					 sl_err_set(err, EINVAL, "'%s' is no group id", colon));
		user->gid = id;
	}
	return 0;
}

/* What the child tells when it could not exec. */
struct failure {
	int code;
	int step; /* 0 cgroup, 1 user, 2 exec */
};

static int become(const struct sl_run_user *user)
{
	if (!user->change)
		return 0;
	if (user->name[0] ? initgroups(user->name, user->gid) : setgroups(0, NULL))
		return -errno;
	if (setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return -errno;
	if (user->name[0]) {
		setenv("USER", user->name, 1);
		setenv("LOGNAME", user->name, 1);
		setenv("HOME", user->home, 1);
	}
	return 0;
}

static _Noreturn void child_main(const char *cgroup, const struct sl_run_user *user,
				 const struct sl_run_signals *signals, char **argv, int report)
{
	struct failure failure = { .step = 0 };

	failure.code = -sl_cgroup_enter(cgroup, 0, NULL);
	if (!failure.code) {
		failure.step = 1;
		failure.code = -become(user);
	}
	if (!failure.code) {
		failure.step = 2;
		sl_run_signals_restore(signals);
		execvp(argv[0], argv);
		failure.code = errno;
	}
	(void)!write(report, &failure, sizeof(failure));
	_exit(127);
}

int sl_run_child_start(pid_t *pid, const char *cgroup, const struct sl_run_user *user,
		       const struct sl_run_signals *signals, char **argv, bool *exec_failed,
		       struct sl_err *err)
{
	static const char *const steps[] = { "can't enter the sandbox's cgroup",
					     "can't become the user", NULL };
	struct failure failure;
	int fds[2];
	ssize_t n;
	pid_t child;

	*exec_failed = false;
	if (pipe2(fds, O_CLOEXEC))
		return sl_err_sys(err, errno, "can't make a pipe");
	child = fork();
	if (!child)
		child_main(cgroup, user, signals, argv, fds[1]);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return sl_err_sys(err, errno, "can't fork");
	}
	do {
		n = read(fds[0], &failure, sizeof(failure));
	} while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n != (ssize_t)sizeof(failure)) {
		*pid = child;
		return 0;
	}
	waitpid(child, NULL, 0);
	*exec_failed = failure.step == 2;
	if (!*exec_failed)
		return sl_err_sys(err, failure.code, "%s", steps[failure.step]);
	sl_err_sys(err, failure.code, "can't run '%s'", argv[0]);
	return sl_err_hint(err,
			   failure.code == ENOENT
				   ? "give a path, or a name found in PATH"
				   : "it must be a program that the command's user may execute");
}
