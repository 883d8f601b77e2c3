/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What OCI runtimes say of containers, and the policies that are named there. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "oci/keep.h"
#include "oci/state.h"

/* As runc sends it; %s: annotations, metadata. */
#define PROCESS(annotations, metadata)                                                      \
	"{\"ociVersion\":\"1.0.2-dev\",\"fds\":[\"seccompFd\"],\"pid\":11," metadata        \
	"\"state\":{\"ociVersion\":\"1.0.2-dev\",\"id\":\"box_1\",\"status\":\"creating\"," \
	"\"pid\":12,\"bundle\":\"/b\"" annotations "}}"
#define ANNOTATED(value) ",\"annotations\":{\"a\":\"b\",\"io.sluice.policy\":" value "}"
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

Test(oci, process)
{
	static const struct {
		const char *text;
		const char *policy; /* NULL: refused */
		const char *why;
	} cases[] = {
		{ PROCESS(ANNOTATED("\"web\""), ""), "web", NULL },
		{ PROCESS(ANNOTATED("\"web\""), "") " \n", "web", NULL },
		{ PROCESS(ANNOTATED("\"web\""), "\"metadata\":\"\","), "web", NULL },
		{ PROCESS(ANNOTATED("\"web\""), "\"metadata\":null,"), "web", NULL },
		{ PROCESS("", "\"metadata\":\"node-1.b_\","), "node-1.b_", NULL },
		/* The node's word counts. */
		{ PROCESS(ANNOTATED("\"web\""), "\"metadata\":\"node\","), "node", NULL },
		{ PROCESS(ANNOTATED("\"" X64 "\""), ""), X64, NULL },
		{ PROCESS(ANNOTATED("\"" X64 "x\""), ""), NULL, "annotation" },
		{ PROCESS("", ""), NULL, "no policy is named" },
		{ PROCESS(",\"annotations\":null", ""), NULL, "no policy is named" },
		{ PROCESS(",\"annotations\":7", ""), NULL, "annotations" },
		{ PROCESS(ANNOTATED("\"\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("7"), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\"../web\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\".web\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\"a/b\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\"web\\u0000x\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\"w\xc3\xa9\x62\""), ""), NULL, "annotation" },
		{ PROCESS(ANNOTATED("\"web\""), "\"metadata\":\"/etc\","), NULL, "Metadata" },
		{ PROCESS(ANNOTATED("\"web\""), "") "{}", NULL, "no JSON" },
		{ "", NULL, "no JSON" },
		{ "[]", NULL, "no JSON" },
		{ "{}", NULL, "no state" },
		{ "{\"state\":{}}", NULL, "id" },
		{ "{\"state\":{\"id\":\"a/b\"}}", NULL, "id" },
		{ "{\"state\":{\"id\":\"a\",\"pid\":-1}}", NULL, "pid" },
		{ "{\"state\":{\"id\":\"a\",\"pid\":4294967297}}", NULL, "pid" },
		{ "{\"state\":{\"id\":\"a\"}}", NULL, "no pid" },
		{ "{\"state\":{\"id\":\"a\"},\"pid\":0}", NULL, "no pid" },
		{ "{\"state\":{\"id\":\"a\"},\"pid\":\"1\"}", NULL, "no pid" },
		{ "{\"state\":{\"id\":\"a\"},\"pid\":1}", NULL, "seccompFd" },
		{ "{\"state\":{\"id\":\"a\"},\"pid\":1,\"fds\":[7,\"x\"]}", NULL, "seccompFd" },
		{ "{\"state\":{\"id\":\"a\"},\"pid\":1,\"fds\":[1,2,\"seccompFd\"]}", NULL,
		  "seccompFd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct sl_oci_process process = { .pid = 99 };
		struct sl_err err = {};
		int ret = sl_oci_process_parse(&process, cases[i].text, strlen(cases[i].text), 2,
					       &err);

		if (cases[i].policy) {
			cr_expect_eq(ret, 0, "case %zu: %s", i, err.text);
			cr_expect_str_eq(process.policy, cases[i].policy, "case %zu", i);
			cr_expect_str_eq(process.container.id, "box_1", "case %zu", i);
			cr_expect_eq(process.container.pid, 12, "case %zu", i);
			cr_expect_eq(process.pid, 11, "case %zu", i);
			cr_expect_eq(process.listener, 0, "case %zu", i);
		} else {
			cr_expect_eq(ret, -EBADMSG, "case %zu", i);
			cr_expect_not_null(strstr(err.text, cases[i].why), "case %zu: %s", i,
					   err.text);
			cr_expect_eq(process.pid, 99, "case %zu", i);
		}
	}
}

Test(oci, which_descriptor)
{
	static const char text[] = "{\"state\":{\"id\":\"a\"},\"pid\":1,\"metadata\":\"p\","
				   "\"fds\":[\"other\",\"seccompFd\"]}";
	struct sl_oci_process process;
	struct sl_err err;

	cr_expect_eq(sl_oci_process_parse(&process, text, strlen(text), 1, &err), -EBADMSG);
	cr_assert_eq(sl_oci_process_parse(&process, text, strlen(text), 2, &err), 0);
	cr_expect_eq(process.listener, 1);
}

Test(oci, state)
{
	static const char text[] = "{\"ociVersion\":\"1\",\"id\":\"a\",\"annotations\":{}}";
	static const char running[] = "{\"id\":\"a\",\"status\":\"running\"}";
	static const char none[] = "{\"id\":\"a\",\"status\":7}";
	struct sl_oci_state state;
	struct sl_err err;

	cr_assert_eq(sl_oci_state_parse(&state, text, strlen(text), &err), 0);
	cr_expect_str_empty(state.policy);
	cr_expect_eq(state.pid, 0);
	cr_expect_not(state.running);
	cr_assert_eq(sl_oci_state_parse(&state, running, strlen(running), &err), 0);
	cr_expect(state.running);
	cr_expect_eq(sl_oci_state_parse(&state, none, strlen(none), &err), -EBADMSG);
	cr_expect_eq(sl_oci_state_parse(&state, text, strlen(text) - 1, &err), -EBADMSG);
}

Test(oci, policy_files)
{
	char dir[] = "/tmp/sl-test-oci-XXXXXX", name[64], path[PATH_MAX];
	_cleanup_free_ char *text = NULL;
	struct sl_err err = {};
	char *none = NULL;
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/web.yaml", dir);
	fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_eq(write(fd, "version: 1\n", 11), 11);
	cr_expect_eq(sl_oci_policy_read(&text, path, sizeof(path), dir, "web", &err), 0, "%s",
		     err.text);
	cr_expect_str_eq(text, "version: 1\n");
	cr_expect_str_eq(path, name);
	cr_assert_eq(write(fd, "", 1), 1);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "web", &err), -EBADMSG);
	cr_assert_eq(ftruncate(fd, SL_OCI_STATE_MAX + 1), 0);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "web", &err), -EINVAL);
	close(fd);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "none", &err), -ENOENT);
	cr_expect_not_null(strstr(err.text, "none.yaml"));
	cr_expect(err.hint[0]);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "../web", &err), -EINVAL);
	cr_expect_eq(sl_oci_policy_read(&none, path, 8, dir, "web", &err), -ENAMETOOLONG);
	/* Neither a link nor a pipe. */
	cr_assert_eq(unlink(name), 0);
	cr_assert_eq(symlink("/etc/passwd", name), 0);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "web", &err), -ELOOP);
	cr_assert_eq(unlink(name), 0);
	cr_assert_eq(mkfifo(name, 0600), 0);
	cr_expect_eq(sl_oci_policy_read(&none, path, sizeof(path), dir, "web", &err), -EINVAL);
	cr_expect_null(none);
	unlink(name);
	rmdir(dir);
}

static void note(void *ctx, const struct sl_oci_kept *kept)
{
	struct sl_oci_kept *out = ctx;

	cr_expect_eq(out->cgroup_id, 0, "more than one");
	*out = *kept;
}

/* What is kept of a container, and what is not a word of ours. */
Test(oci, keep)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[]",
		"{\"id\":\"a\",\"cgroup\":\"/c\",\"cgroup_id\":\"8\",\"token\":\"12\"}",
		"{\"id\":\"a\",\"cgroup\":\"/c\",\"cgroup_id\":\"9\",\"token\":\"\"}",
		"{\"id\":\"a\",\"cgroup\":\"/c\",\"cgroup_id\":\"8\",\"token\":\"\",\"x\":1}",
	};
	struct sl_oci_kept kept = { .id = "a", .cgroup = "/c/d", .cgroup_id = 7 }, found = {};
	char dir[] = "/tmp/sl-test-oci-XXXXXX", name[64];
	struct sl_oci_keep keep = { -1 }, other = { -1 };
	struct sl_err err = {};

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0750), 0);
	cr_expect_eq(sl_oci_keep_open(&keep, dir, &err), -EPERM);
	cr_assert_eq(chmod(dir, 0700), 0);
	cr_assert_eq(sl_oci_keep_open(&keep, dir, &err), 0, "%s", err.text);
	cr_expect_eq(sl_oci_keep_open(&other, dir, &err), -EAGAIN);
	cr_expect_eq(sl_oci_keep_put(&keep, &kept, &err), 0);
	memset(kept.token, 'a', sizeof(kept.token) - 1);
	cr_expect_eq(sl_oci_keep_put(&keep, &kept, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		FILE *file;

		snprintf(name, sizeof(name), "%s/8", dir);
		file = fopen(name, "we");
		cr_assert_not_null(file);
		cr_assert_geq(fputs(bad[i], file), 0);
		fclose(file);
		memset(&found, 0, sizeof(found));
		cr_expect_eq(sl_oci_keep_load(&keep, note, &found, &err), 0);
		cr_expect(!memcmp(&found, &kept, sizeof(kept)), "%zu", i);
		cr_expect_eq(access(name, F_OK), -1, "%zu is still there", i);
	}
	sl_oci_keep_drop(&keep, &kept);
	memset(&found, 0, sizeof(found));
	cr_expect_eq(sl_oci_keep_load(&keep, note, &found, &err), 0);
	cr_expect_eq(found.cgroup_id, 0);
	sl_oci_keep_close(&keep);
	cr_expect_eq(rmdir(dir), 0);
}
