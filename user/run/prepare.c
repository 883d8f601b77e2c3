/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "run/prepare.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "guard/guard.h"

static void owner_of(struct sl_owner *owner, const struct sl_process *process)
{
	*owner = (struct sl_owner){
		.start_ns = process->key.start_ns,
		.tgid = process->key.tgid,
		.ns_pid = process->ns_pid,
		.sandbox = process->sandbox,
		.lineage = process->lineage,
		.exe = process->exe,
		.script = process->script,
		.uid = process->uid,
	};
	memcpy(owner->comm, process->comm, sizeof(owner->comm));
}

int sl_prepare_refused(const struct sl_prepare *prepare, const struct sl_call *call)
{
	struct sl_refused refused = {
		.key = { .sandbox = prepare->sandbox,
			 .family = (__u16)call->socket.family,
			 .type = (__u16)call->socket.type,
			 .protocol = (__u16)call->socket.protocol,
			 .reason = SL_REASON_FAMILY },
	};
	struct sl_process process;
	struct sl_guard guard;

	if (!sl_members_find(prepare->members, call, &process))
		owner_of(&refused.owner, &process);
	if (!sl_guard_read(prepare->set, prepare->sandbox, &guard))
		refused.key.policy = guard.policy;
	refused.owner.tid = (__u32)call->tid;
	refused.key.lineage = refused.owner.lineage;
	return sl_decision_tell(prepare->set, &refused);
}

/* What can't be looked at is denied and told; that there is no room is sluice's fault. */
static int note(int rc)
{
	if (rc == -E2BIG || rc == -ENOSPC)
		return -ENOSPC;
	if (rc)
		sl_log_debug("a file could not be looked at: %s", strerror(-rc));
	return 0;
}

int sl_prepare_files(const struct sl_prepare *prepare, const struct sl_call *call)
{
	struct sl_files *files = prepare->files;
	struct sl_process process;
	char script[PATH_MAX];
	int rc = 0;

	if (call->kind != SL_HELD_EXEC) {
		if (sl_members_find(prepare->members, call, &process))
			return 0;
		return note(sl_files_lineage(files, process.lineage, (pid_t)process.key.tgid));
	}
	if (call->exec.check_only)
		return 0;
	for (unsigned int i = 0; i < call->exec.images.count; i++)
		rc = note(sl_files_prepare(files, call->exec.images.fds[i])) ?: rc;
	if (call->exec.images.count > 1 && !sl_call_script(call, script))
		rc = note(sl_files_script(files, script)) ?: rc;
	return rc;
}
