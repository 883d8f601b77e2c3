/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Port classes. All ranges of all sets cut the ports into pieces; pieces that the same sets
 * cover are one class.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/compile_private.h"

/* What a set of ports is interned as. */
struct set_head {
	uint32_t transport;
	struct sl_port_range ranges[];
};

/* Set `set` covers piece `piece`; or: set `set` has class `piece`. */
struct cover {
	uint32_t piece;
	uint32_t set;
};

int sl_port_map_init(struct sl_port_map *map)
{
	map->ranges = (struct sl_array)SL_ARRAY(struct sl_port_row);
	map->members = (struct sl_array)SL_ARRAY(uint32_t);
	map->first = (struct sl_array)SL_ARRAY(uint32_t);
	return sl_intern_new(&map->sets);
}

void sl_port_map_clear(struct sl_port_map *map)
{
	sl_intern_free(&map->sets);
	sl_array_free(&map->ranges);
	sl_array_free(&map->members);
	sl_array_free(&map->first);
}

uint32_t sl_port_map_add(struct sl_port_map *map, enum sl_transport transport,
			 const struct sl_ports *ports)
{
	size_t bytes = ports->count * sizeof(*ports->ranges);
	_cleanup_free_ struct set_head *head = malloc(sizeof(*head) + bytes);

	if (!head)
		return SL_INTERN_NONE;
	head->transport = transport;
	memcpy(head->ranges, ports->ranges, bytes);
	return sl_intern_add(map->sets, head, sizeof(*head) + bytes, NULL);
}

static const struct set_head *set_at(const struct sl_port_map *map, uint32_t set, size_t *count)
{
	size_t len = 0;
	const struct set_head *head = sl_intern_at(map->sets, set, &len);

	*count = (len - sizeof(*head)) / sizeof(head->ranges[0]);
	return head;
}

/* begins[p]: a piece begins at port p. piece_of[p]: the piece that port p is in. */
struct pieces {
	bool begins[65537];
	uint32_t piece_of[65537];
	uint16_t first[65536]; /* by piece */
	uint32_t count;
};

static void cut(struct pieces *pieces, const struct sl_port_map *map, enum sl_transport transport)
{
	memset(pieces, 0, sizeof(*pieces));
	pieces->begins[0] = true;
	for (uint32_t set = 0; set < sl_intern_count(map->sets); set++) {
		size_t count;
		const struct set_head *head = set_at(map, set, &count);

		for (size_t i = 0; i < count && head->transport == transport; i++) {
			pieces->begins[head->ranges[i].first] = true;
			pieces->begins[head->ranges[i].last + 1] = true;
		}
	}
	for (uint32_t port = 0; port <= 65535; port++) {
		if (pieces->begins[port])
			pieces->first[pieces->count++] = (uint16_t)port;
		pieces->piece_of[port] = pieces->count - 1;
	}
}

static int by_piece(const void *a, const void *b)
{
	const struct cover *x = a, *y = b;

	if (x->piece != y->piece)
		return x->piece < y->piece ? -1 : 1;
	return (x->set > y->set) - (x->set < y->set);
}

static int by_set(const void *a, const void *b)
{
	const struct cover *x = a, *y = b;

	if (x->set != y->set)
		return x->set < y->set ? -1 : 1;
	return (x->piece > y->piece) - (x->piece < y->piece);
}

static int add_cover(struct sl_array *covers, uint32_t piece, uint32_t set)
{
	struct cover *cover;

	if (covers->count == SL_POLICY_ROWS_MAX)
		return -E2BIG;
	cover = sl_array_add(covers);
	if (!cover)
		return -ENOMEM;
	cover->piece = piece;
	cover->set = set;
	return 0;
}

static int find_covers(const struct pieces *pieces, const struct sl_port_map *map,
		       enum sl_transport transport, struct sl_array *covers)
{
	int ret = 0;

	for (uint32_t set = 0; set < sl_intern_count(map->sets) && !ret; set++) {
		size_t count;
		const struct set_head *head = set_at(map, set, &count);

		for (size_t i = 0; i < count && head->transport == transport; i++) {
			uint32_t last = pieces->piece_of[head->ranges[i].last];

			for (uint32_t piece = pieces->piece_of[head->ranges[i].first];
			     piece <= last && !ret; piece++)
				ret = add_cover(covers, piece, set);
		}
	}
	if (!ret && covers->count)
		qsort(covers->data, covers->count, covers->item, by_piece);
	return ret;
}

/* A range of the map; joined to the one before it when that is of the same class. */
static int add_range(struct sl_port_map *map, enum sl_transport transport, uint16_t first,
		     uint16_t last, uint32_t port_class)
{
	struct sl_port_row *row = sl_array_at(&map->ranges, map->ranges.count - 1);

	if (row && row->transport == transport && row->port_class == port_class &&
	    row->last + 1 == first) {
		row->last = last;
		return 0;
	}
	row = sl_array_add(&map->ranges);
	if (!row)
		return -ENOMEM;
	*row = (struct sl_port_row){ transport, first, last, port_class };
	return 0;
}

/* Numbers the classes of one transport; adds (class, set) to `members`. */
static int number(struct sl_port_map *map, const struct pieces *pieces, enum sl_transport transport,
		  const struct sl_array *covers, struct sl_array *members)
{
	_cleanup_(sl_intern_free) struct sl_intern *seen = NULL;
	_cleanup_array_ struct sl_array sets = SL_ARRAY(uint32_t);
	const struct cover *cover = covers->data;
	uint32_t base = map->class_count + 1;
	int ret = sl_intern_new(&seen);
	size_t to;

	for (size_t from = 0; from < covers->count && !ret; from = to) {
		uint32_t piece = cover[from].piece, id;
		uint16_t last = piece + 1 < pieces->count ? (uint16_t)(pieces->first[piece + 1] - 1)
							  : 65535;
		bool added = false;

		sets.count = 0;
		for (to = from; to < covers->count && cover[to].piece == piece; to++) {
			uint32_t *set = sl_array_add(&sets);

			if (!set)
				return -ENOMEM;
			*set = cover[to].set;
		}
		id = sl_intern_add(seen, sets.data, sets.count * sets.item, &added);
		if (id == SL_INTERN_NONE)
			return -ENOMEM;
		for (size_t i = from; i < to && added && !ret; i++)
			ret = add_cover(members, base + id, cover[i].set);
		if (!ret)
			ret = add_range(map, transport, pieces->first[piece], last, base + id);
	}
	map->class_count += sl_intern_count(seen);
	return ret;
}

static int group(struct sl_port_map *map, struct sl_array *members)
{
	const struct cover *member = members->data;
	size_t at = 0;

	if (members->count)
		qsort(members->data, members->count, members->item, by_set);
	for (uint32_t set = 0; set <= sl_intern_count(map->sets); set++) {
		uint32_t *first = sl_array_add(&map->first);

		if (!first)
			return -ENOMEM;
		*first = (uint32_t)at;
		for (; at < members->count && member[at].set == set; at++) {
			uint32_t *port_class = sl_array_add(&map->members);

			if (!port_class)
				return -ENOMEM;
			*port_class = member[at].piece;
		}
	}
	return 0;
}

int sl_port_map_close(struct sl_port_map *map)
{
	_cleanup_free_ struct pieces *pieces = malloc(sizeof(*pieces));
	_cleanup_array_ struct sl_array members = SL_ARRAY(struct cover);
	int ret = pieces ? 0 : -ENOMEM;

	for (int transport = 0; transport < SL_TRANSPORT_MAX && !ret; transport++) {
		_cleanup_array_ struct sl_array covers = SL_ARRAY(struct cover);

		cut(pieces, map, (enum sl_transport)transport);
		ret = find_covers(pieces, map, (enum sl_transport)transport, &covers);
		if (!ret)
			ret = number(map, pieces, (enum sl_transport)transport, &covers, &members);
		map->split[transport + 1] = map->ranges.count;
	}
	return ret ? ret : group(map, &members);
}

uint32_t sl_port_map_find(const struct sl_port_map *map, enum sl_transport transport, uint16_t port)
{
	const struct sl_port_row *rows = map->ranges.data;
	size_t low = map->split[transport], high = map->split[transport + 1];

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (port < rows[middle].first)
			high = middle;
		else if (port > rows[middle].last)
			low = middle + 1;
		else
			return rows[middle].port_class;
	}
	return SL_PORT_CLASS_NONE;
}

const uint32_t *sl_port_map_classes(const struct sl_port_map *map, uint32_t set, size_t *count)
{
	const uint32_t *first = sl_array_at(&map->first, set);

	*count = first[1] - first[0];
	return (const uint32_t *)map->members.data + first[0];
}

size_t sl_port_prefixes(uint16_t first, uint16_t last, struct sl_port_prefix *out)
{
	uint32_t at = first;
	size_t count = 0;

	while (at <= last) {
		/* The largest block that begins here and does not go beyond. */
		uint32_t size = at ? at & -at : 65536;

		while (at + size - 1 > last)
			size /= 2;
		out[count].port = (uint16_t)at;
		out[count++].bits = (uint8_t)(16 - __builtin_ctz(size));
		at += size;
	}
	return count;
}
