/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a denial suggests to add is taken by the policy's own reader. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "run/advice.h"
#include "unit/view_world.h"

static char text[SL_ADVICE_MAX];

static const char *advice(enum sl_reason reason, const char *to, const char *proto, const char *exe,
			  const char *rule)
{
	const struct sl_advice of = { .reason = reason,
				      .remote = world_endpoint(to),
				      .proto = proto,
				      .exe = exe,
				      .rule = rule };

	return sl_advice_text(text, sizeof(text), &of);
}

/* An entry as it was suggested, in a policy. */
static struct sl_policy *policy_with(const char *entry)
{
	static const char head[] = "add an entry: ";
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	char yaml[SL_ADVICE_MAX + 128];

	cr_assert_eq(strncmp(entry, head, strlen(head)), 0, "%s", entry);
	snprintf(yaml, sizeof(yaml), "version: 1\nnetwork_policies:\n  new: %s\n",
		 entry + strlen(head));
	cr_assert_eq(sl_policy_load(&policy, yaml, strlen(yaml), "advice", &err), 0, "%s: %s",
		     err.text, yaml);
	return policy;
}

static void expect_entry(enum sl_reason reason, const char *to, const char *proto, const char *exe)
{
	_cleanup_(sl_policy_free) struct sl_policy *policy =
		policy_with(advice(reason, to, proto, exe, NULL));
	const struct sl_policy_endpoint *endpoint = policy->entries[0].endpoints;
	struct sl_endpoint remote = world_endpoint(to);

	cr_expect_eq(endpoint->addresses.count, 1);
	cr_expect_arr_eq(endpoint->addresses.items[0].addr.be, remote.addr_be, 16);
	cr_expect_eq(endpoint->addresses.items[0].len, 128);
	cr_expect(sl_ports_have(&endpoint->ports, __builtin_bswap16(remote.port_be)));
	cr_expect_eq(endpoint->transport,
		     strcmp(proto, "udp") ? SL_TRANSPORT_TCP : SL_TRANSPORT_UDP);
	cr_expect_str_eq(policy->entries[0].binaries[0].path, exe);
}

Test(advice, an_entry_that_can_be_loaded)
{
	expect_entry(SL_REASON_ENDPOINT, "192.0.2.1:443", "tcp", "/usr/bin/curl");
	expect_entry(SL_REASON_ENDPOINT, "[2001:db8::1]:53", "udp", "/opt/a b: #c/x");
	expect_entry(SL_REASON_RESERVED_ADDRESS, "127.0.0.1:80", "tcp", "/usr/bin/curl");
	expect_entry(SL_REASON_RESERVED_ADDRESS, "[::1]:80", "mptcp", "/usr/bin/curl");
}

/* What is known by name is suggested by name, if a policy can have it. */
Test(advice, a_name)
{
	struct sl_advice of = { .reason = SL_REASON_ENDPOINT,
				.remote = world_endpoint("198.18.0.1:443"),
				.name = "Registry.example.org",
				.proto = "tcp",
				.exe = "/b",
				.rule = "w" };

	cr_expect_str_eq(sl_advice_text(text, sizeof(text), &of),
			 "add to 'w': endpoints: [{host: registry.example.org, port: 443}]");
	of.name = "a\nb: [{";
	cr_expect_str_eq(sl_advice_text(text, sizeof(text), &of),
			 "add to 'w': endpoints: [{cidr: \"198.18.0.1/32\", port: 443}]");
}

/* A question to DNS has no port: the entry is one that can be loaded, and says which to mend. */
Test(advice, a_question)
{
	struct sl_advice of = { .reason = SL_REASON_ENDPOINT,
				.name = "registry.example.org",
				.proto = "dns",
				.exe = "/b" };
	static const char mend[] = "with the port that is wanted in place of 443, ";
	struct sl_policy *policy;

	sl_advice_text(text, sizeof(text), &of);
	cr_assert_eq(strncmp(text, mend, strlen(mend)), 0, "%s", text);
	policy = policy_with(text + strlen(mend));
	cr_expect_str_eq(policy->entries[0].endpoints[0].host, "registry.example.org");
	sl_policy_free(&policy);
	of.name = "a\nb: [{";
	cr_expect_str_eq(sl_advice_text(text, sizeof(text), &of), "");
}

/* A port that some rule has makes the reason `endpoint`; reserved it is all the same. */
Test(advice, reserved_whatever_the_reason)
{
	expect_entry(SL_REASON_ENDPOINT, "127.0.0.2:80", "udp", "/usr/bin/curl");
}

Test(advice, what_was_only_tried)
{
	struct sl_advice of = { .reason = SL_REASON_ENDPOINT,
				.remote = world_endpoint("192.0.2.1:443"),
				.proto = "udp",
				.tried = true,
				.exe = "/b",
				.rule = "w" };

	cr_expect_eq(strncmp(sl_advice_text(text, sizeof(text), &of), "nothing was sent, ", 18), 0,
		     "%s", text);
	cr_expect_not_null(strstr(text, "datagrams, add to 'w': endpoints: "), "%s", text);
	of.remote = world_endpoint("192.0.2.1:53");
	cr_expect_eq(strncmp(sl_advice_text(text, sizeof(text), &of), "add to 'w': ", 12), 0, "%s",
		     text);
}

Test(advice, a_port_to_listen_on)
{
	_cleanup_(sl_policy_free) struct sl_policy *policy = policy_with(
		advice(SL_REASON_LISTEN, "0.0.0.0:8080", "tcp", "/usr/sbin/nginx", NULL));

	cr_expect_eq(policy->entries[0].endpoint_count, 0);
	cr_assert_eq(policy->entries[0].listen_count, 1);
	cr_expect(sl_ports_have(&policy->entries[0].listens[0].ports, 8080));
	cr_expect_eq(policy->entries[0].listens[0].transport, SL_TRANSPORT_TCP);
	cr_expect_str_eq(policy->entries[0].binaries[0].path, "/usr/sbin/nginx");
	cr_expect_str_eq(advice(SL_REASON_LISTEN, "[::]:53", "udp", "/b", "dns"),
			 "add to 'dns': listen: [{port: 53, transport: udp}]");
}

Test(advice, an_entry_that_is_there)
{
	cr_expect_str_eq(advice(SL_REASON_BINARY, "192.0.2.1:443", "tcp", "/usr/bin/curl", "web"),
			 "add to 'web': binaries: [{path: /usr/bin/curl}]");
	cr_expect_str_eq(advice(SL_REASON_ENDPOINT, "192.0.2.1:443", "tcp", "/usr/bin/curl", "web"),
			 "add to 'web': endpoints: [{cidr: \"192.0.2.1/32\", port: 443}]");
}

/* Nothing is suggested that a policy would not take, or take for something else. */
/* Advice to add the binary as such would undo what somebody has narrowed. */
Test(advice, a_binary_that_is_there_for_a_script)
{
	const struct sl_advice of = { .reason = SL_REASON_BINARY,
				      .proto = "tcp",
				      .exe = "/usr/bin/python3.11",
				      .rule = "web",
				      .script = "/usr/bin/ok" };

	cr_expect_str_eq(sl_advice_text(text, sizeof(text), &of),
			 "'web' has it for script /usr/bin/ok only, executed by its #! line");
}

Test(advice, what_cannot_be_written)
{
	static const char *const paths[] = { "/a/*/b",    "/a\"b",  "/a\\b", "/a\nb",
					     "/a\x1b[1m", "/a\xff", "rel",   NULL };

	for (int i = 0; i < 8; i++) {
		cr_expect_str_eq(advice(SL_REASON_ENDPOINT, "192.0.2.1:1", "tcp", paths[i], NULL),
				 "");
		cr_expect_null(strstr(advice(SL_REASON_BINARY, "192.0.2.1:1", "tcp", paths[i], "w"),
				      "add"));
	}
	cr_expect_str_eq(advice(SL_REASON_ENDPOINT, "192.0.2.1:0", "tcp", "/b", NULL), "");
	cr_expect_str_eq(advice(SL_REASON_ENDPOINT, "192.0.2.1:1", "raw:1", "/b", NULL), "");
	cr_expect_str_eq(advice(SL_REASON_INTERNAL, "192.0.2.1:1", "tcp", "/b", "w"), "");
}

Test(advice, digests)
{
	struct sl_advice of = { .reason = SL_REASON_INTEGRITY,
				.proto = "tcp",
				.exe = "/b",
				.rule = "w",
				.pinned = true,
				.expected = "abab",
				.found = "0c0c",
				.exe_id = 7,
				.set_dir = "/set" };

	sl_advice_text(text, sizeof(text), &of);
	cr_expect_str_eq(text, "its sha256 is 0c0c, 'w' pins abab: change the pin if the file is "
			       "meant");
	of.pinned = false;
	sl_advice_text(text, sizeof(text), &of);
	cr_expect_str_eq(text,
			 "its sha256 is 0c0c, abab is trusted: 'sluice --set /set exe accept 7' "
			 "if it is meant to have changed");
	of.found = NULL;
	sl_advice_text(text, sizeof(text), &of);
	cr_expect_not_null(strstr(text, "could not be looked at"), "%s", text);
}

/* Room for nothing cuts, and ends. */
Test(advice, short_room)
{
	const struct sl_advice of = { .reason = SL_REASON_ENDPOINT,
				      .remote = world_endpoint("192.0.2.1:443"),
				      .proto = "tcp",
				      .exe = "/usr/bin/curl" };

	for (size_t size = 1; size < sizeof(text); size++) {
		memset(text, 'x', sizeof(text));
		sl_advice_text(text, size, &of);
		cr_expect_lt(strnlen(text, sizeof(text)), size);
		cr_expect(size == sizeof(text) || text[size] == 'x');
	}
}
