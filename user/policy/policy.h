/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A policy as its file says it, checked and in normal form: the input of compile.h.
 *
 *	sl_policy_load_file(&policy, "policy.yaml", &err);
 *	sl_compiled_new(&compiled, policy, &err);	(borrows the policy)
 *	sl_compiled_free(&compiled);
 *	sl_policy_free(&policy);
 *
 * Everything in it is owned by the policy and constant after loading. An entry's index in
 * the file is its rule id.
 *
 * Loading is whole or not at all: the first fault ends it with
 * "FILE:LINE:COLUMN: what is wrong: 'offending text'" and a hint that says what is expected.
 * Lines and columns count from 1, columns in characters. What is accepted but worth
 * telling is a note. Input is UTF-8 YAML 1.1 of one document, without aliases and tags.
 *
 * Rules that are not obvious from the file
 * 1. A name's wildcard is its first label: "*.x.org" is one more label, "**.x.org" one or
 *    more; two labels at least must follow.
 * 2. IPv4 is kept IPv4-mapped; an IPv6 prefix never covers IPv4 addresses.
 * 3. A prefix that lies in a reserved range (addr.h) is refused, unless it is a `cidr` with
 *    allow_reserved. A wider prefix is taken, and leaves the reserved ranges out.
 * 4. An endpoint with allowed_ips and neither host nor cidr means these addresses, by any
 *    name or none (as in OpenShell).
 */
#ifndef SLUICE_USER_POLICY_H
#define SLUICE_USER_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sluice/policy.h>

#include "base/err.h"
#include "policy/addr.h"

/* Limits. A file that exceeds one is refused, and the message names the limit. */
#define SL_POLICY_FILE_MAX (8u << 20)  /* bytes */
#define SL_POLICY_DEPTH_MAX 32u        /* mappings and lists in one another */
#define SL_POLICY_NODES_MAX (2u << 20) /* values, keys, mappings and lists */
#define SL_POLICY_ENTRIES_MAX 131072u  /* network_policies */
#define SL_POLICY_PORTS_MAX 1024u      /* ports and ranges of one endpoint */
#define SL_POLICY_ALLOWED_MAX 1024u    /* allowed_ips of one endpoint */
#define SL_POLICY_PATH_MAX 4095u       /* bytes of a path or script (PATH_MAX) */
#define SL_POLICY_WILDCARDS_MAX 16u    /* * and ** in one path */
#define SL_POLICY_KEY_MAX 128u         /* bytes of an entry's key or name */
/* Notes beyond this are counted, not kept. */
#define SL_POLICY_NOTES_MAX 64u

enum sl_policy_mode { SL_POLICY_ENFORCE, SL_POLICY_AUDIT, SL_POLICY_MODE_MAX };

struct sl_position {
	uint32_t line, column;
};

/* Ports first to last, 1 to 65535. */
struct sl_port_range {
	uint16_t first, last;
};

/* Sorted, not overlapping, not adjacent. */
struct sl_ports {
	const struct sl_port_range *ranges;
	size_t count;
};

struct sl_prefixes {
	const struct sl_prefix *items; /* sorted, each once */
	size_t count;
};

enum sl_endpoint_kind {
	SL_ENDPOINT_NAME,    /* host */
	SL_ENDPOINT_ADDRESS, /* addresses: a cidr, an address as host, or rule 4 */
	SL_ENDPOINT_KIND_MAX
};

struct sl_policy_endpoint {
	enum sl_endpoint_kind kind;
	enum sl_transport transport;
	const char *host;             /* NAME: normal form, wildcard included; else NULL */
	struct sl_prefixes addresses; /* ADDRESS */
	struct sl_prefixes allowed;   /* NAME: allowed_ips; empty when not given */
	struct sl_ports ports;
	bool allow_reserved;
	bool inspected; /* to be handed to the proxy that looks into requests */
	struct sl_position at;
};

struct sl_policy_listen {
	enum sl_transport transport;
	struct sl_ports ports;
	struct sl_position at;
};

#define SL_SHA256_LEN 32

struct sl_policy_binary {
	const char *path;
	const char *script;    /* NULL: any or none */
	const uint8_t *sha256; /* SL_SHA256_LEN bytes; NULL: not pinned */
	bool descendants;
	bool strict;
	struct sl_position at;
};

struct sl_policy_entry {
	const char *key;  /* under network_policies; unique */
	const char *name; /* its `name`, or the key */
	const struct sl_policy_endpoint *endpoints;
	size_t endpoint_count;
	const struct sl_policy_listen *listens;
	size_t listen_count;
	const struct sl_policy_binary *binaries;
	size_t binary_count;
	struct sl_position at;
};

enum sl_note_kind {
	SL_NOTE_NOTICE,  /* left alone: somebody else's concern */
	SL_NOTE_WARNING, /* taken, but can hardly be what was meant */
	SL_NOTE_KIND_MAX
};

struct sl_policy_note {
	enum sl_note_kind kind;
	struct sl_position at;
	const char *text; /* one line, safe to print */
};

struct sl_policy {
	const char *file; /* as given, for messages */
	enum sl_policy_mode mode;
	bool keep_established; /* a reload leaves connections of removed rules alone */
	bool first_use;        /* a file has to stay what it was at its path's first use */
	const struct sl_policy_entry *entries;
	size_t entry_count;
	const struct sl_policy_note *notes; /* in file order */
	size_t note_count;
	size_t notes_dropped; /* beyond SL_POLICY_NOTES_MAX */
	struct sl_arena *arena;
};

/* What whoever applies a policy has beyond what sluice does by itself. */
struct sl_policy_options {
	/*
	 * A proxy that looks into requests: endpoints with such rules are taken, marked and
	 * left to it. Without one they are refused, since anything else would be weaker.
	 */
	bool inspects;
	/* Names get synthetic addresses: rules for such are told. */
	bool relayed;
};

/*
 * Reads a policy from `text` (`len` bytes, any bytes); `file` is what messages call it.
 * -EINVAL: the text is no policy; -E2BIG: a limit; -ENOMEM.
 */
int sl_policy_load(struct sl_policy **out, const char *text, size_t len, const char *file,
		   struct sl_err *err);
int sl_policy_load_for(struct sl_policy **out, const char *text, size_t len, const char *file,
		       const struct sl_policy_options *options, struct sl_err *err);

/* The same of a regular file or pipe, "-" for stdin; also -errno of opening and reading it. */
/* The text of a file that may be a policy, terminated; the caller frees it. */
int sl_policy_read(const char *file, char **text, size_t *len, struct sl_err *err);
int sl_policy_load_file(struct sl_policy **out, const char *file, struct sl_err *err);
int sl_policy_load_file_for(struct sl_policy **out, const char *file,
			    const struct sl_policy_options *options, struct sl_err *err);

void sl_policy_free(struct sl_policy **policy);

/* Words of the enums, as the file has them. */
extern const char *const sl_policy_mode_names[SL_POLICY_MODE_MAX];
extern const char *const sl_transport_names[SL_TRANSPORT_MAX];
extern const char *const sl_note_kind_names[SL_NOTE_KIND_MAX];

/* "443", "80,8000-8010"; cut when `size` is too small. Returns dst. */
const char *sl_ports_format(char *dst, size_t size, const struct sl_ports *ports);

/* 64 hexadecimal digits into SL_SHA256_LEN bytes; -EINVAL, `out` untouched, for all else. */
int sl_sha256_parse(const char *text, uint8_t *out);

/*
 * Whether an endpoint that asks for inspection has the destination: a name in normal form
 * (NULL: none), an address, a TCP port. Then only the inspecting proxy may have it, whatever
 * other endpoints say.
 */
bool sl_policy_inspects(const struct sl_policy *policy, const char *name,
			const struct sl_addr *addr, uint16_t port);

bool sl_ports_have(const struct sl_ports *ports, uint16_t port);

#endif
