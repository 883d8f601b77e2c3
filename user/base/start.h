/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a program puts in order before all else, and gives back before it executes another.
 * Once, in the main thread, before there are others; errors are left to whoever meets them.
 */
#ifndef SLUICE_USER_START_H
#define SLUICE_USER_START_H

/*
 * Descriptors 0 to 2 that the caller closed are taken by /dev/null, so that no file, pipe or
 * socket of this process becomes its stdin, stdout or stderr. Their use fails with EBADF as
 * before (opened for the other direction), and exec closes them again.
 */
void sl_start_descriptors(void);

/*
 * Raises the soft limit of open files to the hard one: a set has some hundred descriptors
 * while it is loaded. Nothing here uses select(2), for whose sake the soft limit is low.
 */
void sl_start_raise_files(void);

/* The limit as the caller had it, in a child that is about to execute a command. */
void sl_start_restore_files(void);

#endif
