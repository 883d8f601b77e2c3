/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parts of the reader of policies: values, endpoints, entries. Private to load*.c. */
#ifndef SLUICE_USER_POLICY_LOAD_H
#define SLUICE_USER_POLICY_LOAD_H

#include "base/arena.h"
#include "base/array.h"
#include "policy/yaml.h"

struct sl_loader {
	struct sl_yaml_source source;
	struct sl_policy *policy;
	struct sl_arena *arena; /* the policy's */
	struct sl_yaml *yaml;
	struct sl_array notes; /* struct sl_policy_note */
	bool inspects;         /* somebody looks into requests */
	bool relayed;          /* names have addresses that no host has */
};

/* A key that a mapping may have. */
struct sl_load_key {
	const char *name;
	const char *refused; /* why it can't be had; NULL: it can */
	bool inspected;      /* it can all the same, where somebody looks into requests */
	const char *notice;  /* why it is left alone; NULL: it is read */
};

/* At most this many keys in one table. */
#define SL_LOAD_KEYS_MAX 32

/* Whether the key can't be had as things are. */
bool sl_load_refused(const struct sl_loader *loader, const struct sl_load_key *key);

/*
 * Reads a mapping: values[i] becomes the value of keys[i] (which end with { 0 }), or NULL. Refuses
 * unknown and double keys; `what` is what messages call the mapping.
 */
int sl_load_map(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		const struct sl_load_key *keys, const struct sl_yaml_node **values);

/* The same of a mapping with keys of its own choice: checks that it is one. */
int sl_load_is_map(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what);

/*
 * Calls `item` with a new element of `array` for each item of a list; then the elements are
 * in the policy's arena: *out and *count.
 */
typedef int (*sl_load_item)(struct sl_loader *loader, const struct sl_yaml_node *node,
			    void *element);
int sl_load_list(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 size_t max, size_t size, sl_load_item item, const void **out, size_t *count);

/* Text of at least one byte, as the file has it; belongs to the tree. */
int sl_load_text(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 const char **out);
/* NULL for `node` leaves *out alone, in both. */
int sl_load_bool(struct sl_loader *loader, const struct sl_yaml_node *node, bool *out);
int sl_load_word(struct sl_loader *loader, const struct sl_yaml_node *node, const char *what,
		 const char *const *words, size_t count, unsigned int *out);

/* A copy in the policy's arena. */
int sl_load_keep(struct sl_loader *loader, const char *text, const char **out);

int sl_load_no_memory(struct sl_loader *loader);

int sl_load_note(struct sl_loader *loader, enum sl_note_kind kind, struct sl_position at,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* `port` or `ports`, one of which must be there; `node` is the mapping. */
int sl_load_ports(struct sl_loader *loader, const struct sl_yaml_node *node,
		  const struct sl_yaml_node *port, const struct sl_yaml_node *ports,
		  struct sl_ports *out);

/* Elements for sl_load_list(). */
int sl_load_endpoint(struct sl_loader *loader, const struct sl_yaml_node *node, void *element);
int sl_load_listen(struct sl_loader *loader, const struct sl_yaml_node *node, void *element);
int sl_load_binary(struct sl_loader *loader, const struct sl_yaml_node *node, void *element);

/* One entry; `key` is its key's node. */
int sl_load_entry(struct sl_loader *loader, const struct sl_yaml_node *key,
		  const struct sl_yaml_node *node, struct sl_policy_entry *entry);

#endif
