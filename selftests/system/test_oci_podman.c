/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Containers of podman, by way of runc. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "system/oci.h"

/* cgroupfs and vfs: neither systemd nor overlayfs is needed. $1: the scratch directory. */
#define PODMAN                                                                                 \
	"podman --root \"$1/storage\" --runroot \"$1/run\" --tmpdir \"$1/libpod\" "            \
	"--storage-driver vfs --cgroup-manager=cgroupfs --runtime runc --events-backend none " \
	"--hooks-dir \"$1/hooks\" "
/* A parent cgroup named after the runner, as all that tests make. */
#define BOX                                                           \
	"--rm --cgroup-parent \"/sl-test-$2-podman\" --network host " \
	"--ulimit nofile=1024:1024 --ulimit nproc=1024:1024 "         \
	"-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro --env ASAN_OPTIONS=detect_leaks=0 "

static void shell(struct cli *cli, const char *script)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	cli_start(cli, NULL,
		  (const char *const[]){ "/bin/sh", "-c", script, "sh", agent.dir, pid, NULL });
	cli_end(cli);
}

/* What podman leaves running uses its directory, and comes to us when its parent ends. */
static void down(void)
{
	char mount[PATH_MAX - 64], cgroup[PATH_MAX];
	struct cli cli;

	shell(&cli, PODMAN "rm --all --force 2>&1");
	cli_free(&cli);
	oci_serve_end(SIGTERM);
	agent_end(SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	cr_assert_eq(sl_cgroup_mount(mount, sizeof(mount), NULL), 0);
	snprintf(cgroup, sizeof(cgroup), "%s/sl-test-%d-podman", mount, getpid());
	(void)sl_cgroup_destroy(cgroup, 5000);
	oci_down();
}

TestSuite(oci_podman, .init = oci_up, .fini = down, .timeout = 120);

/* An image of sl-load alone, and the profile with a policy of its own if there is one. */
static void make_image(void)
{
	struct cli cli;

	shell(&cli, "command -v podman && mkdir \"$1/hooks\" && "
		    "tar -C \"$1/bundle/rootfs\" -cf \"$1/image.tar\" . && exec 2>&1 && " PODMAN
		    "import \"$1/image.tar\" sl-test:1 && " PODMAN "run " BOX
		    "sl-test:1 /sl-load tcp-send --connect-only --server 127.0.0.1:9");
	if (!strstr(cli.out, "errno=ECONNREFUSED"))
		cr_skip_test("podman does not run here: %s%s", cli.out, cli.err);
	cli_free(&cli);
}

static void write_profile(const char *name, const char *metadata)
{
	struct json_object *profile = oci_profile();

	if (metadata)
		json_object_object_add(profile, "listenerMetadata",
				       json_object_new_string(metadata));
	oci_write(agent.dir, name, json_object_to_json_string(profile));
	json_object_put(profile);
}

static void expect_run(const char *options, const char *text)
{
	char script[2048];
	struct cli cli;

	snprintf(script, sizeof(script),
		 PODMAN "run " BOX "%s sl-test:1 /sl-load tcp-send --connect-only --server "
			"127.0.0.1:9 2>&1",
		 options);
	shell(&cli, script);
	cr_expect_not_null(strstr(cli.out, text), "%s: no %s: %s", options, text, cli.out);
	cr_expect_eq(!strstr(cli.out, "errno="), !strstr(text, "errno="), "it ran: %s", cli.out);
	cli_free(&cli);
	oci_await_sessions(0);
	oci_await_kept(0);
}

#define PROFILE(name) "--security-opt seccomp=\"$1/" name "\" "

/* The annotation is the user's, the profile's word the node's. What is added is held, too. */
Test(oci_podman, containers)
{
	struct cli cli;

	make_image();
	write_profile("plain.json", NULL);
	write_profile("glob.json", "glob");
	expect_run(PROFILE("plain.json") "--annotation io.sluice.policy=own", "errno=ECONNREFUSED");
	/* Named by nobody. */
	expect_run(PROFILE("plain.json"), "");
	shell(&cli,
	      PODMAN "run --detach --name sl-test --annotation io.sluice.policy=web " BOX PROFILE(
		      "glob.json") "sl-test:1 /sl-load udp-server --listen 127.0.0.1:0 --timeout 60 </dev/null "
				   "2>&1 && " PODMAN
				   "exec sl-test /sl-load tcp-send --connect-only --server "
				   "127.0.0.1:9 2>&1; " PODMAN "kill sl-test 2>&1");
	cr_expect_not_null(strstr(cli.out, "errno=ECONNREFUSED"), "%s", cli.out);
	cli_free(&cli);
	oci_await_sessions(0);
	cr_expect_not_null(strstr(oci_serve_end(SIGTERM), "no policy is named"), "%s",
			   oci.serve.err);
}
