/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The store of sessions, in a directory of the test's own. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "session/store.h"
#include "session_world.h"

static char dir[] = "/tmp/sl-test-store-XXXXXX", path[256];
static struct sl_store *store;
static struct sl_store_entry entry, found;
static unsigned int entries, bads;
static char bad_name[256];
static struct sl_err err, bad_err;

static void on_entry(void *ctx, const struct sl_store_entry *one)
{
	(void)ctx;
	found = *one;
	entries++;
}

static void on_bad(void *ctx, const char *name, const struct sl_err *why)
{
	(void)ctx;
	snprintf(bad_name, sizeof(bad_name), "%s", name);
	bad_err = *why;
	bads++;
}

static const struct sl_store_handlers handlers = { on_entry, on_bad };

static int load(void)
{
	entries = bads = 0;
	return sl_store_load(store, &handlers, NULL, &err);
}

static void open_store(const struct sl_store_ops *ops)
{
	sl_store_free(&store);
	cr_assert_eq(sl_store_open(&store, dir, ops, &err), 0, "%s", err.text);
}

/* A session that ended, with all that can be said of it. */
static void fill(struct sl_store_entry *out)
{
	const struct sl_record_new wanted = session_new(1, 1);
	const struct sl_condition_report report = { "Ready", "Broken", "a \"b\"\n\xc3\xa4",
						    SL_CONDITION_FALSE, true };
	struct sl_record_table *records = NULL;
	unsigned int row;

	memset(out, 0, sizeof(*out));
	cr_assert_eq(sl_record_table_new(&records, 1), 0);
	cr_assert_eq(sl_record_prepare(records, &wanted, &row), 0);
	cr_assert_eq(sl_record_live(records, row, 7), 0);
	cr_assert_eq(sl_record_recover(records, row, SL_EPOCH_MAX), 0);
	cr_assert_eq(sl_record_ask_freeze(records, row, true), 0);
	cr_assert_eq(sl_record_lost(records, row, "cut \x1b\xff"), 0);
	cr_assert_eq(sl_record_end(records, row, SL_SESSION_END_KILL, "gone"), 0);
	cr_assert_eq(sl_record_copy(&out->session, records, row), 0);
	sl_record_table_free(&records);
	sl_conditions_report(&out->conditions, &report, 12345678901234567890U);
	sl_conditions_end(&out->conditions, "gone", 77);
}

static void make(void)
{
	cr_assert_not_null(mkdtemp(dir));
	fill(&entry);
	snprintf(path, sizeof(path), "%s/", dir);
	sl_hex(path + strlen(path), entry.session.record.key, SL_SESSION_KEY);
	strcat(path, ".json");
	open_store(NULL);
}

static void unmake(void)
{
	DIR *at = opendir(dir);
	const struct dirent *one;

	while (at && (one = readdir(at)))
		unlinkat(dirfd(at), one->d_name, 0);
	if (at)
		closedir(at);
	rmdir(dir);
	sl_store_free(&store);
}

TestSuite(store, .init = make, .fini = unmake, .timeout = 60);

static void save(void)
{
	cr_assert_eq(sl_store_save(store, &entry, &err), 0, "%s", err.text);
}

/* How many files there are whose names end so. */
static unsigned int files(const char *suffix)
{
	_cleanup_dir_ DIR *at = opendir(dir);
	const struct dirent *one;
	unsigned int count = 0;

	while ((one = readdir(at))) {
		const char *dot = strrchr(one->d_name, '.');

		count += dot && !strcmp(dot, suffix);
	}
	return count;
}

Test(store, saved_and_loaded)
{
	struct stat st;

	save();
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(files(".tmp"), 0);
	open_store(NULL);
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
	cr_assert_eq(bads, 0);
	session_same(&found, &entry);
	entry.session.state = SL_RECORD_LIVE;
	save();
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
	cr_assert_eq(found.session.state, SL_RECORD_LIVE);
	cr_assert_eq(sl_store_remove(store, entry.session.record.key, &err), 0);
	cr_assert_eq(sl_store_remove(store, entry.session.record.key, &err), 0);
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 0);
}

Test(store, does_not_save_what_is_not_whole)
{
	entry.session.record.reason[0] = '\0';
	cr_assert_eq(sl_store_save(store, &entry, &err), -EINVAL);
	cr_assert_eq(files(".json"), 0);
}

static void write_text(const char *text, size_t len)
{
	FILE *file = fopen(path, "we");

	cr_assert_eq(fwrite(text, 1, len, file), len);
	fclose(file);
}

static void check_set_aside(const char *what)
{
	found.session.epoch = 1;
	cr_assert_eq(load(), 0, "%s", what);
	cr_assert_eq(entries, 0, "%s is taken", what);
	cr_assert_eq(bads, 1, "%s", what);
	cr_assert_str_eq(bad_name, strrchr(path, '/') + 1);
	cr_assert_neq(bad_err.text[0], '\0');
	cr_assert_not_null(strstr(bad_err.hint, ".bad"));
	cr_assert_eq(files(".bad"), 1, "%s", what);
	cr_assert_eq(files(".json"), 0, "%s", what);
	cr_assert_eq(load(), 0);
	cr_assert_eq(bads, 0, "%s is told twice", what);
}

/* Of another version of the agent: it is no damage, and said. */
Test(store, other_schema)
{
	_cleanup_free_ char *text = NULL;
	char *schema;
	size_t len;

	cr_assert_eq(sl_store_print(&text, &len, &entry), 0);
	schema = memmem(text, len, "\"schema\":1", 10);
	cr_assert_not_null(schema);
	schema[9] = '2';
	cr_expect_eq(sl_store_parse(&found, text, len, &err), -EBADMSG);
	cr_expect_str_eq(err.text, "another version of the agent wrote it (schema 2, here 1)");
}

/* Any byte that is cut off, or another than it was. */
Test(store, damaged)
{
	_cleanup_free_ char *text = NULL, *wrong = NULL;
	size_t len;

	cr_assert_eq(sl_store_print(&text, &len, &entry), 0);
	cr_assert_eq(sl_store_parse(&found, text, len, &err), 0, "%s", err.text);
	wrong = malloc(len);
	for (size_t i = 0; i < len; i++) {
		memcpy(wrong, text, len);
		wrong[i] ^= 1;
		cr_assert_eq(sl_store_parse(&found, wrong, len, &err), -EBADMSG, "byte %zu: %c", i,
			     wrong[i]);
		cr_assert_eq(sl_store_parse(&found, text, i, &err), -EBADMSG, "cut at %zu", i);
	}
	write_text(text, len / 2);
	check_set_aside("half a file");
	write_text("", 0);
	check_set_aside("an empty file");
	entry.session.record.key[0] ^= 1;
	free(TAKE_PTR(text));
	cr_assert_eq(sl_store_print(&text, &len, &entry), 0);
	write_text(text, len);
	check_set_aside("another's file");
	entry.session.record.key[0] ^= 1;
	entry.session.record.reason[0] = '\0';
	free(TAKE_PTR(text));
	cr_assert_eq(sl_store_print(&text, &len, &entry), 0);
	write_text(text, len);
	check_set_aside("an end without its reason");
}

Test(store, no_regular_file)
{
	_cleanup_free_ char *large = calloc(1, SL_STORE_FILE_MAX + 1);
	char other[300];

	cr_assert_eq(mkfifo(path, 0600), 0);
	check_set_aside("a fifo");
	cr_assert_eq(symlink("/dev/zero", path), 0);
	check_set_aside("a link to a device");
	save();
	snprintf(other, sizeof(other), "%s/other", dir);
	cr_assert_eq(rename(path, other), 0);
	cr_assert_eq(symlink(other, path), 0);
	check_set_aside("a link to a good file");
	write_text(large, SL_STORE_FILE_MAX + 1);
	check_set_aside("a large file");
	/* A directory takes no file's place: it is told of, and stays. */
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(load(), 0);
	cr_assert_eq(bads, 1);
	cr_assert_not_null(strstr(bad_err.hint, "can't be renamed"));
	cr_assert_eq(rmdir(path), 0);
}

Test(store, what_is_left_or_not_ours)
{
	static const char *const names[] = { "README", "x.json", "0123456789abcdef.json",
					     "0123456789abcdef0123456789abcdef.jsonx",
					     "0123456789abcdef0123456789abcdef.bad" };
	char other[512], mine[300];

	save();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(other, sizeof(other), "%s/%s", dir, names[i]);
		close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	snprintf(other, sizeof(other), "%s/0123456789abcdef0123456789abcdef.tmp", dir);
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	/* One of the same key is no hindrance. */
	snprintf(mine, sizeof(mine), "%.*s.tmp", (int)strlen(path) - 5, path);
	close(open(mine, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	save();
	close(open(mine, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
	cr_assert_eq(bads, 0);
	cr_assert_neq(access(mine, F_OK), 0);
	cr_assert_neq(access(other, F_OK), 0, "what a crash left");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(other, sizeof(other), "%s/%s", dir, names[i]);
		cr_assert_eq(access(other, F_OK), 0, "%s", names[i]);
	}
}

#define PIECE 300

static int code;
static unsigned int calls, fail_at; /* the call that fails */

static bool fails(void)
{
	errno = code;
	return ++calls == fail_at;
}

static ssize_t bad_write(int fd, const void *data, size_t size)
{
	/* In pieces, so that it fails with half a file there. */
	return fails() ? -1 : write(fd, data, size > PIECE ? PIECE : size);
}

static int bad_fsync(int fd)
{
	return fails() ? -1 : fsync(fd);
}

static int bad_renameat(int from, const char *name, int to, const char *other)
{
	return fails() ? -1 : renameat(from, name, to, other);
}

static const struct sl_store_ops bad_ops = { bad_write, bad_fsync, bad_renameat };

/* Each call that saving makes fails once; what was saved before stays until the rename. */
Test(store, full_disk_keeps_the_old)
{
	unsigned int kept = 0, failures = 0;
	_cleanup_free_ char *text = NULL;
	size_t len;
	static const int codes[] = { ENOSPC, EROFS, EIO, EDQUOT };

	save();
	entry.session.state = SL_RECORD_LIVE;
	open_store(&bad_ops);
	for (fail_at = 1;; fail_at++) {
		calls = 0;
		code = codes[fail_at % ARRAY_SIZE(codes)];
		if (!sl_store_save(store, &entry, &err))
			break;
		failures++;
		cr_assert_eq(err.code, code);
		cr_assert_not_null(strstr(err.text, dir));
		cr_assert_not_null(strstr(err.text, strerror(code)));
		cr_assert_eq(err.hint[0] != '\0', code != EIO);
		cr_assert_eq(files(".tmp"), 0);
		fail_at = fail_at + 1000;
		cr_assert_eq(load(), 0);
		fail_at -= 1000;
		cr_assert_eq(entries, 1);
		cr_assert_eq(bads, 0);
		kept += found.session.state == SL_RECORD_ENDED;
	}
	cr_assert_eq(sl_store_print(&text, &len, &entry), 0);
	cr_assert_eq(kept, (len + PIECE - 1) / PIECE + 2, "writes, fsync, rename");
	cr_assert_eq(failures, kept + 1, "only the directory's fsync comes after the rename");
}

/* What was reserved is written in place of what there is no room for, as often as it takes. */
Test(store, full_disk_has_its_room)
{
	const uint8_t *key = entry.session.record.key;

	cr_assert_eq(sl_store_reserve(store, key, &err), 0, "%s", err.text);
	save();
	open_store(&bad_ops);
	code = ENOSPC;
	for (int i = 0; i < 3; i++) {
		entry.session.epoch--;
		calls = 0;
		fail_at = 1;
		save();
		fail_at = 0;
		cr_assert_eq(load(), 0);
		cr_assert_eq(entries, 1);
		cr_assert_eq(bads, 0);
		session_same(&found, &entry);
		cr_assert_eq(files(".room"), 1);
		cr_assert_eq(files(".tmp"), 0);
	}
	cr_assert_eq(sl_store_remove(store, key, &err), 0);
	cr_assert_eq(files(".room"), 0);
	/* Of one that has come to nothing. */
	cr_assert_eq(sl_store_reserve(store, key, &err), 0, "%s", err.text);
	cr_assert_eq(load(), 0);
	cr_assert_eq(files(".room"), 0);
}

/* The room is what the session was before, which may have been longer. */
Test(store, room_that_is_longer)
{
	char room[PATH_MAX + 8];

	cr_assert_eq(sl_store_reserve(store, entry.session.record.key, &err), 0, "%s", err.text);
	save();
	snprintf(room, sizeof(room), "%.*s.room", (int)(strrchr(path, '.') - path), path);
	cr_assert_eq(truncate(room, SL_STORE_ROOM + 1000), 0);
	open_store(&bad_ops);
	code = ENOSPC;
	entry.session.epoch--;
	calls = 0;
	fail_at = 1;
	save();
	fail_at = 0;
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
	cr_assert_eq(bads, 0);
	session_same(&found, &entry);
}

Test(store, interrupted_write_goes_on)
{
	open_store(&bad_ops);
	code = EINTR;
	fail_at = 1;
	save();
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
}

Test(store, no_descriptor_is_no_damage)
{
	struct rlimit before;
	int next = dup(STDERR_FILENO);

	close(next);
	save();
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before.rlim_max }), 0);
	cr_assert_eq(sl_store_save(store, &entry, &err), -EMFILE);
	cr_assert_not_null(strstr(err.hint, "open files"));
	cr_assert_eq(load(), -EMFILE);
	/* And with one left, so that the directory can be read. */
	cr_assert_eq(
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){ (rlim_t)next + 1, before.rlim_max }), 0);
	cr_assert_eq(load(), -EMFILE);
	cr_assert_not_null(strstr(err.text, path));
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_assert_eq(bads, 0);
	cr_assert_eq(load(), 0);
	cr_assert_eq(entries, 1);
}

Test(store, directory_for_nobody_else)
{
	struct sl_store *other = NULL;
	char below[300];
	struct stat st;

	snprintf(below, sizeof(below), "%s/none/state", dir);
	cr_assert_eq(sl_store_open(&other, below, NULL, &err), -ENOENT);
	snprintf(below, sizeof(below), "%s/state", dir);
	cr_assert_eq(sl_store_open(&other, below, NULL, &err), 0);
	sl_store_free(&other);
	cr_assert_eq(stat(below, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0700);
	cr_assert_eq(chmod(below, 0750), 0);
	cr_assert_eq(sl_store_open(&other, below, NULL, &err), -EPERM);
	cr_assert_not_null(strstr(err.hint, "0700"));
	cr_assert_eq(rmdir(below), 0);
	cr_assert_eq(symlink(dir, below), 0);
	cr_assert_eq(sl_store_open(&other, below, NULL, &err), -ENOTDIR);
	cr_assert_null(other);
}
