/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/agent.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/bpffs.h"
#include "kernel/set.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/held.h"

#define CALL_MS 60000

struct agent agent;

/* --- the agent --- */

void agent_start(void)
{
	const char *program = getenv("SLUICED");
	_cleanup_fd_ int log = open(agent.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	cr_assert_not_null(program, "SLUICED names the program");
	cr_assert_geq(log, 0);
	agent.pid = fork();
	cr_assert_geq(agent.pid, 0);
	if (agent.pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	if (agent.before)
		agent.before();
	execl(program, program, "--socket", agent.socket, "--state-dir", agent.state, "--set",
	      agent.set, "--debug", NULL);
	_exit(99);
}

void agent_up(void)
{
	static unsigned int n;

	/* Names by which later runs of the tests find what was left: system/world.c. */
	n++;
	snprintf(agent.dir, sizeof(agent.dir), "/tmp/sl-test-%d-a%u", getpid(), n);
	snprintf(agent.socket, sizeof(agent.socket), "%s/control.sock", agent.dir);
	snprintf(agent.state, sizeof(agent.state), "%s/state", agent.dir);
	snprintf(agent.log, sizeof(agent.log), "%s/log", agent.dir);
	snprintf(agent.set, sizeof(agent.set), SL_SET_ROOT "/test-%d-a%u", getpid(), n);
	cr_assert_eq(mkdir(agent.dir, 0755), 0);
	/* Processes of an agent that is killed come to us. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	agent_start();
}

int agent_end(int signal)
{
	pid_t pid = agent.pid;

	agent.pid = 0;
	kill(pid, signal);
	return held_wait(pid);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

void agent_down(void)
{
	char *log;

	if (agent.pid > 0)
		agent_end(SIGKILL);
	log = agent_log();
	/* What a test that failed wants to know. */
	fprintf(stderr, "%s", log);
	free(log);
	sl_set_destroy(agent.set, NULL);
	strcat(agent.set, "-agent");
	sl_bpffs_remove(agent.set, NULL);
	nftw(agent.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	memset(&agent, 0, sizeof(agent));
}

char *agent_text(const char *path)
{
	_cleanup_file_ FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	cr_assert_not_null(text);
	if (file)
		(void)!fread(text, 1, (1 << 20) - 1, file);
	return text;
}

char *agent_log(void)
{
	return agent_text(agent.log);
}

pid_t agent_worker(void)
{
	struct sl_control *control = agent_connect();
	struct json_object *status = agent_call(control, "Status", "{}"), *pid;
	pid_t worker;

	cr_assert(json_object_object_get_ex(status, "pid", &pid));
	worker = json_object_get_int(pid);
	json_object_put(status);
	sl_control_free(&control);
	return worker;
}

unsigned int agent_fds(pid_t pid)
{
	_cleanup_dir_ DIR *dir = NULL;
	char path[64];
	unsigned int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	cr_assert_not_null(dir);
	while (readdir(dir))
		n++;
	return n;
}

/* --- calls --- */

static bool is_there(void *arg)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int *fd = arg;

	strcpy(to.sun_path, agent.socket);
	return !connect(*fd, (struct sockaddr *)&to, sizeof(to));
}

int agent_socket(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert(eventually(is_there, &fd), "no agent: %s", strerror(errno));
	return fd;
}

static struct json_object *params_of(const char *fmt, va_list args)
	__attribute__((format(printf, 1, 0)));

static struct json_object *params_of(const char *fmt, va_list args)
{
	struct json_object *json;
	char text[8192];

	cr_assert_lt(vsnprintf(text, sizeof(text), fmt, args), (int)sizeof(text));
	for (char *at = text; *at; at++)
		*at = *at == '\'' ? '"' : *at;
	json = json_tokener_parse(text);
	cr_assert_not_null(json, "%s", text);
	return json;
}

struct json_object *agent_send(struct sl_control *control, const char *error, const char *method,
			       struct json_object *params, const struct sl_fds *fds)
{
	struct json_object *reply = NULL;
	struct sl_err err = {};
	char name[64], expected[64];
	int ret;

	snprintf(name, sizeof(name), "io.sluice.%s", method);
	snprintf(expected, sizeof(expected), "%s%s", error ? "io.sluice." : "", error ?: "");
	ret = sl_control_call(control, name, params, fds, &reply, &err);
	cr_assert_eq(ret, error ? -EREMOTEIO : 0, "%s: %s: %s %s", method, err.text,
		     sl_control_error(control), reply ? json_object_to_json_string(reply) : "");
	cr_assert_str_eq(sl_control_error(control), expected);
	return reply;
}

/* The listener of an agent that is dying takes connections that nobody will ever serve. */
static bool say_hello(void *arg)
{
	struct sl_control **control = arg;
	struct json_object *reply = NULL;
	struct sl_err err = {};
	int ret;

	cr_assert_eq(sl_control_new(control, agent_socket(), CALL_MS), 0);
	ret = sl_control_call(*control, "io.sluice.Hello",
			      json_tokener_parse("{\"component\": {\"name\": \"test\", "
						 "\"version\": \"0\", \"min\": 1, \"max\": 1}}"),
			      NULL, &reply, &err);
	json_object_put(reply);
	if (!ret)
		return true;
	sl_control_free(control);
	cr_assert(ret == -EPIPE || ret == -ECONNRESET, "Hello: %s", err.text);
	return false;
}

struct sl_control *agent_connect(void)
{
	struct sl_control *control = NULL;

	cr_assert(eventually(say_hello, &control), "no agent answers");
	return control;
}

struct json_object *agent_call(struct sl_control *control, const char *method, const char *fmt, ...)
{
	struct json_object *params;
	va_list args;

	va_start(args, fmt);
	params = params_of(fmt, args);
	va_end(args);
	return agent_send(control, NULL, method, params, NULL);
}

void agent_do(struct sl_control *control, const char *method, const char *fmt, ...)
{
	struct json_object *params;
	va_list args;

	va_start(args, fmt);
	params = params_of(fmt, args);
	va_end(args);
	json_object_put(agent_send(control, NULL, method, params, NULL));
}

struct json_object *agent_refused(struct sl_control *control, const char *error, const char *method,
				  const char *fmt, ...)
{
	struct json_object *params;
	va_list args;

	va_start(args, fmt);
	params = params_of(fmt, args);
	va_end(args);
	return agent_send(control, error, method, params, NULL);
}

unsigned int agent_sessions(void)
{
	struct sl_control *control = agent_connect();
	struct json_object *list = agent_call(control, "List", "{}");
	size_t n = json_object_array_length(json_at(list, "sessions"));

	json_object_put(list);
	sl_control_free(&control);
	return (unsigned int)n;
}
