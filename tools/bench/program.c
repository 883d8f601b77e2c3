/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sl_program_self(char out[PATH_MAX], struct sl_err *err)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		return sl_err_sys(err, errno, "can't tell this program's path");
	path[n] = '\0';
	strcpy(out, path);
	return 0;
}

int sl_program_find(char out[PATH_MAX], const char *name, const char *named_by, struct sl_err *err)
{
	const char *named = getenv(named_by);
	char path[PATH_MAX], *slash;
	int rc = sl_program_self(path, err);

	if (rc)
		return rc;
	slash = strrchr(path, '/');
	if (named || !slash || (size_t)(slash - path) + strlen(name) + 2 > sizeof(path))
		snprintf(path, sizeof(path), "%s", named ?: name);
	else
		strcpy(slash + 1, name);
	if (!access(path, X_OK)) {
		strcpy(out, path);
		return 0;
	}
	sl_err_sys(err, errno, "'%s'", path);
	return sl_err_hint(err, "build it, or name it with %s", named_by);
}
