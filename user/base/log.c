/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/escape.h"
#include "base/log.h"

/* A record that is longer ends with an ellipsis. */
#define LOG_LINE_MAX 4096

static const char *const level_names[] = {
	[SL_LOG_ERROR] = "error", [SL_LOG_WARNING] = "warning", [SL_LOG_NOTICE] = "notice",
	[SL_LOG_INFO] = "info",   [SL_LOG_DEBUG] = "debug",
};
_Static_assert(sizeof(level_names) / sizeof(level_names[0]) == SL_LOG_LEVEL_MAX,
	       "a level without a name");

static enum sl_log_level log_level = SL_LOG_NOTICE;

void sl_log_set_level(enum sl_log_level level)
{
	__atomic_store_n(&log_level, level, __ATOMIC_RELAXED);
}

enum sl_log_level sl_log_get_level(void)
{
	return __atomic_load_n(&log_level, __ATOMIC_RELAXED);
}

const char *sl_log_level_name(enum sl_log_level level)
{
	return (unsigned int)level < SL_LOG_LEVEL_MAX ? level_names[level] : NULL;
}

/* Errors, notices and info speak for themselves; the others say what they are. */
static const char *level_prefix(enum sl_log_level level)
{
	switch (level) {
	case SL_LOG_WARNING:
		return "sluice: warning: ";
	case SL_LOG_DEBUG:
		return "sluice: debug: ";
	default:
		return "sluice: ";
	}
}

static void log_write(const char *prefix, const char *text)
{
	char line[LOG_LINE_MAX];
	size_t used = sl_escape_text(line, sizeof(line), prefix);

	used += sl_escape_again(line + used, sizeof(line) - used - 1, text, strlen(text));
	line[used++] = '\n';
	/* stderr is not buffered: one fwrite is one write. A failure has no one to be told. */
	(void)!fwrite(line, 1, used, stderr);
}

void sl_vlog(enum sl_log_level level, const char *fmt, va_list args)
{
	char text[LOG_LINE_MAX];
	int saved_errno = errno;
	size_t len;

	if (level > sl_log_get_level())
		return;
	vsnprintf(text, sizeof(text), fmt, args);
	len = strlen(text);
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	log_write(level_prefix(level), text);
	errno = saved_errno;
}

void sl_log(enum sl_log_level level, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	sl_vlog(level, fmt, args);
	va_end(args);
}

void sl_log_err(enum sl_log_level level, const struct sl_err *err)
{
	int saved_errno = errno;

	if (level > sl_log_get_level())
		return;
	log_write(level_prefix(level), err->text[0] ? err->text : "unknown error");
	if (err->hint[0])
		log_write("sluice: hint: ", err->hint);
	errno = saved_errno;
}
