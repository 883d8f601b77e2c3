/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "bench.h"
#include "caller.h"
#include "kernel/cgroup.h"

#define CALL_MS 120000
#define TAKE_MS 20000
#define DESTROY_MS 10000
#define SILENCE_MS 3600000 /* the longest: a session of a benchmark says nothing */
#define GRACE_MS 86400000
#define KEY 16

const char *const sl_guest_policies[] = { "observing", "paths", "names", "held", NULL };

/* `params` is taken over; the answer's `sandbox`, if it has one, is noted. */
static int call(struct sl_guest *g, const char *method, struct json_object *params,
		const struct sl_fds *fds, double *ms, struct sl_err *err)
{
	struct json_object *reply = NULL, *sandbox;
	uint64_t start = sl_bench_now_ns();
	int rc = sl_control_call(g->control, method, params, fds, &reply, err);

	if (ms)
		*ms = (double)(sl_bench_now_ns() - start) / 1e6;
	if (rc == -EREMOTEIO)
		sl_err_set(err, EREMOTEIO, "%s: %s: %.400s", method, sl_control_error(g->control),
			   reply ? json_object_to_json_string(reply) : "");
	else if (!rc && json_object_object_get_ex(reply, "sandbox", &sandbox))
		snprintf(g->sandbox, sizeof(g->sandbox), "%s", json_object_get_string(sandbox));
	json_object_put(reply);
	return rc;
}

static int greet(struct sl_guest *g, struct sl_err *err)
{
	int rc = sl_control_connect(&g->control, g->spec.daemon->socket, CALL_MS, err);

	return rc
		       ?: call(g, "io.sluice.Hello",
			       json_tokener_parse("{\"component\":{\"name\":\"sluice-bench\","
						  "\"version\":\"1\",\"min\":1,\"max\":1}}"),
			       NULL, NULL, err);
}

int sl_guest_open(struct sl_guest *g, const struct sl_guest_spec *spec, struct sl_err *err)
{
	int rc;

	*g = (struct sl_guest)SL_GUEST_NONE;
	g->spec = *spec;
	if (snprintf(g->cgroup, sizeof(g->cgroup), "%s/g%u", spec->parent, spec->number) >=
	    (int)sizeof(g->cgroup))
		return sl_err_sys(err, ENAMETOOLONG, "%s", spec->parent);
	rc = sl_cgroup_create(g->cgroup, err);
	return rc ?: greet(g, err);
}

/* --- its process --- */

struct start {
	struct sl_guest *guest;
	const char *const *args;
	int keep;
};

static int start_main(void *arg)
{
	const struct start *start = arg;
	struct sl_guest *g = start->guest;
	const struct sl_filter_options options = {
		.hold = g->spec.policy == SL_GUEST_HELD ? SL_HOLD_EXEC : 0,
		.flags = SL_FILTER_NOTIFY_FAMILY,
	};
	struct sl_filter filter;

	sl_cleanup_fd(&g->handoff.parent);
	if (start->keep >= 0)
		(void)fcntl(start->keep, F_SETFD, 0);
	if (sl_filter_make(&filter, &options, NULL) ||
	    sl_handoff_give(&g->handoff, &filter, g->spec.daemon->listener_flags, NULL))
		return 1;
	execv("/proc/self/exe", (char *const *)start->args);
	return 127;
}

int sl_guest_start(struct sl_guest *g, const char *const args[], int keep, struct sl_err *err)
{
	struct start start = { g, args, keep };
	const struct sl_child_spec spec = {
		.cgroup = g->cgroup, .cpu = -1, .run = start_main, .arg = &start
	};
	int rc = sl_handoff_new(&g->handoff, err);

	rc = rc ?: sl_child_start(&g->child, &spec, err);
	sl_cleanup_fd(&g->handoff.child);
	return rc ?: sl_handoff_take(&g->handoff, TAKE_MS, &g->listener, err);
}

int sl_guest_go(struct sl_guest *g, struct sl_err *err)
{
	int rc = sl_handoff_release(&g->handoff, err);

	sl_handoff_end(&g->handoff);
	return rc;
}

/* --- its session --- */

static int policy_text(char *out, size_t size, const struct sl_guest_spec *spec, struct sl_err *err)
{
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 2);
	bool none = spec->policy == SL_GUEST_OBSERVE;

	if (n < 0)
		return sl_err_sys(err, errno, "can't tell this program's path");
	/* A pattern that this program's own name matches. */
	if (spec->policy == SL_GUEST_HELD)
		exe[n - 1] = '*';
	exe[n] = '\0';
	n = snprintf(out, size,
		     "version: 1\nnetwork_policies:\n e:\n  binaries: [{path: \"%s\"}]\n"
		     "  endpoints:\n  - {cidr: 192.0.2.1/32, port: %u}\n%s",
		     exe, spec->port,
		     spec->policy == SL_GUEST_NAMES ? "  - {host: localhost, port: 1}\n" : "");
	if (none)
		n = snprintf(out, size, "version: 1\nnetwork_policies: {}\n");
	return (size_t)n < size ? 0 : sl_err_sys(err, ENAMETOOLONG, "policy");
}

int sl_guest_attach(struct sl_guest *g, double *ms, struct sl_err *err)
{
	const struct sl_fds fds = { { g->listener }, g->listener >= 0 };
	char text[PATH_MAX + 512], key[2 * KEY + 1];
	struct json_object *params, *options;
	uint8_t bytes[KEY];
	int rc = policy_text(text, sizeof(text), &g->spec, err);

	if (rc)
		return rc;
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return sl_err_sys(err, EIO, "random bytes");
	sl_hex(key, bytes, sizeof(bytes));
	params = json_object_new_object();
	options = json_object_new_object();
	json_object_object_add(options, "silence_ms", json_object_new_int(SILENCE_MS));
	/* Nothing recovers a session here, and its workload is not to stand still for that. */
	json_object_object_add(options, "grace_ms", json_object_new_int(GRACE_MS));
	json_object_object_add(options, "freeze_on_loss", json_object_new_boolean(false));
	if (g->spec.policy == SL_GUEST_OBSERVE)
		json_object_object_add(options, "mode", json_object_new_string("observe"));
	json_object_object_add(params, "options", options);
	json_object_object_add(params, "key", json_object_new_string(key));
	json_object_object_add(params, "epoch", json_object_new_int(1));
	json_object_object_add(params, "cgroup", json_object_new_string(g->cgroup));
	json_object_object_add(params, "policy", json_object_new_string(text));
	if (g->listener >= 0)
		json_object_object_add(params, "listener_fd", json_object_new_int(0));
	rc = call(g, "io.sluice.Attach", params, &fds, ms, err);
	g->attached = !rc;
	/* The agent's alone from here on. */
	sl_cleanup_fd(&g->listener);
	return rc;
}

static struct json_object *detach_params(const struct sl_guest *g)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "running", json_object_new_string("kill"));
	json_object_object_add(params, "sandbox", json_object_new_string(g->sandbox));
	return params;
}

int sl_guest_detach(struct sl_guest *g, double *ms, struct sl_err *err)
{
	int rc = call(g, "io.sluice.Detach", detach_params(g), NULL, ms, err);

	if (rc == -EPIPE || rc == -ECONNRESET) {
		sl_control_free(&g->control);
		*err = (struct sl_err){ 0 };
		rc = greet(g, err);
		rc = rc ?: call(g, "io.sluice.Detach", detach_params(g), NULL, ms, err);
	}
	if (!rc)
		g->attached = false;
	return rc;
}

void sl_guest_clear(struct sl_guest *g)
{
	struct sl_err err = { 0 };
	int rc;

	sl_handoff_end(&g->handoff);
	sl_cleanup_fd(&g->listener);
	if (g->attached && sl_guest_detach(g, NULL, &err))
		sl_log_err(SL_LOG_WARNING, &err);
	sl_control_free(&g->control);
	sl_child_stop(&g->child);
	if (!g->cgroup[0])
		return;
	rc = sl_cgroup_destroy(g->cgroup, DESTROY_MS);
	if (rc)
		sl_log_warning("can't remove cgroup '%s': %s", g->cgroup, strerror(-rc));
	g->cgroup[0] = '\0';
}
