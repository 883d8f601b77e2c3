/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a compiled policy: its tables, one by one or whole (compile.h). */
#include "policy/compile_private.h"

const struct sl_policy *sl_compiled_policy(const struct sl_compiled *compiled)
{
	return compiled->policy;
}

size_t sl_compiled_bit_count(const struct sl_compiled *compiled)
{
	return compiled->bit_count;
}

const struct sl_bits *sl_compiled_script_bits(const struct sl_compiled *compiled)
{
	return &compiled->script_bits;
}

const struct sl_bits *sl_compiled_strict_bits(const struct sl_compiled *compiled)
{
	return &compiled->strict_bits;
}

void sl_compiled_needs(const struct sl_compiled *compiled, struct sl_compiled_needs *out)
{
	out->globs = compiled->paths[SL_PATHS_EXE].grants[SL_PATH_GLOB].count > 0;
	out->scripts = compiled->paths[SL_PATHS_SCRIPT].grants[SL_PATH_GLOB].count > 0;
	out->digests = compiled->pins.count > 0 || compiled->policy->first_use;
}

int sl_compiled_paths_each(const struct sl_compiled *compiled, enum sl_path_table table,
			   int (*row)(const struct sl_path_row *row, void *arg), void *arg)
{
	return sl_paths_each(&compiled->paths[table], row, arg);
}

int sl_compiled_pins_each(const struct sl_compiled *compiled,
			  int (*row)(const struct sl_pin_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < compiled->pins.count && !ret; i++)
		ret = row(sl_array_at(&compiled->pins, i), arg);
	return ret;
}

int sl_compiled_ports_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_port_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < compiled->ports.ranges.count && !ret; i++)
		ret = row(sl_array_at(&compiled->ports.ranges, i), arg);
	return ret;
}

int sl_compiled_dests_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_dest_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < compiled->dests.count && !ret; i++)
		ret = row(sl_array_at(&compiled->dests, i), arg);
	return ret;
}

int sl_compiled_names_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_name_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < compiled->names.count && !ret; i++)
		ret = row(sl_array_at(&compiled->names, i), arg);
	return ret;
}

int sl_compiled_listens_each(const struct sl_compiled *compiled,
			     int (*row)(const struct sl_listen_row *row, void *arg), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < compiled->listen_ports.ranges.count && !ret; i++) {
		const struct sl_port_row *range = sl_array_at(&compiled->listen_ports.ranges, i);
		const struct sl_listen_row at = {
			.transport = range->transport,
			.first = range->first,
			.last = range->last,
			.class_id = sl_compiled_listen(compiled, range->transport, range->first),
		};

		ret = row(&at, arg);
	}
	return ret;
}

size_t sl_compiled_class_count(const struct sl_compiled *compiled)
{
	return compiled->classes.allowed.count;
}

struct sl_class sl_compiled_class(const struct sl_compiled *compiled, uint32_t id)
{
	return sl_class_at(&compiled->classes, id);
}

uint32_t sl_compiled_rule(const struct sl_compiled *compiled, uint32_t id,
			  const struct sl_bits *bits)
{
	return sl_class_rule(&compiled->classes, id, bits);
}

uint32_t sl_compiled_port(const struct sl_compiled *compiled, enum sl_transport transport,
			  uint16_t port)
{
	return sl_port_map_find(&compiled->ports, transport, port);
}

uint32_t sl_compiled_listen(const struct sl_compiled *compiled, enum sl_transport transport,
			    uint16_t port)
{
	uint32_t port_class = sl_port_map_find(&compiled->listen_ports, transport, port);

	return *(const uint32_t *)sl_array_at(&compiled->listen_classes, port_class);
}
