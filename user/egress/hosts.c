/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hosts(5), of names that a rule has: what members read there, read for them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "egress/egress_private.h"

/* Longer files are read as far as that, and lines, which who may write there makes up. */
#define HOSTS_BYTES (1 << 20)
#define HOSTS_LINES 4096
/* Until it is read again, and a little. */
#define HOSTS_TTL_S 120

struct entry {
	char name[SL_LEASE_NAME];
	struct sl_addr addr;
};

/* Its own loopback is where a member finds the proxy, not the relay: that has no name. */
static bool is_met(const struct sl_egress *egress, const struct sl_addr *addr)
{
	return !egress->relay || !sl_addr_is_loopback(addr);
}

static void take_line(struct sl_egress *egress, char *line)
{
	char name[SL_LEASE_NAME], *word, *rest = line;
	struct sl_prefix prefix;
	struct entry *entry;

	line[strcspn(line, "#\n")] = '\0';
	word = strsep(&rest, " \t");
	if (!word || sl_prefix_parse(word, &prefix) || prefix.len != 128)
		return;
	while ((word = strsep(&rest, " \t"))) {
		if (!*word || sl_host_normal(name, word, NULL) ||
		    !sl_egress_has(egress, name, sl_compiled_host))
			continue;
		if (is_met(egress, &prefix.addr))
			sl_egress_count_lease(egress,
					      sl_leases_add(egress->leases, name, &prefix.addr,
							    HOSTS_TTL_S, NULL, sl_monotonic_ms()));
		entry = egress->hosts.count < HOSTS_LINES ? sl_array_add(&egress->hosts) : NULL;
		if (!entry)
			continue;
		strcpy(entry->name, name);
		entry->addr = prefix.addr;
	}
}

void sl_egress_read_hosts(struct sl_egress *egress)
{
	FILE *file = egress->hosts_path ? fopen(egress->hosts_path, "re") : NULL;
	char line[1024];
	size_t size = 0;

	pthread_mutex_lock(&egress->lock);
	sl_array_free(&egress->hosts);
	egress->hosts = (struct sl_array)SL_ARRAY(struct entry);
	while (file && size < HOSTS_BYTES && fgets(line, sizeof(line), file)) {
		size += strlen(line);
		take_line(egress, line);
	}
	pthread_mutex_unlock(&egress->lock);
	if (file)
		fclose(file);
}

size_t sl_egress_hosts(struct sl_egress *egress, const char *name, struct sl_addr *addresses,
		       size_t max)
{
	const struct entry *entry;
	size_t n = 0;

	pthread_mutex_lock(&egress->lock);
	entry = egress->hosts.data;
	for (size_t i = 0; i < egress->hosts.count && n < max; i++) {
		if (!strcmp(entry[i].name, name))
			addresses[n++] = entry[i].addr;
	}
	pthread_mutex_unlock(&egress->lock);
	return n;
}
