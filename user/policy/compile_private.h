/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of a compiled policy, each made by a file of its own in this order: binaries,
 * ports, destinations, names. Private to the compiler.
 */
#ifndef SLUICE_USER_POLICY_COMPILE_PRIVATE_H
#define SLUICE_USER_POLICY_COMPILE_PRIVATE_H

#include "base/htab.h"
#include "policy/classes.h"
#include "policy/paths.h"

/*
 * Sets of ports, and the classes of ports that no set tells apart. Sets are numbered by
 * sl_port_map_add() from 0; a set's classes are those from classes[first[set]] on.
 */
struct sl_port_map {
	struct sl_intern *sets;
	struct sl_array ranges;  /* struct sl_port_row: sorted, by transport, then port */
	struct sl_array members; /* uint32_t classes, grouped by set */
	struct sl_array first;   /* uint32_t by set, and one more: the end */
	uint32_t class_count;    /* numbers 1 to this are in use */
	size_t split[SL_TRANSPORT_MAX + 1]; /* where a transport's ranges begin */
};

int sl_port_map_init(struct sl_port_map *map);
void sl_port_map_clear(struct sl_port_map *map);
/* SL_INTERN_NONE: no memory. */
uint32_t sl_port_map_add(struct sl_port_map *map, enum sl_transport transport,
			 const struct sl_ports *ports);
/* -E2BIG: SL_POLICY_ROWS_MAX. */
int sl_port_map_close(struct sl_port_map *map);
uint32_t sl_port_map_find(const struct sl_port_map *map, enum sl_transport transport,
			  uint16_t port);
const uint32_t *sl_port_map_classes(const struct sl_port_map *map, uint32_t set, size_t *count);

/* Lengths of prefixes that a port class has: bit n for length n. */
struct sl_lengths {
	uint64_t word[3];
};

struct sl_compiled {
	const struct sl_policy *policy;

	/* Binaries */
	struct sl_paths paths[SL_PATHS_MAX];
	struct sl_array pins; /* struct sl_pin_row: wildcards last, then by pattern and digest */
	size_t exact_pins;
	struct sl_bits script_bits, strict_bits;
	size_t bit_count;
	struct sl_rule_bits *rules; /* by entry */
	uint16_t *rule_bits;        /* what they point into */

	struct sl_classes classes;

	/* Destinations */
	struct sl_port_map ports;
	uint32_t *endpoint_sets; /* of ports, by endpoint in file order */
	struct sl_array dests;   /* struct sl_dest_row, sorted */
	struct sl_htab *dest_index;
	struct sl_lengths *lengths; /* by port class */

	/* Names */
	struct sl_intern *hosts;
	bool wild_hosts;
	struct sl_array names;      /* struct sl_name_row, by host */
	struct sl_array host_first; /* uint32_t by host, and the end: its rows */
	struct sl_htab *name_index;
	uint32_t withheld_class; /* allows nothing: of rules that withhold an address */

	/* Listeners */
	struct sl_port_map listen_ports;
	struct sl_array listen_classes; /* uint32_t by port class of listen_ports, from 1 */
};

int sl_compile_binaries(struct sl_compiled *compiled, struct sl_err *err);
int sl_compile_ports(struct sl_compiled *compiled, struct sl_err *err);
int sl_compile_dests(struct sl_compiled *compiled, struct sl_err *err);
int sl_compile_names(struct sl_compiled *compiled, struct sl_err *err);
int sl_compile_listens(struct sl_compiled *compiled, struct sl_err *err);

/* "FILE: <what>", with the cause of -E2BIG or -ENOMEM. Returns ret. */
int sl_compile_fail(const struct sl_compiled *compiled, struct sl_err *err, int ret,
		    const char *limit, size_t max);

/* The cause of a failed sl_class_end(). Returns ret. */
int sl_compile_class_fail(const struct sl_compiled *compiled, struct sl_err *err, int ret);

#endif
