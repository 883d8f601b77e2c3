// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "dns/resolver.h"

#define FILE_MAX (64 * 1024)
#define DNS_PORT 53
#define BLANKS " \t\r\n"
/* As resolv.conf(5). */
#define TIMEOUT_S_MAX 30
#define ATTEMPTS_MAX 5

static void set_address(struct sockaddr_storage *out, const __be32 addr_be[4], uint16_t port_be)
{
	const struct sl_addr addr = { { addr_be[0], addr_be[1], addr_be[2], addr_be[3] } };
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (sl_addr_is_v4(&addr)) {
		in->sin_family = AF_INET;
		in->sin_port = port_be;
		in->sin_addr.s_addr = addr_be[3];
	} else {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port_be;
		memcpy(&in6->sin6_addr, addr_be, sizeof(in6->sin6_addr));
	}
}

/* "fe80::1%eth0": of a nameserver line only. */
static int parse_scoped(const char *text, struct sockaddr_storage *out)
{
	char plain[INET6_ADDRSTRLEN];
	const char *scope = strchr(text, '%');
	size_t len = scope ? (size_t)(scope - text) : strlen(text);
	struct sl_addr addr;
	unsigned int index;
	int ret;

	if (len >= sizeof(plain))
		return -EINVAL;
	memcpy(plain, text, len);
	plain[len] = '\0';
	ret = sl_parse_addr(plain, addr.be);
	if (ret)
		return ret;
	set_address(out, addr.be, htons(DNS_PORT));
	if (!scope)
		return 0;
	index = if_nametoindex(scope + 1);
	if (!index || out->ss_family != AF_INET6)
		return -EINVAL;
	((struct sockaddr_in6 *)out)->sin6_scope_id = index;
	return 0;
}

int sl_resolver_config_add(struct sl_resolver_config *config, const char *text, struct sl_err *err)
{
	struct sockaddr_storage *out = &config->upstreams[config->count];
	struct sl_endpoint endpoint;
	struct sl_addr addr;
	int ret;

	if (config->count == SL_RESOLVER_UPSTREAMS) {
		sl_err_set(err, ENOSPC, "%.64s: more than %d DNS servers", text,
			   SL_RESOLVER_UPSTREAMS);
		return sl_err_hint(err, "leave out the ones that matter least");
	}
	if (!sl_parse_addr(text, addr.be)) {
		set_address(out, addr.be, htons(DNS_PORT));
		config->count++;
		return 0;
	}
	ret = sl_parse_endpoint(text, &endpoint);
	if (!ret && !endpoint.port_be)
		ret = -ERANGE;
	if (ret) {
		sl_err_set(err, -ret, "'%.64s' is not the address of a DNS server", text);
		return sl_err_hint(err, "give an IP address, with a port or without: 192.0.2.1, "
					"192.0.2.1:5353 or [2001:db8::1]:5353");
	}
	set_address(out, endpoint.addr_be, endpoint.port_be);
	config->count++;
	return 0;
}

/* What can't be read is left alone, as other resolvers do: the file is not for us alone. */
static void read_option(struct sl_resolver_config *config, const char *option)
{
	uint32_t value;

	if (!strncmp(option, "timeout:", 8) && !sl_parse_u32(option + 8, 1, UINT32_MAX, &value))
		config->timeout_ms = (value < TIMEOUT_S_MAX ? value : TIMEOUT_S_MAX) * 1000;
	if (!strncmp(option, "attempts:", 9) && !sl_parse_u32(option + 9, 1, UINT32_MAX, &value))
		config->attempts = value < ATTEMPTS_MAX ? value : ATTEMPTS_MAX;
}

static void read_line(struct sl_resolver_config *config, char *line)
{
	char *save, *word = strtok_r(line, BLANKS, &save);

	if (!word)
		return;
	if (!strcmp(word, "nameserver")) {
		word = strtok_r(NULL, BLANKS, &save);
		if (word && config->count < SL_RESOLVER_UPSTREAMS &&
		    !parse_scoped(word, &config->upstreams[config->count]))
			config->count++;
	} else if (!strcmp(word, "options")) {
		while ((word = strtok_r(NULL, BLANKS, &save)))
			read_option(config, word);
	}
}

int sl_resolver_config_read(struct sl_resolver_config *config, const char *path, struct sl_err *err)
{
	_cleanup_file_ FILE *file = fopen(path, "re");
	_cleanup_free_ char *text = NULL;
	struct sl_resolver_config read = *config;
	size_t size;
	char *line, *rest;

	if (!file) {
		sl_err_sys(err, errno, "%s", path);
		return sl_err_hint(err, "name the DNS servers to ask");
	}
	text = malloc(FILE_MAX + 1);
	if (!text)
		return sl_err_sys(err, ENOMEM, "%s", path);
	size = fread(text, 1, FILE_MAX + 1, file);
	if (ferror(file))
		return sl_err_sys(err, EIO, "%s", path);
	if (size > FILE_MAX) {
		sl_err_set(err, EFBIG, "%s: larger than %d bytes", path, FILE_MAX);
		return sl_err_hint(err, "name the DNS servers to ask");
	}
	text[size] = '\0';
	read.count = 0;
	for (line = text; line; line = rest) {
		rest = strchr(line, '\n');
		if (rest)
			*rest++ = '\0';
		read_line(&read, line);
	}
	if (!read.count)
		sl_resolver_config_add(&read, "127.0.0.1", NULL);
	*config = read;
	return 0;
}
