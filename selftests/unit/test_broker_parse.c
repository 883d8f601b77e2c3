/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "broker/parse.h"
#include "broker/races.h"
#include "broker/task.h"

Test(broker_parse, first_lines)
{
	static const struct {
		const char *line, *want; /* NULL: `code` */
		int code;
	} cases[] = {
		{ "#!/bin/sh\n", "/bin/sh", 0 },
		{ "#! \t/bin/sh -e\nrest", "/bin/sh", 0 },
		{ "#!/bin/sh", "/bin/sh", 0 },
		{ "#!relative\n", "relative", 0 },
		{ "#!/bin/sh\r\n", "/bin/sh\r", 0 },
		{ "#!\n", NULL, -ENOEXEC },
		{ "#!   \n/bin/sh", NULL, -ENOEXEC },
		{ "#!", NULL, -ENOEXEC },
		{ "#", NULL, -ENOENT },
		{ "", NULL, -ENOENT },
		{ " #!/bin/sh\n", NULL, -ENOENT },
		{ "\x7f"
		  "ELF",
		  NULL, -ENOENT },
	};
	char out[SL_SHEBANG_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_expect_eq(sl_parse_shebang(cases[i].line, strlen(cases[i].line), out),
			     cases[i].code, "case %zu", i);
		if (cases[i].want)
			cr_expect_str_eq(out, cases[i].want);
	}
}

Test(broker_parse, first_line_of_full_length)
{
	char line[SL_SHEBANG_SIZE + 1], out[SL_SHEBANG_SIZE];

	memset(line, 'a', sizeof(line));
	memcpy(line, "#!", 2);
	/* The name may go on behind what the kernel reads. */
	cr_expect_eq(sl_parse_shebang(line, sizeof(line), out), -ENOEXEC);
	cr_expect_eq(sl_parse_shebang(line, SL_SHEBANG_SIZE, out), -ENOEXEC);
	/* Its argument may not. */
	line[SL_SHEBANG_SIZE - 2] = ' ';
	cr_expect_eq(sl_parse_shebang(line, sizeof(line), out), 0);
	cr_expect_eq(strlen(out), SL_SHEBANG_SIZE - 4);
	/* A shorter file ends with its last byte. */
	cr_expect_eq(sl_parse_shebang(line, 20, out), 0);
	cr_expect_eq(strlen(out), 18);
}

Test(broker_parse, addresses)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(443) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct sl_endpoint out = { .port_be = 7 };
	unsigned short unix_family = AF_UNIX;
	int family;

	inet_pton(AF_INET, "192.0.2.1", &in.sin_addr);
	cr_expect_eq(sl_parse_sockaddr(&in, sizeof(in) - 1, &family, &out), -EINVAL);
	cr_expect_eq(out.port_be, 7);
	cr_expect_eq(sl_parse_sockaddr(&in, sizeof(in), &family, &out), 0);
	cr_expect_eq(family, AF_INET);
	cr_expect_eq(out.port_be, htons(443));
	cr_expect_eq(out.addr_be[2], htonl(0xffff));
	cr_expect_eq(out.addr_be[3], htonl(0xc0000201));
	inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr);
	cr_expect_eq(sl_parse_sockaddr(&in6, 23, &family, &out), -EINVAL);
	cr_expect_eq(sl_parse_sockaddr(&in6, 24, &family, &out), 0);
	cr_expect_eq(out.port_be, htons(80));
	cr_expect_eq(memcmp(out.addr_be, &in6.sin6_addr, 16), 0);
	cr_expect_eq(sl_parse_sockaddr(&unix_family, 2, &family, &out), -EAFNOSUPPORT);
	cr_expect_eq(family, AF_UNIX);
	cr_expect_eq(sl_parse_sockaddr(&unix_family, 1, &family, &out), -EINVAL);
}

Test(broker_parse, start_time)
{
	uint64_t ticks = 7;

	cr_expect_eq(sl_parse_start_ticks("7 (a) S 1) 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 "
					  "19 20 21 123456 23\n",
					  &ticks),
		     0);
	cr_expect_eq(ticks, 123456);
	cr_expect_eq(sl_parse_start_ticks("7 (a) S 1 2 3", &ticks), -EINVAL);
	cr_expect_eq(sl_parse_start_ticks("", &ticks), -EINVAL);
	cr_expect_eq(ticks, 123456);
	cr_expect_eq(sl_start_ticks(19999999), sysconf(_SC_CLK_TCK) == 100 ? 1 : ticks);
}

static unsigned int lines;

static void count_line(void *ctx, const struct sl_race_line *line)
{
	lines++;
	cr_expect_eq(line->kind, SL_BROKER_GONE_READ);
	cr_expect_eq(line->count, *(uint64_t *)ctx);
	cr_expect_leq(line->first_ns, line->last_ns);
	cr_expect_neq(line->first_ns, 0);
}

Test(broker_parse, races_are_summed_up)
{
	static struct sl_races races;
	uint64_t want = 3;

	for (int i = 0; i < 3; i++)
		sl_races_count(&races, SL_BROKER_GONE_READ);
	sl_races_count(&races, SL_BROKER_DENIED);
	sl_races_count(&races, SL_BROKER_ACCESS);
	sl_races_tell(&races, count_line, &want);
	cr_expect_eq(lines, 1);
	sl_races_tell(&races, count_line, &want);
	cr_expect_eq(lines, 1);
	want = 1;
	sl_races_count(&races, SL_BROKER_GONE_READ);
	sl_races_tell(&races, count_line, &want);
	cr_expect_eq(lines, 2);
	cr_expect_eq(races.total[SL_BROKER_GONE_READ], 4);
}
