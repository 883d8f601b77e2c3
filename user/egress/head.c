/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who a stream is from, for the proxy that it is handed to. */
#include <errno.h>
#include <string.h>

#include "egress/passage.h"
#include "relay/proxy_v2.h"
#include "socket/process_view.h"

/*
 * Paths, nearest first, one a line; NULL when they don't fit or there are none. Without what
 * ran before the sandbox' entry: no rule matches that, nor is a proxy's to.
 */
static const char *lineage_text(const struct sl_view_process *process, char *text, size_t size)
{
	size_t used = 0, len, inside = process->lineage.count;

	inside -= process->lineage_outside < inside ? process->lineage_outside : inside;
	for (size_t i = 0; i < inside; i++) {
		len = strlen(process->lineage.items[i]);
		/* A newline in a path would make two of one. */
		if (used + len + 2 > size || strchr(process->lineage.items[i], '\n'))
			return NULL;
		if (used)
			text[used++] = '\n';
		memcpy(text + used, process->lineage.items[i], len);
		used += len;
	}
	text[used] = '\0';
	return used ? text : NULL;
}

int sl_passage_head(struct sl_passage *passage, void *head, size_t size)
{
	struct sl_egress_loop *loop = passage->loop;
	char lineage[SL_PROXY_V2_LINEAGE_MAX + 1];
	struct sl_view_process process;
	struct sl_proxy_v2 proxy = {
		.source = passage->source,
		.destination = passage->original,
		.authority = passage->name[0] ? passage->name : NULL,
		.sandbox = loop->egress->name,
		.pid = passage->client.owner.tgid,
		.start_ns = passage->client.owner.start_ns,
		.lineage_id = passage->client.owner.lineage,
	};
	int rc = sl_view_owner_fill(&process, &passage->client.owner, loop->source);

	if (rc)
		return rc;
	if (process.exe)
		proxy.exe = process.exe->path;
	proxy.lineage = lineage_text(&process, lineage, sizeof(lineage));
	rc = sl_proxy_v2_encode(head, size, &proxy);
	sl_view_source_trim(loop->source);
	return rc;
}
