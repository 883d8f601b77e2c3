/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "socket/process_view.h"

static const char *const process_flag_words[] = {
	"seeded", "moved", "born", "child", "execed", "exited", "setuid",
};

static bool is_full(const void *record)
{
	return ((const struct sl_view_process *)record)->full;
}

/* A record of a process is of no single thread. */
static bool has_tid(const void *record)
{
	return ((const struct sl_view_process *)record)->tid != 0;
}

/*
 * One description for both tables, which differ in what makes columns: LIST(text) is one
 * in lists of processes only. As a date, `start` moves when the clock is set; `start_ns` is the
 * same wherever it is printed, and with `pid` names the process.
 */
/* It would indent what follows the first comma. */
/* clang-format off */
#define PROCESS_FIELDS(LIST)									\
	SL_FIELD_UINT(struct sl_view_process, pid, "PID"),					\
	SL_FIELD_UINT(struct sl_view_process, ns_pid, NULL),					\
	SL_FIELD_UINT(struct sl_view_process, parent_pid, LIST("PARENT"), .present = is_full),	\
	SL_FIELD_AS(TIME, struct sl_view_process, start_ns, "start", NULL),			\
	SL_FIELD_ID(struct sl_view_process, start_ns, NULL, .flags = SL_FIELD_JSON_ONLY),	\
	SL_FIELD_UINT(struct sl_view_process, tid, NULL, .present = has_tid),			\
	SL_FIELD_UINT(struct sl_view_process, uid, LIST("UID")),				\
	SL_FIELD_UINT(struct sl_view_process, gid, NULL, .present = is_full),			\
	SL_FIELD_TEXT(struct sl_view_process, sandbox, LIST("SANDBOX"),				\
		      .flags = SL_FIELD_ELIDE | SL_FIELD_NULL),					\
	SL_FIELD_ID(struct sl_view_process, sandbox_id, NULL),					\
	SL_FIELD_STRING(struct sl_view_process, comm, LIST("COMM")),				\
	SL_FIELD_OBJECT_PTR(struct sl_view_process, exe, "", sl_view_exe_fields,		\
			    .flags = SL_FIELD_NULL),						\
	SL_FIELD_TEXT(struct sl_view_process, script, LIST("SCRIPT"),				\
		      .flags = SL_FIELD_ELIDE | SL_FIELD_NULL),					\
	SL_FIELD_LIST(struct sl_view_process, lineage, NULL),					\
	SL_FIELD_UINT(struct sl_view_process, lineage_outside, NULL,				\
		      .flags = SL_FIELD_OPTIONAL),						\
	SL_FIELD_BOOL(struct sl_view_process, lineage_cut, NULL, .flags = SL_FIELD_OPTIONAL),	\
	SL_FIELD_AS(TIME, struct sl_view_process, exec_ns, "exec", NULL),			\
	SL_FIELD_FLAGS(struct sl_view_process, flags, NULL, process_flag_words, .present = is_full)
/* clang-format on */

#define COLUMN(text) text
#define NO_COLUMN(text) NULL

const struct sl_field sl_view_process_fields[] = {
	PROCESS_FIELDS(NO_COLUMN),
	{ 0 },
};

const struct sl_field sl_view_process_list_fields[] = {
	PROCESS_FIELDS(COLUMN),
	{ 0 },
};

static int fill_image(struct sl_view_process *view, struct sl_view_source *source, unsigned int exe,
		      unsigned int script, unsigned int lineage)
{
	const struct sl_view_lineage *chain;
	const struct sl_view_exe *label;
	int ret = sl_view_source_exe(source, exe, &view->exe);

	if (!ret)
		ret = sl_view_source_exe(source, script, &label);
	if (!ret)
		ret = sl_view_source_lineage(source, lineage, &chain);
	if (ret)
		return ret;
	view->script = label ? label->path : NULL;
	if (chain) {
		view->lineage = chain->paths;
		view->lineage_outside = chain->outside;
		view->lineage_cut = chain->cut;
	}
	view->sandbox = sl_view_source_sandbox(source, view->sandbox_id);
	return 0;
}

int sl_view_process_fill(struct sl_view_process *view, const struct sl_process *process,
			 struct sl_view_source *source)
{
	*view = (struct sl_view_process){
		.pid = process->key.tgid,
		.ns_pid = process->ns_pid,
		.start_ns = process->key.start_ns,
		.uid = process->uid,
		.sandbox_id = process->sandbox,
		.full = true,
		.gid = process->gid,
		.parent_pid = process->parent.tgid,
		.exec_ns = process->exec_ns,
		.flags = process->flags,
	};
	memcpy(view->comm, process->comm, SL_COMM_LEN);
	return fill_image(view, source, process->exe, process->script, process->lineage);
}

int sl_view_owner_fill(struct sl_view_process *view, const struct sl_owner *owner,
		       struct sl_view_source *source)
{
	*view = (struct sl_view_process){
		.pid = owner->tgid,
		.ns_pid = owner->ns_pid,
		.start_ns = owner->start_ns,
		.tid = owner->tid,
		.uid = owner->uid,
		.sandbox_id = owner->sandbox,
	};
	memcpy(view->comm, owner->comm, SL_COMM_LEN);
	return fill_image(view, source, owner->exe, owner->script, owner->lineage);
}
