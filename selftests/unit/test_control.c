/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The control service, over a socket in a directory of the test's own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "unit/control_world.h"

TestSuite(control, .fini = control_unmake, .timeout = 60);

#define CALL(text) text, sizeof(text)

Test(control, answers)
{
	static const struct {
		const char *call;
		size_t size;
		const char *want; /* part of the answer; NULL: the connection ends */
	} cases[] = {
		{ CALL("{\"method\":\"io.test.Echo\",\"parameters\":{\"a\":1}}"),
		  "{\"parameters\":{\"a\":1}}" },
		{ CALL("{\"method\":\"io.test.Echo\"}"), "{\"parameters\":{}}" },
		{ CALL(" {\"method\":\"io.test.Echo\"}\n"), "{\"parameters\":{}}" },
		{ CALL("{\"method\":\"io.test.Root\"}"), "{\"parameters\":{}}" },
		{ CALL("{\"method\":\"io.test.None\"}"),
		  "{\"error\":\"org.varlink.service.MethodNotFound\","
		  "\"parameters\":{\"method\":\"io.test.None\"}}" },
		{ CALL("{\"method\":\"io.tes\"}"), "service.InterfaceNotFound" },
		{ CALL("{\"method\":\"\"}"), "service.InterfaceNotFound" },
		{ CALL("{\"method\":\"io.test.Watch\"}"), "service.ExpectedMore" },
		{ CALL("{\"method\":\"io.test.WriteTo\"}"), "io.test.NoDescriptor" },
		{ CALL("{\"method\":\"org.varlink.service.GetInfo\"}"),
		  "\"interfaces\":[\"org.varlink.service\",\"io.test\"]" },
		{ CALL("{\"method\":\"org.varlink.service.GetInterfaceDescription\","
		       "\"parameters\":{\"interface\":\"io.test\"}}"),
		  "{\"parameters\":{\"description\":\"interface io.test\\n\"}}" },
		{ CALL("{\"method\":\"org.varlink.service.GetInterfaceDescription\"}"),
		  "service.InvalidParameter" },
		{ CALL("{\"method\":\"org.varlink.service.Upgrade\"}"), "MethodNotFound" },
		{ CALL(""), NULL },
		{ CALL("[]"), NULL },
		{ CALL("{}"), NULL },
		{ CALL("{\"method\":1}"), NULL },
		{ CALL("{\"method\":\"io.test.Echo\",\"parameters\":[]}"), NULL },
		{ CALL("{\"method\":\"io.test.Echo\"} x"), NULL },
		{ CALL("{\"method\":\"io.test.Echo\",\"upgrade\":true}"), NULL },
		{ CALL("{\"method\":\"io.test.\xff\"}"), NULL },
		{ CALL("{'method':'io.test.Echo'}"), NULL },
	};
	char out[1024];

	control_make((struct sl_server_options){});
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_fd_ int fd = control_dial();
		size_t n = control_exchange(fd, cases[i].call, cases[i].size, out, sizeof(out));

		if (cases[i].want) {
			cr_expect(n && strstr(out, cases[i].want), "case %zu: '%s'", i, out);
			cr_expect_eq(sl_server_clients(control_server), 1, "case %zu", i);
		} else {
			cr_expect(n && strstr(out, "io.test.Closed"), "case %zu: '%s'", i, out);
			cr_expect_eq(sl_server_clients(control_server), 0, "case %zu", i);
		}
		sl_cleanup_fd(&fd);
		control_serve();
	}
	cr_expect_eq(control_gone_count, ARRAY_SIZE(cases));
}

/* Byte by byte, and several in one go: the same answers, in order. */
Test(control, any_pieces)
{
	static const char calls[] = "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":1}}\0"
				    "{\"method\":\"io.test.Echo\",\"parameters\":{\"n\":2}}";
	static const char want[] = "{\"parameters\":{\"n\":1}}\0{\"parameters\":{\"n\":2}}";
	char out[1024];
	_cleanup_fd_ int fd = -1;
	size_t got = 0;

	control_make((struct sl_server_options){});
	fd = control_dial();
	for (size_t i = 0; i < sizeof(calls); i++)
		got += control_exchange(fd, calls + i, 1, out + got, sizeof(out) - got);
	cr_expect_eq(got, sizeof(want));
	cr_expect_arr_eq(out, want, sizeof(want));
	cr_expect_eq(control_exchange(fd, calls, sizeof(calls), out, sizeof(out)), sizeof(want));
	cr_expect_arr_eq(out, want, sizeof(want));
}

/* What waits behind a call in hand is answered after it, without another byte. */
Test(control, one_call_in_hand)
{
	static const char calls[] = "{\"method\":\"io.test.Keep\"}\0{\"method\":\"io.test.Echo\"}";
	char out[256];
	_cleanup_fd_ int fd = -1;

	control_make((struct sl_server_options){});
	fd = control_dial();
	cr_expect_eq(control_exchange(fd, calls, sizeof(calls), out, sizeof(out)), 0);
	cr_assert_not_null(control_kept);
	cr_expect_str_eq(sl_request_method(control_kept), "io.test.Keep");
	sl_request_reply(control_kept, control_text("kept", "yes"));
	control_serve();
	cr_expect_eq(recv(fd, out, sizeof(out), MSG_DONTWAIT), 48);
	cr_expect_str_eq(out, "{\"parameters\":{\"kept\":\"yes\"}}");
	cr_expect_str_eq(out + strlen(out) + 1, "{\"parameters\":{}}");
}

Test(control, client_goes_with_a_call_in_hand)
{
	static const char call[] = "{\"method\":\"io.test.Watch\",\"more\":true}";
	char out[64];
	int fd;

	control_make((struct sl_server_options){});
	fd = control_dial();
	control_exchange(fd, call, sizeof(call), out, sizeof(out));
	cr_assert_not_null(control_kept);
	close(fd);
	control_serve();
	cr_expect_null(control_kept);
	cr_expect_eq(control_gone_count, 1);
}

/*
 * A connection ends while somebody else has its open file as well, as who walks the files of all
 * processes does for an instant: the next one, in the same memory, gets none of its events.
 */
Test(control, end_of_one_is_no_end_of_the_next)
{
	static const char call[] = "{\"method\":\"io.test.Keep\"}";
	int first, next, hold[2];
	char out[64];
	pid_t pid;

	control_make((struct sl_server_options){});
	first = control_dial();
	control_serve();
	cr_expect_eq(sl_server_clients(control_server), 1);
	close(first);
	cr_assert_eq(pipe(hold), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		close(hold[1]);
		_exit((int)read(hold[0], out, 1));
	}
	/* Once: a stale event is there for ever. */
	sl_server_run(control_server);
	cr_expect_eq(sl_server_clients(control_server), 0);
	next = control_dial();
	cr_assert_eq(send(next, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
	for (int i = 0; i < 4; i++)
		sl_server_run(control_server);
	cr_expect_not_null(control_kept);
	cr_expect_eq(control_gone_count, 1);
	close(hold[0]);
	close(hold[1]);
	cr_expect_eq(waitpid(pid, NULL, 0), pid);
	close(next);
}

/* A stream that is not read is bounded, and ends after a while. */
Test(control, slow_reader)
{
	static const char call[] = "{\"method\":\"io.test.Watch\",\"more\":true}";
	_cleanup_free_ char *filler = calloc(1, 4097);
	unsigned int sent = 0;
	char out[64];
	int fd, ret;

	control_make((struct sl_server_options){ .wire.queue = 65536, .partial_ms = 1 });
	fd = control_dial();
	control_exchange(fd, call, sizeof(call), out, sizeof(out));
	cr_assert_not_null(control_kept);
	memset(filler, 'x', 4096);
	while (!(ret = sl_request_continue(control_kept, control_text("text", filler))))
		cr_assert_lt(++sent, 100000);
	cr_expect_eq(ret, -ENOBUFS);
	sl_server_tick(control_server);
	for (int i = 0; i < 1000 && sl_server_clients(control_server); i++) {
		poll(NULL, 0, 1);
		sl_server_tick(control_server);
		control_serve();
	}
	cr_expect_eq(sl_server_clients(control_server), 0);
	cr_expect_eq(sl_server_count(control_server, SL_SERVER_STALLED), 1);
	cr_expect_str_eq(control_cause, "an answer was not read in time");
	cr_expect_null(control_kept);
	close(fd);
}

Test(control, half_a_message)
{
	int fd;

	control_make((struct sl_server_options){ .partial_ms = 1 });
	fd = control_dial();
	cr_assert_eq(write(fd, "{\"meth", 6), 6);
	for (int i = 0; i < 1000 && !sl_server_count(control_server, SL_SERVER_STALLED); i++) {
		control_serve();
		poll(NULL, 0, 1);
		sl_server_tick(control_server);
		/* More bytes are no excuse. */
		send(fd, " ", 1, MSG_NOSIGNAL);
	}
	control_serve();
	cr_expect_eq(sl_server_count(control_server, SL_SERVER_STALLED), 1);
	cr_expect_eq(sl_server_clients(control_server), 0);
	cr_expect_str_eq(control_cause, "a message was begun and not finished in time");
	close(fd);
}

Test(control, too_long)
{
	char text[300];
	int fd;

	control_make((struct sl_server_options){ .wire.message = 256 });
	memset(text, ' ', sizeof(text));
	fd = control_dial();
	cr_assert_eq(write(fd, text, sizeof(text)), sizeof(text));
	control_serve();
	cr_expect_eq(sl_server_count(control_server, SL_SERVER_MALFORMED), 1);
	cr_expect_eq(sl_server_clients(control_server), 0);
	cr_expect_str_eq(control_cause, "a message was too long");
	close(fd);
}

/* What ends a connection is told to its owner. */
Test(control, causes)
{
	static const struct {
		const char *sent, *cause;
	} cases[] = {
		{ "", "the connection was closed" },
		{ "[]", "a message was no JSON object in UTF-8" },
		{ "{\"method\":7}", "a message was no call" },
	};
	char said[256], want[256];

	control_make((struct sl_server_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = control_dial();

		if (cases[i].sent[0])
			cr_assert_gt(write(fd, cases[i].sent, strlen(cases[i].sent) + 1), 0);
		else
			shutdown(fd, SHUT_WR);
		control_cause = NULL;
		control_serve();
		cr_expect_str_eq(control_cause, cases[i].cause);
		/* And to its client, unless that has ended it. */
		snprintf(want, sizeof(want),
			 "{\"error\":\"io.test.Closed\",\"parameters\":{\"text\":\"%s\","
			 "\"taken\":false}}",
			 cases[i].cause);
		memset(said, 0, sizeof(said));
		(void)!recv(fd, said, sizeof(said) - 1, MSG_DONTWAIT);
		cr_expect_str_eq(said, cases[i].sent[0] ? want : "");
		close(fd);
	}
}

/* Three quarters of the places are for others than root, in all and for each. */
Test(control, clients_are_bounded)
{
	char said[256] = "";
	int fds[5];

	control_make((struct sl_server_options){ .clients = 4 });
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = control_dial();
		control_serve();
	}
	cr_expect_gt(recv(fds[4], said, sizeof(said) - 1, MSG_DONTWAIT), 0);
	cr_expect_not_null(strstr(said, "no room is left"), "%s", said);
	cr_expect_eq(sl_server_count(control_server, SL_SERVER_REFUSED), getuid() ? 2 : 1);
	cr_expect_eq(sl_server_count(control_server, SL_SERVER_ACCEPTED), getuid() ? 3 : 4);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	control_serve();
	cr_expect_eq(sl_server_clients(control_server), 0);
}
