/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

int sl_err_set(struct sl_err *err, int code, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return -code;
	err->code = code;
	err->hint[0] = '\0';
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -code;
}

int sl_err_sys(struct sl_err *err, int code, const char *fmt, ...)
{
	char reason[128];
	va_list args;
	size_t used;

	if (!err)
		return -code;
	err->code = code;
	err->hint[0] = '\0';
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s",
		 strerror_r(code, reason, sizeof(reason)));
	return -code;
}

int sl_err_hint(struct sl_err *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, args);
	va_end(args);
	return -err->code;
}

int sl_err_prefix(struct sl_err *err, const char *fmt, ...)
{
	char old[sizeof(err->text)];
	va_list args;
	size_t used;

	if (!err)
		return -EINVAL;
	memcpy(old, err->text, sizeof(old));
	old[sizeof(old) - 1] = '\0';
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	used = strlen(err->text);
	snprintf(err->text + used, sizeof(err->text) - used, ": %s", old);
	return -err->code;
}
