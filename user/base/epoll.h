/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of a descriptor that an epoll instance watches.
 *
 * close(2) alone ends the watch only with the last reference to the open file, and that may be
 * somebody else's: a child after fork(), or for an instant whoever walks the files of all
 * processes (BPF's task_file iterator, which each attach runs, and which may be preempted with
 * one in its hand). Until then events come, with the pointer of what was freed, and which may be
 * another's by then.
 */
#ifndef SLUICE_USER_EPOLL_H
#define SLUICE_USER_EPOLL_H

#include <sys/epoll.h>

#include "base/cleanup.h"

/* Ends the watch, if there is one, and closes; *fd is -1 then. Negative ones are left alone. */
static inline void sl_epoll_close(int epoll, int *fd)
{
	if (*fd >= 0)
		(void)epoll_ctl(epoll, EPOLL_CTL_DEL, *fd, NULL);
	sl_cleanup_fd(fd);
}

#endif
