/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <openssl/evp.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "policy/policy.h"

#define DIR_NAME "policy"
#define KEY_HEX (2 * SL_SESSION_KEY)

#define SUFFIX_FROM ".from"
#define SUFFIX_EGRESS ".egress"

/* KEY, a dash, the greatest id, the longest suffix. */
#define NAME_MAX_LEN (KEY_HEX + 1 + 10 + sizeof(".yaml"))

struct sl_copies {
	int dir;
	char path[PATH_MAX];
};

static void name_of(char out[NAME_MAX_LEN], const uint8_t key[SL_SESSION_KEY], uint32_t policy_id)
{
	char hex[KEY_HEX + 1];

	sl_hex(hex, key, SL_SESSION_KEY);
	if (policy_id)
		snprintf(out, NAME_MAX_LEN, "%s-%u.yaml", hex, policy_id);
	else
		snprintf(out, NAME_MAX_LEN, "%s.tmp", hex);
}

static void other_name(char out[NAME_MAX_LEN], const uint8_t key[SL_SESSION_KEY],
		       const char *suffix)
{
	sl_hex(out, key, SL_SESSION_KEY);
	strcpy(out + KEY_HEX, suffix);
}

void sl_copies_free(struct sl_copies **copies)
{
	if (!*copies)
		return;
	sl_cleanup_fd(&(*copies)->dir);
	free(TAKE_PTR(*copies));
}

int sl_copies_open(struct sl_copies **out, const char *state_dir, struct sl_err *err)
{
	_cleanup_(sl_copies_free) struct sl_copies *copies = calloc(1, sizeof(*copies));
	size_t room = sizeof(copies->path) - NAME_MAX_LEN - 1;

	if (!copies)
		return sl_err_sys(err, ENOMEM, "policies");
	copies->dir = -1;
	if (snprintf(copies->path, room, "%s/" DIR_NAME, state_dir) >= (int)room)
		return sl_err_sys(err, ENAMETOOLONG, "'%s'", state_dir);
	if (mkdir(copies->path, 0700) && errno != EEXIST)
		return sl_err_sys(err, errno, "can't make '%s'", copies->path);
	copies->dir = open(copies->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (copies->dir < 0)
		return sl_err_sys(err, errno, "can't open '%s'", copies->path);
	*out = TAKE_PTR(copies);
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Whole, or not at all. */
static int write_file(const struct sl_copies *copies, const char *name, const char *text,
		      size_t len)
{
	_cleanup_fd_ int fd = openat(copies->dir, name,
				     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int ret = fd < 0 ? -errno : write_all(fd, text, len);

	if (ret)
		(void)unlinkat(copies->dir, name, 0);
	return ret;
}

int sl_copies_write(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		    const char *text, size_t len, struct sl_err *err)
{
	char name[NAME_MAX_LEN];
	int ret;

	name_of(name, key, 0);
	ret = write_file(copies, name, text, len);
	if (!ret)
		return 0;
	sl_err_sys(err, -ret, "can't keep a copy of the policy in '%s'", copies->path);
	if (ret == -ENOSPC || ret == -EDQUOT)
		return sl_err_hint(err, "free some space there: without the copy a sandbox is "
					"not attached, and gets no other policy");
	return ret;
}

int sl_copies_name(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id)
{
	char from[NAME_MAX_LEN], to[NAME_MAX_LEN];

	name_of(from, key, 0);
	name_of(to, key, policy_id);
	if (renameat(copies->dir, from, copies->dir, to))
		return -errno;
	return 0;
}

int sl_copies_path(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id, char out[PATH_MAX])
{
	char name[NAME_MAX_LEN];

	name_of(name, key, policy_id);
	return snprintf(out, PATH_MAX, "%s/%s", copies->path, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int read_all(int fd, char *text, size_t len)
{
	while (len) {
		ssize_t n = read(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int read_file(const struct sl_copies *copies, const char *name, char **text, size_t *len)
{
	_cleanup_free_ char *read = NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int ret;

	fd = openat(copies->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)SL_POLICY_FILE_MAX)
		return -EFBIG;
	read = malloc((size_t)st.st_size + 1);
	if (!read)
		return -ENOMEM;
	ret = read_all(fd, read, (size_t)st.st_size);
	if (ret)
		return ret;
	read[st.st_size] = '\0';
	*text = TAKE_PTR(read);
	*len = (size_t)st.st_size;
	return 0;
}

int sl_copies_read(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id, char **text, size_t *len)
{
	char name[NAME_MAX_LEN];

	name_of(name, key, policy_id);
	return read_file(copies, name, text, len);
}

int sl_copies_set_egress(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
			 const char *text)
{
	char name[NAME_MAX_LEN];

	other_name(name, key, SUFFIX_EGRESS);
	return write_file(copies, name, text, strlen(text));
}

int sl_copies_egress(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY], char **text)
{
	char name[NAME_MAX_LEN];
	size_t len;

	other_name(name, key, SUFFIX_EGRESS);
	return read_file(copies, name, text, &len);
}

int sl_copies_set_from(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		       const char *from)
{
	char name[NAME_MAX_LEN];

	other_name(name, key, SUFFIX_FROM);
	if (unlinkat(copies->dir, name, 0) && errno != ENOENT)
		return -errno;
	return from && from[0] == '/' && symlinkat(from, copies->dir, name) ? -errno : 0;
}

void sl_copies_from(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		    char out[PATH_MAX])
{
	char name[NAME_MAX_LEN];
	ssize_t n;

	other_name(name, key, SUFFIX_FROM);
	n = readlinkat(copies->dir, name, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
}

/* Removes each file that `unwanted` names. */
static void remove_if(const struct sl_copies *copies,
		      bool (*unwanted)(const char *name, const void *arg), const void *arg)
{
	int fd = openat(copies->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] != '.' && unwanted(entry->d_name, arg))
			(void)unlinkat(copies->dir, entry->d_name, 0);
	}
}

struct clean {
	char key[KEY_HEX + 1], keep[NAME_MAX_LEN];
	bool all;
};

static bool to_clean(const char *name, const void *arg)
{
	const struct clean *clean = arg;

	if (strncmp(name, clean->key, KEY_HEX) != 0)
		return false;
	return clean->all ||
	       (strcmp(name, clean->keep) != 0 && strcmp(name + KEY_HEX, SUFFIX_FROM) != 0 &&
		strcmp(name + KEY_HEX, SUFFIX_EGRESS) != 0);
}

void sl_copies_clean(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		     uint32_t keep)
{
	struct clean clean = { .all = !keep };

	sl_hex(clean.key, key, SL_SESSION_KEY);
	name_of(clean.keep, key, keep);
	remove_if(copies, to_clean, &clean);
}

static bool is_nobodys(const char *name, const void *arg)
{
	uint8_t key[SL_SESSION_KEY];
	char hex[KEY_HEX + 1];
	unsigned int row;

	snprintf(hex, sizeof(hex), "%s", name);
	return sl_hex_parse(hex, key, sizeof(key)) || sl_record_by_key(arg, key, &row);
}

void sl_copies_sweep(const struct sl_copies *copies, const struct sl_record_table *records)
{
	remove_if(copies, is_nobodys, records);
}

int sl_copies_digest(const char *text, size_t len, uint8_t sha256[SL_SHA256_LEN])
{
	return EVP_Digest(text, len, sha256, NULL, EVP_sha256(), NULL) ? 0 : -EIO;
}
