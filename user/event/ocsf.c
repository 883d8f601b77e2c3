// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event/ocsf.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/format.h"

#define VERSION "1.3.0"
#define CLASS 4001

/* Numbers of the schema's enumerations. */
enum { ACTIVITY_OPEN = 1, ACTIVITY_REFUSE = 5 };
enum { ACTION_ALLOWED = 1, ACTION_DENIED = 2 };
enum { DISPOSITION_BLOCKED = 2, DISPOSITION_LOGGED = 17 };
enum { SEVERITY_INFORMATIONAL = 1, SEVERITY_MEDIUM = 3 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };
enum { DIRECTION_OUTBOUND = 2 };
enum { FILE_REGULAR = 1 };
enum { HASH_SHA256 = 3 };
enum { IP_V4 = 4, IP_V6 = 6 };

struct hash {
	__u32 algorithm_id;
	const char *algorithm;
	char value[2 * SL_SHA256_LEN + 1];
};

struct file {
	const char *name;
	const char *path;
	__u32 type_id;
	struct sl_records hashes;
};

struct user {
	char uid[16];
};

struct process {
	__u32 pid;
	char uid[48]; /* unique: with the time of its start */
	const char *name;
	__u64 created_time; /* milliseconds, as all times of the schema */
	struct file file;
	struct user user;
	struct sl_strings lineage;
};

struct actor {
	struct process process;
};

struct endpoint {
	const char *hostname;
	char ip[SL_FORMAT_MAX];
	__u32 port;
};

struct connection {
	char protocol_name[16];
	__u32 direction_id;
	__u32 protocol_ver_id;
};

struct rule {
	const char *uid;
};

struct product {
	const char *name;
	const char *vendor_name;
	const char *version;
};

struct metadata {
	const char *version;
	struct product product;
	struct sl_strings profiles;
};

struct ocsf {
	__u32 class_uid, category_uid, activity_id, type_uid;
	__u32 severity_id, status_id, action_id, disposition_id;
	const char *status_detail;
	__u64 time, start_time, end_time;
	__u64 count;
	struct metadata metadata;
	struct actor actor;
	struct endpoint dst;
	struct connection connection;
	struct rule rule;
	const struct sl_view_decision *decision;
	bool has_process, has_dst, has_rule;
	struct hash hash;
};

#define PRESENT(member)                                       \
	static bool member(const void *record)                \
	{                                                     \
		return ((const struct ocsf *)record)->member; \
	}
PRESENT(has_process)
PRESENT(has_dst)
PRESENT(has_rule)

static bool has_file(const void *record)
{
	return ((const struct process *)record)->file.path;
}

static const struct sl_field hash_fields[] = {
	SL_FIELD_UINT(struct hash, algorithm_id, NULL),
	SL_FIELD_TEXT(struct hash, algorithm, NULL),
	SL_FIELD_STRING(struct hash, value, NULL),
	{ 0 },
};

static const struct sl_field file_fields[] = {
	SL_FIELD_TEXT(struct file, name, NULL),
	SL_FIELD_TEXT(struct file, path, NULL),
	SL_FIELD_UINT(struct file, type_id, NULL),
	{ .name = "hashes",
	  .type = SL_FIELD_TYPE_RECORDS,
	  .offset = offsetof(struct file, hashes),
	  .size = sizeof(struct sl_records),
	  .fields = hash_fields },
	{ 0 },
};

static const struct sl_field user_fields[] = {
	SL_FIELD_STRING(struct user, uid, NULL),
	{ 0 },
};

static const struct sl_field process_fields[] = {
	SL_FIELD_UINT(struct process, pid, NULL),
	SL_FIELD_STRING(struct process, uid, NULL),
	SL_FIELD_TEXT(struct process, name, NULL),
	SL_FIELD_UINT(struct process, created_time, NULL),
	SL_FIELD_OBJECT(struct process, file, NULL, file_fields, .present = has_file),
	SL_FIELD_OBJECT(struct process, user, NULL, user_fields),
	SL_FIELD_LIST(struct process, lineage, NULL),
	{ 0 },
};

static const struct sl_field actor_fields[] = {
	SL_FIELD_OBJECT(struct actor, process, NULL, process_fields),
	{ 0 },
};

static const struct sl_field endpoint_fields[] = {
	SL_FIELD_TEXT(struct endpoint, hostname, NULL),
	SL_FIELD_STRING(struct endpoint, ip, NULL, .flags = SL_FIELD_OPTIONAL),
	SL_FIELD_UINT(struct endpoint, port, NULL, .flags = SL_FIELD_OPTIONAL),
	{ 0 },
};

static const struct sl_field connection_fields[] = {
	SL_FIELD_STRING(struct connection, protocol_name, NULL),
	SL_FIELD_UINT(struct connection, direction_id, NULL),
	SL_FIELD_UINT(struct connection, protocol_ver_id, NULL, .flags = SL_FIELD_OPTIONAL),
	{ 0 },
};

static const struct sl_field rule_fields[] = {
	SL_FIELD_TEXT(struct rule, uid, NULL),
	{ 0 },
};

static const struct sl_field product_fields[] = {
	SL_FIELD_TEXT(struct product, name, NULL),
	SL_FIELD_TEXT(struct product, vendor_name, NULL),
	SL_FIELD_TEXT(struct product, version, NULL),
	{ 0 },
};

static const struct sl_field metadata_fields[] = {
	SL_FIELD_TEXT(struct metadata, version, NULL),
	SL_FIELD_OBJECT(struct metadata, product, NULL, product_fields),
	SL_FIELD_LIST(struct metadata, profiles, NULL),
	{ 0 },
};

const struct sl_field sl_ocsf_fields[] = {
	SL_FIELD_UINT(struct ocsf, class_uid, NULL),
	SL_FIELD_UINT(struct ocsf, category_uid, NULL),
	SL_FIELD_UINT(struct ocsf, activity_id, NULL),
	SL_FIELD_UINT(struct ocsf, type_uid, NULL),
	SL_FIELD_UINT(struct ocsf, severity_id, NULL),
	SL_FIELD_UINT(struct ocsf, status_id, NULL),
	SL_FIELD_TEXT(struct ocsf, status_detail, NULL),
	SL_FIELD_UINT(struct ocsf, action_id, NULL),
	SL_FIELD_UINT(struct ocsf, disposition_id, NULL),
	SL_FIELD_UINT(struct ocsf, time, NULL),
	SL_FIELD_UINT(struct ocsf, start_time, NULL),
	SL_FIELD_UINT(struct ocsf, end_time, NULL),
	SL_FIELD_UINT(struct ocsf, count, NULL),
	SL_FIELD_OBJECT(struct ocsf, metadata, NULL, metadata_fields),
	SL_FIELD_OBJECT(struct ocsf, actor, NULL, actor_fields, .present = has_process),
	SL_FIELD_AS(OBJECT, struct ocsf, dst, "dst_endpoint", NULL, .fields = endpoint_fields,
		    .present = has_dst),
	SL_FIELD_AS(OBJECT, struct ocsf, connection, "connection_info", NULL,
		    .fields = connection_fields),
	SL_FIELD_AS(OBJECT, struct ocsf, rule, "firewall_rule", NULL, .fields = rule_fields,
		    .present = has_rule),
	SL_FIELD_AS(OBJECT_PTR, struct ocsf, decision, "unmapped", NULL,
		    .fields = sl_view_decision_fields),
	{ 0 },
};

static __u64 epoch_ms(__u64 boot_ns)
{
	return (boot_ns + (__u64)sl_realtime_offset_ns()) / 1000000;
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void fill_process(struct ocsf *out, const struct sl_view_process *view)
{
	struct process *process = &out->actor.process;

	process->pid = view->pid;
	snprintf(process->uid, sizeof(process->uid), "%u-%llu", view->pid,
		 (unsigned long long)view->start_ns);
	process->name = view->exe ? name_of(view->exe->path) : view->comm;
	process->created_time = epoch_ms(view->start_ns);
	snprintf(process->user.uid, sizeof(process->user.uid), "%u", view->uid);
	process->lineage = view->lineage;
	if (!view->exe)
		return;
	process->file = (struct file){
		.name = process->name,
		.path = view->exe->path,
		.type_id = FILE_REGULAR,
		.hashes = { &out->hash, view->exe->sha256[0] ? 1 : 0, sizeof(out->hash) },
	};
	out->hash.algorithm_id = HASH_SHA256;
	out->hash.algorithm = "SHA-256";
	memcpy(out->hash.value, view->exe->sha256, sizeof(out->hash.value));
}

static void fill_verdict(struct ocsf *out, const struct sl_view_decision *decision)
{
	bool passed = decision->verdict_id == SL_VERDICT_AUDIT;

	out->class_uid = CLASS;
	out->category_uid = CLASS / 1000;
	out->activity_id = passed ? ACTIVITY_OPEN : ACTIVITY_REFUSE;
	out->type_uid = CLASS * 100 + out->activity_id;
	out->severity_id = passed ? SEVERITY_INFORMATIONAL : SEVERITY_MEDIUM;
	out->status_id = passed ? STATUS_SUCCESS : STATUS_FAILURE;
	out->action_id = passed ? ACTION_ALLOWED : ACTION_DENIED;
	out->disposition_id = passed ? DISPOSITION_LOGGED : DISPOSITION_BLOCKED;
	out->status_detail = decision->reason;
	out->rule.uid = decision->rule;
	out->has_rule = decision->rule;
}

static void fill_ends(struct ocsf *out, const struct sl_view_decision *decision)
{
	out->connection.direction_id = DIRECTION_OUTBOUND;
	memcpy(out->connection.protocol_name, decision->proto, sizeof(decision->proto));
	out->dst.hostname = decision->name;
	out->has_dst = decision->name || !sl_view_endpoint_empty(&decision->remote);
	if (sl_view_endpoint_empty(&decision->remote))
		return;
	sl_format_addr(out->dst.ip, sizeof(out->dst.ip), decision->remote.addr_be);
	out->dst.port = ntohs(decision->remote.port_be);
	out->connection.protocol_ver_id = strchr(out->dst.ip, ':') ? IP_V6 : IP_V4;
}

int sl_ocsf_line(struct sl_line *line, const struct sl_view_event *view)
{
	static const char *const profiles[] = { "security_control" };
	const struct sl_view_decision *decision = view->decision;
	struct ocsf out = {
		.metadata = { .version = VERSION,
			      .product = { "sluice", "sluice", SL_VERSION },
			      .profiles = { profiles, ARRAY_SIZE(profiles) } },
		.decision = decision,
	};

	if (!decision)
		return 0;
	out.time = epoch_ms(view->time_ns);
	out.start_time = epoch_ms(decision->first_ns);
	out.end_time = epoch_ms(decision->last_ns);
	out.count = decision->count;
	fill_verdict(&out, decision);
	fill_ends(&out, decision);
	out.has_process = view->process;
	if (view->process)
		fill_process(&out, view->process);
	sl_line_begin(line);
	sl_line_fields(line, sl_ocsf_fields, &out);
	return sl_line_end(line);
}
