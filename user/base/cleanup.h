/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ownership that is readable in one function: declare with a cleanup attribute, start
 * from an empty value, and TAKE at every place where the object escapes.
 */
#ifndef SLUICE_USER_CLEANUP_H
#define SLUICE_USER_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static inline void sl_cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline void sl_cleanup_free(void *p)
{
	void **ptr = p;

	free(*ptr);
	*ptr = NULL;
}

static inline void sl_cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
	*file = NULL;
}

static inline void sl_cleanup_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
	*dir = NULL;
}

#define _cleanup_fd_ _cleanup_(sl_cleanup_fd)
#define _cleanup_free_ _cleanup_(sl_cleanup_free)
#define _cleanup_file_ _cleanup_(sl_cleanup_file)
#define _cleanup_dir_ _cleanup_(sl_cleanup_dir)

/* Gives an object away: its value, the variable left empty. */
#define TAKE_PTR(ptr)                         \
	({                                    \
		__typeof__(ptr) _ptr = (ptr); \
		(ptr) = NULL;                 \
		_ptr;                         \
	})

#define TAKE_FD(fd)             \
	({                      \
		int _fd = (fd); \
		(fd) = -1;      \
		_fd;            \
	})

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
