// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "oci/state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/wire.h"

#define FD_NAME "seccompFd"

static void put_json(struct json_object **json)
{
	json_object_put(*json);
}

static int bad(struct sl_err *err, const char *what)
{
	return sl_err_set(err, EBADMSG, "what the runtime says of the container: %s", what);
}

static bool is_name(const char *text, const char *more)
{
	if (!isascii(*text) || !isalnum((unsigned char)*text))
		return false;
	for (; *text; text++) {
		if (!isascii(*text) || (!isalnum((unsigned char)*text) && !strchr(more, *text)))
			return false;
	}
	return true;
}

static bool read_name(char *out, size_t size, struct json_object *value, const char *more)
{
	const char *text = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);

	if (!json_object_is_type(value, json_type_string) || len >= size || strlen(text) != len ||
	    !is_name(text, more))
		return false;
	memcpy(out, text, len + 1);
	return true;
}

static bool read_pid(pid_t *out, struct json_object *json, bool needed)
{
	struct json_object *value;
	int64_t pid;

	if (!json_object_object_get_ex(json, "pid", &value))
		return !needed;
	pid = json_object_get_int64(value);
	if (!json_object_is_type(value, json_type_int) || pid < needed || pid > INT_MAX)
		return false;
	*out = (pid_t)pid;
	return true;
}

static int read_state(struct sl_oci_state *out, struct json_object *json, struct sl_err *err)
{
	struct sl_oci_state state = { .pid = 0 };
	struct json_object *value, *annotations;

	if (!json_object_object_get_ex(json, "id", &value) ||
	    !read_name(state.id, sizeof(state.id), value, "._+-"))
		return bad(err, "its id is missing, or no id");
	if (!read_pid(&state.pid, json, false))
		return bad(err, "its pid is no pid");
	if (json_object_object_get_ex(json, "status", &value)) {
		if (!json_object_is_type(value, json_type_string))
			return bad(err, "its status is none");
		state.running = !strcmp(json_object_get_string(value), "running");
	}
	if (json_object_object_get_ex(json, "annotations", &annotations) && annotations) {
		if (!json_object_is_type(annotations, json_type_object))
			return bad(err, "its annotations are none");
		if (json_object_object_get_ex(annotations, SL_OCI_ANNOTATION, &value) &&
		    !read_name(state.policy, sizeof(state.policy), value, "._-"))
			return bad(err, "the annotation " SL_OCI_ANNOTATION " names no policy");
	}
	*out = state;
	return 0;
}

static int parse(struct json_object **json, const char *text, size_t len, struct sl_err *err)
{
	int ret;

	/* A pipe's writer may end it with a line. */
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	ret = len > SL_OCI_STATE_MAX ? -EBADMSG : sl_wire_parse(json, text, len);
	if (ret == -EBADMSG)
		return bad(err, "it is no JSON object, or too large");
	return ret ? sl_err_sys(err, -ret, "can't read what the runtime says") : 0;
}

int sl_oci_state_parse(struct sl_oci_state *out, const char *text, size_t len, struct sl_err *err)
{
	_cleanup_(put_json) struct json_object *json = NULL;
	int ret = parse(&json, text, len, err);

	return ret ?: read_state(out, json, err);
}

/* Which of the descriptors is the listener, by their names. */
static int find_listener(unsigned int *out, struct json_object *json, unsigned int fds)
{
	struct json_object *names;
	size_t count;

	if (!json_object_object_get_ex(json, "fds", &names) ||
	    !json_object_is_type(names, json_type_array))
		return -EBADMSG;
	count = json_object_array_length(names);
	for (size_t i = 0; i < count && i < fds; i++) {
		struct json_object *name = json_object_array_get_idx(names, i);

		if (!json_object_is_type(name, json_type_string) ||
		    strcmp(json_object_get_string(name), FD_NAME) != 0)
			continue;
		*out = (unsigned int)i;
		return 0;
	}
	return -EBADMSG;
}

int sl_oci_process_parse(struct sl_oci_process *out, const char *text, size_t len, unsigned int fds,
			 struct sl_err *err)
{
	_cleanup_(put_json) struct json_object *json = NULL;
	struct sl_oci_process process = { .pid = 0 };
	struct json_object *state, *metadata;
	int ret = parse(&json, text, len, err);

	if (ret)
		return ret;
	if (!json_object_object_get_ex(json, "state", &state) ||
	    !json_object_is_type(state, json_type_object))
		return bad(err, "there is no state");
	ret = read_state(&process.container, state, err);
	if (ret)
		return ret;
	if (!read_pid(&process.pid, json, true))
		return bad(err, "the process has no pid");
	if (find_listener(&process.listener, json, fds))
		return bad(err, "no " FD_NAME " came along");
	strcpy(process.policy, process.container.policy);
	if (json_object_object_get_ex(json, "metadata", &metadata) &&
	    json_object_get_string_len(metadata) &&
	    !read_name(process.policy, sizeof(process.policy), metadata, "._-"))
		return bad(err, "the profile's listenerMetadata names no policy");
	if (!process.policy[0]) {
		bad(err, "no policy is named");
		return sl_err_hint(err, "name one by the annotation " SL_OCI_ANNOTATION
					", or in the profile's listenerMetadata");
	}
	*out = process;
	return 0;
}

static int read_all(char **text, int fd, size_t size)
{
	_cleanup_free_ char *data = malloc(size + 1);
	size_t used = 0;
	ssize_t n;

	if (!data)
		return -ENOMEM;
	while (used < size && (n = read(fd, data + used, size - used))) {
		if (n < 0 && errno != EINTR)
			return -errno;
		used += n > 0 ? (size_t)n : 0;
	}
	if (memchr(data, '\0', used))
		return -EBADMSG;
	data[used] = '\0';
	*text = TAKE_PTR(data);
	return 0;
}

int sl_oci_policy_read(char **text, char *path, size_t size, const char *dir, const char *name,
		       struct sl_err *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat st;
	int ret;

	if (!is_name(name, "._-"))
		return sl_err_set(err, EINVAL, "that is no name of a policy");
	if (snprintf(path, size, "%s/%s.yaml", dir, name) >= (int)size)
		return sl_err_set(err, ENAMETOOLONG, "the path of the policy '%s' is too long",
				  name);
	/* What is no file is not waited for. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		ret = sl_err_sys(err, errno, "policy '%s'", path);
		return ret == -ENOENT ? sl_err_hint(err, "put it there, or name another one") : ret;
	}
	if (fstat(fd, &st))
		return sl_err_sys(err, errno, "policy '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_size > SL_OCI_STATE_MAX)
		return sl_err_set(err, EINVAL, "policy '%s': not a file, or one above %u bytes",
				  path, SL_OCI_STATE_MAX);
	ret = read_all(text, fd, (size_t)st.st_size);
	return ret ? sl_err_sys(err, -ret, "policy '%s'", path) : 0;
}
