/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A benchmark's result, as report.h makes it, for people. */
#ifndef SLUICE_BENCH_PRINT_H
#define SLUICE_BENCH_PRINT_H

#include <stdio.h>

#include <json-c/json.h>

void sl_result_print(FILE *file, struct json_object *doc);

#endif
