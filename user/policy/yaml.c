/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "policy/yaml_text.h"

#define BOM "\xef\xbb\xbf"

struct sl_yaml {
	struct sl_arena *arena;
	struct sl_array nodes; /* struct sl_yaml_node; [0] is no node, [1] the root */
};

/* A mapping or list that is being read. */
struct level {
	uint32_t node;
	uint32_t last; /* child, 0: none yet */
};

struct builder {
	struct sl_yaml *yaml;
	const struct sl_yaml_source *source;
	const char *text;
	size_t len;
	struct level levels[SL_POLICY_DEPTH_MAX];
	size_t depth;
	unsigned int documents;
};

void sl_yaml_free(struct sl_yaml **yaml)
{
	if (!yaml || !*yaml)
		return;
	sl_arena_free(&(*yaml)->arena);
	sl_array_free(&(*yaml)->nodes);
	free(*yaml);
	*yaml = NULL;
}

static struct sl_position position(const yaml_mark_t *mark)
{
	return (struct sl_position){ (uint32_t)mark->line + 1, (uint32_t)mark->column + 1 };
}

static int no_memory(const struct builder *b)
{
	return sl_err_sys(b->source->err, ENOMEM, "reading a policy");
}

/* Appends a node to the innermost mapping or list. */
static int add_node(struct builder *b, const yaml_event_t *event, enum sl_yaml_kind kind,
		    struct sl_yaml_node **out)
{
	struct sl_position at = position(&event->start_mark);
	struct sl_yaml_node *node;
	uint32_t index = (uint32_t)b->yaml->nodes.count;

	if (index > SL_POLICY_NODES_MAX)
		return sl_yaml_fail(b->source, E2BIG, at, NULL,
				    "more than %u values; a policy may have no more",
				    SL_POLICY_NODES_MAX);
	node = sl_array_add(&b->yaml->nodes);
	if (!node)
		return no_memory(b);
	node->kind = (uint8_t)kind;
	node->at = at;
	node->text = "";
	if (b->depth) {
		struct level *level = &b->levels[b->depth - 1];
		uint32_t *link;

		if (level->last)
			link = &((struct sl_yaml_node *)sl_array_at(&b->yaml->nodes, level->last))
					->next;
		else
			link = &((struct sl_yaml_node *)sl_array_at(&b->yaml->nodes, level->node))
					->first;
		*link = index;
		level->last = index;
	}
	*out = node;
	return 0;
}

static int set_text(struct builder *b, struct sl_yaml_node *node, const yaml_char_t *text,
		    size_t len)
{
	node->text = sl_arena_text(b->yaml->arena, (const char *)text, len);
	node->len = (uint32_t)len;
	if (!node->text)
		return no_memory(b);
	if (memchr(text, '\0', len))
		return sl_yaml_fail(b->source, EINVAL, node->at, node->text,
				    "text with a NUL (\\0) in it");
	return 0;
}

static int open_level(struct builder *b, const yaml_event_t *event, enum sl_yaml_kind kind,
		      const yaml_char_t *tag)
{
	struct sl_yaml_node *node = NULL;
	int ret = add_node(b, event, kind, &node);

	if (!node)
		return ret;
	node->tagged = tag != NULL;
	if (b->depth == SL_POLICY_DEPTH_MAX) {
		sl_yaml_fail(b->source, E2BIG, node->at, NULL,
			     "nested more than %u deep; a policy may not be", SL_POLICY_DEPTH_MAX);
		return sl_err_hint(b->source->err, "is a '[' or '{' before it not closed?");
	}
	b->levels[b->depth++] = (struct level){ .node = (uint32_t)b->yaml->nodes.count - 1 };
	return 0;
}

static int take_scalar(struct builder *b, const yaml_event_t *event)
{
	struct sl_yaml_node *node = NULL;
	int ret = add_node(b, event, SL_YAML_SCALAR, &node);

	if (!node)
		return ret;
	node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->tagged = event->data.scalar.tag != NULL;
	return set_text(b, node, event->data.scalar.value, event->data.scalar.length);
}

static int take_alias(struct builder *b, const yaml_event_t *event)
{
	struct sl_yaml_node *node = NULL;
	int ret = add_node(b, event, SL_YAML_ALIAS, &node);
	const char *name = (const char *)event->data.alias.anchor;

	return node ? set_text(b, node, event->data.alias.anchor, strlen(name)) : ret;
}

static int take_event(struct builder *b, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->documents++ == 0)
			return 0;
		sl_yaml_fail(b->source, EINVAL, position(&event->start_mark), NULL,
			     "a second document in the file");
		return sl_err_hint(b->source->err, "a policy is one document: remove the '---'");
	case YAML_SCALAR_EVENT:
		return take_scalar(b, event);
	case YAML_ALIAS_EVENT:
		return take_alias(b, event);
	case YAML_SEQUENCE_START_EVENT:
		return open_level(b, event, SL_YAML_LIST, event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return open_level(b, event, SL_YAML_MAP, event->data.mapping_start.tag);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

static int syntax_error(const struct builder *b, const yaml_parser_t *parser)
{
	struct sl_position at = position(&parser->problem_mark);
	const char *context = parser->context ? parser->context : "";
	char shown[64];

	if (parser->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	sl_yaml_text_at(shown, sizeof(shown), b->text, b->len, at);
	sl_yaml_fail(b->source, EINVAL, at, shown[0] ? shown : NULL, "not valid YAML: %s%s%s",
		     parser->problem ? parser->problem : "it can't be read", *context ? " " : "",
		     context);
	if (strstr(context, "alias"))
		return sl_err_hint(b->source->err, "text that begins with '*' must be quoted: "
						   "\"*.example.org\"");
	return sl_err_hint(b->source->err, "indent with blanks, not tabs; quote text that begins "
					   "with one of * & ! @ ` or has ': ' in it");
}

static int read_events(struct builder *b)
{
	yaml_parser_t parser;
	yaml_event_t event;
	bool end = false;
	int ret = 0;

	if (!yaml_parser_initialize(&parser))
		return no_memory(b);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&parser, (const unsigned char *)b->text, b->len);
	while (!ret && !end) {
		if (!yaml_parser_parse(&parser, &event)) {
			ret = syntax_error(b, &parser);
			break;
		}
		end = event.type == YAML_STREAM_END_EVENT;
		ret = take_event(b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	return ret;
}

static int check_size(const struct sl_yaml_source *source, size_t len)
{
	if (len <= SL_POLICY_FILE_MAX)
		return 0;
	sl_yaml_fail(source, E2BIG, (struct sl_position){ 1, 1 }, NULL,
		     "%zu bytes; a policy may have at most %u", len, SL_POLICY_FILE_MAX);
	return sl_err_hint(source->err, "use prefixes and wildcards instead of single entries");
}

int sl_yaml_parse(struct sl_yaml **out, const struct sl_yaml_source *source, const char *text,
		  size_t len)
{
	_cleanup_(sl_yaml_free) struct sl_yaml *yaml = NULL;
	struct builder b = { .source = source };
	int ret = check_size(source, len);

	if (ret)
		return ret;
	if (len >= strlen(BOM) && !memcmp(text, BOM, strlen(BOM))) {
		text += strlen(BOM);
		len -= strlen(BOM);
	}
	ret = sl_yaml_check_text(source, text, len);
	if (ret)
		return ret;
	yaml = calloc(1, sizeof(*yaml));
	b.yaml = yaml;
	if (!yaml)
		return no_memory(&b);
	yaml->nodes = (struct sl_array)SL_ARRAY(struct sl_yaml_node);
	if (sl_arena_new(&yaml->arena) || !sl_array_add(&yaml->nodes))
		return no_memory(&b);
	b.text = text;
	b.len = len;
	ret = read_events(&b);
	if (ret)
		return ret;
	if (yaml->nodes.count < 2) {
		sl_yaml_fail(source, EINVAL, (struct sl_position){ 1, 1 }, NULL,
			     "the file is empty");
		return sl_err_hint(source->err, "the smallest policy is \"version: 1\"; it denies "
						"all");
	}
	*out = TAKE_PTR(yaml);
	return 0;
}

const struct sl_yaml_node *sl_yaml_root(const struct sl_yaml *yaml)
{
	return sl_array_at(&yaml->nodes, 1);
}

const struct sl_yaml_node *sl_yaml_first(const struct sl_yaml *yaml,
					 const struct sl_yaml_node *node)
{
	return node->first ? sl_array_at(&yaml->nodes, node->first) : NULL;
}

const struct sl_yaml_node *sl_yaml_next(const struct sl_yaml *yaml, const struct sl_yaml_node *node)
{
	return node->next ? sl_array_at(&yaml->nodes, node->next) : NULL;
}
