// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "oci/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/object.h"
#include "control/params.h"
#include "control/wire.h"

#define FILE_MAX (PATH_MAX + 2048) /* bytes; a path may be escaped, then it is refused */
#define NAME_LEN 32
#define TMP "new"

int sl_oci_keep_open(struct sl_oci_keep *out, const char *dir, struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return sl_err_sys(err, errno, "can't make '%s'", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st))
		return sl_err_sys(err, errno, "can't open '%s'", dir);
	if (st.st_uid != geteuid() || st.st_mode & 077) {
		sl_err_set(err, EPERM, "'%s' is not root's alone", dir);
		return sl_err_hint(err, "it keeps secrets: chown root, chmod 700");
	}
	/* Two would detach each other's containers. */
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		sl_err_sys(err, errno, "another `sluice oci serve` has '%s'", dir);
		return sl_err_hint(err, "give each a --state-dir of its own");
	}
	out->dir = TAKE_FD(fd);
	return 0;
}

void sl_oci_keep_close(struct sl_oci_keep *keep)
{
	sl_cleanup_fd(&keep->dir);
}

static void name_of(char name[NAME_LEN], const struct sl_oci_kept *kept)
{
	snprintf(name, NAME_LEN, "%" PRIu64, kept->cgroup_id);
}

static struct json_object *json_of(const struct sl_oci_kept *kept)
{
	struct json_object *json = json_object_new_object();
	char id[NAME_LEN];

	name_of(id, kept);
	if (json && !sl_json_add(json, "id", json_object_new_string(kept->id)) &&
	    !sl_json_add(json, "cgroup", json_object_new_string(kept->cgroup)) &&
	    !sl_json_add(json, "cgroup_id", json_object_new_string(id)) &&
	    !sl_json_add(json, "token", json_object_new_string(kept->token)))
		return json;
	json_object_put(json);
	return NULL;
}

static int write_new(const struct sl_oci_keep *keep, struct json_object *json)
{
	_cleanup_fd_ int fd =
		openat(keep->dir, TMP, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	return json_object_to_fd(fd, json, JSON_C_TO_STRING_PLAIN) ? -EIO : 0;
}

int sl_oci_keep_put(const struct sl_oci_keep *keep, const struct sl_oci_kept *kept,
		    struct sl_err *err)
{
	struct json_object *json = json_of(kept);
	char name[NAME_LEN];
	int ret = json ? write_new(keep, json) : -ENOMEM;

	json_object_put(json);
	name_of(name, kept);
	/* It need not outlive the host: what the kernel has is enough. */
	if (!ret && renameat(keep->dir, TMP, keep->dir, name))
		ret = -errno;
	return ret ? sl_err_sys(err, -ret, "can't keep what is known of container %s", kept->id)
		   : 0;
}

void sl_oci_keep_drop(const struct sl_oci_keep *keep, const struct sl_oci_kept *kept)
{
	char name[NAME_LEN];

	name_of(name, kept);
	if (unlinkat(keep->dir, name, 0) && errno != ENOENT)
		sl_log_error("container %s: can't remove its file: %s", kept->id, strerror(errno));
}

struct file {
	const char *id, *cgroup, *token;
	uint64_t cgroup_id;
};

static const struct sl_param params[] = {
	SL_PARAM(STRING, struct file, id, .max = SL_OCI_ID - 1),
	SL_PARAM(STRING, struct file, cgroup, .max = PATH_MAX - 1),
	SL_PARAM(STRING, struct file, token, .max = SL_OCI_TOKEN - 1),
	SL_PARAM(ID, struct file, cgroup_id),
	{ 0 },
};

static int parse(struct sl_oci_kept *out, const char *text, size_t len)
{
	uint8_t token[SL_OCI_TOKEN / 2];
	struct json_object *json;
	struct file file;
	const char *bad;
	int ret = sl_wire_parse(&json, text, len);

	if (ret)
		return ret;
	ret = sl_params_read(&file, params, json, &bad);
	if (!ret && file.token[0])
		ret = sl_hex_parse(file.token, token, sizeof(token));
	if (!ret) {
		*out = (struct sl_oci_kept){ .cgroup_id = file.cgroup_id };
		strcpy(out->id, file.id);
		strcpy(out->cgroup, file.cgroup);
		strcpy(out->token, file.token);
	}
	json_object_put(json);
	return ret;
}

static int read_one(struct sl_oci_kept *out, const struct sl_oci_keep *keep, const char *name)
{
	_cleanup_fd_ int fd = openat(keep->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	_cleanup_free_ char *text = malloc(FILE_MAX);
	char expected[NAME_LEN];
	ssize_t n;
	int ret;

	if (fd < 0)
		return -errno;
	if (!text)
		return -ENOMEM;
	n = read(fd, text, FILE_MAX);
	if (n < 0)
		return -errno;
	ret = parse(out, text, (size_t)n);
	if (ret)
		return ret;
	name_of(expected, out);
	return strcmp(expected, name) ? -EBADMSG : 0;
}

int sl_oci_keep_load(const struct sl_oci_keep *keep,
		     void (*fn)(void *ctx, const struct sl_oci_kept *kept), void *ctx,
		     struct sl_err *err)
{
	_cleanup_fd_ int fd = openat(keep->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_dir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct sl_oci_kept kept;
	struct dirent *entry;
	int ret;

	if (!dir)
		return sl_err_sys(err, errno, "can't read what is kept of containers");
	fd = -1;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		ret = read_one(&kept, keep, entry->d_name);
		if (!ret) {
			fn(ctx, &kept);
			continue;
		}
		/* Also one that was being written. */
		if (strcmp(entry->d_name, TMP) != 0)
			sl_log_error("a file of a container is of no use and is removed: %s",
				     strerror(-ret));
		unlinkat(keep->dir, entry->d_name, 0);
	}
	return 0;
}
