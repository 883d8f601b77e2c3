/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records as lines of JSON, written straight from their tables of fields: the text that
 * sl_print_line() makes, byte for byte, at a fraction of its cost, since no document is
 * built. For event lines, of which there may be 100,000 a second. A line may be made of
 * several records, whose members then make one object.
 *
 *	struct sl_line line = { .file = file };
 *	sl_line_begin(&line); sl_line_fields(&line, fields, record); … sl_line_end(&line);
 */
#ifndef SLUICE_USER_LINE_H
#define SLUICE_USER_LINE_H

#include <stdint.h>

#include "base/object.h"

/* Seconds whose text is kept. */
#define SL_LINE_SECONDS 16

struct sl_line_second {
	int64_t second;
	char text[24]; /* "": none */
};

/* All but `file` is the writer's own, zeroed at the start. */
struct sl_line {
	FILE *file;
	bool more; /* a member was written */
	int64_t offset_ns;
	struct sl_line_second seconds[SL_LINE_SECONDS];
	size_t used;
	char buf[4096];
};

void sl_line_begin(struct sl_line *line);
void sl_line_fields(struct sl_line *line, const struct sl_field *fields, const void *record);

/* Ends the object and the line. 0, or -errno when writing failed. */
int sl_line_end(struct sl_line *line);

#endif
