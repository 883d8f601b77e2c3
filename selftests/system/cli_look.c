/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looking into what sluice prints, and at what `sluice run` leaves. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"
#include "kernel/set.h"
#include "system/cli.h"

static struct json_object *json_part(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new_ex(64);
	struct json_object *object;

	cr_assert_not_null(tokener);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)len);
	cr_assert_eq(json_tokener_get_error(tokener), json_tokener_success, "%s at %zu of: %.*s",
		     json_tokener_error_desc(json_tokener_get_error(tokener)),
		     json_tokener_get_parse_end(tokener), (int)len, text);
	cr_assert_eq(strspn(text + json_tokener_get_parse_end(tokener), "\n") +
			     json_tokener_get_parse_end(tokener),
		     len, "more than a document: %.*s", (int)len, text);
	json_tokener_free(tokener);
	return object;
}

struct json_object *json_of(const char *text)
{
	return json_part(text, strlen(text));
}

struct json_object *json_line(const char **text)
{
	const char *line = *text, *end = strchr(line, '\n');

	if (!*line)
		return NULL;
	cr_assert_not_null(end, "half a line: %s", line);
	*text = end + 1;
	return json_part(line, (size_t)(end + 1 - line));
}

struct json_object *json_at(struct json_object *object, const char *path)
{
	char name[64];

	while (object && *path) {
		size_t len = strcspn(path, ".");
		struct json_object *next = NULL;

		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		if (!json_object_is_type(object, json_type_object) ||
		    !json_object_object_get_ex(object, name, &next))
			return NULL;
		object = next;
		path += len + (path[len] == '.');
	}
	return object;
}

const char *json_text(struct json_object *object, const char *path)
{
	struct json_object *value = json_at(object, path);

	return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
}

void run_cgroup(char *out, size_t size, pid_t pid)
{
	char self[PATH_MAX];
	struct sl_err err = {};

	cr_assert_eq(sl_cgroup_self(self, sizeof(self), &err), 0, "%s", err.text);
	cr_assert_lt(snprintf(out, size, "%s/sluice-run-%d", self, pid), (int)size);
}

bool run_left_nothing(pid_t pid)
{
	char path[PATH_MAX];

	run_cgroup(path, sizeof(path), pid);
	if (!access(path, F_OK))
		return false;
	snprintf(path, sizeof(path), SL_SET_ROOT "/run-%d", pid);
	return access(path, F_OK) != 0;
}

/* True when the process is in the cgroup of the run. */
static bool is_member(pid_t pid, pid_t run)
{
	char path[64], wanted[64];
	_cleanup_free_ char *line = NULL;
	_cleanup_file_ FILE *file = NULL;
	size_t cap = 0;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	snprintf(wanted, sizeof(wanted), "/sluice-run-%d\n", run);
	file = fopen(path, "re");
	while (file && getline(&line, &cap, file) > 0)
		found |= strstr(line, wanted) != NULL;
	return found;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	_cleanup_file_ FILE *file = NULL;
	const char *after;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file || !fgets(text, sizeof(text), file))
		return 0;
	/* The name before it may have any character. */
	after = strrchr(text, ')');
	return after && sscanf(after, ") %*c %d", &parent) == 1 ? parent : 0;
}

pid_t run_keeper(pid_t pid)
{
	_cleanup_dir_ DIR *proc = opendir("/proc");
	struct dirent *entry;

	cr_assert_not_null(proc);
	while ((entry = readdir(proc))) {
		pid_t child = atoi(entry->d_name);

		if (child > 0 && parent_of(child) == pid && !is_member(child, pid))
			return child;
	}
	return 0;
}

/* Behind a number, a time with its unit included. */
static const char *after_number(const char *at)
{
	static const char *const units[] = { " us ", " ms ", " s " };

	while ((*at >= '0' && *at <= '9') || (*at == '.' && at[1] >= '0' && at[1] <= '9'))
		at++;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strncmp(at, units[i], strlen(units[i])))
			return at + strlen(units[i]) - 1;
	return at;
}

void text_without_numbers(char *text)
{
	const char *at = text;
	char *to = text;

	while (*at) {
		if (*at >= '0' && *at <= '9') {
			at = after_number(at);
			*to++ = '#';
		} else if (*at == ' ' && to > text && to[-1] == ' ') {
			at++;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}
