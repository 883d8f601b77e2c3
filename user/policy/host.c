/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Host names and their patterns (match.h). */
#include <errno.h>
#include <string.h>

#include "policy/match.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int check_label(const char *label, size_t len, struct sl_err *err)
{
	if (len == 0) {
		sl_err_set(err, EINVAL, "an empty label in a host name");
		return sl_err_hint(err, "labels are separated by one dot: registry.example.org");
	}
	if (len > SL_LABEL_MAX)
		return sl_err_set(err, EINVAL,
				  "a label of %zu bytes in a host name; at most %d "
				  "are possible",
				  len, SL_LABEL_MAX);
	for (size_t i = 0; i < len; i++) {
		if (is_alnum(label[i]) || label[i] == '_' ||
		    (label[i] == '-' && i > 0 && i + 1 < len))
			continue;
		if (label[i] == '*') {
			sl_err_set(err, EINVAL, "a wildcard that is not the whole first label");
			return sl_err_hint(err, "\"*.example.org\" is one label, "
						"\"**.example.org\" any number");
		}
		if ((unsigned char)label[i] >= 0x80) {
			sl_err_set(err, EINVAL, "a host name that is not ASCII");
			return sl_err_hint(err, "write international names as A-labels, "
						"\"xn--…\" (RFC 5891)");
		}
		sl_err_set(err, EINVAL,
			   label[i] == '-' ? "a label begins or ends with '-'"
					   : "a character that no host name has");
		return sl_err_hint(err, "a label is letters, digits, '-' between them (RFC 1123), "
					"and '_' (RFC 8552)");
	}
	return 0;
}

/* What resolvers would take for an IPv4 address (inet_aton): "10.1", "0x7f000001". */
static bool like_address(const char *name)
{
	const char *last = strrchr(name, '.');

	last = last ? last + 1 : name;
	if (last[0] == '0' && last[1] == 'x')
		return strspn(last + 2, "0123456789abcdef") == strlen(last + 2);
	return strspn(last, "0123456789") == strlen(last);
}

int sl_host_normal(char *dst, const char *text, struct sl_err *err)
{
	size_t len = strlen(text);
	int ret = 0;

	if (len > 1 && text[len - 1] == '.')
		len--;
	if (len == 0)
		return sl_err_set(err, EINVAL, "an empty host name");
	if (len > SL_HOST_MAX)
		return sl_err_set(err, EINVAL, "a host name of %zu bytes; at most %d are possible",
				  len, SL_HOST_MAX);
	for (size_t i = 0; i < len; i++)
		dst[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
	dst[len] = '\0';
	for (size_t at = 0; !ret && at <= len; at += strcspn(dst + at, ".") + 1)
		ret = check_label(dst + at, strcspn(dst + at, "."), err);
	if (ret)
		return ret;
	if (like_address(dst)) {
		sl_err_set(err, EINVAL, "neither a host name nor a complete address");
		return sl_err_hint(err, "write IPv4 addresses as four decimal numbers: 192.0.2.1");
	}
	return 0;
}

bool sl_host_is_local(const char *name)
{
	const char *end = strrchr(name, '.');

	return !strcmp(end ? end + 1 : name, "localhost");
}

static size_t wildcard_len(const char *pattern)
{
	size_t stars = strspn(pattern, "*");

	return stars && stars <= 2 && pattern[stars] == '.' ? stars + 1 : 0;
}

bool sl_host_is_wild(const char *pattern)
{
	return wildcard_len(pattern) > 0;
}

int sl_host_pattern_normal(char *dst, const char *text, struct sl_err *err)
{
	size_t wild = wildcard_len(text);
	char name[SL_HOST_MAX + 1];
	int ret;

	if (!strcmp(text, "*") || !strcmp(text, "**")) {
		sl_err_set(err, EINVAL, "a wildcard for all names");
		return sl_err_hint(err, "name a domain: \"**.example.org\"; to allow all "
					"addresses, use `cidr: 0.0.0.0/0` and `cidr: ::/0`");
	}
	ret = sl_host_normal(name, text + wild, err);
	if (ret)
		return ret;
	if (wild && !strchr(name, '.')) {
		sl_err_set(err, EINVAL, "a wildcard for a whole top-level domain");
		return sl_err_hint(err, "two labels at least must follow the wildcard: "
					"\"*.example.org\"");
	}
	if (wild + strlen(name) > SL_HOST_MAX)
		return sl_err_set(err, EINVAL, "a host name of %zu bytes; at most %d are possible",
				  wild + strlen(name), SL_HOST_MAX);
	memcpy(dst, text, wild);
	memcpy(dst + wild, name, strlen(name) + 1);
	return 0;
}

bool sl_host_match(const char *pattern, const char *name)
{
	size_t wild = wildcard_len(pattern);
	size_t len = strlen(name), tail;

	if (!wild)
		return !strcmp(pattern, name);
	/* The tail begins with the dot. */
	tail = strlen(pattern + wild - 1);
	if (len <= tail || strcmp(name + len - tail, pattern + wild - 1) != 0)
		return false;
	return wild == 3 || strcspn(name, ".") == len - tail;
}
