/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libsluice: what is looked at, and what is refused before anything is asked. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit/lib_world.h"

#define LONG_MS 20000

TestSuite(lib_look, .fini = fake_stop, .timeout = 120);

static const struct fake_step good[] = { { 0 } };
static unsigned int seen, gone, wanted;

static void see(const struct sl_runtime_session *session, void *data)
{
	cr_expect_eq(data, &seen);
	cr_expect_str_eq(session->sandbox, FAKE_SANDBOX);
	cr_expect_str_eq(session->state, "lost");
	cr_expect_str_eq(session->cause, "why");
	cr_expect_null(session->reason);
	cr_expect_not_null(strstr(session->json, "\"wanted\":\"frozen\""), "%s", session->json);
	cr_expect_eq(session->lost, session->gone ? 0 : 3);
	seen++;
	gone += session->gone;
}

static bool has_seen(struct sl_runtime *rt)
{
	(void)rt;
	return seen >= wanted;
}

static bool has_asked(struct sl_runtime *rt)
{
	(void)rt;
	return fake_count("Watch") >= wanted;
}

/* A watch that breaks begins anew; what it can't read is left out. */
Test(lib_look, watch)
{
	static const struct fake_step steps[] = {
		{ "Watch", FAKE_OK_END, NULL },
		{ "Watch", FAKE_SAY, "{\"parameters\":{\"event\":7},\"continues\":true}" },
		{ "Hello", FAKE_END, NULL },
		{ "Watch", FAKE_SAY, "{\"parameters\":{}}" },
		{ "Watch", FAKE_SAY, ERROR("Refused", "") },
		{ 0 },
	};
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	cr_assert_eq(sl_runtime_watch(rt, see, &seen), 0);
	fake_script(steps);
	wanted = 2;
	runtime_until(rt, has_seen);
	cr_expect_eq(gone, 1);
	cr_expect_eq(sl_runtime_watch(rt, see, NULL), -EBUSY);
	cr_expect_eq(sl_runtime_freeze(rt), -EBUSY);
	/* The second connection's stream has nothing to show, and does not end: cut it. */
	runtime_until(rt, has_asked);
	fake_cut();
	wanted = 4;
	runtime_until(rt, has_seen);
	cr_expect(fake_script_done());
	cr_expect_eq(gone, 2);
	cr_expect_eq(fake_count("Watch"), 5);
	sl_runtime_free(&rt);
}

Test(lib_look, show)
{
	static const struct fake_step steps[] = {
		{ "Show", FAKE_SAY, "{\"parameters\":{\"session\":[]}}" }, { 0 }
	};
	const struct sl_runtime_session *session = NULL;
	struct sl_runtime *rt;

	fake_start(steps);
	rt = runtime_live(LONG_MS, 0);
	cr_expect_eq(sl_runtime_show(rt, &session), -EPROTO);
	cr_expect_null(session);
	cr_assert_eq(sl_runtime_show(rt, &session), 0, "%s", sl_runtime_error(rt));
	cr_expect_str_eq(fake_last("Show")->parameters, "{\"sandbox\":\"7\"}");
	cr_expect_str_eq(session->cgroup, "/c");
	cr_expect(session->connected && session->enforced && !session->freeze_asked);
	sl_runtime_free(&rt);
}

/* An accepted socket is its client's, any other its own process's. */
Test(lib_look, resolve)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(443) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(1) };
	const struct sl_runtime_owner *owner = NULL;
	struct sl_runtime *rt;
	int ends[2];

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_eq(sl_runtime_resolve_fd(rt, ends[0], &owner), 0, "%s", sl_runtime_error(rt));
	cr_expect_eq(fake_last("ResolveFd")->fds, 1);
	cr_expect_str_eq(fake_last("ResolveFd")->parameters, "{\"socket_fd\":0}");
	cr_expect(owner->closed);
	cr_expect_eq(owner->pid, 20);
	cr_expect_eq(owner->uid, 22);
	cr_expect_eq(owner->start_ns, UINT64_MAX);
	cr_expect_str_eq(owner->exe, "/bin/c");
	cr_expect_str_eq(owner->comm, "c");
	cr_expect_str_eq(owner->sandbox, "box");
	cr_expect_not_null(strstr(owner->json, "\"server\""));

	inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);
	inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);
	cr_assert_eq(sl_runtime_resolve_tuple(rt, SOCK_DGRAM, (struct sockaddr *)&v4,
					      (struct sockaddr *)&v6, UINT64_MAX, &owner),
		     0, "%s", sl_runtime_error(rt));
	cr_expect_str_eq(fake_last("ResolveTuple")->parameters,
			 "{\"transport\":\"udp\",\"local\":{\"addr\":\"192.0.2.1\",\"port\":443},"
			 "\"remote\":{\"addr\":\"2001:db8::1\",\"port\":1},"
			 "\"netns_cookie\":\"18446744073709551615\"}");
	cr_expect_eq(owner->pid, 10);
	cr_expect_null(owner->exe);
	cr_expect_eq(sl_runtime_resolve_tuple(rt, SOCK_RAW, (struct sockaddr *)&v4,
					      (struct sockaddr *)&v6, 0, &owner),
		     -EPROTOTYPE);
	v4.sin_family = AF_UNIX;
	cr_expect_eq(sl_runtime_resolve_tuple(rt, SOCK_STREAM, (struct sockaddr *)&v4,
					      (struct sockaddr *)&v6, 0, &owner),
		     -EAFNOSUPPORT);
	cr_expect_eq(sl_runtime_resolve_fd(rt, -1, &owner), -EBADF);
	cr_expect_eq(fake_last("ResolveTuple")->conn, 1);
	close(ends[0]);
	close(ends[1]);
	sl_runtime_free(&rt);
}

Test(lib_look, resolve_answers)
{
	static const struct {
		const char *text;
		int want;
	} cases[] = {
		{ "{\"parameters\":{}}", -EPROTO },
		{ "{\"parameters\":7}", -EPROTO },
		{ "{\"parameters\":{\"socket\":{\"found\":\"live\"}}}", -EPROTO },
		{ "{\"parameters\":{\"socket\":{\"found\":1,\"socket\":{}}}}", -EPROTO },
		{ "{\"parameters\":{\"socket\":{\"found\":\"live\",\"socket\":{\"process\":"
		  "{\"start_ns\":\"x\"}}}}}",
		  -EPROTO },
		{ "{\"parameters\":{\"socket\":{\"found\":\"live\",\"socket\":{}}}}", 0 },
		{ "{\"parameters\":{\"socket\":{\"found\":\"live\",\"socket\":{\"process\":[],"
		  "\"peer\":7}}}}",
		  0 },
		/* Of an accepted socket nobody but the peer is at the other end. */
		{ "{\"parameters\":{\"socket\":{\"found\":\"live\",\"socket\":{\"direction\":"
		  "\"in\",\"process\":{\"pid\":9}}}}}",
		  0 },
		{ ERROR("Refused", "\"code\":\"ENOENT\""), -ENOENT },
	};
	struct sl_runtime *rt;

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct sl_runtime_owner *owner = NULL;
		const struct fake_step steps[] = { { "ResolveFd", FAKE_SAY, cases[i].text },
						   { 0 } };

		fake_script(steps);
		cr_expect_eq(sl_runtime_resolve_fd(rt, 0, &owner), cases[i].want, "case %zu: %s", i,
			     sl_runtime_error(rt));
		cr_expect_eq(owner == NULL, cases[i].want != 0, "case %zu", i);
		if (owner)
			cr_expect_eq(owner->pid, 0, "case %zu", i);
		fake_script(good);
	}
	sl_runtime_free(&rt);
}

/* What makes no sense is refused here, and nothing is said to the agent. */
Test(lib_look, arguments)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT, bad;
	struct sl_runtime *rt = NULL, *none = NULL;
	_cleanup_free_ char *huge = calloc(1, (5 << 20) + 1);
	unsigned int plan = 99, calls;

	fake_start(good);
	cr_expect_eq(sl_runtime_new(&none, "", "1"), -EINVAL);
	cr_expect_eq(sl_runtime_new(&none, "a", "\xff"), -EINVAL);
	cr_expect_null(none);
	cr_assert_eq(sl_runtime_new(&rt, "a", "1"), 0);
	cr_expect_eq(sl_runtime_freeze(rt), -EINVAL);
	cr_expect_eq(sl_runtime_connect(rt, "/nowhere/socket", LONG_MS), -ENOTCONN);
	cr_expect_eq(sl_runtime_connect(rt, fake_path(), 0), -EINVAL);
	cr_assert_eq(sl_runtime_connect(rt, fake_path(), LONG_MS), 0);
	calls = fake_calls();

	attach.cgroup = "/c";
	attach.policy = "p";
	memset(huge, 'x', 5 << 20);
#define EXPECT(change, want)                                              \
	do {                                                              \
		bad = attach;                                             \
		change;                                                   \
		cr_expect_eq(sl_runtime_attach(rt, &bad), want, #change); \
	} while (0)
	EXPECT(bad.size = 8, -EINVAL);
	EXPECT(bad.cgroup = NULL, -EINVAL);
	EXPECT(bad.cgroup_fd = 0, -EINVAL);
	EXPECT(bad.policy = NULL, -EINVAL);
	EXPECT(bad.policy = "\xff", -EILSEQ);
	EXPECT(bad.policy = huge, -E2BIG);
	EXPECT(bad.name = "\xc3", -EILSEQ);
	EXPECT(bad.plan = 1 << 5, -EINVAL);
	EXPECT(bad.mode = 4, -EINVAL);
	EXPECT(bad.end = 5, -EINVAL);
	EXPECT(bad.listener_fd = 12345, -EBADF);
	cr_expect_eq(sl_runtime_plan(rt, "p", NULL, 3, &plan), -EINVAL);
	cr_expect_eq(plan, 99);
	cr_expect_eq(sl_runtime_freeze(rt), -EINVAL);
	cr_expect_eq(sl_runtime_recover(rt, LONG_MS), -EINVAL);
	cr_expect_eq(sl_runtime_detach(rt, SL_DETACH_KILL), -EINVAL);
	cr_expect_eq(fake_calls(), calls);
	cr_expect_eq(sl_runtime_state(rt), SL_RUNTIME_NONE);
	sl_runtime_free(&rt);
}

/* No version in common: said before anything is made, in the agent's words. */
Test(lib_look, versions)
{
	static const struct fake_step steps[] = {
		{ "Hello", FAKE_SAY, ERROR("IncompatibleVersion", "\"text\":\"a 1, b 2\"") }, { 0 }
	};
	struct sl_runtime *rt = NULL;

	fake_start(steps);
	cr_assert_eq(sl_runtime_new(&rt, "a", "1"), 0);
	cr_expect_eq(sl_runtime_connect(rt, fake_path(), LONG_MS), -EPROTONOSUPPORT);
	cr_expect_str_eq(sl_runtime_error(rt), "a 1, b 2");
	cr_expect_eq(fake_calls(), 1);
	sl_runtime_free(&rt);
}

/* Who is not root can't say Hello, and resolves all the same. */
Test(lib_look, plain_user)
{
	static const struct fake_step steps[] = {
		{ "Hello", FAKE_SAY, "{\"error\":\"org.varlink.service.PermissionDenied\"}" },
		{ "Plan", FAKE_SAY, "{\"error\":\"org.varlink.service.PermissionDenied\"}" },
		{ 0 },
	};
	const struct sl_runtime_owner *owner;
	struct sl_runtime *rt;
	unsigned int plan;

	fake_start(steps);
	rt = runtime_connected(LONG_MS);
	cr_expect_eq(sl_runtime_resolve_fd(rt, 0, &owner), 0, "%s", sl_runtime_error(rt));
	cr_expect_eq(owner->pid, 20);
	cr_expect_eq(sl_runtime_plan(rt, "p", NULL, SL_HOLD_AUTO, &plan), -EPERM);
	cr_expect(fake_script_done());
	sl_runtime_free(&rt);
}

/* A child that still has the connection does not keep the handle busy when it is closed. */
Test(lib_look, forked_child)
{
	struct pollfd pollfd = { .events = POLLIN };
	struct sl_runtime *rt;
	pid_t child;

	fake_start(good);
	rt = runtime_connected(LONG_MS);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		pause();
		_exit(0);
	}
	fake_cut();
	pollfd.fd = sl_runtime_fd(rt);
	cr_expect_eq(poll(&pollfd, 1, LONG_MS), 1);
	cr_expect_eq(sl_runtime_dispatch(rt), 0);
	cr_expect_eq(poll(&pollfd, 1, 0), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	sl_runtime_free(&rt);
}
