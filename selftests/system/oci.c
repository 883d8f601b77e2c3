/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "system/oci.h"

#include <criterion/criterion.h>
#include <dirent.h>
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
#include "kernel/cgroup.h"
#include "system/expect.h"
#include "system/world.h"

#define DESTROY_MS 5000
#define CONTAINERS_MAX 128

struct oci oci;

/* Names of containers that were made, and the end of their stdin that we keep. */
static char containers[CONTAINERS_MAX][32];
static unsigned int container_count;
static int in = -1;

void oci_write(const char *dir, const char *name, const char *text)
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

	strcpy(addr.sun_path, oci.listen);
	return !connect(*fd, (struct sockaddr *)&addr, sizeof(addr));
}

int oci_dial(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(eventually(serves, &fd), "nobody serves at %s", oci.listen);
	return fd;
}

void oci_serve_start(void)
{
	cli_free(&oci.serve);
	cli_start(&oci.serve, NULL,
		  CLI_ARGV("--agent", agent.socket, "oci", "serve", "--listen", oci.listen,
			   "--policy-dir", oci.policies, "--state-dir", oci.state));
	close(oci_dial());
}

const char *oci_serve_end(int signal)
{
	if (oci.serve.pid > 0) {
		kill(oci.serve.pid, signal);
		cli_end(&oci.serve);
		oci.serve.pid = 0;
	}
	return oci.serve.err;
}

static void make_dir(char *out, size_t size, const char *name)
{
	snprintf(out, size, "%s/%s", agent.dir, name);
	cr_assert_eq(mkdir(out, 0700), 0);
}

static void make_bundle(void)
{
	char fifo[160], rootfs[160];

	make_dir(oci.bundle, sizeof(oci.bundle), "bundle");
	make_dir(rootfs, sizeof(rootfs), "bundle/rootfs");
	oci_copy("sl-load");
	snprintf(fifo, sizeof(fifo), "%s/in", agent.dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	in = open(fifo, O_RDWR | O_CLOEXEC);
	cr_assert_geq(in, 0);
}

void oci_up(void)
{
	struct sl_control *control;

	agent_up();
	control = agent_connect();
	sl_control_free(&control);
	container_count = 0;
	oci.serve = (struct cli){ .in = -1, .fds = { -1, -1 } };
	snprintf(oci.listen, sizeof(oci.listen), "%s/oci.sock", agent.dir);
	make_dir(oci.policies, sizeof(oci.policies), "policies");
	make_dir(oci.state, sizeof(oci.state), "oci");
	snprintf(oci.root, sizeof(oci.root), "%s/runc", agent.dir);
	make_bundle();
	oci_write(oci.policies, "web.yaml", agent_policy(true, 9));
	oci_write(oci.policies, "own.yaml", OCI_OWN_POLICY("", "/sl-load"));
	oci_write(oci.policies, "glob.yaml", OCI_OWN_POLICY("", "/sl-l*d"));
	oci_write(oci.policies, "bad.yaml", "version: 1\nnonsense: 1\n");
	oci_serve_start();
}

void oci_cgroup(char *out, size_t size, const char *container)
{
	char mount[PATH_MAX / 2];

	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(out, size, "%s/sl-test-%d-oci-%s", mount, getpid(), container);
}

void oci_down(void)
{
	char cgroup[PATH_MAX];
	struct cli cli;

	for (unsigned int i = 0; i < container_count; i++) {
		OCI_RUNC(&cli, "delete", "--force", containers[i]);
		cli_free(&cli);
		oci_cgroup(cgroup, sizeof(cgroup), containers[i]);
		sl_cgroup_destroy(cgroup, DESTROY_MS);
	}
	fprintf(stderr, "%s", oci_serve_end(SIGTERM));
	cli_free(&oci.serve);
	sl_cleanup_fd(&in);
	agent_down();
}

struct json_object *oci_profile(void)
{
	struct json_object *seccomp = json_object_from_file("deploy/oci-seccomp.json");

	cr_assert_not_null(seccomp, "the tests run at the top of the tree");
	json_object_object_add(seccomp, "listenerPath", json_object_new_string(oci.listen));
	return seccomp;
}

void oci_config(const char *container, const char *policy, const char *args)
{
	static const char format[] =
		"{\"ociVersion\":\"1.0.2\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\","
		"\"env\":[\"ASAN_OPTIONS=detect_leaks=0\"],\"args\":[%s]},"
		"\"root\":{\"path\":\"rootfs\"},\"annotations\":{\"io.sluice.policy\":\"%s\"},%s"
		"\"mounts\":[{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
		"{\"destination\":\"/usr\",\"source\":\"/usr\",\"options\":[\"rbind\",\"ro\"]},"
		"{\"destination\":\"/lib\",\"source\":\"/lib\",\"options\":[\"rbind\",\"ro\"]},"
		"{\"destination\":\"/lib64\",\"source\":\"/lib64\",\"options\":[\"rbind\",\"ro\"]}],"
		"\"linux\":{\"cgroupsPath\":\"/sl-test-%d-oci-%s\",\"namespaces\":["
		"{\"type\":\"pid\"},{\"type\":\"mount\"}]%s%s}}";
	struct json_object *seccomp = oci_profile();
	char hooks[1024], text[16384];

	snprintf(hooks, sizeof(hooks),
		 "\"hooks\":{\"createRuntime\":[{\"path\":\"%s\",\"args\":[\"sluice\",\"--agent\","
		 "\"%s\",\"oci\",\"hook\",\"--listen\",\"%s\",\"--policy-dir\",\"%s\"]}]},",
		 getenv("SLUICE"), agent.socket, oci.listen, oci.policies);
	cr_assert_lt(snprintf(text, sizeof(text), format, args, policy ?: "none",
			      policy ? hooks : "", getpid(), container,
			      policy ? ",\"seccomp\":" : "",
			      policy ? json_object_to_json_string(seccomp) : ""),
		     (int)sizeof(text));
	json_object_put(seccomp);
	oci_write(oci.bundle, "config.json", text);
	cr_assert_lt(container_count, CONTAINERS_MAX);
	snprintf(containers[container_count++], sizeof(containers[0]), "%s", container);
}

void oci_runc(struct cli *cli, const char *const argv[])
{
	const char *full[24] = { "/bin/sh", "-c",
				 "exec <\"$1\"; shift; exec runc --root \"$@\" 2>&1", "sh" };
	char fifo[160];
	size_t n = 4;

	snprintf(fifo, sizeof(fifo), "%s/in", agent.dir);
	full[n++] = fifo;
	full[n++] = oci.root;
	for (; *argv && n < sizeof(full) / sizeof(full[0]) - 1; argv++)
		full[n++] = *argv;
	cr_assert_null(*argv);
	cli_start(cli, NULL, full);
	cli_end(cli);
}

void oci_need(void)
{
	struct cli cli;

	oci_config("probe", NULL, OCI_CONNECT);
	OCI_RUNC(&cli, "run", "--bundle", oci.bundle, "probe");
	if (!strstr(cli.out, "errno=ECONNREFUSED"))
		cr_skip_test("runc does not run here: %s", cli.out);
	cli_free(&cli);
}

/* runc starts a container before its listener was looked at. */
static bool is_attached(void *arg)
{
	char cgroup[PATH_MAX], path[PATH_MAX + 32];
	struct stat st;
	char *text;
	bool is;

	oci_cgroup(cgroup, sizeof(cgroup), arg);
	if (stat(cgroup, &st))
		return false;
	snprintf(path, sizeof(path), "%s/%lu", oci.state, st.st_ino);
	text = agent_text(path);
	is = text[0] && !strstr(text, "\"token\":\"\"");
	free(text);
	return is;
}

void oci_start(const char *container, const char *policy)
{
	char script[1024], log[160];
	bool attached = false;
	int tries = 6; /* the first one loads the programs, on a machine that may be busy */
	struct cli cli;

	oci_config(container, policy, OCI_WAIT);
	/* It keeps what it is started with open: a file, so that the end of runc is seen. */
	snprintf(log, sizeof(log), "%s/%s.out", agent.dir, container);
	snprintf(script, sizeof(script),
		 "exec runc --root '%s' run --detach --bundle '%s' '%s' <'%s/in' >'%s' 2>&1",
		 oci.root, oci.bundle, container, agent.dir, log);
	cli_start(&cli, NULL, (const char *const[]){ "/bin/sh", "-c", script, NULL });
	cli_end(&cli);
	if (cli.status) {
		char *text = agent_text(log);

		cr_assert_fail("%s: %s", container, text);
	}
	cli_free(&cli);
	while (tries-- && !attached)
		attached = eventually(is_attached, (void *)container);
	cr_assert(attached, "%s is not attached", container);
}

void oci_copy(const char *name)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "cp \"$SL_LOAD\" '%s/rootfs/%s'", oci.bundle, name);
	cr_assert_eq(system(cmd), 0);
}

void oci_exec(const char *container, const char *name, const char *errno_name)
{
	char text[64], path[64];
	struct cli cli;

	oci_copy(name);
	snprintf(path, sizeof(path), "/%s", name);
	OCI_RUNC(&cli, "exec", container, path, "tcp-send", "--connect-only", "--server",
		 "127.0.0.1:9");
	snprintf(text, sizeof(text), "errno=%s", errno_name);
	cr_expect_not_null(strstr(cli.out, text), "%s: no %s: %s", container, text, cli.out);
	cli_free(&cli);
}

static bool has_sessions(void *arg)
{
	return agent_sessions() == *(size_t *)arg;
}

void oci_await_sessions(size_t count)
{
	cr_expect(eventually(has_sessions, &count), "%zu sessions, not %zu", agent_sessions(),
		  count);
}

/* Files, whole ones. */
static size_t kept(void)
{
	_cleanup_dir_ DIR *dir = opendir(oci.state);
	struct dirent *entry;
	size_t n = 0;

	cr_assert_not_null(dir);
	while ((entry = readdir(dir)))
		n += strspn(entry->d_name, "0123456789") > 0;
	return n;
}

static bool has_kept(void *arg)
{
	return kept() == *(size_t *)arg;
}

void oci_await_kept(size_t count)
{
	cr_expect(eventually(has_kept, &count), "%zu are kept, not %zu", kept(), count);
}
