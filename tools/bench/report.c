/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/cleanup.h"
#include "print.h"
#include "world.h"

struct sl_report {
	const char *name;
	const char *json_dir;
	struct json_object *doc;
	struct json_object *tables, *checks, *notes; /* parts of doc */
	struct json_object *row;                     /* the last one */
	bool wrong;
	int error; /* first failure, -errno */
};

static void add(struct sl_report *report, struct json_object *object, const char *key,
		struct json_object *value)
{
	int rc = object ? sl_json_add(object, key, value) : -ENOMEM;

	if (!object)
		json_object_put(value);
	if (rc && !report->error)
		report->error = rc;
}

static void append(struct sl_report *report, struct json_object *array, struct json_object *value)
{
	if (array && value && !json_object_array_add(array, value))
		return;
	json_object_put(value);
	report->error = report->error ?: -ENOMEM;
}

static struct json_object *text_json(const char *text)
{
	return sl_json_string(text, strlen(text));
}

/* What every result begins with; failures are kept in `report`. */
static void begin(struct sl_report *report, bool quick)
{
	struct utsname uts;

	uname(&uts);
	sl_report_setting_text(report, "benchmark", report->name);
	sl_report_setting_text(report, "version", SL_VERSION);
	sl_report_setting_text(report, "kernel", uts.release);
	sl_report_setting_text(report, "machine", uts.machine);
	sl_report_setting(report, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
	add(report, report->doc, "quick", json_object_new_boolean(quick));
	report->tables = json_object_new_object();
	add(report, report->doc, "results", report->tables);
	report->checks = json_object_new_array();
	add(report, report->doc, "checks", report->checks);
	report->notes = json_object_new_array();
	add(report, report->doc, "notes", report->notes);
}

void sl_report_setting(struct sl_report *report, const char *key, int64_t value)
{
	add(report, report->doc, key, json_object_new_int64(value));
}

void sl_report_setting_text(struct sl_report *report, const char *key, const char *value)
{
	add(report, report->doc, key, text_json(value));
}

void sl_report_row(struct sl_report *report, const char *table, const char *name)
{
	struct json_object *rows;

	if (!json_object_object_get_ex(report->tables, table, &rows)) {
		rows = json_object_new_array();
		add(report, report->tables, table, rows);
	}
	report->row = json_object_new_object();
	append(report, rows, report->row);
	if (!report->error)
		add(report, report->row, "name", text_json(name));
	else
		report->row = NULL;
}

void sl_report_int(struct sl_report *report, const char *key, int64_t value)
{
	add(report, report->row, key, json_object_new_int64(value));
}

/* Four digits after the point: more would be noise, and JSON has no infinity. */
static struct json_object *float_json(double value)
{
	char text[64];

	if (!isfinite(value))
		return json_object_new_double(0);
	snprintf(text, sizeof(text), "%.4f", value);
	return json_object_new_double_s(value, text);
}

void sl_report_float(struct sl_report *report, const char *key, double value)
{
	add(report, report->row, key, float_json(value));
}

void sl_report_samples(struct sl_report *report, const char *key, const double *v, size_t count)
{
	struct json_object *array = json_object_new_array();

	add(report, report->row, key, array);
	for (size_t i = 0; i < count && !report->error; i++)
		append(report, array, float_json(v[i]));
}

static void check(struct sl_report *report, const char *name, const char *kind,
		  struct json_object *value, struct json_object *limit, bool pass)
{
	struct json_object *object = json_object_new_object();

	append(report, report->checks, object);
	if (report->error) {
		json_object_put(value);
		json_object_put(limit);
		return;
	}
	add(report, object, "name", text_json(name));
	add(report, object, "kind", text_json(kind));
	add(report, object, "value", value);
	add(report, object, "limit", limit);
	add(report, object, "pass", json_object_new_boolean(pass));
}

void sl_report_at_most(struct sl_report *report, const char *name, double value, double limit)
{
	check(report, name, "at most", float_json(value), float_json(limit), value <= limit);
}

void sl_report_at_least(struct sl_report *report, const char *name, double value, double limit)
{
	check(report, name, "at least", float_json(value), float_json(limit), value >= limit);
}

void sl_report_equal(struct sl_report *report, const char *name, int64_t value, int64_t expected)
{
	check(report, name, "must be", json_object_new_int64(value),
	      json_object_new_int64(expected), value == expected);
	if (value != expected)
		report->wrong = true;
}

void sl_report_note(struct sl_report *report, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	append(report, report->notes, text_json(text));
}

static int write_json(struct sl_report *report, struct sl_err *err)
{
	_cleanup_file_ FILE *file = NULL;
	char path[PATH_MAX];
	int rc;

	if (mkdir(report->json_dir, 0755) && errno != EEXIST)
		return sl_err_sys(err, errno, "can't make '%s'", report->json_dir);
	if (snprintf(path, sizeof(path), "%s/%s.json", report->json_dir, report->name) >=
	    (int)sizeof(path))
		return sl_err_sys(err, ENAMETOOLONG, "'%s'", report->json_dir);
	file = fopen(path, "we");
	if (!file)
		return sl_err_sys(err, errno, "can't write '%s'", path);
	rc = sl_json_print(file, report->doc, true);
	if (!rc && fflush(file))
		rc = -errno;
	return rc ? sl_err_sys(err, -rc, "can't write '%s'", path) : 0;
}

static int finish(struct sl_report *report, struct sl_cli *cli)
{
	int rc = 0;

	add(report, report->doc, "complete", json_object_new_boolean(!sl_world_stopped()));
	if (report->error)
		return sl_err_sys(&cli->err, -report->error, "result of %s", report->name);
	if (report->json_dir)
		rc = write_json(report, &cli->err);
	if (rc)
		return rc;
	if (cli->output.json)
		rc = sl_json_print(cli->output.file, report->doc, cli->output.pretty);
	else
		sl_result_print(cli->output.file, report->doc);
	if (!rc && fflush(cli->output.file))
		rc = -errno;
	if (rc)
		return sl_err_sys(&cli->err, -rc, "can't print the result");
	return report->wrong ? 1 : 0;
}

int sl_report_run(struct sl_cli *cli, const char *name, const void *options, sl_bench_fn *bench)
{
	const struct sl_bench_common *common = options;
	struct sl_report report = { .name = name,
				    .json_dir = common->json_dir,
				    .doc = json_object_new_object() };
	int rc;

	begin(&report, common->quick);
	rc = report.error ? sl_err_sys(&cli->err, -report.error, "result of %s", name)
			  : bench(options, &report, &cli->err);
	rc = rc ?: finish(&report, cli);
	json_object_put(report.doc);
	return rc;
}
