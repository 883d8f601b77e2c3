/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The control service and its clients, over a socket in a directory of the test's own. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/client.h"
#include "control/server.h"

#define WAIT_MS 10000

static char dir[] = "/tmp/sl-test-control-XXXXXX", path[128];
static int listener = -1;
static struct sl_server *server;
static struct sl_request *kept;
static struct sl_client *latest; /* who has called */
static unsigned int gone_count;

static struct json_object *text_of(const char *key, const char *text)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, key, json_object_new_string(text));
	return json;
}

static void echo(struct sl_request *request, void *ctx)
{
	(void)ctx;
	latest = sl_request_client(request);
	sl_request_reply(request, json_object_get(sl_request_parameters(request)));
}

static void keep(struct sl_request *request, void *ctx)
{
	(void)ctx;
	kept = request;
	latest = sl_request_client(request);
}

/* Writes into the descriptor that came with it. */
static void write_to(struct sl_request *request, void *ctx)
{
	_cleanup_fd_ int fd = sl_request_take_fd(request, 0);

	(void)ctx;
	if (fd < 0 || !(fcntl(fd, F_GETFD) & FD_CLOEXEC) || write(fd, "x", 1) != 1)
		sl_request_error(request, "io.test.NoDescriptor", NULL);
	else
		sl_request_reply(request, NULL);
}

static const char *cause;

static void gone(struct sl_client *client, void *data, void *ctx)
{
	(void)ctx;
	(void)data;
	if (sl_client_request(client) == kept)
		kept = NULL;
	gone_count++;
	cause = sl_client_cause(client);
}

static const struct sl_method methods[] = {
	{ "Echo", 0, echo },
	{ "Keep", 0, keep },
	{ "Root", SL_METHOD_ROOT, echo },
	{ "Watch", SL_METHOD_MORE, keep },
	{ "WriteTo", 0, write_to },
};
static const struct sl_interface interface = { "io.test", "interface io.test\n", methods,
					       ARRAY_SIZE(methods) };

static void make(struct sl_server_options options)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct sl_err err = {};

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	strcpy(addr.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(listener, 16), 0);
	options.listener = listener;
	options.interface = &interface;
	options.product = "test";
	options.version = "0";
	options.gone = gone;
	cr_assert_eq(sl_server_new(&server, &options, &err), 0, "%s", err.text);
}

static void unmake(void)
{
	sl_server_free(&server);
	sl_cleanup_fd(&listener);
	unlink(path);
	rmdir(dir);
}

TestSuite(control, .fini = unmake, .timeout = 60);

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Lets the server work until it has nothing to do. */
static void serve(void)
{
	struct pollfd pollfd = { .fd = sl_server_fd(server), .events = POLLIN };

	while (poll(&pollfd, 1, 0) > 0)
		sl_server_run(server);
}

/* Sends bytes, lets the server work, and reads all that it answers. */
static size_t exchange(int fd, const void *data, size_t size, char *out, size_t room)
{
	ssize_t n;

	cr_assert_eq(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
	serve();
	n = recv(fd, out, room - 1, MSG_DONTWAIT);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

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

	make((struct sl_server_options){});
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_fd_ int fd = dial();
		size_t n = exchange(fd, cases[i].call, cases[i].size, out, sizeof(out));

		if (cases[i].want) {
			cr_expect(n && strstr(out, cases[i].want), "case %zu: '%s'", i, out);
			cr_expect_eq(sl_server_clients(server), 1, "case %zu", i);
		} else {
			cr_expect(n && strstr(out, "io.test.Closed"), "case %zu: '%s'", i, out);
			cr_expect_eq(sl_server_clients(server), 0, "case %zu", i);
		}
		sl_cleanup_fd(&fd);
		serve();
	}
	cr_expect_eq(gone_count, ARRAY_SIZE(cases));
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

	make((struct sl_server_options){});
	fd = dial();
	for (size_t i = 0; i < sizeof(calls); i++)
		got += exchange(fd, calls + i, 1, out + got, sizeof(out) - got);
	cr_expect_eq(got, sizeof(want));
	cr_expect_arr_eq(out, want, sizeof(want));
	cr_expect_eq(exchange(fd, calls, sizeof(calls), out, sizeof(out)), sizeof(want));
	cr_expect_arr_eq(out, want, sizeof(want));
}

/* What waits behind a call in hand is answered after it, without another byte. */
Test(control, one_call_in_hand)
{
	static const char calls[] = "{\"method\":\"io.test.Keep\"}\0{\"method\":\"io.test.Echo\"}";
	char out[256];
	_cleanup_fd_ int fd = -1;

	make((struct sl_server_options){});
	fd = dial();
	cr_expect_eq(exchange(fd, calls, sizeof(calls), out, sizeof(out)), 0);
	cr_assert_not_null(kept);
	cr_expect_str_eq(sl_request_method(kept), "io.test.Keep");
	sl_request_reply(kept, text_of("kept", "yes"));
	serve();
	cr_expect_eq(recv(fd, out, sizeof(out), MSG_DONTWAIT), 48);
	cr_expect_str_eq(out, "{\"parameters\":{\"kept\":\"yes\"}}");
	cr_expect_str_eq(out + strlen(out) + 1, "{\"parameters\":{}}");
}

Test(control, client_goes_with_a_call_in_hand)
{
	static const char call[] = "{\"method\":\"io.test.Watch\",\"more\":true}";
	char out[64];
	int fd;

	make((struct sl_server_options){});
	fd = dial();
	exchange(fd, call, sizeof(call), out, sizeof(out));
	cr_assert_not_null(kept);
	close(fd);
	serve();
	cr_expect_null(kept);
	cr_expect_eq(gone_count, 1);
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

	make((struct sl_server_options){});
	first = dial();
	serve();
	cr_expect_eq(sl_server_clients(server), 1);
	close(first);
	cr_assert_eq(pipe(hold), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		close(hold[1]);
		_exit((int)read(hold[0], out, 1));
	}
	/* Once: a stale event is there for ever. */
	sl_server_run(server);
	cr_expect_eq(sl_server_clients(server), 0);
	next = dial();
	cr_assert_eq(send(next, call, sizeof(call), MSG_NOSIGNAL), sizeof(call));
	for (int i = 0; i < 4; i++)
		sl_server_run(server);
	cr_expect_not_null(kept);
	cr_expect_eq(gone_count, 1);
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

	make((struct sl_server_options){ .wire.queue = 65536, .partial_ms = 1 });
	fd = dial();
	exchange(fd, call, sizeof(call), out, sizeof(out));
	cr_assert_not_null(kept);
	memset(filler, 'x', 4096);
	while (!(ret = sl_request_continue(kept, text_of("text", filler))))
		cr_assert_lt(++sent, 100000);
	cr_expect_eq(ret, -ENOBUFS);
	sl_server_tick(server);
	for (int i = 0; i < 1000 && sl_server_clients(server); i++) {
		poll(NULL, 0, 1);
		sl_server_tick(server);
		serve();
	}
	cr_expect_eq(sl_server_clients(server), 0);
	cr_expect_eq(sl_server_count(server, SL_SERVER_STALLED), 1);
	cr_expect_str_eq(cause, "an answer was not read in time");
	cr_expect_null(kept);
	close(fd);
}

Test(control, half_a_message)
{
	int fd;

	make((struct sl_server_options){ .partial_ms = 1 });
	fd = dial();
	cr_assert_eq(write(fd, "{\"meth", 6), 6);
	for (int i = 0; i < 1000 && !sl_server_count(server, SL_SERVER_STALLED); i++) {
		serve();
		poll(NULL, 0, 1);
		sl_server_tick(server);
		/* More bytes are no excuse. */
		send(fd, " ", 1, MSG_NOSIGNAL);
	}
	serve();
	cr_expect_eq(sl_server_count(server, SL_SERVER_STALLED), 1);
	cr_expect_eq(sl_server_clients(server), 0);
	cr_expect_str_eq(cause, "a message was begun and not finished in time");
	close(fd);
}

Test(control, too_long)
{
	char text[300];
	int fd;

	make((struct sl_server_options){ .wire.message = 256 });
	memset(text, ' ', sizeof(text));
	fd = dial();
	cr_assert_eq(write(fd, text, sizeof(text)), sizeof(text));
	serve();
	cr_expect_eq(sl_server_count(server, SL_SERVER_MALFORMED), 1);
	cr_expect_eq(sl_server_clients(server), 0);
	cr_expect_str_eq(cause, "a message was too long");
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

	make((struct sl_server_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int fd = dial();

		if (cases[i].sent[0])
			cr_assert_gt(write(fd, cases[i].sent, strlen(cases[i].sent) + 1), 0);
		else
			shutdown(fd, SHUT_WR);
		cause = NULL;
		serve();
		cr_expect_str_eq(cause, cases[i].cause);
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

/* What is ended is told to who calls, and whether his call may be said again. */
Test(control, end_is_told)
{
	static const struct {
		const char *before; /* what was called, and taken */
		bool untaken;
	} cases[] = { { "io.test.Echo", true }, { "io.test.Keep", false } };

	make((struct sl_server_options){ 0 });
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_object *reply = NULL;
		struct sl_control *control;
		struct sl_err err = {};
		bool more;

		cr_assert_eq(sl_control_new(&control, dial(), WAIT_MS), 0);
		cr_assert_eq(sl_control_begin(control, cases[i].before, NULL, NULL, &err), 0);
		serve();
		if (cases[i].untaken)
			cr_assert_eq(sl_control_next(control, WAIT_MS, &reply, &more, &err), 0);
		json_object_put(TAKE_PTR(reply));
		sl_client_end(latest, "for a test");
		/* What is called now comes too late, and the cause is told all the same. */
		if (cases[i].untaken)
			cr_assert_eq(sl_control_begin(control, "io.test.Echo", NULL, NULL, &err),
				     0);
		serve();
		cr_expect_eq(sl_control_next(control, WAIT_MS, &reply, &more, &err), -ECONNRESET);
		cr_expect_str_eq(err.text, "the agent has ended the connection: for a test");
		cr_expect_eq(sl_control_untaken(control), cases[i].untaken, "case %zu", i);
		cr_expect_null(reply);
		sl_control_free(&control);
	}
}

/* Three quarters of the places are for others than root, in all and for each. */
Test(control, clients_are_bounded)
{
	char said[256] = "";
	int fds[5];

	make((struct sl_server_options){ .clients = 4 });
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = dial();
		serve();
	}
	cr_expect_gt(recv(fds[4], said, sizeof(said) - 1, MSG_DONTWAIT), 0);
	cr_expect_not_null(strstr(said, "no room is left"), "%s", said);
	cr_expect_eq(sl_server_count(server, SL_SERVER_REFUSED), getuid() ? 2 : 1);
	cr_expect_eq(sl_server_count(server, SL_SERVER_ACCEPTED), getuid() ? 3 : 4);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	serve();
	cr_expect_eq(sl_server_clients(server), 0);
}

static void *run_server(void *arg)
{
	struct pollfd fds[2] = { { .fd = sl_server_fd(server), .events = POLLIN },
				 { .fd = *(int *)arg, .events = POLLIN } };

	while (poll(fds, 2, WAIT_MS) > 0 && !fds[1].revents) {
		sl_server_run(server);
		if (kept && sl_client_request(sl_request_client(kept)) == kept) {
			sl_request_continue(kept, text_of("n", "1"));
			sl_request_continue(kept, text_of("n", "2"));
			sl_request_reply(TAKE_PTR(kept), text_of("n", "3"));
		}
	}
	return NULL;
}

Test(control, client_library)
{
	struct sl_fds fds = { .count = 1 };
	struct sl_control *control = NULL;
	struct json_object *reply = NULL;
	struct sl_err err = {};
	int end[2], out[2];
	pthread_t thread;
	bool more = true;
	char byte = 0;

	make((struct sl_server_options){});
	cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	cr_assert_eq(pthread_create(&thread, NULL, run_server, &end[0]), 0);
	cr_assert_eq(sl_control_connect(&control, path, WAIT_MS, &err), 0, "%s", err.text);

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

Test(control, nobody_listens)
{
	struct sl_control *control = NULL;
	struct sl_err err = {};

	make((struct sl_server_options){});
	cr_expect_eq(sl_control_connect(&control, "/nowhere/socket", 1000, &err), -ENOENT);
	cr_expect_not_null(strstr(err.hint, "sluiced"));
	cr_expect_null(control);
}

/* Who is not accepted from has a full socket: that ends by itself, waiting or not. */
Test(control, socket_is_full)
{
	struct sl_control *control = NULL, *waiting[64] = {};
	struct sl_err err = {};
	size_t count = 0;
	int ret;

	make((struct sl_server_options){});
	while (!(ret = sl_control_connect(&waiting[count], path, 0, &err)))
		cr_assert_lt(++count, ARRAY_SIZE(waiting));
	cr_expect_eq(ret, -EAGAIN, "%s", err.text);
	cr_expect_eq(sl_control_connect(&control, path, 20, &err), -EAGAIN, "%s", err.text);
	cr_expect_null(control);
	for (size_t i = 0; i < count; i++)
		sl_control_free(&waiting[i]);
}

/* A call that the peer does not take at once goes out bit by bit, and is answered. */
Test(control, nothing_is_waited_for)
{
	size_t size = 3 << 20;
	_cleanup_free_ char *filler = calloc(1, size + 1);
	struct sl_control *control = NULL;
	struct json_object *reply = NULL;
	struct sl_err err = {};
	bool more, pending = false;
	int ret;

	make((struct sl_server_options){});
	memset(filler, 'x', size);
	cr_assert_eq(sl_control_connect(&control, path, 0, &err), 0, "%s", err.text);
	cr_assert_eq(sl_control_begin(control, "io.test.Echo", text_of("text", filler), NULL, &err),
		     0, "%s", err.text);
	while ((ret = sl_control_next(control, 0, &reply, &more, &err)) == -EAGAIN) {
		pending |= (sl_control_events(control) & POLLOUT) != 0;
		serve();
	}
	cr_assert_eq(ret, 0, "%s", err.text);
	cr_expect(pending);
	cr_expect_eq(sl_control_events(control), POLLIN);
	cr_expect_str_eq(json_object_get_string(json_object_object_get(reply, "text")), filler);
	json_object_put(reply);
	sl_control_free(&control);
}

/* Who only wants to know whether somebody is there gives no place for the reason. */
Test(control, nobody_there_is_told_without_a_place_for_the_text)
{
	struct sl_control *control = NULL;

	cr_expect_eq(sl_control_connect(&control, "/nonexistent/control.sock", 1000, NULL),
		     -ENOENT);
	cr_expect_null(control);
}
