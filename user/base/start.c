/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/start.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit files;
static bool files_raised;

void sl_start_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* The lowest that is free is what open() returns: those below are in use. */
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

void sl_start_raise_files(void)
{
	struct rlimit raised;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur == files.rlim_max)
		return;
	raised = files;
	raised.rlim_cur = raised.rlim_max;
	files_raised = !setrlimit(RLIMIT_NOFILE, &raised);
}

void sl_start_restore_files(void)
{
	if (files_raised)
		setrlimit(RLIMIT_NOFILE, &files);
}
