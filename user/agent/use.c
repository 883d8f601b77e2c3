/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/use.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

struct sl_agent_set *sl_agent_set_get(struct sl_agent_set *set)
{
	atomic_fetch_add(&set->count, 1);
	return set;
}

void sl_agent_set_put(struct sl_agent_set **set)
{
	struct sl_agent_set *s = TAKE_PTR(*set);

	if (!s || atomic_fetch_sub(&s->count, 1) != 1)
		return;
	sl_members_free(&s->members);
	sl_set_free(&s->set);
	free(s);
}

int sl_agent_set_open(struct sl_agent_set **out, const char *dir, struct sl_err *err)
{
	_cleanup_(sl_agent_set_put) struct sl_agent_set *set = calloc(1, sizeof(*set));
	int ret;

	if (!set)
		return sl_err_sys(err, ENOMEM, "can't open a set");
	set->count = 1;
	ret = sl_set_open(&set->set, dir, err);
	if (ret)
		return ret;
	ret = sl_members_new(&set->members, set->set);
	if (ret)
		return sl_err_sys(err, -ret, "can't open a set");
	*out = TAKE_PTR(set);
	return 0;
}

int sl_use_new(struct sl_use **out, struct sl_agent_set *set, struct sl_apply *apply,
	       unsigned int sandbox)
{
	struct sl_use *use = calloc(1, sizeof(*use));

	if (!use)
		return -ENOMEM;
	use->count = 1;
	use->set = sl_agent_set_get(set);
	use->apply = apply;
	use->sandbox = sandbox;
	*out = use;
	return 0;
}

void sl_use_trim(struct sl_use *use)
{
	if (!use->kept && !sl_apply_needs_files(use->apply) && !sl_apply_has_names(use->apply))
		sl_apply_free(&use->apply);
}

struct sl_files *sl_use_files(const struct sl_use *use)
{
	return use && use->apply ? sl_apply_files(use->apply) : NULL;
}

struct sl_use *sl_use_get(struct sl_use *use)
{
	if (use)
		atomic_fetch_add(&use->count, 1);
	return use;
}

void sl_use_put(struct sl_use **use)
{
	struct sl_use *u = TAKE_PTR(*use);

	if (!u || atomic_fetch_sub(&u->count, 1) != 1)
		return;
	sl_apply_free(&u->apply);
	sl_agent_set_put(&u->set);
	free(u);
}
