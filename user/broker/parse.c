// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <netinet/in.h>
#include <string.h>

#include "base/parse.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int sl_parse_shebang(const char *data, size_t len, char out[SL_SHEBANG_SIZE])
{
	const char *end, *name, *stop;

	if (len > SL_SHEBANG_SIZE)
		len = SL_SHEBANG_SIZE;
	if (len < 2 || data[0] != '#' || data[1] != '!')
		return -ENOENT;
	/* The kernel's buffer is zeroed: a shorter file ends in NUL. */
	end = memchr(data, '\n', len);
	if (!end)
		end = data + len;
	for (name = data + 2; name < end && is_blank(*name); name++)
		;
	for (stop = name; stop < end && *stop && !is_blank(*stop); stop++)
		;
	if (stop == name)
		return -ENOEXEC;
	/* Nothing says that the name ends here: it may be cut. */
	if (stop == data + SL_SHEBANG_SIZE)
		return -ENOEXEC;
	memcpy(out, name, stop - name);
	out[stop - name] = '\0';
	return 0;
}

int sl_parse_sockaddr(const void *data, size_t len, int *family, struct sl_endpoint *out)
{
	struct sl_endpoint endpoint = { .port_be = 0 };
	sa_family_t fam;

	if (len < sizeof(fam))
		return -EINVAL;
	memcpy(&fam, data, sizeof(fam));
	*family = fam;
	if (fam == AF_INET) {
		struct sockaddr_in in;

		if (len < sizeof(in))
			return -EINVAL;
		memcpy(&in, data, sizeof(in));
		endpoint.addr_be[2] = htonl(0xffff);
		endpoint.addr_be[3] = in.sin_addr.s_addr;
		endpoint.port_be = in.sin_port;
	} else if (fam == AF_INET6) {
		/* SIN6_LEN_RFC2133: the scope may be missing. */
		if (len < offsetof(struct sockaddr_in6, sin6_scope_id))
			return -EINVAL;
		memcpy(endpoint.addr_be,
		       (const char *)data + offsetof(struct sockaddr_in6, sin6_addr),
		       sizeof(endpoint.addr_be));
		memcpy(&endpoint.port_be,
		       (const char *)data + offsetof(struct sockaddr_in6, sin6_port),
		       sizeof(endpoint.port_be));
	} else {
		return -EAFNOSUPPORT;
	}
	*out = endpoint;
	return 0;
}

int sl_parse_start_ticks(const char *stat, uint64_t *ticks)
{
	const char *p = strrchr(stat, ')');
	char word[24];
	size_t n;

	/* The field after the name is the third. */
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return -EINVAL;
	n = strspn(p, "0123456789");
	if (!n || n >= sizeof(word))
		return -EINVAL;
	memcpy(word, p, n);
	word[n] = '\0';
	return sl_parse_u64(word, 0, UINT64_MAX, ticks);
}
