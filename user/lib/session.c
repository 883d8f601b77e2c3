// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a runtime asks for: plan, attach, and what follows until the sandbox is gone. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/object.h"
#include "base/utf8.h"
#include "control/wire.h"
#include "lib/private.h"

#define SILENCE_MS 10000 /* the interface's default */
#define KEY_LEN 16

/* Words of the interface, by the enums of the public header; NULL says nothing. */
static const char *const mode_words[] = { NULL, "observe", "audit", "enforce" };
static const char *const end_words[] = { NULL, "frozen", "continue", "kill", "remove" };
static const char *const net_words[] = { "host", "relay" };
static const char *const dns_words[] = { "auto", "policy", "host" };
static const char *const hold_words[] = { "auto", "exec", "connect" };
static const char *const detach_words[] = { "refuse", "kill", "release" };
static const char *const status_words[] = { "Unknown", "True", "False" };

/* Not a word of the table: what a newer header has is not silently left out. */
static int ask_word(struct json_object *json, const char *key, const char *const *words,
		    size_t count, unsigned int value)
{
	return value < count ? ask_text(json, key, words[value]) : -EINVAL;
}

#define ASK_WORD(json, key, words, value) ask_word(json, key, words, ARRAY_SIZE(words), value)

static int asked(struct sl_runtime *rt, int ret)
{
	switch (ret) {
	case 0:
		return 0;
	case -EILSEQ:
		return sl_err_set(&rt->err, EILSEQ, "texts for the agent have to be UTF-8");
	case -EINVAL:
		return sl_err_set(&rt->err, EINVAL, "an argument has a value of no meaning");
	case -E2BIG:
		return sl_err_set(&rt->err, E2BIG, "that is more than a message has room for");
	default:
		return sl_err_sys(&rt->err, -ret, "can't put the call together");
	}
}

static int check_size(struct json_object *json)
{
	size_t len;

	if (!json_object_to_json_string_length(json, JSON_C_TO_STRING_PLAIN, &len))
		return -ENOMEM;
	/* The method's name goes with it. */
	return len > SL_WIRE_MESSAGE - 1024 ? -E2BIG : 0;
}

static int ask_policy(struct json_object *json, const char *policy, const char *name)
{
	int ret = json ? 0 : -ENOMEM;

	if (!ret && !policy)
		ret = -EINVAL;
	ret = ret ?: ask_text(json, "policy", policy);
	ret = ret ?: ask_text(json, "policy_name", name);
	return ret ?: check_size(json);
}

/* The same call, or nothing at all. */
static int call_with(struct sl_runtime *rt, enum machine_need need, const char *method,
		     struct json_object *parameters, int ret, struct json_object **reply)
{
	if (!ret)
		return lib_call(rt, need, method, parameters, NULL, reply);
	json_object_put(parameters);
	return asked(rt, ret);
}

int sl_runtime_plan(struct sl_runtime *rt, const char *policy, const char *policy_name,
		    enum sl_hold_calls hold, unsigned int *plan)
{
	struct json_object *parameters = json_object_new_object(), *reply = NULL;
	int ret = ask_policy(parameters, policy, policy_name);

	ret = ret ?: ASK_WORD(parameters, "hold", hold_words, hold);
	ret = call_with(rt, MACHINE_CONNECTION, "io.sluice.Plan", parameters, ret, &reply);
	if (ret)
		return ret;
	*plan = (answer_bool(reply, "exec") ? SL_PLAN_EXEC : 0) |
		(answer_bool(reply, "connect") ? SL_PLAN_CONNECT : 0) |
		(answer_bool(reply, "send") ? SL_PLAN_SEND : 0) |
		(answer_bool(reply, "listen") ? SL_PLAN_LISTEN : 0) |
		(answer_bool(reply, "strict") ? SL_PLAN_STRICT : 0);
	json_object_put(reply);
	return 0;
}

/* --- attach --- */

/* As the interface has it: 0 is never. */
static unsigned int silence_of(unsigned int silence_ms)
{
	return silence_ms == SL_SILENCE_NEVER ? 0 : silence_ms ?: SILENCE_MS;
}

static int ask_options(struct json_object *json, const struct sl_runtime_attach *a)
{
	struct json_object *options = json_object_new_object();
	int ret = options ? 0 : -ENOMEM;

	ret = ret ?: ASK_WORD(options, "mode", mode_words, a->mode);
	ret = ret ?: ASK_WORD(options, "end", end_words, a->end);
	ret = ret ?: ask_text(options, "hold", a->plan & SL_PLAN_CONNECT ? "connect" : NULL);
	ret = ret
		      ?: sl_json_add(options, "silence_ms",
				     json_object_new_int64(silence_of(a->silence_ms)));
	if (!ret && a->grace_ms)
		ret = sl_json_add(options, "grace_ms", json_object_new_int64(a->grace_ms));
	if (!ret && a->run_on_loss)
		ret = sl_json_add(options, "freeze_on_loss", json_object_new_boolean(false));
	if (!ret)
		return sl_json_add(json, "options", options);
	json_object_put(options);
	return ret;
}

static int ask_fd(struct json_object *json, const char *key, struct sl_fds *fds, int fd)
{
	if (fd < 0)
		return 0;
	fds->fd[fds->count] = fd;
	return sl_json_add(json, key, json_object_new_int((int)fds->count++));
}

static int ask_texts(struct json_object *json, const char *key, const char *const *texts)
{
	struct json_object *list;
	int ret = 0;

	if (!texts)
		return 0;
	list = json_object_new_array();
	for (; list && !ret && *texts; texts++)
		ret = !sl_utf8_valid(*texts, strlen(*texts))                        ? -EILSEQ
		      : json_object_array_add(list, json_object_new_string(*texts)) ? -ENOMEM
										    : 0;
	if (list && !ret)
		return sl_json_add(json, key, list);
	json_object_put(list);
	return ret ?: -ENOMEM;
}

static int ask_egress(struct json_object *json, const struct sl_runtime_egress *e,
		      struct sl_fds *fds)
{
	struct json_object *egress;
	int ret;

	if (!e)
		return 0;
	if (e->size != sizeof(*e))
		return -EINVAL;
	egress = json_object_new_object();
	ret = egress ? ASK_WORD(egress, "net", net_words, e->net) : -ENOMEM;
	ret = ret ?: ASK_WORD(egress, "dns", dns_words, e->dns);
	ret = ret ?: ask_fd(egress, "netns_fd", fds, e->netns_fd);
	ret = ret ?: ask_texts(egress, "upstreams", e->upstreams);
	ret = ret ?: ask_text(egress, "proxy", e->proxy);
	ret = ret ?: ask_text(egress, "inspect", e->inspect);
	ret = ret ?: ask_text(egress, "device", e->device);
	if (!ret && e->mark)
		ret = sl_json_add(egress, "mark", json_object_new_int64(e->mark));
	if (!ret)
		return sl_json_add(json, "egress", egress);
	json_object_put(egress);
	return ret;
}

static int ask_attach(struct json_object *json, const struct sl_runtime_attach *a,
		      struct sl_fds *fds)
{
	uint8_t key[KEY_LEN];
	char text[2 * KEY_LEN + 1];
	int ret;

	if (!a->cgroup == (a->cgroup_fd < 0) || a->plan >= 2 * SL_PLAN_STRICT)
		return -EINVAL;
	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	sl_hex(text, key, sizeof(key));
	ret = ask_text(json, "key", text);
	ret = ret ?: ask_text(json, "cgroup", a->cgroup);
	ret = ret ?: ask_fd(json, "cgroup_fd", fds, a->cgroup_fd);
	ret = ret ?: ask_text(json, "name", a->name);
	ret = ret ?: ask_fd(json, "listener_fd", fds, a->listener_fd);
	if (!ret && a->mounts_of)
		ret = sl_json_add(json, "mounts_of", json_object_new_int(a->mounts_of));
	ret = ret ?: ask_egress(json, a->egress, fds);
	ret = ret ?: ask_options(json, a);
	/* Forgotten is not meant: who wants none says that it is to be observed. */
	if (!ret && !a->policy && a->mode == SL_MODE_OBSERVE)
		return check_size(json);
	return ret ?: ask_policy(json, a->policy, a->policy_name);
}

/* Whether a session may begin with this handle. */
static int check_free(struct sl_runtime *rt)
{
	if (!rt->timeout_ms)
		return sl_err_set(&rt->err, EINVAL, "sl_runtime_connect() comes first");
	if (rt->state != SL_RUNTIME_NONE || rt->watch)
		return sl_err_set(&rt->err, EBUSY, "this handle has a session or a watch");
	return 0;
}

/* With the cause, should there be one. */
static int late(struct sl_runtime *rt)
{
	rt->err.code = ETIMEDOUT;
	return sl_err_prefix(&rt->err, "not known whether it is attached");
}

int sl_runtime_attach(struct sl_runtime *rt, const struct sl_runtime_attach *attach)
{
	struct json_object *json;
	struct sl_fds fds = { .count = 0 }, copies;
	int ret = check_free(rt);

	if (ret)
		return ret;
	/* There is one layout until now. */
	if (attach->size != sizeof(*attach))
		return asked(rt, -EINVAL);
	json = json_object_new_object();
	ret = json ? ask_attach(json, attach, &fds) : -ENOMEM;
	ret = ret ?: sl_fds_copy(&copies, &fds);
	if (ret) {
		json_object_put(json);
		return asked(rt, ret);
	}
	/* A connection that has ended meanwhile would leave it open what became of the call. */
	machine_run(rt);
	rt->ask = json;
	rt->fds = copies;
	rt->silence_ms = silence_of(attach->silence_ms);
	rt->epoch = 0;
	rt->token[0] = rt->sandbox[0] = '\0';
	rt->state = SL_RUNTIME_ATTACHING;
	machine_hurry(rt);
	ret = machine_reach(rt, MACHINE_SESSION, sl_monotonic_ms() + rt->timeout_ms);
	if (ret == -ENOTCONN && rt->state == SL_RUNTIME_ATTACHING && rt->epoch)
		ret = late(rt);
	else if (ret && rt->state == SL_RUNTIME_ATTACHING && !rt->epoch)
		machine_unsaid(rt);
	return ret;
}

int sl_runtime_resume(struct sl_runtime *rt, const char *token, unsigned int silence_ms)
{
	uint8_t bytes[SL_RUNTIME_TOKEN_LEN / 2];
	int ret = check_free(rt);

	if (ret)
		return ret;
	if (sl_hex_parse(token, bytes, sizeof(bytes)))
		return sl_err_set(&rt->err, EINVAL, "a token is %d hexadecimal digits",
				  SL_RUNTIME_TOKEN_LEN);
	strcpy(rt->token, token);
	rt->silence_ms = silence_of(silence_ms);
	/* The agent tells what is above; it is not the client that counts from here. */
	rt->epoch = 0;
	rt->state = SL_RUNTIME_LOST;
	return sl_runtime_recover(rt, rt->timeout_ms);
}

/* --- of the session --- */

int sl_runtime_add_listener(struct sl_runtime *rt, int listener_fd)
{
	struct json_object *parameters = json_object_new_object();
	struct sl_fds fds = { .count = 0 };
	int ret = parameters ? 0 : -ENOMEM;

	if (!ret && listener_fd < 0)
		ret = -EINVAL;
	ret = ret ?: ask_fd(parameters, "listener_fd", &fds, listener_fd);
	if (!ret)
		return lib_call(rt, MACHINE_SESSION, "io.sluice.AddListener", parameters, &fds,
				NULL);
	json_object_put(parameters);
	return asked(rt, ret);
}

int sl_runtime_update(struct sl_runtime *rt, const char *policy, const char *policy_name,
		      enum sl_mode mode)
{
	struct json_object *parameters = json_object_new_object();
	int ret = ask_policy(parameters, policy, policy_name);

	ret = ret ?: ASK_WORD(parameters, "mode", mode_words, mode);
	return call_with(rt, MACHINE_SESSION, "io.sluice.UpdatePolicy", parameters, ret, NULL);
}

int sl_runtime_freeze(struct sl_runtime *rt)
{
	return lib_call(rt, MACHINE_SESSION, "io.sluice.Freeze", NULL, NULL, NULL);
}

int sl_runtime_thaw(struct sl_runtime *rt)
{
	return lib_call(rt, MACHINE_SESSION, "io.sluice.Thaw", NULL, NULL, NULL);
}

int sl_runtime_report(struct sl_runtime *rt, const struct sl_runtime_report *report)
{
	struct json_object *parameters = json_object_new_object();
	int ret = parameters ? 0 : -ENOMEM;

	if (!ret && (report->size != sizeof(*report) || !report->type || !report->reason))
		ret = -EINVAL;
	ret = ret ?: ask_text(parameters, "type", report->type);
	ret = ret ?: ASK_WORD(parameters, "status", status_words, report->status);
	ret = ret ?: ask_text(parameters, "reason", report->reason);
	ret = ret ?: ask_text(parameters, "message", report->message);
	ret = ret ?: sl_json_add(parameters, "bad", json_object_new_boolean(report->bad));
	return call_with(rt, MACHINE_SESSION, "io.sluice.Report", parameters, ret, NULL);
}

int sl_runtime_end(struct sl_runtime *rt, enum sl_end end, const char *reason)
{
	struct json_object *parameters = json_object_new_object();
	int ret = parameters ? 0 : -ENOMEM;

	if (!ret && (!reason || !*reason))
		ret = -EINVAL;
	ret = ret ?: ask_text(parameters, "reason", reason);
	ret = ret ?: ASK_WORD(parameters, "end", end_words, end);
	ret = call_with(rt, MACHINE_SESSION, "io.sluice.End", parameters, ret, NULL);
	if (!ret) {
		sl_err_set(&rt->err, ESHUTDOWN, "the session was ended: %s", reason);
		machine_over(rt, ESHUTDOWN);
		machine_timer(rt, false);
	}
	return ret;
}

int sl_runtime_detach(struct sl_runtime *rt, enum sl_detach detach)
{
	struct json_object *parameters = json_object_new_object();
	int ret = parameters ? 0 : -ENOMEM;

	/* By its number: it is to go also when its session is over. */
	if (!ret && !rt->sandbox[0])
		ret = -EINVAL;
	ret = ret ?: ask_text(parameters, "sandbox", rt->sandbox);
	ret = ret ?: ASK_WORD(parameters, "running", detach_words, detach);
	ret = call_with(rt, MACHINE_CONNECTION, "io.sluice.Detach", parameters, ret, NULL);
	if (ret && ret != -ENOENT)
		return ret;
	/* Gone, whoever did it. */
	rt->state = SL_RUNTIME_NONE;
	rt->sandbox[0] = rt->token[0] = '\0';
	machine_timer(rt, false);
	return 0;
}

/* The id of the session with that cgroup, NULL: there is none. */
static const char *find_cgroup(struct json_object *reply, uint64_t cgroup_id)
{
	struct json_object *list;
	size_t count = 0;
	char id[24];

	snprintf(id, sizeof(id), "%" PRIu64, cgroup_id);
	if (json_object_object_get_ex(reply, "sessions", &list) &&
	    json_object_is_type(list, json_type_array))
		count = json_object_array_length(list);
	for (size_t i = 0; i < count; i++) {
		struct json_object *session = json_object_array_get_idx(list, i);
		const char *its = json_object_is_type(session, json_type_object)
					  ? answer_text(session, "cgroup_id")
					  : NULL;

		if (its && !strcmp(its, id))
			return answer_text(session, "sandbox") ?: "0";
	}
	return NULL;
}

int sl_runtime_detach_cgroup(struct sl_runtime *rt, uint64_t cgroup_id, enum sl_detach detach)
{
	struct json_object *parameters, *reply = NULL;
	const char *sandbox;
	int ret;

	if (rt->state != SL_RUNTIME_NONE && rt->state != SL_RUNTIME_OVER)
		return sl_err_set(&rt->err, EBUSY, "this handle has a session");
	ret = lib_call(rt, MACHINE_CONNECTION, "io.sluice.List", NULL, NULL, &reply);
	if (ret)
		return ret;
	sandbox = find_cgroup(reply, cgroup_id);
	/* It has no number yet. */
	if (sandbox && !strcmp(sandbox, "0"))
		ret = sl_err_set(&rt->err, EAGAIN, "the cgroup is just being attached");
	if (sandbox && !ret) {
		parameters = json_object_new_object();
		ret = parameters ? ask_text(parameters, "sandbox", sandbox) : -ENOMEM;
		ret = ret ?: ASK_WORD(parameters, "running", detach_words, detach);
		ret = call_with(rt, MACHINE_CONNECTION, "io.sluice.Detach", parameters, ret, NULL);
	}
	json_object_put(reply);
	return ret == -ENOENT ? 0 : ret;
}
