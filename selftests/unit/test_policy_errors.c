/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each fault of a policy file: one message, its exact place, the text, what is expected. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/policy.h"

#define TOP "version: 1\nnetwork_policies:\n"
#define ENTRY TOP "  e:\n"
/* An endpoint's keys begin at 4:8, a binary's at 4:18. */
#define ENDPOINT(keys) ENTRY "    endpoints:\n    - {" keys "}\n"
#define BINARY(keys) ENTRY "    binaries:\n    - {" keys "}\n"

struct fault {
	const char *text;
	const char *message; /* without "p.yaml:" */
	const char *hint;    /* a part of it; NULL: none is looked for */
};

static void refused(const char *text, size_t len, const struct fault *fault, int code)
{
	struct sl_policy *policy = (void *)text;
	struct sl_err err = { 0 };
	char expected[512];

	snprintf(expected, sizeof(expected), "p.yaml:%s", fault->message);
	cr_expect_eq(sl_policy_load(&policy, text, len, "p.yaml", &err), -code, "%.300s", text);
	cr_expect_eq(policy, (void *)text, "*out was touched");
	cr_expect_str_eq(err.text, expected);
	cr_expect_eq(err.code, code);
	if (fault->hint)
		cr_expect_not_null(strstr(err.hint, fault->hint), "%s: hint '%s' lacks '%s'",
				   err.text, err.hint, fault->hint);
	/* Whoever does not want the text gets the code all the same. */
	cr_expect_eq(sl_policy_load(&policy, text, len, "p.yaml", NULL), -code);
}

static void all_refused(const struct fault *faults, size_t count)
{
	for (size_t i = 0; i < count; i++)
		refused(faults[i].text, strlen(faults[i].text), &faults[i], EINVAL);
}
#define ALL_REFUSED(faults) all_refused(faults, sizeof(faults) / sizeof((faults)[0]))

Test(policy_errors, yaml)
{
	static const struct fault faults[] = {
		{ "", "1:1: the file is empty", "version: 1" },
		{ "# nothing\n", "1:1: the file is empty", NULL },
		{ "---\n", "2:1: policy: nothing is given, expected is a mapping", NULL },
		{ "text", "1:1: policy: text, expected is a mapping: 'text'", NULL },
		{ "- 1\n", "1:1: policy: a list, expected is a mapping", NULL },
		{ "version: 1\n---\nversion: 1\n", "2:1: a second document in the file", "'---'" },
		{ "version: [1\n",
		  "2:1: not valid YAML: did not find expected ',' or ']' while "
		  "parsing a flow sequence",
		  NULL },
		{ "version: 1\n\tmode: x\n",
		  "2:1: not valid YAML: found a tab character that violates indentation while "
		  "scanning a plain scalar: '\\x09mode: x'",
		  "not tabs" },
		{ ENDPOINT("host: *.x.org, port: 1"),
		  "5:15: not valid YAML: did not find expected alphabetic or numeric character "
		  "while scanning an alias: '.x.org, port: 1}'",
		  "\"*.example.org\"" },
		{ "version: 1\nversion: 1\n",
		  "2:1: policy: the key is there twice, first on line 1: 'version'",
		  "make them one" },
		{ TOP "  a: {}\n  b: {}\n  a: {}\n",
		  "5:3: network_policies: the key is there twice, first on line 3: 'a'",
		  "make them one" },
		{ TOP "  ? [a]\n  : {}\n", "3:5: an entry's key: a list, expected is text", NULL },
		{ "&a version: 1\n*a : 2\n", "2:1: an alias: 'a'", "write the value out" },
		{ ENTRY "    endpoints: &x []\n    binaries: *x\n", "5:15: an alias: 'x'", NULL },
		{ "version: !!int 1\n", "1:10: a tag", "remove it" },
		{ "version: \"1\\0\"\n", "1:10: text with a NUL (\\0) in it: '1'", NULL },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, bytes)
{
	static const struct fault nul = { "", "2:4: a NUL byte (U+0000) is not allowed", NULL };
	static const struct fault latin = { "", "1:14: byte 0xfc is not UTF-8", "UTF-8" };
	static const struct fault control = { "", "1:13: character U+0007 is not allowed", NULL };
	static const struct fault utf16 = { "", "1:1: byte 0xff is not UTF-8", NULL };
	/* Columns count characters, not bytes. */
	static const struct fault wide = { "", "1:15: byte 0xff is not UTF-8", NULL };

	refused("version: 1\nmod\0e: x", 19, &nul, EINVAL);
	refused("version: 1 #b\xfc"
		"cher",
		18, &latin, EINVAL);
	refused("version: 1 #\x07\n", 14, &control, EINVAL);
	refused("\xff\xfev\0", 4, &utf16, EINVAL);
	refused("version: 1 #\xc3\xbc\xe2\x82\xac\xff\n", 19, &wide, EINVAL);
}

Test(policy_errors, limits)
{
	static const struct fault deep = { "",
					   "1:33: nested more than 32 deep; a policy may not be",
					   "not closed?" };
	static const struct fault big = { "",
					  "1:1: 10000000 bytes; a policy may have at most 8388608",
					  NULL };
	static const struct fault many = {
		"", "1:4194304: more than 2097152 values; a policy may have no more", NULL
	};
	size_t len = 10000000;
	char *text = malloc(len);

	cr_assert_not_null(text);
	memset(text, '[', len);
	refused(text, 4000000, &deep, E2BIG);
	refused(text, len, &big, E2BIG);
	for (size_t i = 1; i < len; i += 2)
		memcpy(text + i, "1,", i + 1 < len ? 2 : 1);
	refused(text, 8000000, &many, E2BIG);
	free(text);
}

Test(policy_errors, top_level)
{
	static const struct fault faults[] = {
		{ "mode: audit\n", "1:1: no `version`", "`version: 1`" },
		{ "version: 2\n", "1:10: version: expected is 1, the only one there is: '2'",
		  NULL },
		{ "version: 1.0\n", "1:10: version: expected is 1, the only one there is: '1.0'",
		  NULL },
		{ "version: 1\nmode: observe\n",
		  "2:7: mode: expected is enforce or audit: 'observe'", NULL },
		{ "version: 1\nestablished: no\n",
		  "2:14: established: expected is close or keep: 'no'", NULL },
		{ "version: 1\nintegrity: tofu\n",
		  "2:12: integrity: expected is pins or first-use: 'tofu'", NULL },
		{ "version: 1\nnetwork_polices: {}\n",
		  "2:1: policy: unknown key: 'network_polices'",
		  "version, mode, established, integrity, network_policies" },
		{ "version: 1\nnetwork_middlewares: {}\n",
		  "2:1: policy: sluice can't enforce the key: 'network_middlewares'", "proxy" },
		{ "version: 1\nnetwork_policies:\n",
		  "2:18: network_policies: nothing is given, expected is a mapping", NULL },
		{ "version: 1\nnetwork_policies: []\n",
		  "2:19: network_policies: a list, expected is a mapping", NULL },
		{ TOP "  e:\n", "3:5: entry: nothing is given, expected is a mapping", NULL },
		{ TOP "  \"a\\e[31m\": {}\n",
		  "3:3: an entry's key: a control or invisible character: 'a\\x1b[31m'", NULL },
		{ TOP "  \"\": {}\n", "3:3: an entry's key: empty text", NULL },
		{ ENTRY "    endpoint: []\n", "4:5: entry: unknown key: 'endpoint'",
		  "name, endpoints, listen, binaries" },
		{ ENTRY "    endpoints: {}\n", "4:16: endpoints: a mapping, expected is a list",
		  NULL },
		{ ENTRY "    endpoints: ~\n",
		  "4:16: endpoints: nothing is given, expected is a list", NULL },
		{ ENTRY "    endpoints: [x]\n", "4:17: endpoint: text, expected is a mapping: 'x'",
		  NULL },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, destinations)
{
	static const struct fault faults[] = {
		{ ENDPOINT("port: 1"), "5:7: an endpoint without destination", "`cidr`" },
		{ ENDPOINT("host: a.org, cidr: 10.0.0.0/8, port: 1"),
		  "5:7: both `host` and `cidr`; expected is one of them", NULL },
		{ ENDPOINT("host: \"*\", port: 1"), "5:14: host: a wildcard for all names: '*'",
		  "0.0.0.0/0" },
		{ ENDPOINT("host: \"**\", port: 1"), "5:14: host: a wildcard for all names: '**'",
		  NULL },
		{ ENDPOINT("host: \"*.org\", port: 1"),
		  "5:14: host: a wildcard for a whole top-level domain: '*.org'", NULL },
		{ ENDPOINT("host: a!b.org, port: 1"),
		  "5:14: host: a character that no host name has: 'a!b.org'", "RFC 1123" },
		{ ENDPOINT("host: bücher.org, port: 1"),
		  "5:14: host: a host name that is not ASCII: 'bücher.org'", "xn--" },
		{ ENDPOINT("host: 10.1, port: 1"),
		  "5:14: host: neither a host name nor a complete address: '10.1'", NULL },
		{ ENDPOINT("host: 10.0.0.0/8, port: 1"),
		  "5:14: host: a prefix is no host: '10.0.0.0/8'", "`cidr`" },
		{ ENDPOINT("host: 127.0.0.1, port: 1"),
		  "5:14: host: within 127.0.0.0/8, which is reserved: loopback: '127.0.0.1'",
		  "allow_reserved" },
		{ ENDPOINT("host: 192.0.2.1, allowed_ips: [10.0.0.0/8], port: 1"),
		  "5:14: host: an address that allowed_ips does not have can never match: "
		  "'192.0.2.1'",
		  NULL },
		{ ENDPOINT("cidr: 10.0.1.0/8, port: 1"),
		  "5:14: cidr: the prefix has host bits set: '10.0.1.0/8'", "10.0.0.0/8" },
		{ ENDPOINT("cidr: 10.0.0.0/33, port: 1"),
		  "5:14: cidr: the prefix length is out of range: '10.0.0.0/33'", NULL },
		{ ENDPOINT("cidr: ten, port: 1"), "5:14: cidr: not an address or prefix: 'ten'",
		  "192.0.2.0/24" },
		{ ENDPOINT("cidr: 169.254.169.254/32, port: 1"),
		  "5:14: cidr: within 169.254.169.254, which is reserved: cloud metadata: "
		  "'169.254.169.254/32'",
		  "allow_reserved" },
		{ ENDPOINT("cidr: 10.0.0.0/8, port: 1, allow_reserved: true"),
		  "5:14: allow_reserved, but the prefix is not within a reserved range: "
		  "'10.0.0.0/8'",
		  NULL },
		{ ENDPOINT("cidr: 0.0.0.0/0, port: 1, allow_reserved: true"),
		  "5:14: allow_reserved, but the prefix is not within a reserved range: '0.0.0.0/0'",
		  NULL },
		{ ENDPOINT("host: a.org, port: 1, allow_reserved: true"),
		  "5:46: allow_reserved goes with a `cidr` only", NULL },
		{ ENDPOINT("cidr: 10.0.0.0/8, port: 1, allow_reserved: yes"),
		  "5:51: expected is true or false: 'yes'", NULL },
		{ ENDPOINT("cidr: 10.0.0.0/8, port: 1, allowed_ips: [10.0.0.0/8]"),
		  "5:48: allowed_ips has no meaning beside a `cidr`", NULL },
		{ ENDPOINT("host: a.org, port: 1, allowed_ips: [127.0.0.0/8]"),
		  "5:44: allowed_ips: within 127.0.0.0/8, which is reserved: loopback: "
		  "'127.0.0.0/8'",
		  NULL },
		{ ENDPOINT("host: a.org, port: 1, allowed_ips: [\"::ffff:127.0.0.1\"]"),
		  "5:44: allowed_ips: within 127.0.0.0/8, which is reserved: loopback: "
		  "'::ffff:127.0.0.1'",
		  NULL },
		{ ENDPOINT("host: a.org, port: 1, allowed_ips: []"),
		  "5:43: allowed_ips: an empty list can never match", NULL },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, ports)
{
	static const struct fault faults[] = {
		{ ENDPOINT("host: a.org"), "5:7: no port", "`port: 443`" },
		{ ENDPOINT("host: a.org, port: 70000"), "5:27: not a port: '70000'", "1 to 65535" },
		{ ENDPOINT("host: a.org, port: 0"), "5:27: not a port: '0'", NULL },
		{ ENDPOINT("host: a.org, port: 0443"), "5:27: not a port: '0443'", NULL },
		{ ENDPOINT("host: a.org, port: https"), "5:27: not a port: 'https'", NULL },
		{ ENDPOINT("host: a.org, port: 1-2"), "5:27: not a port: '1-2'", "`ports`" },
		{ ENDPOINT("host: a.org, port: [1]"), "5:27: port: a list, expected is text",
		  NULL },
		{ ENDPOINT("host: a.org, port: 1, ports: [2]"),
		  "5:7: both `port` and `ports`; expected is one of them", NULL },
		{ ENDPOINT("host: a.org, ports: []"), "5:28: ports: an empty list can never match",
		  NULL },
		{ ENDPOINT("host: a.org, ports: [80, 8010-8000]"),
		  "5:33: a range of ports that ends before it begins: '8010-8000'", NULL },
		{ ENDPOINT("host: a.org, ports: [80, 1-70000]"),
		  "5:33: not a port or range of ports: '1-70000'", NULL },
		{ ENDPOINT("host: a.org, ports: [-1]"), "5:29: not a port or range of ports: '-1'",
		  NULL },
		{ ENDPOINT("host: a.org, ports: [000000001-2]"),
		  "5:29: not a port or range of ports: '000000001-2'", NULL },
		{ ENTRY "    listen: [{port: 0}]\n", "4:21: not a port: '0'", NULL },
		{ ENTRY "    listen: [{port: 1, host: a}]\n", "4:24: listen: unknown key: 'host'",
		  "port, ports, transport" },
		{ ENDPOINT("host: a.org, port: 1, transport: sctp"),
		  "5:41: transport: expected is tcp or udp: 'sctp'", NULL },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, what_can_not_be_enforced_is_named)
{
	static const struct fault faults[] = {
		{ ENDPOINT("host: a.org, port: 1, protocol: rest"),
		  "5:40: protocol: sluice can't enforce it: 'rest'", "inspecting proxy" },
		{ ENDPOINT("host: a.org, port: 1, transport: udp, protocol: tcp"),
		  "5:56: protocol: it contradicts the transport: 'tcp'", NULL },
		{ ENDPOINT("host: a.org, port: 1, tls: terminate"),
		  "5:35: tls: sluice can't enforce it: 'terminate'", "`tls: skip`" },
		{ ENDPOINT("host: a.org, port: 1, enforcement: audit"),
		  "5:43: enforcement: sluice can't enforce it: 'audit'", NULL },
		{ ENDPOINT("host: a.org, port: 1, access: read-write"),
		  "5:30: endpoint: sluice can't enforce the key: 'access'", "inspecting proxy" },
		{ ENDPOINT("host: a.org, port: 1, rules: []"),
		  "5:30: endpoint: sluice can't enforce the key: 'rules'", NULL },
		{ ENDPOINT("host: a.org, port: 1, path: /mcp"),
		  "5:30: endpoint: sluice can't enforce the key: 'path'", NULL },
		{ ENDPOINT("host: a.org, port: 1, prot: rest"),
		  "5:30: endpoint: unknown key: 'prot'", "host, cidr, port" },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, binaries)
{
	static const struct fault faults[] = {
		{ BINARY("script: /a"), "5:7: binary: no `path`, without which it can never match",
		  NULL },
		{ BINARY("path: node"),
		  "5:14: path: a path that is not absolute can never match: 'node'", "/**/name" },
		{ BINARY("path: /usr/../bin/x"),
		  "5:14: path: a component '..' can never match: '/usr/../bin/x'", NULL },
		{ BINARY("path: /usr/bin/"),
		  "5:14: path: a path that ends in '/' names no file: '/usr/bin/'", "/d/**" },
		{ BINARY("path: /a, script: b"),
		  "5:26: script: a path that is not absolute can never match: 'b'", NULL },
		{ BINARY("path: /a, sha256: abc"), "5:26: sha256: not a SHA-256 digest: 'abc'",
		  "64 hexadecimal" },
		{ BINARY("path: /a, sha256: "
			 "z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
		  "5:26: sha256: not a SHA-256 digest: "
		  "'z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'",
		  NULL },
		{ BINARY("path: /a, sha256: "
			 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"),
		  "5:26: sha256: not a SHA-256 digest: "
		  "'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0'",
		  NULL },
		{ BINARY("path: /a, strict: 1"), "5:26: expected is true or false: '1'", NULL },
		{ BINARY("path: /a, descendants: \"true\""),
		  "5:31: expected is true or false: 'true'", NULL },
		{ BINARY("paths: /a"), "5:8: binary: unknown key: 'paths'",
		  "path, script, sha256, descendants, strict" },
	};

	ALL_REFUSED(faults);
}

Test(policy_errors, offending_text_is_bounded_and_escaped)
{
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	char text[4096] = "version: 1\nmode: \"\\e]0;x\\a", *end = text + strlen(text);

	memset(end, 'm', 3000);
	strcpy(end + 3000, "\"\n");
	cr_expect_eq(sl_policy_load(&policy, text, strlen(text), "a\nb", &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "a\\x0ab:2:7: mode: expected is enforce or audit: "
					    "'\\x1b]0;x\\x07mmm"),
			   "%s", err.text);
	cr_expect_not_null(strstr(err.text, "mmm…'"), "%s", err.text);
	cr_expect_lt(strlen(err.text), 200);
}

Test(policy_errors, files)
{
	struct sl_policy *policy = NULL;
	struct sl_err err = { 0 };
	char path[] = "/tmp/sl-policy-XXXXXX", expected[256];
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 10000000), 0);
	cr_expect_eq(sl_policy_load_file(&policy, path, &err), -E2BIG);
	snprintf(expected, sizeof(expected),
		 "%s:1:1: 10000000 bytes; a policy may have at most 8388608", path);
	cr_expect_str_eq(err.text, expected);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(write(fd, "version: 1\n", 11), 11);
	cr_expect_eq(sl_policy_load_file(&policy, path, &err), 0);
	cr_expect_str_eq(policy->file, path);
	sl_policy_free(&policy);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(dup2(fd, 0), 0);
	cr_expect_eq(sl_policy_load_file(&policy, "-", &err), 0);
	sl_policy_free(&policy);
	close(fd);
	unlink(path);
	cr_expect_eq(sl_policy_load_file(&policy, path, &err), -ENOENT);
	cr_expect_not_null(strstr(err.text, "No such file"), "%s", err.text);
	cr_expect_eq(sl_policy_load_file(&policy, "/", &err), -EISDIR);
	cr_expect_null(policy);
}
