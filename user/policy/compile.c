/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/compile_private.h"

int sl_compile_fail(const struct sl_compiled *compiled, struct sl_err *err, int ret,
		    const char *limit, size_t max)
{
	if (ret != -E2BIG)
		return sl_err_sys(err, -ret, "compiling %s", compiled->policy->file);
	sl_err_set(err, E2BIG, "%s: more than %zu %s", compiled->policy->file, max, limit);
	return sl_err_hint(err, "use fewer, wider rules; `sluice policy show` tells what there is");
}

int sl_compile_class_fail(const struct sl_compiled *compiled, struct sl_err *err, int ret)
{
	if (compiled->classes.allowed.count == SL_POLICY_CLASSES_MAX)
		return sl_compile_fail(compiled, err, ret, "kinds of destinations",
				       SL_POLICY_CLASSES_MAX);
	return sl_compile_fail(compiled, err, ret, "binaries times kinds of destinations",
			       SL_POLICY_CLASS_PAIRS_MAX);
}

int sl_compile_ports(struct sl_compiled *compiled, struct sl_err *err)
{
	const struct sl_policy *policy = compiled->policy;
	size_t endpoints = 0, at = 0;
	int ret = sl_port_map_init(&compiled->ports);

	for (size_t i = 0; i < policy->entry_count; i++)
		endpoints += policy->entries[i].endpoint_count;
	compiled->endpoint_sets = calloc(endpoints + 1, sizeof(*compiled->endpoint_sets));
	if (!compiled->endpoint_sets)
		ret = -ENOMEM;
	for (size_t i = 0; i < policy->entry_count; i++) {
		for (size_t j = 0; j < policy->entries[i].endpoint_count && !ret; j++, at++) {
			const struct sl_policy_endpoint *endpoint =
				&policy->entries[i].endpoints[j];
			uint32_t set = sl_port_map_add(&compiled->ports, endpoint->transport,
						       &endpoint->ports);

			compiled->endpoint_sets[at] = set;
			ret = set == SL_INTERN_NONE ? -ENOMEM : 0;
		}
	}
	if (!ret)
		ret = sl_port_map_close(&compiled->ports);
	return ret ? sl_compile_fail(compiled, err, ret, "ranges times kinds of ports",
				     SL_POLICY_ROWS_MAX)
		   : 0;
}

/* Rule `rule` listens on the set of ports `at`; or: on the port class `at`. */
struct listener {
	uint32_t at;
	uint32_t rule;
};

static int add_listener(struct sl_array *listeners, uint32_t at, uint32_t rule)
{
	struct listener *listener;

	if (listeners->count == SL_POLICY_ROWS_MAX)
		return -E2BIG;
	listener = sl_array_add(listeners);
	if (!listener)
		return -ENOMEM;
	*listener = (struct listener){ at, rule };
	return 0;
}

static int collect_listeners(struct sl_compiled *compiled, struct sl_array *listeners)
{
	const struct sl_policy *policy = compiled->policy;
	int ret = 0;

	for (uint32_t rule = 0; rule < policy->entry_count; rule++) {
		const struct sl_policy_entry *entry = &policy->entries[rule];

		for (size_t i = 0; i < entry->listen_count && !ret; i++) {
			uint32_t set = sl_port_map_add(&compiled->listen_ports,
						       entry->listens[i].transport,
						       &entry->listens[i].ports);

			ret = set == SL_INTERN_NONE ? -ENOMEM : add_listener(listeners, set, rule);
		}
	}
	return ret ? ret : sl_port_map_close(&compiled->listen_ports);
}

static int by_class(const void *a, const void *b)
{
	const struct listener *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* From sets of ports to port classes, sorted by them. */
static int split_listeners(const struct sl_compiled *compiled, const struct sl_array *listeners,
			   struct sl_array *split)
{
	int ret = 0;

	for (size_t i = 0; i < listeners->count; i++) {
		const struct listener *listener = sl_array_at(listeners, i);
		size_t count;
		const uint32_t *classes =
			sl_port_map_classes(&compiled->listen_ports, listener->at, &count);

		for (size_t j = 0; j < count && !ret; j++)
			ret = add_listener(split, classes[j], listener->rule);
	}
	if (split->count)
		qsort(split->data, split->count, split->item, by_class);
	return ret;
}

static int listen_classes(struct sl_compiled *compiled, const struct sl_array *split)
{
	const struct listener *listeners = split->data;
	size_t at = 0;

	for (uint32_t port_class = 0; port_class <= compiled->listen_ports.class_count;
	     port_class++) {
		uint32_t *class_id = sl_array_add(&compiled->listen_classes);
		int ret;

		if (!class_id)
			return -ENOMEM;
		sl_class_begin(&compiled->classes);
		for (; at < split->count && listeners[at].at == port_class; at++)
			sl_class_add_rule(&compiled->classes, listeners[at].rule);
		ret = sl_class_end(&compiled->classes, class_id);
		if (ret)
			return ret;
	}
	return 0;
}

int sl_compile_listens(struct sl_compiled *compiled, struct sl_err *err)
{
	_cleanup_array_ struct sl_array listeners = SL_ARRAY(struct listener);
	_cleanup_array_ struct sl_array split = SL_ARRAY(struct listener);
	int ret = sl_port_map_init(&compiled->listen_ports);

	compiled->listen_classes = (struct sl_array)SL_ARRAY(uint32_t);
	if (!ret)
		ret = collect_listeners(compiled, &listeners);
	if (!ret)
		ret = split_listeners(compiled, &listeners, &split);
	if (ret)
		return sl_compile_fail(compiled, err, ret, "listeners times kinds of ports",
				       SL_POLICY_ROWS_MAX);
	ret = listen_classes(compiled, &split);
	return ret ? sl_compile_class_fail(compiled, err, ret) : 0;
}

int sl_compiled_new(struct sl_compiled **out, const struct sl_policy *policy, struct sl_err *err)
{
	_cleanup_(sl_compiled_free) struct sl_compiled *compiled = calloc(1, sizeof(*compiled));
	int ret;

	if (!compiled)
		return sl_err_sys(err, ENOMEM, "compiling %s", policy->file);
	compiled->policy = policy;
	ret = sl_compile_binaries(compiled, err);
	if (ret)
		return ret;
	ret = sl_classes_init(&compiled->classes, compiled->rules);
	if (ret)
		return sl_compile_fail(compiled, err, ret, "", 0);
	ret = sl_compile_ports(compiled, err);
	if (!ret)
		ret = sl_compile_dests(compiled, err);
	if (!ret)
		ret = sl_compile_names(compiled, err);
	if (!ret)
		ret = sl_compile_listens(compiled, err);
	if (!ret)
		*out = TAKE_PTR(compiled);
	return ret;
}

void sl_compiled_free(struct sl_compiled **compiled)
{
	struct sl_compiled *c = compiled ? *compiled : NULL;

	if (!c)
		return;
	for (int table = 0; table < SL_PATHS_MAX; table++)
		sl_paths_clear(&c->paths[table]);
	sl_array_free(&c->pins);
	free(c->rules);
	free(c->rule_bits);
	sl_classes_clear(&c->classes);
	sl_port_map_clear(&c->ports);
	free(c->endpoint_sets);
	sl_array_free(&c->dests);
	sl_htab_free(&c->dest_index);
	free(c->lengths);
	sl_intern_free(&c->hosts);
	sl_array_free(&c->names);
	sl_array_free(&c->host_first);
	sl_htab_free(&c->name_index);
	sl_port_map_clear(&c->listen_ports);
	sl_array_free(&c->listen_classes);
	free(c);
	*compiled = NULL;
}
