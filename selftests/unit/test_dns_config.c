/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which upstreams are asked: what a person gave, and resolv.conf. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "dns/resolver.h"

static const char *text_of(const struct sockaddr_storage *addr)
{
	static char text[80];
	char plain[INET6_ADDRSTRLEN];
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	bool v4 = addr->ss_family == AF_INET;

	inet_ntop(addr->ss_family, v4 ? (void *)&in->sin_addr : (void *)&in6->sin6_addr, plain,
		  sizeof(plain));
	snprintf(text, sizeof(text), "%s %u %u", plain, ntohs(v4 ? in->sin_port : in6->sin6_port),
		 v4 ? 0 : in6->sin6_scope_id);
	return text;
}

static int read_text(struct sl_resolver_config *config, const char *data, size_t size,
		     struct sl_err *err)
{
	_cleanup_fd_ int fd = memfd_create("resolv.conf", MFD_CLOEXEC);
	char path[64];

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, data, size), (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return sl_resolver_config_read(config, path, err);
}

Test(dns_config, addresses_with_and_without_port)
{
	struct sl_resolver_config config = { 0 };
	struct sl_err err = { 0 };

	cr_assert_eq(sl_resolver_config_add(&config, "192.0.2.1", &err), 0);
	cr_expect_str_eq(text_of(&config.upstreams[0]), "192.0.2.1 53 0");
	cr_assert_eq(sl_resolver_config_add(&config, "[2001:db8::1]:5353", &err), 0);
	cr_expect_str_eq(text_of(&config.upstreams[1]), "2001:db8::1 5353 0");
	cr_expect_eq(sl_resolver_config_add(&config, "192.0.2.1:0", &err), -ERANGE);
	cr_expect_eq(sl_resolver_config_add(&config, "dns.example.org", &err), -EINVAL);
	cr_expect(strstr(err.text, "dns.example.org") && err.hint[0]);
	cr_expect_eq(config.count, 2);
	cr_assert_eq(sl_resolver_config_add(&config, "192.0.2.2:53", &err), 0);
	cr_expect_eq(sl_resolver_config_add(&config, "192.0.2.3", &err), -ENOSPC);
	cr_expect_eq(config.count, SL_RESOLVER_UPSTREAMS);
}

Test(dns_config, resolv_conf_as_it_is_found)
{
	static const char text[] = "# nameserver 203.0.113.1\n"
				   ";nameserver 203.0.113.2\n"
				   "domain example.org\r\n"
				   "search example.org example.com\n"
				   "nameserver\t192.0.2.1\r\n"
				   "nameserver fe80::1%lo\n"
				   "nameserver not-an-address\n"
				   "nameserver fe80::1%nosuch0\n"
				   "nameserver\n"
				   "options ndots:2 timeout:1 attempts:9 rotate timeout:x\n"
				   "nameserver 2001:db8::1\n"
				   "nameserver 192.0.2.9";
	struct sl_resolver_config config = { .mix_case = true };
	struct sl_err err = { 0 };

	cr_assert_eq(read_text(&config, text, sizeof(text) - 1, &err), 0);
	cr_assert_eq(config.count, 3);
	cr_expect_str_eq(text_of(&config.upstreams[0]), "192.0.2.1 53 0");
	cr_expect_str_eq(text_of(&config.upstreams[1]), "fe80::1 53 1");
	cr_expect_str_eq(text_of(&config.upstreams[2]), "2001:db8::1 53 0");
	cr_expect_eq(config.timeout_ms, 1000);
	cr_expect_eq(config.attempts, 5);
	cr_expect(config.mix_case);
}

Test(dns_config, no_nameserver_is_the_local_one)
{
	struct sl_resolver_config config = { 0 };
	struct sl_err err = { 0 };

	cr_assert_eq(read_text(&config, "\0\n\xff", 3, &err), 0);
	cr_assert_eq(config.count, 1);
	cr_expect_str_eq(text_of(&config.upstreams[0]), "127.0.0.1 53 0");
}

Test(dns_config, files_that_can_not_be_read)
{
	static char large[64 * 1024 + 1];
	struct sl_resolver_config config = { 0 };
	struct sl_err err = { 0 };

	memset(large, '\n', sizeof(large));
	cr_expect_eq(read_text(&config, large, sizeof(large), &err), -EFBIG);
	cr_expect(err.hint[0]);
	cr_expect_eq(read_text(&config, large, sizeof(large) - 1, &err), 0);
	memset(&config, 0, sizeof(config));
	cr_expect_eq(sl_resolver_config_read(&config, "/nonexistent/resolv.conf", &err), -ENOENT);
	cr_expect_eq(config.count, 0);
}
