/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decisions as OCSF lines. */
#include <criterion/criterion.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "event/ocsf.h"
#include "unit/view_world.h"

static struct json_object *line_of(const struct sl_decision_record *decision)
{
	_cleanup_(sl_view_source_free) struct sl_view_source *source = NULL;
	const struct sl_view_ops ops = world_view_ops();
	struct sl_event_decision event = {
		.head = { .kind = SL_EVENT_DECISION, .size = sizeof(event), .time_ns = 5000000 },
		.decision = *decision
	};
	struct sl_view_event_parts parts;
	struct sl_line line = { 0 };
	struct sl_view_event view;
	struct json_object *json;
	char *text = NULL;
	size_t len = 0;

	cr_assert_eq(sl_view_source_new(&source, &ops), 0);
	cr_assert_eq(sl_view_event_fill(&view, &parts, &event.head, source), 0);
	line.file = open_memstream(&text, &len);
	cr_assert_eq(sl_ocsf_line(&line, &view), 0);
	fclose(line.file);
	cr_assert_eq(text[len - 1], '\n');
	json = json_tokener_parse(text);
	cr_assert_not_null(json, "%s", text);
	free(text);
	return json;
}

static struct json_object *at(struct json_object *json, const char *path)
{
	struct json_object *found = NULL;

	return json_pointer_get(json, path, &found) ? NULL : found;
}

static void expect_int(struct json_object *json, const char *path, int64_t value)
{
	cr_expect_eq(json_object_get_int64(at(json, path)), value, "%s: %s", path,
		     json_object_to_json_string(json));
}

static struct sl_decision_record denial(void)
{
	const struct sl_sock sock = world_sock();

	return (struct sl_decision_record){
		.key = { .remote = world_endpoint("192.0.2.1:443"),
			 .sandbox = 1,
			 .lineage = 2,
			 .protocol = 6,
			 .verdict = SL_VERDICT_DENY,
			 .reason = SL_REASON_BINARY },
		.owner = sock.owner,
		.count = 7,
	};
}

Test(ocsf, denial)
{
	struct sl_decision_record decision = denial();
	struct json_object *json;

	world_reset();
	json = line_of(&decision);
	expect_int(json, "/class_uid", 4001);
	expect_int(json, "/category_uid", 4);
	expect_int(json, "/type_uid", 400105);
	expect_int(json, "/action_id", 2);
	expect_int(json, "/disposition_id", 2);
	expect_int(json, "/count", 7);
	expect_int(json, "/dst_endpoint/port", 443);
	expect_int(json, "/actor/process/pid", 100);
	cr_expect_str_eq(json_object_get_string(at(json, "/dst_endpoint/ip")), "192.0.2.1");
	cr_expect_str_eq(json_object_get_string(at(json, "/actor/process/file/path")),
			 "/usr/bin/curl");
	cr_expect_str_eq(json_object_get_string(at(json, "/status_detail")), "binary");
	cr_expect_str_eq(json_object_get_string(at(json, "/unmapped/reason")), "binary");
	cr_expect_null(at(json, "/firewall_rule"));
	json_object_put(json);
}

/* A name is where it goes to, also when no address was asked for. */
Test(ocsf, names)
{
	struct sl_decision_record decision = denial();
	struct json_object *json;

	world_reset();
	decision.key.name = 1;
	json = line_of(&decision);
	cr_expect_str_eq(json_object_get_string(at(json, "/dst_endpoint/hostname")),
			 "registry.example.org");
	cr_expect_str_eq(json_object_get_string(at(json, "/dst_endpoint/ip")), "192.0.2.1");
	cr_expect_str_eq(json_object_get_string(at(json, "/unmapped/name")),
			 "registry.example.org");
	json_object_put(json);
	memset(&decision.key.remote, 0, sizeof(decision.key.remote));
	json = line_of(&decision);
	cr_expect_str_eq(json_object_get_string(at(json, "/dst_endpoint/hostname")),
			 "registry.example.org");
	cr_expect_null(at(json, "/dst_endpoint/ip"));
	json_object_put(json);
}

/* What passed is no refusal; nobody's call has no actor, a refused socket no destination. */
Test(ocsf, audit_and_absent_parts)
{
	struct sl_decision_record decision = denial();
	struct json_object *json;

	world_reset();
	decision.key.verdict = SL_VERDICT_AUDIT;
	decision.key.reason = SL_REASON_FAMILY;
	memset(&decision.owner, 0, sizeof(decision.owner));
	memset(&decision.key.remote, 0, sizeof(decision.key.remote));
	json = line_of(&decision);
	expect_int(json, "/type_uid", 400101);
	expect_int(json, "/action_id", 1);
	expect_int(json, "/disposition_id", 17);
	cr_expect_null(at(json, "/actor"));
	cr_expect_null(at(json, "/dst_endpoint"));
	json_object_put(json);
}

Test(ocsf, table_is_sound)
{
	const char *bad = NULL;

	cr_expect_eq(sl_fields_check(sl_ocsf_fields, &bad), 0, "%s", bad);
}
