// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/pidns.h"

#include <sys/stat.h>

/* Inode of the first pid namespace (PROC_PID_INIT_INO in the kernel's proc_ns.h). */
#define PID_NS_FIRST 0xEFFFFFFCU

bool sl_in_first_pid_ns(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == PID_NS_FIRST;
}
