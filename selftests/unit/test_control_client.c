/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The calling side of the control service. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/client.h"
#include "unit/control_world.h"

#define WAIT_MS 10000

TestSuite(control_client, .fini = control_unmake, .timeout = 60);

/* What is ended is told to who calls, and whether his call may be said again. */
Test(control_client, end_is_told)
{
	static const struct {
		const char *before; /* what was called, and taken */
		bool untaken;
	} cases[] = { { "io.test.Echo", true }, { "io.test.Keep", false } };

	control_make((struct sl_server_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_object *reply = NULL;
		struct sl_control *control;
		struct sl_err err = {};
		bool more;

		cr_assert_eq(sl_control_new(&control, control_dial(), WAIT_MS), 0);
		cr_assert_eq(sl_control_begin(control, cases[i].before, NULL, NULL, &err), 0);
		control_serve();
		if (cases[i].untaken)
			cr_assert_eq(sl_control_next(control, WAIT_MS, &reply, &more, &err), 0);
		json_object_put(TAKE_PTR(reply));
		sl_client_end(control_latest, "for a test");
		/* What is called now comes too late, and the cause is told all the same. */
		if (cases[i].untaken)
			cr_assert_eq(sl_control_begin(control, "io.test.Echo", NULL, NULL, &err),
				     0);
		control_serve();
		cr_expect_eq(sl_control_next(control, WAIT_MS, &reply, &more, &err), -ECONNRESET);
		cr_expect_str_eq(err.text, "the agent has ended the connection: for a test");
		cr_expect_eq(sl_control_untaken(control), cases[i].untaken, "case %zu", i);
		cr_expect_null(reply);
		sl_control_free(&control);
	}
}

static void *run_server(void *arg)
{
	struct pollfd fds[2] = { { .fd = sl_server_fd(control_server), .events = POLLIN },
				 { .fd = *(int *)arg, .events = POLLIN } };

	while (poll(fds, 2, WAIT_MS) > 0 && !fds[1].revents) {
		sl_server_run(control_server);
		if (control_kept &&
		    sl_client_request(sl_request_client(control_kept)) == control_kept) {
			sl_request_continue(control_kept, control_text("n", "1"));
			sl_request_continue(control_kept, control_text("n", "2"));
			sl_request_reply(TAKE_PTR(control_kept), control_text("n", "3"));
		}
	}
	return NULL;
}

Test(control_client, client_library)
{
	struct sl_fds fds = { .count = 1 };
	struct sl_control *control = NULL;
	struct json_object *reply = NULL;
	struct sl_err err = {};
	int end[2], out[2];
	pthread_t thread;
	bool more = true;
	char byte = 0;

	control_make((struct sl_server_options){});
	cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	cr_assert_eq(pthread_create(&thread, NULL, run_server, &end[0]), 0);
	cr_assert_eq(sl_control_connect(&control, control_path, WAIT_MS, &err), 0, "%s", err.text);

	fds.fd[0] = out[1];
	cr_expect_eq(sl_control_call(control, "io.test.WriteTo", NULL, &fds, &reply, &err), 0, "%s",
		     err.text);
	json_object_put(reply);
	cr_expect_eq(read(out[0], &byte, 1), 1);
	cr_expect_eq(byte, 'x');

	cr_expect_eq(sl_control_call(control, "io.test.None", NULL, NULL, &reply, &err),
		     -EREMOTEIO);
	cr_expect_str_eq(sl_control_error(control), "org.varlink.service.MethodNotFound");
	json_object_put(reply);

	cr_expect_eq(sl_control_more(control, "io.test.Watch", NULL, &err), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		cr_assert_eq(sl_control_next(control, WAIT_MS, &reply, &more, &err), 0, "%s",
			     err.text);
		cr_expect_eq(more, i < 3);
		cr_expect_eq(json_object_get_int(json_object_object_get(reply, "n")), (int)i);
		json_object_put(reply);
	}
	sl_control_free(&control);
	close(end[1]);
	pthread_join(thread, NULL);
	close(end[0]);
	close(out[0]);
	close(out[1]);
}

Test(control_client, nobody_listens)
{
	struct sl_control *control = NULL;
	struct sl_err err = {};

	control_make((struct sl_server_options){});
	cr_expect_eq(sl_control_connect(&control, "/nowhere/socket", 1000, &err), -ENOENT);
	cr_expect_not_null(strstr(err.hint, "sluiced"));
	cr_expect_null(control);
}

/* Who is not accepted from has a full socket: that ends by itself, waiting or not. */
Test(control_client, socket_is_full)
{
	struct sl_control *control = NULL, *waiting[64] = {};
	struct sl_err err = {};
	size_t count = 0;
	int ret;

	control_make((struct sl_server_options){});
	while (!(ret = sl_control_connect(&waiting[count], control_path, 0, &err)))
		cr_assert_lt(++count, ARRAY_SIZE(waiting));
	cr_expect_eq(ret, -EAGAIN, "%s", err.text);
	cr_expect_eq(sl_control_connect(&control, control_path, 20, &err), -EAGAIN, "%s", err.text);
	cr_expect_null(control);
	for (size_t i = 0; i < count; i++)
		sl_control_free(&waiting[i]);
}

/* A call that the peer does not take at once goes out bit by bit, and is answered. */
Test(control_client, nothing_is_waited_for)
{
	size_t size = 3 << 20;
	_cleanup_free_ char *filler = calloc(1, size + 1);
	struct sl_control *control = NULL;
	struct json_object *reply = NULL;
	struct sl_err err = {};
	bool more, pending = false;
	int ret;

	control_make((struct sl_server_options){});
	memset(filler, 'x', size);
	cr_assert_eq(sl_control_connect(&control, control_path, 0, &err), 0, "%s", err.text);
	cr_assert_eq(sl_control_begin(control, "io.test.Echo", control_text("text", filler), NULL,
				      &err),
		     0, "%s", err.text);
	while ((ret = sl_control_next(control, 0, &reply, &more, &err)) == -EAGAIN) {
		pending |= (sl_control_events(control) & POLLOUT) != 0;
		control_serve();
	}
	cr_assert_eq(ret, 0, "%s", err.text);
	cr_expect(pending);
	cr_expect_eq(sl_control_events(control), POLLIN);
	cr_expect_str_eq(json_object_get_string(json_object_object_get(reply, "text")), filler);
	json_object_put(reply);
	sl_control_free(&control);
}

/* Who only wants to know whether somebody is there gives no place for the reason. */
Test(control_client, nobody_there_is_told_without_a_place_for_the_text)
{
	struct sl_control *control = NULL;

	cr_expect_eq(sl_control_connect(&control, "/nonexistent/control.sock", 1000, NULL),
		     -ENOENT);
	cr_expect_null(control);
}
