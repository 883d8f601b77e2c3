// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hex.h"

#define KEY_DIGITS (2 * (size_t)SL_SESSION_KEY)
#define NAME_SIZE (KEY_DIGITS + sizeof(".json"))

struct sl_store {
	int dir;
	char *path; /* for messages */
	struct sl_store_ops ops;
};

static const struct sl_store_ops real_ops = { write, fsync, renameat };

/* What to do about an error of the file system. */
static int hint(struct sl_err *err, int code)
{
	switch (code) {
	case ENOSPC:
	case EDQUOT:
		return sl_err_hint(err, "free some space there; the state of before is kept");
	case EROFS:
		return sl_err_hint(err, "the agent needs a directory that it can write to");
	case EMFILE:
	case ENFILE:
		return sl_err_hint(err, "raise the limit of open files");
	default:
		return -code;
	}
}

#define fail(err, code, ...)                           \
	({                                             \
		int _code = (code);                    \
		sl_err_sys((err), _code, __VA_ARGS__); \
		hint((err), _code);                    \
		-_code;                                \
	})

static int check_dir(const struct sl_store *store, struct sl_err *err)
{
	struct stat st;

	if (fstat(store->dir, &st))
		return fail(err, errno, "can't look at %s", store->path);
	if (st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	sl_err_set(err, EPERM, "others may use %s, which is to hold tokens", store->path);
	return sl_err_hint(err, "give it to the agent's user, with mode 0700");
}

int sl_store_open(struct sl_store **out, const char *dir, const struct sl_store_ops *ops,
		  struct sl_err *err)
{
	_cleanup_(sl_store_free) struct sl_store *store = calloc(1, sizeof(*store));
	int ret;

	if (!store)
		return sl_err_sys(err, ENOMEM, "can't open %s", dir);
	store->dir = -1;
	store->ops = ops ? *ops : real_ops;
	store->path = strdup(dir);
	if (!store->path)
		return sl_err_sys(err, ENOMEM, "can't open %s", dir);
	if (mkdir(dir, 0700) && errno != EEXIST && errno != EROFS)
		return fail(err, errno, "can't make %s", dir);
	store->dir = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (store->dir < 0)
		return fail(err, errno, "can't open %s", dir);
	ret = check_dir(store, err);
	if (!ret)
		*out = TAKE_PTR(store);
	return ret;
}

void sl_store_free(struct sl_store **store)
{
	if (!*store)
		return;
	sl_cleanup_fd(&(*store)->dir);
	free((*store)->path);
	free(TAKE_PTR(*store));
}

static void name_of(char name[NAME_SIZE], const uint8_t key[SL_SESSION_KEY], const char *suffix)
{
	sl_hex(name, key, SL_SESSION_KEY);
	strcpy(name + KEY_DIGITS, suffix);
}

static int write_all(const struct sl_store *store, int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = store->ops.write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		text += n;
		len -= (size_t)n;
	}
	return store->ops.fsync(fd) ? -errno : 0;
}

/* A file that is to be written: none of that name is there before. */
static int open_new(const struct sl_store *store, const char *name)
{
	int fd;

	/* One that a crash left may be there. */
	if (unlinkat(store->dir, name, 0) && errno != ENOENT)
		return -errno;
	fd = openat(store->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int write_file(const struct sl_store *store, const char *name, const char *text, size_t len)
{
	_cleanup_fd_ int fd = open_new(store, name);

	if (fd < 0)
		return fd;
	/* Some day it may be the room for the next one. If there is none to be had, it is not. */
	(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, SL_STORE_ROOM);
	return write_all(store, fd, text, len);
}

int sl_store_reserve(struct sl_store *store, const uint8_t key[SL_SESSION_KEY], struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	char name[NAME_SIZE];
	int ret = 0;

	name_of(name, key, ".room");
	fd = open_new(store, name);
	if (fd < 0)
		ret = fd;
	/* A file system that gives no room away beforehand is as it would be without. */
	else if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, SL_STORE_ROOM) && errno != EOPNOTSUPP)
		ret = -errno;
	if (!ret)
		return 0;
	unlinkat(store->dir, name, 0);
	return fail(err, -ret, "can't reserve room for the session in %s", store->path);
}

/* Rule 4. */
static int write_room(const struct sl_store *store, const uint8_t key[SL_SESSION_KEY],
		      const char *name, const char *text, size_t len)
{
	_cleanup_free_ char *padded = malloc(SL_STORE_ROOM);
	_cleanup_fd_ int fd = -1;
	char room[NAME_SIZE];
	int ret;

	if (!padded || len > SL_STORE_ROOM)
		return padded ? -ENOSPC : -ENOMEM;
	memcpy(padded, text, len);
	memset(padded + len, '\n', SL_STORE_ROOM - len);
	name_of(room, key, ".room");
	fd = openat(store->dir, room, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It may be what the session once was, and longer: that would follow what is written. */
	if (ftruncate(fd, SL_STORE_ROOM))
		return -errno;
	ret = write_all(store, fd, padded, SL_STORE_ROOM);
	if (!ret && renameat2(store->dir, room, store->dir, name, RENAME_EXCHANGE))
		ret = -errno;
	return ret;
}

int sl_store_save(struct sl_store *store, const struct sl_store_entry *entry, struct sl_err *err)
{
	_cleanup_free_ char *text = NULL;
	char name[NAME_SIZE], tmp[NAME_SIZE];
	size_t len;
	int ret;

	if (!sl_record_whole(&entry->session))
		return sl_err_set(err, EINVAL, "the session is not whole");
	name_of(name, entry->session.record.key, ".json");
	name_of(tmp, entry->session.record.key, ".tmp");
	ret = sl_store_print(&text, &len, entry);
	if (ret)
		return fail(err, -ret, "can't write %s/%s", store->path, name);
	ret = write_file(store, tmp, text, len);
	if (!ret && store->ops.renameat(store->dir, tmp, store->dir, name))
		ret = -errno;
	if (ret)
		unlinkat(store->dir, tmp, 0);
	/* If that fails too, it is for the want of room, or of what that takes. */
	if ((ret == -ENOSPC || ret == -EDQUOT) &&
	    !write_room(store, entry->session.record.key, name, text, len))
		ret = 0;
	if (ret)
		return fail(err, -ret, "can't write %s/%s", store->path, name);
	if (store->ops.fsync(store->dir))
		return fail(err, errno, "can't sync %s", store->path);
	return 0;
}

int sl_store_remove(struct sl_store *store, const uint8_t key[SL_SESSION_KEY], struct sl_err *err)
{
	char name[NAME_SIZE];

	name_of(name, key, ".room");
	(void)unlinkat(store->dir, name, 0);
	name_of(name, key, ".json");
	if (unlinkat(store->dir, name, 0)) {
		if (errno == ENOENT)
			return 0;
		return fail(err, errno, "can't remove %s/%s", store->path, name);
	}
	if (store->ops.fsync(store->dir))
		return fail(err, errno, "can't sync %s", store->path);
	return 0;
}

/* -EBADMSG: it is no file that was written here. */
static int read_file(const struct sl_store *store, const char *name, char **text, size_t *len)
{
	/* Non-blocking: it may be a FIFO. */
	_cleanup_fd_ int fd =
		openat(store->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	struct stat st;
	size_t used = 0;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > SL_STORE_FILE_MAX)
		return -EBADMSG;
	data = malloc(SL_STORE_FILE_MAX + 1);
	if (!data)
		return -ENOMEM;
	for (ssize_t n = 1; n && used <= SL_STORE_FILE_MAX; used += (size_t)n) {
		n = read(fd, data + used, SL_STORE_FILE_MAX + 1 - used);
		if (n < 0)
			return -errno;
	}
	*text = TAKE_PTR(data);
	*len = used;
	return 0;
}

static int read_entry(const struct sl_store *store, const char *name, struct sl_store_entry *out,
		      struct sl_err *err)
{
	_cleanup_free_ char *text = NULL;
	char own[NAME_SIZE];
	size_t len = 0;
	int ret = read_file(store, name, &text, &len);

	if (ret == -EBADMSG)
		return sl_err_set(err, EBADMSG, "no regular file of at most %u bytes",
				  SL_STORE_FILE_MAX);
	if (ret)
		return fail(err, -ret, "can't read %s/%s", store->path, name);
	/* What it is padded with. */
	while (len > 1 && text[len - 1] == '\n' && text[len - 2] == '\n')
		len--;
	ret = sl_store_parse(out, text, len, err);
	if (ret)
		return ret;
	name_of(own, out->session.record.key, ".json");
	return strcmp(name, own) ? sl_err_set(err, EBADMSG, "its key is not its name") : 0;
}

static void set_aside(const struct sl_store *store, const char *name, struct sl_err *err)
{
	char bad[NAME_SIZE];

	memcpy(bad, name, KEY_DIGITS);
	strcpy(bad + KEY_DIGITS, ".bad");
	if (store->ops.renameat(store->dir, name, store->dir, bad))
		sl_err_hint(err, "remove it: it can't be renamed (%s)", strerror(errno));
	else
		sl_err_hint(err, "it is kept as %s/%s", store->path, bad);
}

static bool is_name(const char *name, const char *suffix)
{
	uint8_t key[SL_SESSION_KEY];
	char digits[KEY_DIGITS + 1];

	if (strnlen(name, NAME_SIZE) < KEY_DIGITS || strcmp(name + KEY_DIGITS, suffix) != 0)
		return false;
	memcpy(digits, name, KEY_DIGITS);
	digits[KEY_DIGITS] = '\0';
	return !sl_hex_parse(digits, key, sizeof(key));
}

/* Whose room it is. */
static bool has_session(const struct sl_store *store, const char *room)
{
	char name[NAME_SIZE];

	memcpy(name, room, KEY_DIGITS);
	strcpy(name + KEY_DIGITS, ".json");
	return !faccessat(store->dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static int load_one(struct sl_store *store, const char *name, struct sl_store_entry *entry,
		    const struct sl_store_handlers *handlers, void *ctx, struct sl_err *err)
{
	struct sl_err bad = { 0 };
	int ret;

	if (is_name(name, ".tmp") || (is_name(name, ".room") && !has_session(store, name)))
		unlinkat(store->dir, name, 0);
	if (!is_name(name, ".json"))
		return 0;
	ret = read_entry(store, name, entry, &bad);
	if (!ret) {
		handlers->entry(ctx, entry);
	} else if (ret == -EBADMSG) {
		set_aside(store, name, &bad);
		handlers->damaged(ctx, name, &bad);
	} else {
		if (err)
			*err = bad;
		return ret;
	}
	return 0;
}

int sl_store_load(struct sl_store *store, const struct sl_store_handlers *handlers, void *ctx,
		  struct sl_err *err)
{
	_cleanup_free_ struct sl_store_entry *entry = malloc(sizeof(*entry));
	_cleanup_fd_ int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dir_ DIR *dir = NULL;
	int ret = 0;

	if (!entry)
		return sl_err_sys(err, ENOMEM, "can't read %s", store->path);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return fail(err, errno, "can't read %s", store->path);
	TAKE_FD(fd);
	for (;;) {
		const struct dirent *at;

		errno = 0;
		at = readdir(dir);
		if (!at)
			return errno ? fail(err, errno, "can't read %s", store->path) : 0;
		ret = load_one(store, at->d_name, entry, handlers, ctx, err);
		if (ret)
			return ret;
	}
}
