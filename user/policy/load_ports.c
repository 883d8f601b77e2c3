/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports of endpoints and listeners. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "policy/load.h"

#define PORT_MAX 65535u

static int bad_port(struct sl_loader *loader, const struct sl_yaml_node *node, bool range)
{
	sl_yaml_fail(&loader->source, EINVAL, node->at, node->text, "not a port%s",
		     range ? " or range of ports" : "");
	return sl_err_hint(loader->source.err,
			   "a port is 1 to %u; `ports` takes a list of ports "
			   "and ranges: [80, \"8000-8010\"]",
			   PORT_MAX);
}

static int load_port(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	struct sl_port_range *range = element;
	const char *text = NULL;
	uint32_t port;
	int ret = sl_load_text(loader, node, "port", &text);

	if (ret)
		return ret;
	if (sl_parse_u32(text, 1, PORT_MAX, &port))
		return bad_port(loader, node, false);
	range->first = range->last = (uint16_t)port;
	return 0;
}

static int load_range(struct sl_loader *loader, const struct sl_yaml_node *node, void *element)
{
	struct sl_port_range *range = element;
	const char *text = NULL, *dash;
	uint32_t first, last;
	char number[8];
	int ret = sl_load_text(loader, node, "ports", &text);

	if (ret)
		return ret;
	dash = strchr(text, '-');
	if (!dash)
		return load_port(loader, node, element);
	if ((size_t)(dash - text) >= sizeof(number))
		return bad_port(loader, node, true);
	memcpy(number, text, (size_t)(dash - text));
	number[dash - text] = '\0';
	if (sl_parse_u32(number, 1, PORT_MAX, &first) || sl_parse_u32(dash + 1, 1, PORT_MAX, &last))
		return bad_port(loader, node, true);
	if (first > last)
		return sl_yaml_fail(&loader->source, EINVAL, node->at, text,
				    "a range of ports that ends before it begins");
	range->first = (uint16_t)first;
	range->last = (uint16_t)last;
	return 0;
}

static int by_first(const void *a, const void *b)
{
	return (int)((const struct sl_port_range *)a)->first -
	       (int)((const struct sl_port_range *)b)->first;
}

/* Sorts, and joins what overlaps or touches. Returns the new count. */
static size_t join(struct sl_port_range *ranges, size_t count)
{
	size_t used = 0;

	qsort(ranges, count, sizeof(*ranges), by_first);
	for (size_t i = 0; i < count; i++) {
		struct sl_port_range *last = used ? &ranges[used - 1] : NULL;

		if (!last || ranges[i].first > last->last + 1)
			ranges[used++] = ranges[i];
		else if (ranges[i].last > last->last)
			last->last = ranges[i].last;
	}
	return used;
}

int sl_load_ports(struct sl_loader *loader, const struct sl_yaml_node *node,
		  const struct sl_yaml_node *port, const struct sl_yaml_node *ports,
		  struct sl_ports *out)
{
	const struct sl_yaml_source *source = &loader->source;
	struct sl_port_range *ranges;
	const void *list = NULL;
	size_t count = 0;
	int ret;

	if (port && ports)
		return sl_yaml_fail(source, EINVAL, node->at, NULL,
				    "both `port` and `ports`; expected is one of them");
	if (!port && !ports) {
		sl_yaml_fail(source, EINVAL, node->at, NULL, "no port");
		return sl_err_hint(source->err, "expected is `port: 443`, or `ports` with a list; "
						"\"1-65535\" is all");
	}
	if (port) {
		ranges = sl_arena_alloc(loader->arena, sizeof(*ranges));
		if (!ranges)
			return sl_load_no_memory(loader);
		ret = load_port(loader, port, ranges);
		count = 1;
	} else {
		ret = sl_load_list(loader, ports, "ports", SL_POLICY_PORTS_MAX, sizeof(*ranges),
				   load_range, &list, &count);
		ranges = (struct sl_port_range *)list;
		if (!ret && !count)
			ret = sl_yaml_fail(source, EINVAL, ports->at, NULL,
					   "ports: an empty list can never match");
	}
	if (ret)
		return ret;
	out->ranges = ranges;
	out->count = join(ranges, count);
	return 0;
}

const char *sl_ports_format(char *dst, size_t size, const struct sl_ports *ports)
{
	size_t used = 0;

	if (size)
		dst[0] = '\0';
	for (size_t i = 0; i < ports->count && used < size; i++) {
		const struct sl_port_range *range = &ports->ranges[i];

		used += (size_t)snprintf(dst + used, size - used, "%s%u", i ? "," : "",
					 range->first);
		if (range->last != range->first && used < size)
			used += (size_t)snprintf(dst + used, size - used, "-%u", range->last);
	}
	return dst;
}

bool sl_ports_have(const struct sl_ports *ports, uint16_t port)
{
	for (size_t i = 0; i < ports->count; i++) {
		if (ports->ranges[i].first <= port && port <= ports->ranges[i].last)
			return true;
	}
	return false;
}
