/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "unit/control_world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"

static char dir[] = "/tmp/sl-test-control-XXXXXX";
char control_path[128];
int control_listener = -1;
struct sl_server *control_server;
struct sl_request *control_kept;
struct sl_client *control_latest;
unsigned int control_gone_count;

struct json_object *control_text(const char *key, const char *text)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, key, json_object_new_string(text));
	return json;
}

static void echo(struct sl_request *request, void *ctx)
{
	(void)ctx;
	control_latest = sl_request_client(request);
	sl_request_reply(request, json_object_get(sl_request_parameters(request)));
}

static void keep(struct sl_request *request, void *ctx)
{
	(void)ctx;
	control_kept = request;
	control_latest = sl_request_client(request);
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

const char *control_cause;

static void gone(struct sl_client *client, void *data, void *ctx)
{
	(void)ctx;
	(void)data;
	if (sl_client_request(client) == control_kept)
		control_kept = NULL;
	control_gone_count++;
	control_cause = sl_client_cause(client);
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

void control_make(struct sl_server_options options)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct sl_err err = {};

	cr_assert_not_null(mkdtemp(dir));
	snprintf(control_path, sizeof(control_path), "%s/socket", dir);
	strcpy(addr.sun_path, control_path);
	control_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(control_listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(control_listener, 16), 0);
	options.listener = control_listener;
	options.interface = &interface;
	options.product = "test";
	options.version = "0";
	options.gone = gone;
	cr_assert_eq(sl_server_new(&control_server, &options, &err), 0, "%s", err.text);
}

void control_unmake(void)
{
	sl_server_free(&control_server);
	sl_cleanup_fd(&control_listener);
	unlink(control_path);
	rmdir(dir);
}

int control_dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, control_path);
	cr_assert_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

void control_serve(void)
{
	struct pollfd pollfd = { .fd = sl_server_fd(control_server), .events = POLLIN };

	while (poll(&pollfd, 1, 0) > 0)
		sl_server_run(control_server);
}

size_t control_exchange(int fd, const void *data, size_t size, char *out, size_t room)
{
	ssize_t n;

	cr_assert_eq(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
	control_serve();
	n = recv(fd, out, room - 1, MSG_DONTWAIT);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}
