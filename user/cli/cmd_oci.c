// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <sluice/libsluice.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "oci/serve.h"
#include "oci/state.h"

#define TIMEOUT_MS 10000

struct oci_options {
	const char *listen, *policy_dir, *state_dir, *policy;
};

#define LISTEN                                                           \
	SL_OPTION(TEXT, struct oci_options, listen, "listen", 0, "PATH", \
		  "socket that profiles have as listenerPath", .fallback = "/run/sluice/oci.sock")
#define POLICY_DIR                                                              \
	SL_OPTION(TEXT, struct oci_options, policy_dir, "policy-dir", 0, "DIR", \
		  "where policies are, as NAME.yaml", .fallback = "/etc/sluice/policies")

/* --- serve --- */

static const struct sl_option serve_options[] = {
	LISTEN,
	POLICY_DIR,
	SL_OPTION(TEXT, struct oci_options, state_dir, "state-dir", 0, "DIR",
		  "what is kept of containers that run, for the next one",
		  .fallback = "/run/sluice/oci"),
	{ 0 },
};

static int serve_run(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct oci_options *options = values;
	const struct sl_oci_options serve = { .listen = options->listen,
					      .policy_dir = options->policy_dir,
					      .state_dir = options->state_dir,
					      .agent = cli->agent };

	(void)argc;
	(void)argv;
	return sl_oci_serve(&serve, &cli->err);
}

static const struct sl_command oci_serve = {
	.name = "serve",
	.summary = "attach containers whose runtime hands over a seccomp listener",
	.details = "Policies are chosen by listenerMetadata of the seccomp profile, else by the\n"
		   "container's annotation " SL_OCI_ANNOTATION ". A container that can't be\n"
		   "attached does not start: the profile holds its first execve(). When this is\n"
		   "killed, those that run go on under their policies, none starts, and the next\n"
		   "one takes them up.\n",
	.options = serve_options,
	.options_size = sizeof(struct oci_options),
	.run = serve_run,
};

/* --- hook --- */

static const struct sl_option hook_options[] = {
	LISTEN,
	POLICY_DIR,
	SL_OPTION(TEXT, struct oci_options, policy, "policy", 0, "NAME",
		  "the policy, where the profile names it (default: by annotation)"),
	{ 0 },
};

static int read_stdin(char **out, size_t *len, struct sl_err *err)
{
	_cleanup_free_ char *text = malloc(SL_OCI_STATE_MAX);
	size_t used = 0;
	ssize_t n = 1;

	if (!text)
		return sl_err_sys(err, ENOMEM, "can't read the state");
	while (n && used < SL_OCI_STATE_MAX) {
		n = read(STDIN_FILENO, text + used, SL_OCI_STATE_MAX - used);
		if (n < 0 && errno != EINTR)
			return sl_err_sys(err, errno, "can't read the state");
		used += n > 0 ? (size_t)n : 0;
	}
	*out = TAKE_PTR(text);
	*len = used;
	return 0;
}

static int check_listener(const char *path, struct sl_err *err)
{
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(addr.sun_path))
		return sl_err_set(err, ENAMETOOLONG, "the socket's path '%s' is too long", path);
	strcpy(addr.sun_path, path);
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return 0;
	sl_err_sys(err, errno, "nobody takes listeners at '%s'", path);
	return sl_err_hint(err, "start `sluice oci serve`");
}

/* Whether sluiced is there and would take the policy. */
static int check_agent(const char *agent, const char *policy, const char *name, struct sl_err *err)
{
	struct sl_runtime *rt = NULL;
	unsigned int plan;
	int ret = sl_runtime_new(&rt, "sluice-oci-hook", SL_VERSION);

	ret = ret ?: sl_runtime_connect(rt, agent, TIMEOUT_MS);
	ret = ret ?: sl_runtime_plan(rt, policy, name, SL_HOLD_AT_EXEC, &plan);
	if (ret) {
		sl_err_set(err, -ret, "%s", sl_runtime_error(rt));
		if (sl_runtime_hint(rt)[0])
			sl_err_hint(err, "%s", sl_runtime_hint(rt));
	}
	sl_runtime_free(&rt);
	return ret;
}

static int hook_run(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	_cleanup_free_ char *text = NULL, *policy = NULL;
	const struct oci_options *options = values;
	struct sl_oci_state state;
	char path[PATH_MAX];
	const char *name;
	size_t len = 0;
	int ret = read_stdin(&text, &len, &cli->err);

	(void)argc;
	(void)argv;
	ret = ret ?: sl_oci_state_parse(&state, text, len, &cli->err);
	if (ret)
		return ret;
	name = options->policy ?: state.policy;
	if (!*name) {
		sl_err_set(&cli->err, EINVAL, "no policy is named for this container");
		ret = sl_err_hint(&cli->err, "annotate it with " SL_OCI_ANNOTATION
					     ", or give the hook --policy");
	}
	ret = ret
		      ?: sl_oci_policy_read(&policy, path, sizeof(path), options->policy_dir, name,
					    &cli->err);
	ret = ret ?: check_agent(cli->agent, policy, path, &cli->err);
	ret = ret ?: check_listener(options->listen, &cli->err);
	return ret ? sl_err_prefix(&cli->err, "container %s is not created", state.id) : 0;
}

static const struct sl_command oci_hook = {
	.name = "hook",
	.summary = "refuse to create a container that could not be attached",
	.details = "For createRuntime among the hooks of config.json: the container's state is\n"
		   "on stdin. Fails with the cause when the agent, the policy or who takes\n"
		   "listeners is missing.\n",
	.options = hook_options,
	.options_size = sizeof(struct oci_options),
	.run = hook_run,
};

const struct sl_command sl_cmd_oci = {
	.name = "oci",
	.summary = "containers of OCI runtimes",
	.subcommands = (const struct sl_command *const[]){ &oci_serve, &oci_hook, NULL },
};
