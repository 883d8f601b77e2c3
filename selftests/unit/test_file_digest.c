/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The digest of a file that may be written to: only of bytes that can't change unseen. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/hex.h"
#include "guard/file_digest.h"

TestSuite(file_digest, .timeout = 60);

/* Of "abc" (FIPS 180-2, B.1). */
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* A file of three bytes without a name; its O_PATH descriptor. */
static int make_file(int *writer, struct stat *st)
{
	char path[] = "/tmp/sl-file-digest-XXXXXX";
	int fd;

	*writer = mkostemp(path, O_CLOEXEC);
	cr_assert_geq(*writer, 0);
	cr_assert_eq(write(*writer, "abc", 3), 3);
	fd = open(path, O_PATH | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(fstat(fd, st), 0);
	return fd;
}

/* As hexadecimal, or the errno's text. */
static const char *digest_text(int fd, const struct stat *st)
{
	static char hex[2 * SL_SHA256_LEN + 1];
	uint8_t sha256[SL_SHA256_LEN];
	int rc = sl_file_digest(fd, st, sha256);

	if (rc)
		return strerrorname_np(-rc);
	sl_hex(hex, sha256, sizeof(sha256));
	return hex;
}

Test(file_digest, nobody_writes)
{
	_cleanup_fd_ int writer = -1, fd = -1;
	struct stat st;

	fd = make_file(&writer, &st);
	cr_expect_str_eq(digest_text(fd, &st), "ETXTBSY");
	sl_cleanup_fd(&writer);
	cr_expect_str_eq(digest_text(fd, &st), ABC);
	st.st_size = SL_FILE_DIGEST_MAX + 1;
	cr_expect_str_eq(digest_text(fd, &st), "EFBIG");
}

/* A page that is mapped can be written to without anything that would show. */
Test(file_digest, nobody_has_it_mapped)
{
	_cleanup_fd_ int writer = -1, fd = -1;
	struct stat st;
	char *map;

	fd = make_file(&writer, &st);
	map = mmap(NULL, 3, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
	cr_assert_neq(map, MAP_FAILED);
	sl_cleanup_fd(&writer);
	cr_expect_str_eq(digest_text(fd, &st), "ETXTBSY");
	cr_assert_eq(munmap(map, 3), 0);
	cr_expect_str_eq(digest_text(fd, &st), ABC);
}

Test(file_digest, it_is_what_it_was)
{
	_cleanup_fd_ int writer = -1, fd = -1;
	struct stat st;

	fd = make_file(&writer, &st);
	cr_assert_eq(pwrite(writer, "x", 1, 0), 1);
	cr_assert_eq(futimens(writer, NULL), 0);
	sl_cleanup_fd(&writer);
	st.st_ctim.tv_nsec ^= 1;
	cr_expect_str_eq(digest_text(fd, &st), "ESTALE");
	st.st_size = 4;
	cr_expect_str_eq(digest_text(fd, &st), "ESTALE");
}
