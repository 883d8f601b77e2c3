// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A sandbox runtime with libsluice: example-runtime SOCKET CGROUP POLICY CMD…
 *
 * Makes the cgroup (an absolute path in cgroup2), runs the command in it under the policy,
 * and keeps the session alive whatever becomes of the connection. Exits with the command's
 * status, 125 if nothing was run.
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#define TIMEOUT_MS 60000

static char policy[1 << 20];

static void check(struct sl_runtime *rt, int ret, const char *what)
{
	if (ret)
		errx(125, "%s: %s (%s)", what, sl_runtime_error(rt), sl_runtime_hint(rt));
}

static _Noreturn void run_command(struct sl_gate *gate, const char *cgroup, char **argv)
{
	int dir = open(cgroup, O_PATH | O_CLOEXEC);

	if (write(openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC), "0", 1) != 1)
		err(125, "can't enter %s", cgroup);
	if (!sl_gate_pass(gate))
		execvp(argv[0], argv);
	err(125, "can't run %s", argv[0]);
}

/* Until the command has ended: signs of life, and recovery. */
static int supervise(struct sl_runtime *rt, pid_t child)
{
	struct pollfd fds[] = { { .fd = sl_runtime_fd(rt), .events = POLLIN },
				{ .fd = (int)syscall(SYS_pidfd_open, child, 0),
				  .events = POLLIN } };
	enum sl_runtime_state before = SL_RUNTIME_LIVE;
	int status;

	while (poll(fds, 2, -1) < 0 || !fds[1].revents) {
		sl_runtime_dispatch(rt);
		if (sl_runtime_state(rt) != before && sl_runtime_state(rt) == SL_RUNTIME_LIVE)
			warnx("sandbox %s: recovered", sl_runtime_sandbox(rt));
		else if (sl_runtime_state(rt) != before)
			warnx("sandbox %s: %s", sl_runtime_sandbox(rt), sl_runtime_error(rt));
		before = sl_runtime_state(rt);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt = NULL;
	struct sl_gate *gate = NULL;
	pid_t child;
	FILE *file;
	int status;

	if (argc < 5 || sl_runtime_new(&rt, "example-runtime", "1") || sl_gate_new(&gate))
		errx(125, "usage: %s SOCKET CGROUP POLICY CMD…", argv[0]);
	attach.cgroup = argv[2];
	attach.policy_name = argv[3];
	attach.policy = policy;
	file = fopen(argv[3], "re");
	if (!file || !fread(policy, 1, sizeof(policy) - 1, file) || !feof(file))
		err(125, "can't read %s", argv[3]);
	check(rt, sl_runtime_connect(rt, argv[1], TIMEOUT_MS), "no agent");
	check(rt, sl_runtime_plan(rt, attach.policy, argv[3], SL_HOLD_AUTO, &attach.plan),
	      "policy");
	if (sl_gate_set(gate, attach.plan, 0) || (mkdir(argv[2], 0755) && access(argv[2], W_OK)))
		err(125, "can't prepare: %s", sl_gate_error(gate));
	child = fork();
	if (!child)
		run_command(gate, argv[2], argv + 4);
	if (child < 0 || sl_gate_listener(gate, TIMEOUT_MS, &attach.listener_fd))
		errx(125, "can't start: %s", sl_gate_error(gate));
	check(rt, sl_runtime_attach(rt, &attach), "can't attach");
	close(attach.listener_fd);
	if (sl_gate_open(gate))
		errx(125, "can't start: %s", sl_gate_error(gate));
	status = supervise(rt, child);
	check(rt, sl_runtime_detach(rt, SL_DETACH_KILL), "can't detach");
	rmdir(argv[2]);
	sl_gate_free(&gate);
	sl_runtime_free(&rt);
	return status;
}
