/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Containers of a real OCI runtime, and what it may be told that is wrong. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fds.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"
#include "system/world.h"

static char listen_path[128], policies[128], bundle[128], state_path[128];
static struct cli serve;

#define OWN_POLICY(path)                                                         \
	"version: 1\n"                                                           \
	"network_policies:\n"                                                    \
	"  own:\n"                                                               \
	"    endpoints: [{cidr: 127.0.0.1/32, port: 9, allow_reserved: true}]\n" \
	"    binaries: [{path: '" path "'}]\n"

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX];
	_cleanup_file_ FILE *file = NULL;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	cr_assert_not_null(file);
	cr_assert_geq(fputs(text, file), 0);
}

static bool serves(void *arg)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int *fd = arg;

	strcpy(addr.sun_path, listen_path);
	return !connect(*fd, (struct sockaddr *)&addr, sizeof(addr));
}

/* A connection to who takes listeners. */
static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(eventually(serves, &fd), "nobody serves at %s", listen_path);
	return fd;
}

static void up(void)
{
	struct sl_control *control;

	agent_up();
	control = agent_connect();
	sl_control_free(&control);
	snprintf(listen_path, sizeof(listen_path), "%s/oci.sock", agent.dir);
	snprintf(policies, sizeof(policies), "%s/policies", agent.dir);
	snprintf(bundle, sizeof(bundle), "%s/bundle", agent.dir);
	snprintf(state_path, sizeof(state_path), "%s/stdin", agent.dir);
	cr_assert_eq(mkdir(policies, 0755), 0);
	cr_assert_eq(mkdir(bundle, 0755), 0);
	write_file(policies, "web.yaml", agent_policy(true, 9));
	write_file(policies, "own.yaml", OWN_POLICY("/sl-load"));
	write_file(policies, "glob.yaml", OWN_POLICY("/sl-l*d"));
	write_file(policies, "bad.yaml", "version: 1\nnonsense: 1\n");
	cli_start(&serve, NULL,
		  CLI_ARGV("--agent", agent.socket, "oci", "serve", "--listen", listen_path,
			   "--policy-dir", policies));
	close(dial());
}

/* The log of who serves; freed by cli_free(). */
static const char *serve_end(void)
{
	if (serve.pid > 0) {
		kill(serve.pid, SIGTERM);
		cli_end(&serve);
		serve.pid = 0;
	}
	return serve.err;
}

static void down(void)
{
	fprintf(stderr, "%s", serve_end());
	cli_free(&serve);
	agent_down();
}

TestSuite(oci_runtime, .init = up, .fini = down, .timeout = 120);

/* The hook, with this on its stdin. */
static void hook(struct cli *cli, const char *text, const char *socket, const char *listener)
{
	write_file(agent.dir, "stdin", text);
	cli_start(cli, NULL,
		  (const char *const[]){ "/bin/sh", "-c",
					 "exec \"$SLUICE\" --agent \"$1\" oci hook --listen \"$2\" "
					 "--policy-dir \"$3\" <\"$4\"",
					 "sh", socket, listener, policies, state_path, NULL });
	cli_end(cli);
}

#define STATE(policy) "{\"id\":\"box\",\"annotations\":{\"io.sluice.policy\":\"" policy "\"}}\n"

/* A container that could not be attached is not created, and the cause is told. */
Test(oci_runtime, hook)
{
	static const struct {
		const char *text;
		bool agent, listener;
		const char *cause; /* NULL: all is well */
	} cases[] = {
		{ STATE("web"), true, true, NULL },
		{ STATE("web"), false, true, "can't reach the agent" },
		{ STATE("web"), true, false, "nobody takes listeners" },
		{ STATE("none"), true, true, "none.yaml" },
		{ STATE("bad"), true, true, "nonsense" },
		{ STATE("../policies/web"), true, true, "annotation" },
		{ "{\"id\":\"box\"}", true, true, "no policy is named" },
		{ "{\"id\":", true, true, "no JSON" },
		{ "", true, true, "no JSON" },
	};
	struct cli cli;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hook(&cli, cases[i].text, cases[i].agent ? agent.socket : "/nowhere/a",
		     cases[i].listener ? listen_path : "/nowhere/b");
		cr_expect_eq(cli.status, cases[i].cause ? 1 : 0, "case %zu: %s", i, cli.err);
		cr_expect(!cases[i].cause == !cli.err[0], "case %zu: %s", i, cli.err);
		if (cases[i].cause)
			cr_expect_not_null(strstr(cli.err, cases[i].cause), "case %zu: %s", i,
					   cli.err);
		cli_free(&cli);
	}
}

#define MESSAGE \
	"{\"state\":{\"id\":\"box\"},\"pid\":1,\"fds\":[\"seccompFd\"],\"metadata\":\"web\"}"

/* Each fails alone. */
Test(oci_runtime, bad_messages)
{
	const struct sl_fds one = { .fd = { STDIN_FILENO }, .count = 1 };
	const char *log;
	int fds[4];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = dial();
	cr_expect_eq(write(fds[0], "{\"garbage\":1}", 13), 13);
	/* A message that is right but for its descriptor. */
	cr_expect_gt(sl_fds_send(fds[1], MESSAGE, strlen(MESSAGE), &one), 0);
	cr_expect_gt(sl_fds_send(fds[2], "{", 1, &one), 0);
	cr_expect_gt(sl_fds_send(fds[2], "{", 1, &one), 0);
	cr_expect_eq(write(fds[3], "{\"half\":", 8), 8);
	shutdown(fds[3], SHUT_WR);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		char byte;

		/* Until it was seen. */
		cr_expect_leq(read(fds[i], &byte, 1), 0, "%zu", i);
		close(fds[i]);
	}
	close(dial());
	log = serve_end();
	cr_expect_eq(serve.status, 128 + SIGTERM);
	cr_expect_not_null(strstr(log, "there is no state"), "%s", log);
	cr_expect_not_null(strstr(log, "no seccomp listener"), "%s", log);
	cr_expect_not_null(strstr(log, "descriptors twice"), "%s", log);
	cr_expect_not_null(strstr(log, "no JSON object"), "%s", log);
}

/* config.json; `profile`: held, and with the hook. */
static void write_config(const char *name, bool profile)
{
	static const char format[] =
		"{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\","
		"\"env\":[\"ASAN_OPTIONS=detect_leaks=0\"],\"args\":[\"/sl-load\",\"tcp-send\","
		"\"--connect-only\",\"--server\",\"127.0.0.1:9\"]},\"root\":{\"path\":\"rootfs\"},"
		"\"annotations\":{\"io.sluice.policy\":\"%s\"},%s"
		"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		"{\"destination\":\"/usr\",\"source\":\"/usr\",\"options\":[\"rbind\",\"ro\"]},"
		"{\"destination\":\"/lib\",\"source\":\"/lib\",\"options\":[\"rbind\",\"ro\"]},"
		"{\"destination\":\"/lib64\",\"source\":\"/lib64\",\"options\":[\"rbind\",\"ro\"]}],"
		"\"linux\":{\"cgroupsPath\":\"/sl-test-%d-oci\",\"namespaces\":[{\"type\":\"pid\"},"
		"{\"type\":\"mount\"}]%s%s}}";
	struct json_object *seccomp = json_object_from_file("deploy/oci-seccomp.json");
	char hooks[1024], text[16384];

	cr_assert_not_null(seccomp, "the tests run at the top of the tree");
	json_object_object_add(seccomp, "listenerPath", json_object_new_string(listen_path));
	snprintf(hooks, sizeof(hooks),
		 "\"hooks\":{\"createRuntime\":[{\"path\":\"%s\",\"args\":[\"sluice\",\"--agent\","
		 "\"%s\",\"oci\",\"hook\",\"--listen\",\"%s\",\"--policy-dir\",\"%s\"]}]},",
		 getenv("SLUICE"), agent.socket, listen_path, policies);
	cr_assert_lt(snprintf(text, sizeof(text), format, name, profile ? hooks : "", getpid(),
			      profile ? ",\"seccomp\":" : "",
			      profile ? json_object_to_json_string(seccomp) : ""),
		     (int)sizeof(text));
	json_object_put(seccomp);
	write_file(bundle, "config.json", text);
}

static void run(struct cli *cli)
{
	char root[PATH_MAX];

	snprintf(root, sizeof(root), "%s/runc", agent.dir);
	cli_start(cli, NULL,
		  (const char *const[]){
			  "/bin/sh", "-c",
			  "exec runc --root \"$1\" run --bundle \"$2\" sl-test-oci 2>&1", "sh",
			  root, bundle, NULL });
	cli_end(cli);
}

static bool has_ended(void *arg)
{
	struct sl_control *control = agent_connect();
	struct json_object *reply = agent_call(control, "List", "{}");
	size_t n = json_object_array_length(json_at(reply, "sessions"));

	(void)arg;
	json_object_put(reply);
	sl_control_free(&control);
	return !n;
}

static void expect_errno(const char *policy, const char *text)
{
	struct cli cli;

	write_config(policy, true);
	run(&cli);
	cr_expect_not_null(strstr(cli.out, text), "%s: %s", policy, cli.out);
	cli_free(&cli);
	cr_expect(eventually(has_ended, NULL), "its sandbox is left");
}

/* Held until it is attached, decided by its policy, and gone with its last process. */
Test(oci_runtime, runc)
{
	struct cli cli;
	char make[512];
	const char *log;

	snprintf(make, sizeof(make), "mkdir '%s/rootfs' && cp \"$SL_LOAD\" '%s/rootfs/sl-load'",
		 bundle, bundle);
	cr_assert_eq(system(make), 0);
	write_config("web", false);
	run(&cli);
	if (!strstr(cli.out, "errno=ECONNREFUSED"))
		cr_skip_test("runc does not run here: %s", cli.out);
	cli_free(&cli);

	write_config("bad", true);
	run(&cli);
	cr_expect_neq(cli.status, 0);
	cr_expect_not_null(strstr(cli.out, "nonsense"), "%s", cli.out);
	cr_expect_null(strstr(cli.out, "errno="), "%s", cli.out);
	cli_free(&cli);

	/* A path of the host means nothing there, its own does, looked at by us or not. */
	expect_errno("web", "errno=EACCES");
	expect_errno("own", "errno=ECONNREFUSED");
	expect_errno("glob", "errno=ECONNREFUSED");
	log = serve_end();
	cr_expect_not_null(strstr(log, "container sl-test-oci: sandbox"), "%s", log);
}
