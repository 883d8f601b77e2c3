/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Bytes that a workload chose: addresses, the first line of a script, lines of /proc. */
#ifndef SLUICE_USER_BROKER_PARSE_H
#define SLUICE_USER_BROKER_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/sock.h>

/* What the kernel reads of a file to find its format (include/uapi/linux/binfmts.h). */
#define SL_SHEBANG_SIZE 256

/*
 * The interpreter of a script: the word after "#!", as load_script() (fs/binfmt_script.c)
 * takes it. `len`: bytes of the file that were read, SL_SHEBANG_SIZE or the whole of a
 * shorter one. `out` has SL_SHEBANG_SIZE bytes. -ENOENT: no script. -ENOEXEC: a script that
 * the kernel refuses (no interpreter, or its name does not end within the bytes).
 */
int sl_parse_shebang(const char *data, size_t len, char out[SL_SHEBANG_SIZE]);

/*
 * An address as connect(2) takes it, `len` bytes. -EINVAL: too short for its family.
 * -EAFNOSUPPORT: neither AF_INET nor AF_INET6, *family says which.
 */
int sl_parse_sockaddr(const void *data, size_t len, int *family, struct sl_endpoint *out);

/*
 * Field 22 of /proc/PID/stat: the start time in clock ticks. The second field may hold any
 * bytes, also blanks and parentheses. -EINVAL.
 */
int sl_parse_start_ticks(const char *stat, uint64_t *ticks);

#endif
