/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a policy file may say, and what becomes of it. Faults: test_policy_errors.c. */
#include <criterion/criterion.h>
#include <errno.h>

#include <stdio.h>
#include <string.h>

#include "policy_world.h"

#define ENTRY "version: 1\nnetwork_policies:\n  e:\n"
#define BINARIES "    binaries: [{path: /b}]\n"

Test(policy_load, all_keys)
{
	_cleanup_world_ struct policy_world world;
	const struct sl_policy_entry *entry;
	char ports[64];

	policy_world_load(
		&world,
		"version: 1\nmode: audit\nestablished: keep\nintegrity: first-use\n"
		"network_policies:\n"
		"  one:\n"
		"    name: the first\n"
		"    endpoints:\n"
		"      - {host: A.Example.org., ports: [443, \"8000-8010\", 80, 8011],"
		" allowed_ips: [10.0.0.0/8, 10.1.0.0/16, 192.0.2.1]}\n"
		"      - {cidr: 127.0.0.1, port: 53, transport: udp, allow_reserved: true}\n"
		"    listen: [{port: 8080}]\n"
		"    binaries:\n"
		"      - {path: /a, script: /s/**, strict: true, descendants: false, sha256: "
		"0123456789abcdefABCDEF00000000000000000000000000000000000000000f}\n"
		"  two: {}\n");
	cr_expect_eq(world.policy->mode, SL_POLICY_AUDIT);
	cr_expect(world.policy->keep_established);
	cr_expect(world.policy->first_use);
	cr_assert_eq(world.policy->entry_count, 2);
	entry = &world.policy->entries[0];
	cr_expect_str_eq(entry->key, "one");
	cr_expect_str_eq(entry->name, "the first");
	cr_assert_eq(entry->endpoint_count, 2);
	cr_expect_str_eq(entry->endpoints[0].host, "a.example.org");
	cr_expect_str_eq(sl_ports_format(ports, sizeof(ports), &entry->endpoints[0].ports),
			 "80,443,8000-8011");
	cr_expect_eq(entry->endpoints[0].allowed.count, 2);
	cr_expect_eq(entry->endpoints[1].kind, SL_ENDPOINT_ADDRESS);
	cr_expect_eq(entry->endpoints[1].transport, SL_TRANSPORT_UDP);
	cr_expect_eq(entry->endpoints[1].at.line, 10);
	cr_expect_eq(entry->endpoints[1].at.column, 9);
	cr_assert_eq(entry->listen_count, 1);
	cr_assert_eq(entry->binary_count, 1);
	cr_expect_str_eq(entry->binaries[0].script, "/s/**");
	cr_expect(entry->binaries[0].strict);
	cr_expect_not(entry->binaries[0].descendants);
	cr_expect_eq(entry->binaries[0].sha256[4], 0x89);
	cr_expect_eq(entry->binaries[0].sha256[31], 0x0f);
	cr_expect_str_eq(world.policy->entries[1].name, "two");
}

/* The shape of the files that OpenShell users have, with keys of all its versions. */
Test(policy_load, openshell_files_as_they_are)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, "version: 1\n"
				  "filesystem_policy:\n"
				  "  include_workdir: true\n"
				  "  read_only: [&lib /lib, *lib, !!str /usr]\n"
				  "landlock: {compatibility: best_effort}\n"
				  "process:\n"
				  "  run_as_user: sandbox\n"
				  "network_policies:\n"
				  "  code_host:\n"
				  "    name: code-host\n"
				  "    endpoints:\n"
				  "      - {host: git.example.org, port: 443}\n"
				  "      - host: api.example.org\n"
				  "        ports: [443, 8443]\n"
				  "        protocol: tcp\n"
				  "        tls: skip\n"
				  "        enforcement: enforce\n"
				  "      - port: 5432\n"
				  "        allowed_ips: [\"10.0.5.0/24\"]\n"
				  "    binaries:\n"
				  "      - {path: /usr/bin/git, harness: true}\n"
				  "  unused:\n"
				  "    name: unused\n"
				  "    endpoints: [{host: b.example.org, port: 443}]\n");
	cr_expect_eq(world.policy->entry_count, 2);
	cr_assert_eq(world.policy->note_count, 5);
	cr_expect_eq(world.policy->notes[0].at.line, 2);
	cr_expect_str_eq(world.policy->notes[0].text,
			 "'filesystem_policy' is not sluice's concern and left alone");
	cr_expect_eq(world.policy->notes[0].kind, SL_NOTE_NOTICE);
	cr_expect_eq(world.policy->notes[3].at.line, 21);
	cr_expect_eq(world.policy->notes[3].at.column, 30);
	cr_expect_eq(world.policy->notes[4].kind, SL_NOTE_WARNING);
	cr_expect_str_eq(world.policy->notes[4].text,
			 "'unused' has no binaries: it can never match");
	for (int i = 0; i < 2; i++) {
		/* An endpoint of allowed_ips alone is these addresses. */
		const struct sl_decision d = policy_world_ask(
			&world, "/usr/bin/git", NULL, i ? "10.0.6.1" : "10.0.5.1", 5432, NULL);

		cr_expect_str_eq(policy_says(&world, &d), i ? "deny endpoint" : "allow code_host");
	}
}

static void warns(const char *text, uint32_t line, uint32_t column, const char *expected)
{
	_cleanup_world_ struct policy_world world;

	policy_world_load(&world, text);
	cr_assert_eq(world.policy->note_count, 1, "%s", text);
	cr_expect_eq(world.policy->notes[0].kind, SL_NOTE_WARNING);
	cr_expect_str_eq(world.policy->notes[0].text, expected);
	cr_expect_eq(world.policy->notes[0].at.line, line);
	cr_expect_eq(world.policy->notes[0].at.column, column);
}

Test(policy_load, rules_that_can_not_match_are_warned_of)
{
	warns("version: 1", 1, 1, "no network_policies: everything is denied");
	warns("version: 1\nnetwork_policies: {}", 1, 1,
	      "no network_policies: everything is denied");
	warns(ENTRY BINARIES, 3, 3, "'e' has no endpoints: it can never match");
	warns(ENTRY "    listen: [{port: 1}]\n", 3, 3, "'e' has no binaries: it can never match");
	warns(ENTRY "    listen: [{port: 1}]\n    binaries: [{path: '/**'}]\n", 5, 16,
	      "'/**' in 'e' is every binary");
	warns(ENTRY "    endpoints: [{host: db.localhost, port: 1}]\n" BINARIES, 4, 24,
	      "'db.localhost' is loopback, which is reserved: the rule can't match");
}

Test(policy_load, notes_are_bounded)
{
	_cleanup_world_ struct policy_world world;
	char text[8192] = "version: 1\nnetwork_policies:\n";

	for (int i = 0; i < 100; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "  e%d: {listen: [{port: 1}]}\n", i);
	policy_world_load(&world, text);
	cr_expect_eq(world.policy->note_count, SL_POLICY_NOTES_MAX);
	cr_expect_eq(world.policy->notes_dropped, 36);
}

Test(policy_load, byte_order_mark_and_json_are_yaml_too)
{
	_cleanup_world_ struct policy_world bom, json;

	policy_world_load(&bom, "\xef\xbb\xbfversion: 1\n");
	cr_expect_eq(bom.policy->note_count, 1);
	policy_world_load(&json, "{\"version\": 1, \"network_policies\": {\"a\": {\"listen\": "
				 "[{\"port\": 80}], \"binaries\": [{\"path\": \"/x\"}]}}}");
	cr_expect_eq(json.policy->entries[0].listens[0].ports.ranges[0].first, 80);
}

/* A script's name is matched by the kernel or not at all, unless it has a wildcard within. */
static void long_script(size_t len, const char *end, int error)
{
	struct sl_policy *policy = NULL;
	char script[512], yaml[1024];
	struct sl_err err = { 0 };

	memset(script, 's', len);
	script[0] = '/';
	script[len - 1] = *end == '/' ? '/' : 's';
	script[len] = '\0';
	snprintf(yaml, sizeof(yaml),
		 "version: 1\nnetwork_policies:\n  a:\n    binaries: [{path: /a, script: %s%s}]\n",
		 script, *end == '/' ? end + 1 : end);
	cr_expect_eq(sl_policy_load(&policy, yaml, strlen(yaml), "p.yaml", &err), -error,
		     "%zu bytes and '%s': %s", len, end, err.text);
	if (error)
		cr_expect_not_null(strstr(err.text, "p.yaml:4:35: script: "), "%s", err.text);
	sl_policy_free(&policy);
}

Test(policy_load, long_scripts)
{
	long_script(250, "", 0);
	long_script(251, "", E2BIG);
	long_script(251, "/**", 0);
	long_script(252, "/**", E2BIG);
	long_script(256, "*", 0);
}

static bool inspects(const struct sl_policy *policy, const char *name, const char *address,
		     uint16_t port)
{
	struct sl_prefix prefix;

	cr_assert_eq(sl_prefix_parse(address, &prefix), 0);
	return sl_policy_inspects(policy, name, &prefix.addr, port);
}

Test(policy_load, requests_are_left_to_who_looks_into_them)
{
	static const char text[] =
		"version: 1\n"
		"network_policies:\n"
		"  a:\n"
		"    endpoints:\n"
		"      - { host: \"*.x.org\", port: 443, protocol: rest, tls: terminate,\n"
		"          rules: [{ allow: { method: GET, path: \"/**\" } }] }\n"
		"      - { cidr: 192.0.2.0/24, port: 80, access: read-only }\n"
		"      - { host: plain.x.org, port: 8443, protocol: tcp, enforcement: enforce }\n"
		"    binaries: [{ path: /usr/bin/curl }]\n";
	const struct sl_policy_options options = { .inspects = true };
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };

	cr_assert_eq(sl_policy_load(&policy, text, strlen(text), "p.yaml", &err), -EINVAL);
	cr_assert_eq(sl_policy_load_for(&policy, text, strlen(text), "p.yaml", &options, &err), 0,
		     "%s", err.text);
	cr_expect(policy->entries[0].endpoints[0].inspected);
	cr_expect(policy->entries[0].endpoints[1].inspected);
	cr_expect_not(policy->entries[0].endpoints[2].inspected);
	cr_expect(inspects(policy, "a.x.org", "198.51.100.1", 443));
	cr_expect_not(inspects(policy, "a.x.org", "198.51.100.1", 80), "another port");
	cr_expect_not(inspects(policy, "x.org", "198.51.100.1", 443), "another name");
	cr_expect_not(inspects(policy, NULL, "198.51.100.1", 443), "no name");
	cr_expect(inspects(policy, NULL, "192.0.2.7", 80));
	cr_expect(inspects(policy, "b.org", "192.0.2.7", 80), "whatever its name is");
	cr_expect_not(inspects(policy, NULL, "192.0.3.7", 80));
	cr_expect_not(inspects(policy, "plain.x.org", "198.51.100.1", 8443));
	sl_policy_free(&policy);
}

Test(policy_load, datagrams_can_not_be_inspected)
{
	static const char text[] =
		"version: 1\n"
		"network_policies:\n"
		"  a:\n"
		"    endpoints: [{ host: x.org, port: 443, transport: udp, protocol: rest }]\n"
		"    binaries: [{ path: /usr/bin/curl }]\n";
	const struct sl_policy_options options = { .inspects = true };
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };

	cr_assert_eq(sl_policy_load_for(&policy, text, strlen(text), "p.yaml", &options, &err),
		     -EINVAL);
	cr_expect_not_null(strstr(err.text, "p.yaml:4:69: "), "%s", err.text);
	cr_expect_not_null(strstr(err.text, "contradicts the transport"), "%s", err.text);
}
