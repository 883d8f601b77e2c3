// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "unit/lib_world.h"

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
#include <unistd.h>

#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "control/wire.h"
#include "lib/private.h"

#define WAIT_MS 20000
#define OLD_MAX 64

static char dir[] = "/tmp/sl-test-lib-XXXXXX", path[128];
static int listener = -1, stop[2] = { -1, -1 };
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct fake_step *script;
static struct fake_call calls[FAKE_CALLS];
static unsigned int call_count, conn_count;
static struct sl_wire *wire;
static int old[OLD_MAX], kept_fd = -1;
static unsigned int old_count;
static char late[4096]; /* the answer that was not given */

static const char session[] =
	"\"session\":{\"sandbox\":\"" FAKE_SANDBOX "\",\"cgroup\":\"/c\",\"state\":\"lost\","
	"\"wanted\":\"frozen\",\"cause\":\"why\",\"connected\":true,\"enforced\":true}";
static const char owner[] =
	"\"socket\":{\"found\":\"closed\",\"socket\":{\"direction\":\"in\","
	"\"process\":{\"pid\":10,\"start_ns\":\"11\",\"uid\":12,\"comm\":\"server\"},"
	"\"peer\":{\"pid\":20,\"start_ns\":\"18446744073709551615\",\"uid\":22,\"comm\":\"c\","
	"\"exe\":{\"path\":\"/bin/c\"},\"sandbox\":\"box\"}}}";

static void answer_text_of(char *out, size_t size, const struct fake_call *call)
{
	char text[2048] = "";

	if (!strcmp(call->method, "Hello"))
		strcpy(text, "\"protocol\":1");
	else if (!strcmp(call->method, "Attach") || !strcmp(call->method, "Recover"))
		snprintf(text, sizeof(text),
			 "\"sandbox\":\"" FAKE_SANDBOX "\",\"epoch\":%llu,\"token\":\"" FAKE_TOKEN
			 "\"",
			 (unsigned long long)call->epoch);
	else if (!strcmp(call->method, "Heartbeat"))
		snprintf(text, sizeof(text), "\"epoch\":%llu", (unsigned long long)call->epoch);
	else if (!strcmp(call->method, "Plan"))
		strcpy(text, "\"exec\":true,\"connect\":false,\"send\":false,\"strict\":true");
	else if (!strcmp(call->method, "Show"))
		snprintf(text, sizeof(text), "%s", session);
	else if (!strncmp(call->method, "Resolve", 7))
		snprintf(text, sizeof(text), "%s", owner);
	snprintf(out, size, "{\"parameters\":{%s}}", text);
}

static void say(int fd, const char *text, size_t len)
{
	/* The client may have gone. */
	(void)!send(fd, text, len, MSG_NOSIGNAL);
}

/* All of the session, then the last state. */
static void stream(int fd)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"parameters\":{\"event\":\"session\",%s,\"lost\":3},"
		 "\"continues\":true}",
		 session);
	say(fd, text, strlen(text) + 1);
	snprintf(text, sizeof(text),
		 "{\"parameters\":{\"event\":\"gone\",%s,\"lost\":0},"
		 "\"continues\":true}",
		 session);
	say(fd, text, strlen(text) + 1);
}

static void end_connection(void)
{
	sl_wire_free(&wire);
}

static void act(const struct fake_step *step, const struct fake_call *call)
{
	enum fake_act what = step ? step->act : FAKE_OK;
	int fd = sl_wire_fd(wire);
	char text[4096];

	answer_text_of(text, sizeof(text), call);
	switch (what) {
	case FAKE_OK:
	case FAKE_OK_END:
		if (!strcmp(call->method, "Watch"))
			stream(fd);
		else
			say(fd, text, strlen(text) + 1);
		break;
	case FAKE_SILENT:
		strcpy(late, text);
		break;
	case FAKE_SAY:
		say(fd, step->text, strlen(step->text) + 1);
		break;
	case FAKE_HALF:
		say(fd, step->text, strlen(step->text));
		break;
	case FAKE_END:
		break;
	}
	if (what == FAKE_OK_END || what == FAKE_HALF || what == FAKE_END)
		end_connection();
}

/* Whether the call is the one that the script waits for. */
static const struct fake_step *next_step(const char *method)
{
	const struct fake_step *step = script;

	if (!step || (step->act == FAKE_OK && !step->method) ||
	    (step->method && strcmp(step->method, method) != 0))
		return NULL;
	script++;
	return step;
}

static void take_call(struct json_object *json, struct sl_fds *fds)
{
	const char *method = strrchr(answer_text(json, "method"), '.') + 1;
	struct json_object *parameters = answer_object(json, "parameters");
	const struct fake_step *step;
	static uint64_t epoch;
	struct fake_call *call;

	pthread_mutex_lock(&lock);
	call = &calls[call_count < FAKE_CALLS ? call_count : FAKE_CALLS - 1];
	snprintf(call->method, sizeof(call->method), "%s", method);
	snprintf(call->parameters, sizeof(call->parameters), "%s",
		 json_object_to_json_string_ext(parameters, JSON_C_TO_STRING_PLAIN));
	call->epoch = answer_number(parameters, "epoch");
	call->conn = conn_count;
	call->fds = fds->count;
	epoch = call->epoch ?: epoch;
	if (fds->count) {
		sl_cleanup_fd(&kept_fd);
		kept_fd = sl_fds_take(fds, 0);
	}
	call_count++;
	step = next_step(method);
	if (!strcmp(method, "Heartbeat")) {
		struct fake_call beat = *call;

		beat.epoch = epoch;
		act(step, &beat);
	} else {
		act(step, call);
	}
	pthread_mutex_unlock(&lock);
	sl_fds_close(fds);
}

static void serve_connection(void)
{
	struct sl_fds fds = { .count = 0 };
	struct json_object *json = NULL;
	int ret;

	while (wire) {
		ret = sl_wire_next(wire, &json, &fds);
		if (!ret) {
			take_call(json, &fds);
			json_object_put(json);
			continue;
		}
		ret = sl_wire_fill(wire);
		if (ret == -EAGAIN)
			return;
		if (ret)
			end_connection();
	}
}

/* The connection of before stays open, and gets its late answer. */
static void accept_one(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (wire && old_count < OLD_MAX) {
		old[old_count] = dup(sl_wire_fd(wire));
		say(old[old_count++], late, strlen(late) + 1);
	}
	end_connection();
	pthread_mutex_lock(&lock);
	conn_count++;
	pthread_mutex_unlock(&lock);
	if (sl_wire_new(&wire, fd, NULL))
		close(fd);
}

static void *run(void *arg)
{
	(void)arg;
	for (;;) {
		struct pollfd fds[] = { { .fd = stop[0], .events = POLLIN },
					{ .fd = listener, .events = POLLIN },
					{ .fd = wire ? sl_wire_fd(wire) : -1, .events = POLLIN } };

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[0].revents)
			return NULL;
		if (fds[2].revents)
			serve_connection();
		if (fds[1].revents)
			accept_one();
	}
}

void fake_start(const struct fake_step *steps)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	strcpy(addr.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(listener, 16), 0);
	cr_assert_eq(pipe2(stop, O_CLOEXEC), 0);
	script = steps;
	cr_assert_eq(pthread_create(&thread, NULL, run, NULL), 0);
}

void fake_script(const struct fake_step *steps)
{
	pthread_mutex_lock(&lock);
	script = steps;
	pthread_mutex_unlock(&lock);
}

bool fake_script_done(void)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = script->act == FAKE_OK && !script->method;
	pthread_mutex_unlock(&lock);
	return done;
}

/* The thread closes it: this only makes it see the end. */
void fake_cut(void)
{
	pthread_mutex_lock(&lock);
	if (wire)
		shutdown(sl_wire_fd(wire), SHUT_RDWR);
	pthread_mutex_unlock(&lock);
}

void fake_vanish(void)
{
	if (stop[1] < 0)
		return;
	sl_cleanup_fd(&stop[1]);
	pthread_join(thread, NULL);
	sl_cleanup_fd(&stop[0]);
	end_connection();
	sl_cleanup_fd(&listener);
	unlink(path);
}

void fake_stop(void)
{
	fake_vanish();
	while (old_count)
		close(old[--old_count]);
	sl_cleanup_fd(&kept_fd);
	rmdir(dir);
}

const char *fake_path(void)
{
	return path;
}

unsigned int fake_calls(void)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = call_count;
	pthread_mutex_unlock(&lock);
	cr_assert_leq(n, FAKE_CALLS);
	return n;
}

const struct fake_call *fake_call(unsigned int i)
{
	cr_assert_lt(i, fake_calls());
	return &calls[i];
}

const struct fake_call *fake_nth(const char *method, unsigned int n)
{
	for (unsigned int i = 0; i < fake_calls(); i++) {
		if (!strcmp(calls[i].method, method) && !n--)
			return &calls[i];
	}
	return NULL;
}

unsigned int fake_count(const char *method)
{
	unsigned int count = fake_calls(), n = 0;

	for (unsigned int i = 0; i < count; i++)
		n += !strcmp(calls[i].method, method);
	return n;
}

const struct fake_call *fake_last(const char *method)
{
	for (unsigned int i = fake_calls(); i; i--) {
		if (!strcmp(calls[i - 1].method, method))
			return &calls[i - 1];
	}
	return NULL;
}

int fake_take_fd(void)
{
	int fd;

	pthread_mutex_lock(&lock);
	fd = TAKE_FD(kept_fd);
	pthread_mutex_unlock(&lock);
	return fd;
}

struct sl_runtime *runtime_connected(int timeout_ms)
{
	struct sl_runtime *rt = NULL;

	cr_assert_eq(sl_runtime_new(&rt, "test", "1.2"), 0);
	cr_assert_eq(sl_runtime_connect(rt, path, timeout_ms), 0, "%s", sl_runtime_error(rt));
	return rt;
}

struct sl_runtime *runtime_live(int timeout_ms, unsigned int silence_ms)
{
	struct sl_runtime_attach attach = SL_RUNTIME_ATTACH_INIT;
	struct sl_runtime *rt = runtime_connected(timeout_ms);

	attach.cgroup = "/sys/fs/cgroup/test";
	attach.policy = "version: 1\n";
	attach.silence_ms = silence_ms;
	cr_assert_eq(sl_runtime_attach(rt, &attach), 0, "%s", sl_runtime_error(rt));
	cr_assert_eq(sl_runtime_state(rt), SL_RUNTIME_LIVE);
	return rt;
}

void runtime_until(struct sl_runtime *rt, bool (*done)(struct sl_runtime *rt))
{
	int64_t until = sl_monotonic_ms() + WAIT_MS;

	while (!done(rt)) {
		struct pollfd pollfd = { .fd = sl_runtime_fd(rt), .events = POLLIN };

		poll(&pollfd, 1, 100);
		sl_runtime_dispatch(rt);
		cr_assert_lt(sl_monotonic_ms(), until, "not within %d ms: %s", WAIT_MS,
			     sl_runtime_error(rt));
	}
}
