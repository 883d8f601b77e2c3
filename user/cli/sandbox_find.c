/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/sandbox_find.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/cgroup.h"

struct search {
	unsigned int id;              /* 0: by cgroup */
	const char *cgroup;           /* below the mount, as recorded */
	unsigned long long cgroup_id; /* of the live directory; 0 for none */
	struct sl_sandbox *out;
};

static int match(const struct sl_sandbox *sandbox, void *arg)
{
	struct search *search = arg;
	bool found;

	if (search->id)
		found = sandbox->id == search->id;
	else
		found = !strncmp(sandbox->cgroup, search->cgroup, sizeof(sandbox->cgroup)) ||
			(search->cgroup_id && sandbox->cgroup_id == search->cgroup_id);
	if (found)
		*search->out = *sandbox;
	return found;
}

static unsigned long long live_id(const char *word)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id = 0;
	char path[PATH_MAX];

	if (!sl_cgroup_resolve(path, sizeof(path), word, NULL) && !sl_cgroup_open(&fd, path, NULL))
		(void)sl_cgroup_id(&id, fd);
	return id;
}

/* The word in the form in which the record has it: no mount point, no slash at its end. */
static int as_recorded(char out[PATH_MAX], const char *word)
{
	char mount[PATH_MAX];
	size_t len;

	if (word[0] == '/' && !sl_cgroup_mount(mount, sizeof(mount), NULL))
		word = sl_cgroup_relative(word, mount);
	if (snprintf(out, PATH_MAX, "%s%s", word[0] == '/' ? "" : "/", word) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (len = strlen(out); len > 1 && out[len - 1] == '/'; len--)
		out[len - 1] = '\0';
	return 0;
}

static int find_cgroup(struct sl_query *query, const char *word, struct sl_sandbox *out)
{
	char cgroup[PATH_MAX];
	struct search search = { .cgroup = cgroup, .cgroup_id = live_id(word), .out = out };
	int rc = as_recorded(cgroup, word);

	if (rc)
		return rc;
	rc = sl_sandbox_each(query->set, match, &search);
	return rc > 0 ? 0 : rc < 0 ? rc : -ENOENT;
}

int sl_sandbox_find(struct sl_query *query, struct sl_cli *cli, const char *word,
		    struct sl_sandbox *out)
{
	struct search search = { .out = out };
	struct sl_sandbox found;
	int rc = sl_query_sandbox(query, cli, word, &search.id);

	if (rc == -ENOENT) {
		if (find_cgroup(query, word, &found))
			return rc; /* the error of the search by name says what there is */
		cli->err = (struct sl_err){ 0 };
		*out = found;
		return 0;
	}
	if (rc)
		return rc;
	rc = sl_sandbox_each(query->set, match, &search);
	if (rc < 0)
		return sl_err_sys(&cli->err, -rc, "reading the sandboxes of %s", cli->set_dir);
	/* Detached between the two looks. */
	return rc ? 0 : sl_err_set(&cli->err, ENOENT, "no sandbox '%s' any more", word);
}
