// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/start.h"
#include "kernel/cgroup.h"
#include "run/reach.h"

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
	bool exec; /* the exec itself: err.code says how */
	struct sl_err err;
};
_Static_assert(sizeof(struct failure) <= PIPE_BUF, "written whole");

static int change_user(const struct sl_run_user *user, struct sl_err *err)
{
	if (!user->change)
		return 0;
	if ((user->name[0] ? initgroups(user->name, user->gid) : setgroups(0, NULL)) ||
	    setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid))
		return sl_err_sys(err, errno, "can't become the user");
	return 0;
}

static void set_environment(const struct sl_run_user *user)
{
	if (user->name[0]) {
		setenv("USER", user->name, 1);
		setenv("LOGNAME", user->name, 1);
		setenv("HOME", user->home, 1);
	}
}

static _Noreturn void child_main(const struct sl_run_start *start, int report)
{
	struct failure failure = { 0 };
	bool late = start->mediate && sl_mediate_attaches(start->mediate);
	int rc = late ? 0 : sl_cgroup_enter(start->cgroup, 0, NULL);

	if (rc)
		sl_err_sys(&failure.err, -rc, "can't enter the sandbox's cgroup");
	if (!rc && start->reach) {
		rc = sl_reach_enter(start->reach);
		if (rc)
			sl_err_sys(&failure.err, -rc, "can't enter the relay's namespace");
	}
	if (!rc && start->user->change)
		set_environment(start->user);
	if (!rc) {
		sl_run_signals_restore(start->signals);
		sl_start_restore_files();
	}
	if (!rc)
		rc = start->mediate ? sl_mediate_child(start->mediate, &failure.err)
				    : change_user(start->user, &failure.err);
	if (!rc) {
		execvp(start->argv[0], start->argv);
		failure.exec = true;
		failure.err.code = errno;
	}
	(void)!write(report, &failure, sizeof(failure));
	_exit(127);
}

/* What the child says; false when it says nothing, because its exec has succeeded. */
static bool read_failure(int fd, struct failure *failure)
{
	ssize_t n;

	do {
		n = read(fd, failure, sizeof(*failure));
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*failure);
}

int sl_run_child_start(pid_t *pid, const struct sl_run_start *start, bool *exec_failed,
		       struct sl_err *err)
{
	struct failure failure;
	struct sl_err mediate_err = { 0 };
	int fds[2], rc = 0;
	pid_t child;

	*exec_failed = false;
	if (pipe2(fds, O_CLOEXEC))
		return sl_err_sys(err, errno, "can't make a pipe");
	child = fork();
	if (!child)
		child_main(start, fds[1]);
	close(fds[1]);
	if (child < 0) {
		close(fds[0]);
		return sl_err_sys(err, errno, "can't fork");
	}
	sl_run_signals_hand_over(child);
	if (start->mediate)
		rc = sl_mediate_parent(start->mediate, start->files, child, &mediate_err);
	if (rc)
		kill(child, SIGKILL);
	if (!read_failure(fds[0], &failure)) {
		close(fds[0]);
		if (!rc) {
			*pid = child;
			return 0;
		}
		failure = (struct failure){ .err = mediate_err };
	} else {
		close(fds[0]);
	}
	waitpid(child, NULL, 0);
	*exec_failed = failure.exec;
	if (!*exec_failed) {
		*err = failure.err;
		return -failure.err.code;
	}
	sl_err_sys(err, failure.err.code, "can't run '%s'", start->argv[0]);
	return sl_err_hint(err,
			   failure.err.code == ENOENT
				   ? "give a path, or a name found in PATH"
				   : "it must be a program that the command's user may execute");
}
