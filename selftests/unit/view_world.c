/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/parse.h"
#include "unit/view_world.h"

struct world world;

static int exe_by_id(void *ctx, unsigned int id, struct sl_exe *out)
{
	(void)ctx;
	if (id >= WORLD_ROWS || !world.exes[id].id)
		return -ENOENT;
	*out = world.exes[id];
	return 0;
}

static int lineage_by_id(void *ctx, unsigned int id, struct sl_lineage *out)
{
	(void)ctx;
	if (id >= WORLD_ROWS || !world.lineages[id].id)
		return -ENOENT;
	*out = world.lineages[id];
	return 0;
}

static int sandbox_name(void *ctx, unsigned int id, char name[SL_SANDBOX_NAME_MAX])
{
	(void)ctx;
	if (id >= WORLD_ROWS || !world.sandboxes[id][0])
		return -ENOENT;
	memcpy(name, world.sandboxes[id], SL_SANDBOX_NAME_MAX);
	return 0;
}

static int name_by_id(void *ctx, unsigned int id, struct sl_name *out)
{
	(void)ctx;
	if (id != 1)
		return -ENOENT;
	*out = (struct sl_name){ .sandbox = 1, .text = "registry.example.org" };
	return 0;
}

static int procs_each(void *ctx, int (*fn)(const struct sl_process *process, void *arg), void *arg)
{
	(void)ctx;
	for (int i = 0; i < WORLD_ROWS; i++) {
		int ret = world.procs[i].key.tgid ? fn(&world.procs[i], arg) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

struct sl_view_ops world_view_ops(void)
{
	return (struct sl_view_ops){
		.identity = { exe_by_id, lineage_by_id, NULL },
		.sandbox_name = sandbox_name,
		.name = name_by_id,
	};
}

struct sl_event_ops world_event_ops(void)
{
	return (struct sl_event_ops){ .view = world_view_ops(), .procs_each = procs_each };
}

void world_exe(unsigned int id, const char *path)
{
	struct sl_exe *exe = &world.exes[id];

	*exe = (struct sl_exe){
		.key = { .ino = 1000 + id, .dev = 8 << 20 | 1 },
		.id = id,
		.size = 4096,
		.path_len = (unsigned short)strlen(path),
	};
	strcpy(exe->path, path);
}

void world_lineage(unsigned int id, unsigned int parent, unsigned int exe, unsigned int flags)
{
	world.lineages[id] = (struct sl_lineage){
		.key = { .parent = parent, .exe = exe, .flags = flags },
		.depth = parent ? world.lineages[parent].depth + 1 : 1,
		.id = id,
	};
}

void world_reset(void)
{
	memset(&world, 0, sizeof(world));
	strcpy(world.sandboxes[1], "web");
	world_exe(1, "/usr/bin/sh");
	world_exe(2, "/usr/bin/curl");
	world_lineage(1, 0, 1, SL_LINEAGE_OUTSIDE);
	world_lineage(2, 1, 2, 0);
}

struct sl_endpoint world_endpoint(const char *text)
{
	struct sl_endpoint endpoint = { 0 };

	cr_assert_eq(sl_parse_endpoint(text, &endpoint), 0);
	return endpoint;
}

struct sl_sock world_sock(void)
{
	const struct sl_owner owner = {
		.start_ns = 5000000000,
		.tgid = 100,
		.tid = 101,
		.ns_pid = 7,
		.sandbox = 1,
		.lineage = 2,
		.exe = 2,
		.uid = 1000,
		.comm = "curl",
	};

	return (struct sl_sock){
		.cookie = 0x8000000000000001,
		.netns_cookie = 1,
		.since_ns = 6000001000,
		.owner = owner,
		.local = world_endpoint("10.0.0.1:40000"),
		.remote = world_endpoint("192.0.2.1:443"),
		.flags = SL_SOCK_CONNECTED,
		.family = AF_INET,
		.type = SOCK_STREAM,
		.protocol = IPPROTO_TCP,
	};
}

struct sl_event_sock world_sock_event(enum sl_event_kind kind, const struct sl_sock *sock)
{
	return (struct sl_event_sock){
		.head = {
			.schema = SL_SCHEMA,
			.kind = kind,
			.size = sizeof(struct sl_event_sock),
			.time_ns = 7000000000,
		},
		.sock = *sock,
	};
}

struct sl_event_process world_process_event(enum sl_event_kind kind, unsigned int exe,
					    unsigned int lineage)
{
	return (struct sl_event_process){
		.head = {
			.schema = SL_SCHEMA,
			.kind = kind,
			.size = sizeof(struct sl_event_process),
			.time_ns = 7000000000,
		},
		.process = {
			.key = { .start_ns = 5000000000, .tgid = 100 },
			.parent = { .start_ns = 4000000000, .tgid = 99 },
			.sandbox = 1,
			.lineage = lineage,
			.exe = exe,
			.ns_pid = 7,
			.uid = 1000,
			.comm = "curl",
		},
	};
}
