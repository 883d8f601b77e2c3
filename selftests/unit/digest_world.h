/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files with a record, for tests of digests. A record is made of stat's answers, as the
 * kernel side makes it of the inode. Everything here fails the test when it can't.
 */
#ifndef SLUICE_TEST_DIGEST_WORLD_H
#define SLUICE_TEST_DIGEST_WORLD_H

#include <sys/stat.h>

#include "identity/digest.h"

#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_MILLION_A "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"

/* A directory of the test's own; .init and .fini of a suite. */
void digest_world_make(void);
void digest_world_remove(void);

/* Its path, or that of something in it; valid until the thread's next call. */
const char *in_dir(const char *name);

void put_file(const char *path, const char *content);

/* Moves the ctime and nothing else. */
void touch_file(const char *path);

/* The caller frees them. */
struct sl_exe *record(const char *path, unsigned int id);
struct sl_exe *record_of_stat(const struct stat *st, const char *path, unsigned int id);

/* Hexadecimal digest, or the error's name; valid until the thread's next call. */
const char *digest_text(const struct sl_digest *digest);

#endif
