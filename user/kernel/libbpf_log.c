// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What libbpf has to say. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kernel/set_private.h"

/* Lines of a message that are kept: what the verifier complains of comes last. */
#define LOG_LINES 60

/*
 * libbpf's own messages: kept for -v; the error that reaches a person is ours. The
 * verifier's log is one message of thousands of lines.
 */
int sl_libbpf_log(enum libbpf_print_level level, const char *fmt, va_list args)
{
	_cleanup_free_ char *text = NULL;
	char *line, *next;
	unsigned int n = 0;

	if (level == LIBBPF_DEBUG || sl_log_get_level() < SL_LOG_DEBUG)
		return 0;
	if (vasprintf(&text, fmt, args) < 0) {
		text = NULL; /* undefined, says the manual */
		return 0;
	}
	line = text + strlen(text);
	while (line > text && n <= LOG_LINES)
		if (*--line == '\n')
			n++;
	next = *line == '\n' ? line + 1 : line;
	while ((line = strsep(&next, "\n")))
		if (*line)
			sl_log_debug("%s", line);
	return 0;
}
