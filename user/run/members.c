/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "run/members.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/htab.h"

/* Processes end without a word: beyond this many it is begun anew. */
#define KNOWN_MAX 4096

struct known_key {
	uint64_t start_ticks;
	uint64_t tgid;
};

struct sl_members {
	struct sl_set *set;
	pthread_mutex_t lock;
	struct sl_htab *known; /* struct known_key -> start_ns, __u64 */
};

void sl_members_free(struct sl_members **members)
{
	struct sl_members *m = *members;

	if (!m)
		return;
	sl_htab_free(&m->known);
	pthread_mutex_destroy(&m->lock);
	free(m);
	*members = NULL;
}

int sl_members_new(struct sl_members **out, struct sl_set *set)
{
	_cleanup_(sl_members_free) struct sl_members *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	m->set = set;
	pthread_mutex_init(&m->lock, NULL);
	rc = sl_htab_new(&m->known, sizeof(struct known_key), sizeof(__u64));
	if (rc)
		return rc;
	*out = TAKE_PTR(m);
	return 0;
}

static __u64 recall(struct sl_members *m, const struct known_key *key)
{
	const __u64 *start_ns;
	__u64 value;

	pthread_mutex_lock(&m->lock);
	start_ns = sl_htab_get(m->known, key);
	value = start_ns ? *start_ns : 0;
	pthread_mutex_unlock(&m->lock);
	return value;
}

/* That there is no memory for it costs another search, no more. */
static void remember(struct sl_members *m, const struct known_key *key, __u64 value)
{
	struct sl_htab *fresh = NULL;
	__u64 *start_ns;

	pthread_mutex_lock(&m->lock);
	if (sl_htab_count(m->known) >= KNOWN_MAX &&
	    !sl_htab_new(&fresh, sizeof(*key), sizeof(value))) {
		sl_htab_free(&m->known);
		m->known = fresh;
	}
	start_ns = sl_htab_add(m->known, key, NULL);
	if (start_ns)
		*start_ns = value;
	pthread_mutex_unlock(&m->lock);
}

struct search {
	struct sl_task task;
	struct sl_process *out;
};

static int match(const struct sl_process *process, void *arg)
{
	const struct search *search = arg;

	if (process->key.tgid != (__u32)search->task.tgid ||
	    sl_start_ticks(process->key.start_ns) != search->task.start_ticks)
		return 0;
	*search->out = *process;
	return 1;
}

int sl_members_find(struct sl_members *m, const struct sl_call *call, struct sl_process *out)
{
	struct search search = { .out = out };
	struct sl_process_key key = { 0 };
	struct known_key known;
	int rc = sl_call_task(call, &search.task);

	if (rc)
		return rc;
	known = (struct known_key){ search.task.start_ticks, (uint64_t)search.task.tgid };
	key.tgid = (__u32)search.task.tgid;
	key.start_ns = recall(m, &known);
	/* Else its pid has another process since, within the tick that /proc tells. */
	if (key.start_ns && !sl_proc_by_key(m->set, &key, out))
		return 0;
	rc = sl_procs_each(m->set, match, &search);
	if (rc < 0)
		return rc;
	if (!rc)
		return -ENOENT;
	remember(m, &known, out->key.start_ns);
	return 0;
}
