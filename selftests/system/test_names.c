/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of addresses: who looked one up by what, in records, decisions and lists. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "guard/dns.h"
#include "kernel/name.h"
#include "system/expect.h"
#include "system/guarded.h"

static struct sl_naming *naming;

static const __be32 *loopback(void)
{
	static __be32 addr_be[4];

	addr_be[2] = htonl(0xffff);
	addr_be[3] = htonl(INADDR_LOOPBACK);
	return addr_be;
}

static void names_up(void)
{
	struct sl_err err = { 0 };

	guarded_up();
	cr_assert_eq(sl_naming_new(&naming, world.set, world.sandbox), 0);
	cr_assert_eq(sl_guard_names(world.set, world.sandbox, true, &err), 0, "%s", err.text);
}

static void names_down(void)
{
	sl_naming_free(&naming);
	guarded_down();
}

TestSuite(names, .init = names_up, .fini = names_down, .timeout = 60);

/* The id of a name, which this address gets. */
static __u32 name_for(const char *text, const struct sl_process_key *who)
{
	__u32 id = 0;

	cr_assert_eq(sl_naming_intern(naming, text, 0, &id), 0);
	cr_assert_neq(id, 0);
	cr_assert_eq(sl_naming_put(naming, who, loopback(), id), 0);
	return id;
}

/* The name in the record of what these words open. */
static __u32 name_of(const char *words)
{
	struct sl_sock sock;
	struct load load;

	load_start(&load, INSIDE, "%s", words);
	load_end(&load);
	sock = closed_sock(fact_u64(fact_next(&load, NULL, "sock"), "cookie"));
	load_free(&load);
	return sock.name;
}

static int last_denied(const struct sl_decision_key *key, const struct sl_decision_row *row,
		       void *arg)
{
	(void)row;
	*(struct sl_decision_key *)arg = *key;
	return 0;
}

Test(names, sockets_and_decisions)
{
	struct sl_decision_key key = { 0 };
	__u32 id = name_for("everybody.example.org", NULL);
	struct sl_err err = { 0 };
	char words[128];

	snprintf(words, sizeof(words), "tcp-send --count 1 --server %s", guarded.open.text);
	cr_expect_eq(name_of(words), id);
	/* A policy that is loaded changes nothing of that. */
	guarded_load_more("");
	cr_expect_eq(name_of(words), id);
	snprintf(words, sizeof(words), "udp-send --count 2 --server %s", guarded.open_udp.text);
	cr_expect_eq(name_of(words), id);
	snprintf(words, sizeof(words), "udp-send --count 2 --connected --server %s",
		 guarded.open_udp.text);
	cr_expect_eq(name_of(words), id);
	snprintf(words, sizeof(words), "tcp-send --v6 --count 1 --server %s", guarded.open_v6.text);
	cr_expect_eq(name_of(words), 0, "another address");
	snprintf(words, sizeof(words), "tcp-send --count 1 --server %s",
		 guarded.shut[OTHER_PORT].text);
	cr_expect_eq(name_of(words), 0, "it was never connected");
	cr_assert_eq(sl_decisions_each(world.set, world.sandbox, last_denied, &key), 0);
	cr_expect_eq(key.name, id);
	cr_expect_eq(ntohs(key.remote.port_be), guarded.shut[OTHER_PORT].port);
	cr_expect_eq(sl_naming_remove(naming, NULL, loopback()), 0);
	cr_expect_eq(sl_naming_remove(naming, NULL, loopback()), 0);
	snprintf(words, sizeof(words), "tcp-send --count 1 --server %s", guarded.open.text);
	cr_expect_eq(name_of(words), 0);
	id = name_for("again.example.org", NULL);
	cr_expect_eq(name_of(words), id);
	cr_assert_eq(sl_guard_names(world.set, world.sandbox, false, &err), 0, "%s", err.text);
	cr_expect_eq(name_of(words), 0);
	expect_no_faults();
}

/* Who has looked up an address itself has its own name for it. */
Test(names, one_process)
{
	__u32 all = name_for("everybody.example.org", NULL), mine;
	struct sl_process process;
	struct sl_sock sock;
	struct load load;

	load_start(&load, INSIDE, "do --until-eof socket=tcp");
	load_await(&load, "did", 1);
	cr_assert(process_by_pid((uint64_t)load.pid, &process));
	mine = name_for("mine.example.org", &process.key);
	cr_expect_neq(mine, all);
	do_more(&load, "connect=%s", guarded.open.text);
	load_await(&load, "did", 2);
	load_end(&load);
	sock = closed_by(process.key.tgid, 0);
	cr_expect_eq(sock.name, mine);
	load_free(&load);
}

static int count_name(__u32 id, const struct sl_name *name, void *arg)
{
	(void)id, (void)name;
	++*(unsigned int *)arg;
	return 0;
}

static unsigned int names_count(void)
{
	unsigned int n = 0;

	cr_assert_eq(sl_name_each(world.set, world.sandbox, count_name, &n), 0);
	return n;
}

/* However many a workload makes up, the latest stay; what is allowed is not pushed out. */
Test(names, bounded)
{
	__u32 allowed, first = 0, id = 0, later = 0;
	struct sl_name name;
	struct sl_err err = { 0 };
	char text[64];

	cr_assert_eq(sl_naming_intern(naming, "allowed.example.org", 0, &allowed), 0);
	for (unsigned int i = 0; i < SL_NAMES_DENIED_MAX + 10; i++) {
		snprintf(text, sizeof(text), "x%u.example.org", i);
		cr_assert_eq(sl_naming_intern(naming, text, SL_NAME_DENIED, &id), 0);
		first = first ? first : id;
	}
	cr_expect_eq(names_count(), SL_NAMES_DENIED_MAX + 1);
	cr_expect_eq(sl_name_read(world.set, first, &name), -ENOENT);
	cr_expect_eq(sl_name_read(world.set, first + 9, &name), -ENOENT);
	cr_assert_eq(sl_name_read(world.set, first + 10, &name), 0);
	cr_expect_str_eq(name.text, "x10.example.org");
	cr_expect_eq(sl_name_read(world.set, allowed, &name), 0);
	/* The next process that serves the sandbox goes on from there. */
	sl_naming_free(&naming);
	cr_assert_eq(sl_naming_new(&naming, world.set, world.sandbox), 0);
	cr_assert_eq(sl_naming_intern(naming, text, SL_NAME_DENIED, &later), 0);
	cr_expect_eq(later, id);
	cr_assert_eq(sl_naming_intern(naming, "x0.example.org", SL_NAME_DENIED, &later), 0);
	cr_expect_gt(later, id);
	cr_expect_eq(sl_name_read(world.set, first + 10, &name), -ENOENT);
	/* A rule for it is loaded: it is the same name, and of the other kind. */
	cr_assert_eq(sl_naming_intern(naming, text, 0, &later), 0);
	cr_expect_eq(later, id);
	cr_assert_eq(sl_name_read(world.set, id, &name), 0);
	cr_expect_eq(name.flags, 0);
	cr_assert_eq(sl_sandbox_detach(world.set, world.sandbox, &err), 0, "%s", err.text);
	cr_expect_eq(names_count(), 0);
}

/* Nothing of ours needs to run for it. */
Test(names, list)
{
	struct sl_process_key who = { .tgid = 77, .start_ns = 1 };
	struct json_object *row;
	struct json_object *rows;
	struct cli cli;
	__u32 id;

	name_for("a.example.org", &who);
	name_for("b.example.org", NULL);
	cr_assert_eq(sl_naming_intern(naming, "c\x1b[31m.example.org", SL_NAME_DENIED, &id), 0);
	CLI(&cli, "--set", world.dir, "-j", "name", "list");
	cr_assert_eq(cli.status, 0, "%s", cli.err);
	rows = json_of(cli.out);
	cr_assert_eq(json_object_array_length(rows), 3, "%s", cli.out);
	row = json_object_array_get_idx(rows, 0);
	cr_expect_str_eq(json_text(row, "name"), "a.example.org");
	cr_expect_str_eq(json_text(row, "address"), "127.0.0.1");
	cr_expect_eq(json_object_get_int(json_at(row, "pid")), 77);
	row = json_object_array_get_idx(rows, 2);
	cr_expect_null(json_at(row, "address"));
	cr_expect(json_object_get_boolean(json_at(row, "denied")));
	json_object_put(rows);
	cli_free(&cli);
	CLI(&cli, "--set", world.dir, "name", "list");
	cr_expect_not_null(strstr(cli.out, "c\\x1b[31m.example.org"), "%s", cli.out);
	cr_expect_null(strchr(cli.out, '\x1b'));
	cli_free(&cli);
}
