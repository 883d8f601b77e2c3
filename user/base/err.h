/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Errors that reach a person: the cause and the next step, beside the errno a caller
 * acts on. A function that can fail for a reason worth telling takes a `struct sl_err *`
 * as its last argument, returns -errno and fills it; a NULL is allowed and ignored.
 */
#ifndef SLUICE_USER_ERR_H
#define SLUICE_USER_ERR_H

struct sl_err {
	int code;       /* positive errno, 0 when nothing was set */
	char text[512]; /* what failed and why, one line, no full stop */
	char hint[384]; /* the next step; empty when there is none to name */
};

/* Sets the text; returns -code. `code` is a positive errno. Clears the hint. */
int sl_err_set(struct sl_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sets the text to "<fmt>: <strerror(code)>"; returns -code. */
int sl_err_sys(struct sl_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the next step to an error already set; returns -err->code (-EINVAL for NULL). */
int sl_err_hint(struct sl_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Puts "<fmt>: " before the text; returns -err->code (-EINVAL for NULL). */
int sl_err_prefix(struct sl_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
