/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "event/view_event.h"

static const char *const kind_words[] = {
#define X(name, text) text,
	SL_EVENT_KINDS(X)
#undef X
};

const char *sl_event_kind_name(unsigned int kind)
{
	return kind < ARRAY_SIZE(kind_words) ? kind_words[kind] : NULL;
}

size_t sl_event_size_min(unsigned int kind)
{
	if (kind == SL_EVENT_NONE || kind >= SL_EVENT_KIND_MAX)
		return 0;
	if (SL_EVENT_BIT(kind) & SL_EVENT_PROCESS_KINDS)
		return sizeof(struct sl_event_process);
	return kind == SL_EVENT_DECISION ? sizeof(struct sl_event_decision) : SL_EVENT_SOCK_MIN;
}

unsigned int sl_event_sandbox(const struct sl_event *event)
{
	if (SL_EVENT_BIT(event->kind) & SL_EVENT_PROCESS_KINDS)
		return ((const struct sl_event_process *)event)->process.sandbox;
	if (event->kind == SL_EVENT_DECISION)
		return ((const struct sl_event_decision *)event)->decision.key.sandbox;
	return ((const struct sl_event_sock *)event)->sock.owner.sandbox;
}

unsigned int sl_event_exe(const struct sl_event *event)
{
	if (SL_EVENT_BIT(event->kind) & SL_EVENT_PROCESS_KINDS)
		return ((const struct sl_event_process *)event)->process.exe;
	if (event->kind == SL_EVENT_DECISION)
		return ((const struct sl_event_decision *)event)->decision.owner.exe;
	return ((const struct sl_event_sock *)event)->sock.owner.exe;
}

static const struct sl_view_event *event_of(const void *record)
{
	return record;
}

static bool is_exit(const void *record)
{
	return event_of(record)->kind == SL_EVENT_EXIT;
}

static bool has_exit_code(const void *record)
{
	return is_exit(record) && !event_of(record)->signal[0];
}

const struct sl_field sl_view_event_head_fields[] = {
	SL_FIELD_TEXT(struct sl_view_event, event, NULL),
	SL_FIELD_AS(TIME, struct sl_view_event, time_ns, "time", NULL),
	{ 0 },
};

/* What stands before the process: the members every line has. */
static const struct sl_field process_sandbox_fields[] = {
	SL_FIELD_TEXT(struct sl_view_process, sandbox, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_ID(struct sl_view_process, sandbox_id, NULL),
	{ 0 },
};

const struct sl_field sl_view_event_process_fields[] = {
	SL_FIELD_INT(struct sl_view_event, exit_code, NULL, .present = has_exit_code),
	SL_FIELD_STRING(struct sl_view_event, signal, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_AS(DURATION_US, struct sl_view_event, lifetime_us, "duration_us", NULL,
		    .present = is_exit),
	SL_FIELD_OBJECT_PTR(struct sl_view_event, process, NULL, sl_view_process_fields),
	{ 0 },
};

/* Whom a decision is about; a caller that is no member is nobody. */
const struct sl_field sl_view_event_owner_fields[] = {
	SL_FIELD_OBJECT_PTR(struct sl_view_event, process, NULL, sl_view_process_fields),
	{ 0 },
};

static const struct sl_field by_kind_fields[] = {
#define X(kind, text)                                                                \
	SL_FIELD_AS(UINT, struct sl_view_lost, by_kind[SL_EVENT_##kind], text, NULL, \
		    .flags = SL_FIELD_OPTIONAL),
	SL_EVENT_KINDS(X)
#undef X
		{ 0 },
};

static bool never(const void *record)
{
	(void)record;
	return false;
}

const struct sl_field sl_view_event_lost_fields[] = {
	/* The ring is one for all sandboxes. */
	{ .name = "sandbox",
	  .type = SL_FIELD_TYPE_UINT,
	  .size = 8,
	  .flags = SL_FIELD_NULL,
	  .present = never },
	SL_FIELD_UINT(struct sl_view_lost, count, NULL),
	{ .name = "by_kind",
	  .type = SL_FIELD_TYPE_OBJECT,
	  .size = sizeof(struct sl_view_lost),
	  .fields = by_kind_fields },
	{ 0 },
};

static void fill_exit(struct sl_view_event *view, const struct sl_event_process *event)
{
	int status = event->exit_code;
	__u64 start_ns = event->process.key.start_ns;

	if (event->head.time_ns > start_ns)
		view->lifetime_us = (event->head.time_ns - start_ns) / 1000;
	if (WIFSIGNALED(status)) {
		const char *name = sigabbrev_np(WTERMSIG(status));

		view->exit_code = -1;
		if (name)
			snprintf(view->signal, sizeof(view->signal), "SIG%s", name);
		else
			snprintf(view->signal, sizeof(view->signal), "SIG%d", WTERMSIG(status));
	} else {
		view->exit_code = WEXITSTATUS(status);
	}
}

int sl_view_event_fill(struct sl_view_event *view, struct sl_view_event_parts *parts,
		       const struct sl_event *event, struct sl_view_source *source)
{
	const struct sl_event_process *process = (const void *)event;
	const struct sl_event_sock *sock = (const void *)event;
	const struct sl_event_decision *decision = (const void *)event;
	static const struct sl_sock_more nothing;
	unsigned int kind = event->kind;
	bool more = event->size >= sizeof(*sock);
	int ret = -EINVAL;

	if (kind >= SL_EVENT_KIND_MAX)
		return -EINVAL;
	*view = (struct sl_view_event){
		.event = kind_words[kind],
		.kind = kind,
		.time_ns = event->time_ns,
		.exit_code = -1,
	};
	if (!sl_event_size_min(kind) || event->size < sl_event_size_min(kind))
		return -EINVAL;
	if (SL_EVENT_BIT(kind) & SL_EVENT_PROCESS_KINDS) {
		ret = sl_view_process_fill(&parts->process, &process->process, source);
		view->process = &parts->process;
		if (kind == SL_EVENT_EXIT)
			fill_exit(view, process);
	} else if (kind == SL_EVENT_DECISION) {
		sl_view_decision_fill(&parts->decision, &decision->decision, source);
		view->decision = &parts->decision;
		view->process = decision->decision.owner.tgid ? &parts->process : NULL;
		ret = sl_view_owner_fill(&parts->process, &decision->decision.owner, source);
	} else {
		ret = sl_view_sock_fill(&parts->sock, &sock->sock, more ? &sock->more : &nothing,
					source);
		view->sock = &parts->sock;
		view->process = &parts->sock.process;
	}
	return ret;
}

int sl_view_event_json(struct sl_line *line, const struct sl_view_event *view)
{
	sl_line_begin(line);
	sl_line_fields(line, sl_view_event_head_fields, view);
	if (view->lost) {
		sl_line_fields(line, sl_view_event_lost_fields, view->lost);
	} else if (view->sock) {
		sl_line_fields(line, sl_view_sock_fields, view->sock);
	} else if (view->decision) {
		sl_line_fields(line, sl_view_decision_fields, view->decision);
		if (view->process)
			sl_line_fields(line, sl_view_event_owner_fields, view);
	} else {
		sl_line_fields(line, process_sandbox_fields, view->process);
		sl_line_fields(line, sl_view_event_process_fields, view);
	}
	return sl_line_end(line);
}
