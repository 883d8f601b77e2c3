/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/query.h"
#include "cli/words.h"

int sl_query_open(struct sl_query *query, struct sl_cli *cli)
{
	struct sl_view_ops ops;
	int ret = sl_set_open(&query->set, cli->set_dir, &cli->err);

	if (ret) {
		if (!cli->err.code)
			sl_err_sys(&cli->err, -ret, "opening the set %s", cli->set_dir);
		if (ret == -ENOENT && !cli->err.hint[0])
			sl_err_hint(&cli->err,
				    "'sluice sandbox attach CGROUP' makes one, 'sluice run' has "
				    "its own; --set DIR names another");
		return ret;
	}
	ops = sl_view_ops_of_set(query->set);
	ret = sl_view_source_new(&query->source, &ops);
	return ret ? sl_err_sys(&cli->err, -ret, "tables") : 0;
}

void sl_query_close(struct sl_query *query)
{
	sl_view_source_free(&query->source);
	sl_set_free(&query->set);
}

/* What a word may name: the sandbox of that id, and those of that name. */
struct sandbox_search {
	const char *word;
	unsigned int id; /* UINT32_MAX: the word is no number */
	bool by_id;
	unsigned int found;
	unsigned int matches;
	struct sl_words known;
};

static int match_sandbox(const struct sl_sandbox *sandbox, void *arg)
{
	struct sandbox_search *search = arg;
	char name[SL_SANDBOX_NAME_MAX + 1] = "";

	memcpy(name, sandbox->name, SL_SANDBOX_NAME_MAX);
	sl_words_add(&search->known, name);
	if (sandbox->id == search->id) {
		search->by_id = true;
		return 0;
	}
	if (!strcmp(name, search->word)) {
		search->found = sandbox->id;
		search->matches++;
	}
	return 0;
}

int sl_query_sandbox(struct sl_query *query, struct sl_cli *cli, const char *word, unsigned int *id)
{
	struct sandbox_search search = { .word = word, .id = UINT32_MAX };
	int ret;

	*id = 0;
	if (!word)
		return 0;
	(void)sl_parse_u32(word, 1, SL_SANDBOX_MAX - 1, &search.id);
	ret = sl_sandbox_each(query->set, match_sandbox, &search);
	if (ret)
		return sl_err_sys(&cli->err, -ret, "reading the sandboxes of %s", cli->set_dir);
	if (search.by_id || search.matches == 1) {
		*id = search.by_id ? search.id : search.found;
		return 0;
	}
	if (search.matches > 1) {
		sl_err_set(&cli->err, ENOTUNIQ, "%u sandboxes are named '%s'", search.matches,
			   word);
		return sl_err_hint(&cli->err, "name it by its id: 'sluice sandbox list'");
	}
	sl_err_set(&cli->err, ENOENT, "no sandbox '%s' in %s", word, cli->set_dir);
	if (search.known.used)
		return sl_err_hint(&cli->err, "there are: %s", search.known.text);
	return sl_err_hint(&cli->err, "there are none; 'sluice sandbox attach' makes one");
}

/* A process that runs an executable gives access to its file when its name is gone. */
struct runner {
	unsigned int exe;
	unsigned int pid;
};

static int find_runner(const struct sl_process *process, void *arg)
{
	struct runner *runner = arg;

	if (process->exe != runner->exe)
		return 0;
	runner->pid = process->key.tgid;
	return 1;
}

void sl_query_digest(struct sl_query *query, unsigned int exe_id, unsigned int pid,
		     struct sl_digest *out)
{
	struct runner runner = { .exe = exe_id, .pid = pid };
	struct sl_exe exe;

	*out = (struct sl_digest){ .error = SL_DIGEST_GONE };
	if (sl_exe_by_id(query->set, exe_id, &exe))
		return;
	if (!pid)
		(void)sl_procs_each(query->set, find_runner, &runner);
	if (sl_digest_now(&exe, (int)runner.pid, out))
		*out = (struct sl_digest){ .error = SL_DIGEST_UNREADABLE };
}

static int digest_now(unsigned int exe_id, struct sl_digest *out, void *arg)
{
	sl_query_digest(arg, exe_id, 0, out);
	return 0;
}

void sl_query_digests(struct sl_query *query)
{
	sl_view_source_digests(query->source, digest_now, query);
}

int sl_query_print(struct sl_cli *cli, const struct sl_field *fields,
		   const struct sl_array *records)
{
	const struct sl_records all = {
		.data = records->data,
		.count = records->count,
		.stride = records->item,
	};
	int ret = sl_print_list(&cli->output, fields, &all);

	return ret ? sl_err_sys(&cli->err, -ret, "printing") : 0;
}

void sl_fields_join(struct sl_field *dst, size_t max, const struct sl_field *fields,
		    const struct sl_field *more)
{
	size_t count = 0;

	for (; fields->type && count + 1 < max; fields++)
		dst[count++] = *fields;
	for (; more->type && count + 1 < max; more++)
		dst[count++] = *more;
	dst[count] = (struct sl_field){ 0 };
}
