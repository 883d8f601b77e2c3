/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/load.h"

#include <errno.h>

#include "base/cleanup.h"
#include "kernel/shared.h"

/* All is there but the switch: the copy gets the name by which a later worker finds it. */
static int on_ready(void *arg, __u32 policy_id, struct sl_err *err)
{
	struct sl_load *load = arg;
	int ret = sl_copies_name(load->copies, load->key, policy_id);

	if (ret)
		return sl_err_sys(err, -ret, "can't name the copy of the policy");
	ret = sl_serve_ready(load->serve, load->use, policy_id, err);
	if (ret)
		return ret;
	/* One that looks at no files is nothing to ask, and will be trimmed. */
	if (sl_apply_needs_files(load->use->apply))
		sl_held_next(load->held, load->tag, load->use);
	return 0;
}

int sl_load_open(struct sl_load *load, struct sl_err *err)
{
	struct sl_apply_options options = {
		.file = load->name,
		.text = load->text,
		.len = load->len,
		.holder = load->holder,
		.quiet = load->quiet,
		.ready = on_ready,
		.arg = load,
	};
	int ret;

	sl_serve_apply_options(load->serve, &options);
	ret = sl_apply_open(&load->apply, &options, err);
	ret = ret ?: sl_apply_resolve(load->apply, err);
	if (ret)
		return ret;
	ret = sl_copies_digest(load->text, load->len, load->sha256);
	if (ret)
		return sl_err_sys(err, -ret, "policy");
	return sl_copies_write(load->copies, load->key, load->text, load->len, err);
}

int sl_load_into(struct sl_load *load, struct sl_agent_set *set, unsigned int sandbox,
		 struct sl_err *err)
{
	_cleanup_(sl_set_free) struct sl_set *locked = NULL;
	_cleanup_fd_ int lock = -1;
	int ret = sl_use_new(&load->use, set, load->apply, sandbox);

	if (ret)
		return sl_err_sys(err, -ret, "policy");
	load->apply = NULL;
	ret = sl_shared_lock(&locked, &lock, sl_set_dir(set->set), err);
	if (ret)
		return ret;
	ret = sl_serve_listen(load->serve, load->use, err);
	if (ret)
		return ret;
	ret = sl_apply_load(load->use->apply, set->set, sandbox, load->mode, &load->policy_id, err);
	sl_serve_switch(load->serve, !ret);
	if (!ret && !sl_apply_needs_files(load->use->apply)) {
		sl_use_trim(load->use);
		sl_held_next(load->held, load->tag, load->use);
	}
	sl_held_switch(load->held, load->tag, !ret);
	if (ret)
		return ret;
	/* As it was for KEY.tmp, which is no longer. */
	ret = sl_copies_path(load->copies, load->key, load->policy_id, load->path);
	return ret ? sl_err_sys(err, -ret, "policy") : 0;
}

void sl_load_end(struct sl_load *load)
{
	sl_use_put(&load->use);
	sl_apply_free(&load->apply);
}
