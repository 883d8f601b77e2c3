/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/htab.h"
#include "identity/lineage_table.h"
#include "kernel/name.h"
#include "socket/source.h"

struct exe_row {
	struct sl_view_exe view;
	char path[];
};

struct lineage_row {
	struct sl_view_lineage view;
	const char *paths[]; /* their text follows the last */
};

struct sandbox_row {
	char name[SL_SANDBOX_NAME_MAX + 1]; /* "": there is none */
};

struct sl_view_source {
	struct sl_view_ops ops;
	struct sl_exe_table *exe_table;
	struct sl_lineage_table *lineage_table;
	struct sl_htab *exes;      /* __u32 -> struct exe_row * */
	struct sl_htab *lineages;  /* __u32 -> struct lineage_row * */
	struct sl_htab *sandboxes; /* __u32 -> struct sandbox_row * */
	sl_view_digest_fn digest;
	void *digest_arg;
	struct sl_htab *names; /* __u32 -> char * */
	struct sl_htab *rules; /* struct sl_guard_rule_key -> struct sl_guard_rule * */
};

static const char *const exe_flag_words[] = {
	"memfd", "deleted", "detached", "truncated", "outside", "script", "unstable",
};

/* One description for both tables: LIST(text) is a column in lists of executables only. */
/* It would indent what follows the first comma. */
/* clang-format off */
#define EXE_FIELDS(LIST, PATH_TITLE)								\
	SL_FIELD_ID(struct sl_view_exe, id, LIST("ID")),					\
	SL_FIELD_STRING(struct sl_view_exe, dev, LIST("DEV"), .flags = SL_FIELD_OPTIONAL),	\
	SL_FIELD_UINT(struct sl_view_exe, ino, LIST("INO")),					\
	SL_FIELD_BYTES(struct sl_view_exe, size, LIST("SIZE")),					\
	SL_FIELD_FLAGS(struct sl_view_exe, flags, LIST("FLAGS"), exe_flag_words),		\
	SL_FIELD_AS(TIME, struct sl_view_exe, seen_ns, "seen", NULL),				\
	SL_FIELD_TEXT(struct sl_view_exe, path, PATH_TITLE, .flags = SL_FIELD_ELIDE),		\
	SL_FIELD_TEXT(struct sl_view_exe, global_path, NULL),					\
	SL_FIELD_STRING(struct sl_view_exe, sha256, NULL, .flags = SL_FIELD_NULL),		\
	SL_FIELD_TEXT(struct sl_view_exe, sha256_error, NULL)
/* clang-format on */

#define COLUMN(text) text
#define NO_COLUMN(text) NULL

const struct sl_field sl_view_exe_fields[] = {
	EXE_FIELDS(NO_COLUMN, "EXE"),
	{ 0 },
};

const struct sl_field sl_view_exe_list_fields[] = {
	EXE_FIELDS(COLUMN, "PATH"),
	{ 0 },
};

static int set_sandbox_name(void *ctx, unsigned int id, char name[SL_SANDBOX_NAME_MAX])
{
	int fd = sl_set_map_fd(ctx, SL_MAP_SANDBOXES);
	struct sl_sandbox sandbox;
	__u32 key = id;

	if (bpf_map_lookup_elem(fd, &key, &sandbox))
		return -errno;
	memcpy(name, sandbox.name, SL_SANDBOX_NAME_MAX);
	return 0;
}

static int set_sock_more(void *ctx, const struct sl_sock *sock, struct sl_sock_more *out)
{
	return sl_sock_more_read(ctx, sock, out);
}

static int set_rule(void *ctx, const struct sl_decision_record *decision, struct sl_guard_rule *out)
{
	return sl_decision_rule(ctx, decision, out);
}

static int set_file(void *ctx, unsigned int policy, unsigned int exe, struct sl_guard_grant *out)
{
	_cleanup_free_ struct sl_exe *row = malloc(sizeof(*row));
	int ret = row ? sl_exe_by_id(ctx, exe, row) : -ENOMEM;

	return ret ? ret : sl_file_by_exe(ctx, policy, row, out);
}

static int set_name(void *ctx, unsigned int id, struct sl_name *out)
{
	return sl_name_read(ctx, id, out);
}

struct sl_view_ops sl_view_ops_of_set(struct sl_set *set)
{
	return (struct sl_view_ops){
		.identity = sl_identity_ops_of_set(set),
		.sandbox_name = set_sandbox_name,
		.sock_more = set_sock_more,
		.rule = set_rule,
		.file = set_file,
		.name = set_name,
		.ctx = set,
	};
}

/* Frees the rows a table of pointers holds. */
static void drop_rows(struct sl_htab *tab)
{
	void *value;

	for (size_t at = 0; tab && sl_htab_next(tab, &at, NULL, &value);)
		free(*(void **)value);
}

static void free_rows(struct sl_htab **tab)
{
	drop_rows(*tab);
	sl_htab_free(tab);
}

void sl_view_source_free(struct sl_view_source **source)
{
	struct sl_view_source *s = *source;

	if (!s)
		return;
	free_rows(&s->exes);
	free_rows(&s->lineages);
	free_rows(&s->sandboxes);
	free_rows(&s->names);
	free_rows(&s->rules);
	sl_lineage_table_free(&s->lineage_table);
	sl_exe_table_free(&s->exe_table);
	free(s);
	*source = NULL;
}

int sl_view_source_new(struct sl_view_source **out, const struct sl_view_ops *ops)
{
	_cleanup_(sl_view_source_free) struct sl_view_source *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	ret = sl_exe_table_new(&s->exe_table, &ops->identity, 0);
	if (!ret)
		ret = sl_lineage_table_new(&s->lineage_table, &ops->identity, s->exe_table, 0);
	if (!ret)
		ret = sl_htab_new(&s->exes, sizeof(__u32), sizeof(void *));
	if (!ret)
		ret = sl_htab_new(&s->lineages, sizeof(__u32), sizeof(void *));
	if (!ret)
		ret = sl_htab_new(&s->sandboxes, sizeof(__u32), sizeof(void *));
	if (!ret)
		ret = sl_htab_new(&s->names, sizeof(__u32), sizeof(void *));
	if (!ret)
		ret = sl_htab_new(&s->rules, sizeof(struct sl_guard_rule_key), sizeof(void *));
	if (ret)
		return ret;
	*out = TAKE_PTR(s);
	return 0;
}

void sl_view_source_digests(struct sl_view_source *source, sl_view_digest_fn fn, void *arg)
{
	source->digest = fn;
	source->digest_arg = arg;
}

/* A class of a policy keeps its entry, so what was read once stays. */
const char *sl_view_source_rule(struct sl_view_source *source,
				const struct sl_decision_record *decision)
{
	const struct sl_guard_rule_key key = { decision->key.policy, decision->class_id };
	struct sl_guard_rule **slot = sl_htab_get(source->rules, &key), *rule;

	if (slot)
		return (*slot)->key;
	if (!source->ops.rule)
		return NULL;
	rule = calloc(1, sizeof(*rule));
	if (rule && !source->ops.rule(source->ops.ctx, decision, rule))
		slot = sl_htab_add(source->rules, &key, NULL);
	if (!slot) {
		free(rule);
		return NULL;
	}
	*slot = rule;
	return rule->key;
}

static void trim_rows(struct sl_htab **tab, size_t key_size)
{
	struct sl_htab *empty = NULL;

	if (sl_htab_count(*tab) <= SL_VIEW_ROWS_MAX)
		return;
	/* Without memory for an empty table the full one stays: it is tried again later. */
	if (sl_htab_new(&empty, key_size, sizeof(void *)))
		return;
	free_rows(tab);
	*tab = empty;
}

void sl_view_source_trim(struct sl_view_source *source)
{
	trim_rows(&source->exes, sizeof(__u32));
	trim_rows(&source->lineages, sizeof(__u32));
	trim_rows(&source->names, sizeof(__u32));
	trim_rows(&source->rules, sizeof(struct sl_guard_rule_key));
}

static void *find_row(const struct sl_htab *tab, __u32 id)
{
	void **slot = sl_htab_get(tab, &id);

	return slot ? *slot : NULL;
}

/* Takes over `row` on success. */
static int add_row(struct sl_htab *tab, __u32 id, void *row)
{
	void **slot = sl_htab_add(tab, &id, NULL);

	if (!slot)
		return -ENOMEM;
	*slot = row;
	return 0;
}

/* An id stands for one name for ever. */
const char *sl_view_source_name(struct sl_view_source *source, unsigned int id)
{
	char *text = id ? find_row(source->names, id) : NULL;
	struct sl_name name;

	if (text || !id || !source->ops.name || source->ops.name(source->ops.ctx, id, &name))
		return text;
	text = strndup(name.text, sizeof(name.text) - 1);
	if (!text || !add_row(source->names, id, text))
		return text;
	free(text);
	return NULL;
}

static void fill_key(struct sl_view_exe *view, const struct sl_exe_key *key)
{
	view->ino = key->ino;
	view->flags = key->flags;
	/* A script's name is a label: there is no file that was opened. */
	if (!(key->flags & SL_EXE_SCRIPT))
		sl_format_dev(view->dev, sizeof(view->dev), key->dev);
}

void sl_view_exe_fill(struct sl_view_exe *view, const struct sl_exe *exe)
{
	unsigned int root_off = exe->root_off <= exe->path_len ? exe->root_off : 0;

	*view = (struct sl_view_exe){
		.path = exe->path + root_off,
		.global_path = root_off ? exe->path : NULL,
		.size = exe->size,
		.seen_ns = exe->seen_ns,
		.id = exe->id,
	};
	fill_key(view, &exe->key);
}

void sl_view_exe_digest(struct sl_view_exe *view, const struct sl_digest *digest)
{
	view->sha256[0] = '\0';
	view->sha256_error = NULL;
	if (digest->error == SL_DIGEST_NONE)
		sl_digest_hex(digest, view->sha256);
	else
		view->sha256_error = sl_digest_error_name(digest->error);
}

/* A digest that is known stays; anything else may have become known. */
static void refresh_digest(struct sl_view_source *source, struct sl_view_exe *view)
{
	struct sl_digest digest;

	if (!source->digest || view->sha256[0] || (view->flags & SL_EXE_SCRIPT))
		return;
	if (!source->digest(view->id, &digest, source->digest_arg))
		sl_view_exe_digest(view, &digest);
}

static int load_exe(struct sl_view_source *source, unsigned int id, struct exe_row **out)
{
	_cleanup_free_ struct exe_row *row = NULL;
	const struct sl_exe_row *from;
	int ret = sl_exe_table_get(source->exe_table, id, &from);

	if (ret)
		return ret;
	row = calloc(1, sizeof(*row) + from->path_len + 1);
	if (!row)
		return -ENOMEM;
	memcpy(row->path, from->path, from->path_len);
	row->view = (struct sl_view_exe){
		.path = row->path + from->root_off,
		.global_path = from->root_off ? row->path : NULL,
		.size = from->size,
		.seen_ns = from->seen_ns,
		.id = id,
	};
	fill_key(&row->view, &from->key);
	ret = add_row(source->exes, id, row);
	if (ret)
		return ret;
	*out = TAKE_PTR(row);
	return 0;
}

int sl_view_source_exe(struct sl_view_source *source, unsigned int id,
		       const struct sl_view_exe **out)
{
	struct exe_row *row = id ? find_row(source->exes, id) : NULL;
	int ret;

	*out = NULL;
	if (!row && id) {
		ret = load_exe(source, id, &row);
		if (ret)
			return ret == -ENOMEM ? ret : 0;
	}
	if (!row)
		return 0;
	refresh_digest(source, &row->view);
	*out = &row->view;
	return 0;
}

/* The path that names an image; a missing row keeps its place. */
static const char *image_path(const struct sl_image *image)
{
	return image->exe ? sl_exe_row_path(image->exe) : "?";
}

static struct lineage_row *lineage_row_new(const struct sl_chain *chain)
{
	unsigned int count = chain->count > 1 ? chain->count - 1 : 0;
	size_t bytes = sizeof(struct lineage_row) + count * sizeof(char *);
	struct lineage_row *row;
	char *text;

	for (unsigned int i = 0; i < count; i++)
		bytes += strlen(image_path(&chain->images[i + 1])) + 1;
	row = calloc(1, bytes);
	if (!row)
		return NULL;
	text = (char *)(row->paths + count);
	for (unsigned int i = 0; i < count; i++) {
		const struct sl_image *image = &chain->images[i + 1];
		size_t len = strlen(image_path(image)) + 1;

		row->paths[i] = memcpy(text, image_path(image), len);
		row->view.outside += image->outside;
		text += len;
	}
	row->view.paths = (struct sl_strings){ .items = row->paths, .count = count };
	row->view.cut = chain->cut;
	return row;
}

int sl_view_source_lineage(struct sl_view_source *source, unsigned int id,
			   const struct sl_view_lineage **out)
{
	_cleanup_free_ struct lineage_row *row = NULL;
	struct lineage_row *known = find_row(source->lineages, id);
	struct sl_chain chain;
	int ret;

	*out = NULL;
	if (!known && id) {
		ret = sl_lineage_table_chain(source->lineage_table, id, &chain);
		if (ret)
			return ret == -ENOMEM ? ret : 0;
		row = lineage_row_new(&chain);
		if (!row || add_row(source->lineages, id, row))
			return -ENOMEM;
		known = TAKE_PTR(row);
	}
	if (known)
		*out = &known->view;
	return 0;
}

int sl_view_source_file(const struct sl_view_source *source,
			const struct sl_decision_record *decision, struct sl_guard_grant *out)
{
	if (!source->ops.file || !decision->owner.exe)
		return -ENOENT;
	return source->ops.file(source->ops.ctx, decision->key.policy, decision->owner.exe, out);
}

void sl_view_source_more(struct sl_view_source *source, const struct sl_sock *sock,
			 struct sl_sock_more *out)
{
	if (!(sock->flags & SL_SOCK_MORE) || source->ops.sock_more(source->ops.ctx, sock, out))
		memset(out, 0, sizeof(*out));
}

static struct sandbox_row *load_sandbox(struct sl_view_source *source, unsigned int id)
{
	_cleanup_free_ struct sandbox_row *row = calloc(1, sizeof(*row));

	if (!row)
		return NULL;
	if (source->ops.sandbox_name(source->ops.ctx, id, row->name))
		row->name[0] = '\0';
	return add_row(source->sandboxes, id, row) ? NULL : TAKE_PTR(row);
}

const char *sl_view_source_sandbox(struct sl_view_source *source, unsigned int id)
{
	struct sandbox_row *row = find_row(source->sandboxes, id);

	if (!row && id)
		row = load_sandbox(source, id);
	return row && row->name[0] ? row->name : NULL;
}

void sl_view_source_forget_sandbox(struct sl_view_source *source, unsigned int id)
{
	const void *key;
	void *value;

	/* The row stays where it is: only its text is read anew. */
	for (size_t at = 0; sl_htab_next(source->sandboxes, &at, &key, &value);) {
		struct sandbox_row *row = *(struct sandbox_row **)value;
		__u32 row_id = *(const __u32 *)key;

		if (id && row_id != id)
			continue;
		memset(row->name, 0, sizeof(row->name));
		if (source->ops.sandbox_name(source->ops.ctx, row_id, row->name))
			row->name[0] = '\0';
	}
}
