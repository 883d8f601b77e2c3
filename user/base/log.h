/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages for people, on stderr: one line a record, "sluice: " first, escaped whole, so
 * that no name in it can add a line or move a cursor (a name that a workload chose is
 * escaped by its writer as well, or a backslash in it could be read as an escape). Written with one write, so records
 * of several threads don't mix. errno is kept. Nothing here limits the rate: what may
 * happen often is counted instead of logged. Not for signal handlers.
 *
 * error: somebody must act. warning: works, but not as asked. notice: what a user should
 * know (the default level). info: what happened. debug: how.
 */
#ifndef SLUICE_USER_LOG_H
#define SLUICE_USER_LOG_H

#include <stdarg.h>

#include "base/err.h"

enum sl_log_level {
	SL_LOG_ERROR,
	SL_LOG_WARNING,
	SL_LOG_NOTICE,
	SL_LOG_INFO,
	SL_LOG_DEBUG,
	SL_LOG_LEVEL_MAX
};

/* Records above `level` are dropped from now on. Start value: SL_LOG_NOTICE. */
void sl_log_set_level(enum sl_log_level level);
enum sl_log_level sl_log_get_level(void);

/* "error", "warning", …; NULL for no level. */
const char *sl_log_level_name(enum sl_log_level level);

void sl_log(enum sl_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same with a va_list, for callbacks of libraries; a final newline is dropped. */
void sl_vlog(enum sl_log_level level, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));

/* The text of an error, and its hint as a second record. */
void sl_log_err(enum sl_log_level level, const struct sl_err *err);

#define sl_log_error(...) sl_log(SL_LOG_ERROR, __VA_ARGS__)
#define sl_log_warning(...) sl_log(SL_LOG_WARNING, __VA_ARGS__)
#define sl_log_notice(...) sl_log(SL_LOG_NOTICE, __VA_ARGS__)
#define sl_log_info(...) sl_log(SL_LOG_INFO, __VA_ARGS__)
#define sl_log_debug(...) sl_log(SL_LOG_DEBUG, __VA_ARGS__)

#endif
