/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "mediated.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "broker/loop.h"
#include "broker/probe.h"
#include "guard/files.h"
#include "policy/compile.h"
#include "policy/load.h"
#include "policy_text.h"

#define RULES 10

struct sl_mediated {
	struct sl_mediated_options options;
	struct sl_policy *policy;
	struct sl_compiled *compiled;
	struct sl_filter filters[SL_FILTERING_MAX];
	unsigned long flags;
	struct sl_broker *broker;
	struct sl_files *files; /* of the loaded set; NULL: none */
	int minimal;            /* listener of the minimal loop */
	pthread_t thread;
	bool threaded;
	atomic_ullong minimal_count;
};

/* --- who answers --- */

/* As the one of `sluice run`: what a held exec runs is looked at, all else goes on. */
static void held(void *ctx, const struct sl_call *call, struct sl_answer *answer)
{
	struct sl_mediated *m = ctx;

	answer->go_on = true;
	if (call->kind != SL_HELD_EXEC || call->exec.check_only || !m->files)
		return;
	for (unsigned int i = 0; i < call->exec.images.count; i++)
		(void)sl_files_prepare(m->files, call->exec.images.fds[i]);
}

/* Its policy has nothing that a held connect() would have to wait for. */
static bool at_once(void *ctx, uint64_t tag, enum sl_call_kind kind)
{
	(void)ctx;
	(void)tag;
	return kind != SL_HELD_EXEC;
}

static void *minimal_main(void *arg)
{
	const struct sl_answer go_on = { .go_on = true };
	struct sl_mediated *m = arg;
	struct pollfd poller = { .fd = m->minimal, .events = POLLIN };
	union sl_notif notif;

	/* Ends with the last task that has the filter: POLLHUP. */
	while (poll(&poller, 1, -1) >= 0 || errno == EINTR) {
		if (!(poller.revents & POLLIN)) {
			if (poller.revents)
				break;
			continue;
		}
		if (sl_notify_receive(m->minimal, &notif))
			continue;
		if (!sl_notify_answer(m->minimal, notif.notif.id, &go_on))
			atomic_fetch_add_explicit(&m->minimal_count, 1, memory_order_relaxed);
	}
	return NULL;
}

/* --- making it --- */

int sl_mediated_policy(struct sl_policy **policy, struct sl_compiled **compiled, uint32_t rules,
		       const char *transport, uint16_t port, struct sl_err *err)
{
	_cleanup_free_ char *text = NULL;
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	size_t len;
	int rc;

	if (n < 0)
		return sl_err_sys(err, errno, "can't tell this program's path");
	exe[n] = '\0';
	text = sl_policy_text(rules, exe, transport, port, &len);
	if (!text)
		return sl_err_sys(err, ENOMEM, "policy");
	rc = sl_policy_load(policy, text, len, "bench", err);
	return rc ?: sl_compiled_new(compiled, *policy, err);
}

/* Of this machine's own architecture only: its one task makes no other calls. */
static void minimal_filter(struct sl_filter *filter, enum sl_hold hold)
{
	const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 hold == SL_HOLD_EXEC ? __NR_execve : __NR_connect, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	memcpy(filter->code, code, sizeof(code));
	filter->len = ARRAY_SIZE(code);
	filter->notifies = true;
}

static int make_filters(struct sl_mediated *m, struct sl_err *err)
{
	struct sl_filter_options options = { .flags = SL_FILTER_NOTIFY_FAMILY,
					     .refuse_errno = EACCES };
	const char *why = NULL;
	int rc;

	sl_probe_listener_flags(&m->flags, &why);
	rc = sl_filter_make(&m->filters[SL_FILTERING_PLAIN], &options, err);
	options.hold = m->options.hold;
	rc = rc ?: sl_filter_make(&m->filters[SL_FILTERING_HELD], &options, err);
	minimal_filter(&m->filters[SL_FILTERING_MINIMAL], m->options.hold);
	return rc;
}

int sl_mediated_new(struct sl_mediated **out, const struct sl_mediated_options *options,
		    struct sl_err *err)
{
	_cleanup_(sl_mediated_free) struct sl_mediated *m = calloc(1, sizeof(*m));
	const struct sl_broker_options broker = { .ops = { .at_once = at_once, .held = held },
						  .ctx = m };
	int rc;

	if (!m)
		return sl_err_sys(err, ENOMEM, "mediation");
	m->options = *options;
	m->minimal = -1;
	rc = sl_mediated_policy(&m->policy, &m->compiled, RULES, options->transport, options->port,
				err);
	rc = rc ?: make_filters(m, err);
	rc = rc ?: sl_broker_new(&m->broker, &broker, err);
	if (rc)
		return rc;
	*out = TAKE_PTR(m);
	return 0;
}

void sl_mediated_free(struct sl_mediated **mediated)
{
	struct sl_mediated *m = *mediated;

	if (!m)
		return;
	if (m->threaded)
		pthread_join(m->thread, NULL);
	sl_broker_free(&m->broker);
	sl_cleanup_fd(&m->minimal);
	sl_mediated_unload(m);
	sl_compiled_free(&m->compiled);
	sl_policy_free(&m->policy);
	free(m);
	*mediated = NULL;
}

const struct sl_filter *sl_mediated_filter(const struct sl_mediated *m, enum sl_filtering kind)
{
	return kind == SL_FILTERING_NONE ? NULL : &m->filters[kind];
}

unsigned long sl_mediated_flags(const struct sl_mediated *m)
{
	return m->flags;
}

int sl_mediated_listen(struct sl_mediated *m, enum sl_filtering kind, int *fd, struct sl_err *err)
{
	int rc;

	if (*fd < 0)
		return 0;
	if (kind == SL_FILTERING_MINIMAL) {
		m->minimal = TAKE_FD(*fd);
		rc = sl_notify_sync_wake(m->minimal);
		if (rc)
			sl_log_notice("the minimal loop has no SYNC_WAKE_UP on this kernel");
		return 0;
	}
	rc = sl_broker_add(m->broker, *fd, kind, err);
	if (!rc)
		*fd = -1;
	return rc;
}

int sl_mediated_start(struct sl_mediated *m, struct sl_err *err)
{
	int rc = sl_broker_start(m->broker, err);

	if (rc || m->minimal < 0)
		return rc;
	rc = pthread_create(&m->thread, NULL, minimal_main, m);
	if (rc)
		return sl_err_sys(err, rc, "can't start a thread");
	m->threaded = true;
	return 0;
}

int sl_mediated_load(struct sl_mediated *m, struct sl_world *world, struct sl_err *err)
{
	struct sl_guard_options options = { .mode = SL_GUARD_OBSERVE };
	__u32 policy_id;
	int rc;

	rc = sl_guard_load(world->set, world->sandbox, m->compiled, &options, &policy_id, err);
	if (rc)
		return rc;
	rc = sl_files_new(&m->files, world->set, m->compiled, world->sandbox, policy_id);
	return rc ? sl_err_sys(err, -rc, "policy") : 0;
}

void sl_mediated_unload(struct sl_mediated *m)
{
	sl_files_free(&m->files);
}

uint64_t sl_mediated_held(const struct sl_mediated *m)
{
	return sl_broker_count(m->broker, SL_BROKER_CONTINUED);
}

uint64_t sl_mediated_minimal(const struct sl_mediated *m)
{
	return atomic_load(&m->minimal_count);
}

uint64_t sl_mediated_faults(const struct sl_mediated *m)
{
	uint64_t sum = 0;

	for (enum sl_broker_kind kind = 0; kind < SL_BROKER_KIND_MAX; kind++) {
		if (sl_broker_kind_class(kind) == SL_OUTCOME_FAULT)
			sum += sl_broker_count(m->broker, kind);
	}
	return sum;
}
