/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The compiled policy: what decide() reads, and what the guard's maps are filled from, so
 * that the two can't disagree.
 *
 * Binaries
 * - Binaries in the same set of entries with the same `script` and `strict` share a bit
 *   (include/sluice/policy.h). `descendants` and `sha256` need no bits of their own: they
 *   restrict what grants a bit (a path's `inherited` grant; a pin), not what it opens.
 * - Each path table (executables, scripts) has exact paths, prefixes and globs. The grant
 *   of an exact path or prefix includes those of all prefixes that cover it: the exact row
 *   answers, else the longest prefix does. Globs (and what is longer than
 *   SL_GUARD_PATH_MAX) are not in these grants: whoever can match them adds them.
 * - A pin grants its bits to what matches the path *and* has the digest. Its bits are not
 *   in the path tables. Under `integrity: first-use`, what matches by path alone has to be
 *   unchanged; where a pin has the path too, the pin says whether it is.
 * - Strict bits go to images that were started without variables of the loader, as all
 *   members between them and the leaf were.
 * - Bits in sl_compiled_script_bits() need both tables: image = exe & (script | ~mask).
 * - match(lineage) = own(leaf) | inherited(each ancestor that is a member).
 *
 * Destinations
 * - A port class holds the ports that the same endpoints name. For each there are prefixes;
 *   the class of a prefix includes the classes of those that cover it: longest match alone
 *   answers. Rows stop wide prefixes from reaching reserved ranges, and IPv6 ones from
 *   reaching IPv4. A miss is class 0, which allows nothing.
 * - A destination class is a set of (bit, lowest entry with that bit). Its id is stable
 *   while the compiled policy lives; ids count from 0 without gaps.
 * - Names: an address that was learned for names ("lease") gets the class of its prefix
 *   united with those of the names' rules that let it have the address (enum sl_withheld):
 *   sl_compiled_address().
 *   That may make new classes: load those at or above the count you loaded before.
 *
 * The policy is borrowed and must outlive it. Not locked: one thread, or only readers of
 * what takes a const pointer. All iteration is in an order that depends on the file alone.
 */
#ifndef SLUICE_USER_POLICY_COMPILE_H
#define SLUICE_USER_POLICY_COMPILE_H

#include "base/array.h"
#include "policy/match.h"
#include "policy/policy.h"

/* Limits; a policy that exceeds one is refused with -E2BIG, naming the limit and the need. */
#define SL_POLICY_ROWS_MAX (1u << 20)        /* prefixes, names, each times port classes */
#define SL_POLICY_CLASS_PAIRS_MAX (4u << 20) /* (bit, entry) pairs of all classes */
#define SL_POLICY_CLASSES_MAX (1u << 18)     /* destination classes, names' included */
#define SL_POLICY_GLOBS_MAX 1024u            /* globs and long paths of one table; pins too */

#define SL_CLASS_NONE 0u /* no rule at all */
#define SL_RULE_NONE UINT32_MAX
#define SL_PORT_CLASS_NONE 0u

struct sl_compiled;

int sl_compiled_new(struct sl_compiled **out, const struct sl_policy *policy, struct sl_err *err);
void sl_compiled_free(struct sl_compiled **compiled);
const struct sl_policy *sl_compiled_policy(const struct sl_compiled *compiled);

/* --- Binaries --- */

enum sl_path_table { SL_PATHS_EXE, SL_PATHS_SCRIPT, SL_PATHS_MAX };

struct sl_path_row {
	enum sl_path_kind kind;
	const char *text; /* EXACT: the path; PREFIX: ends in '/'; GLOB: the pattern */
	size_t len;
	const struct sl_grant *grant;
};

struct sl_pin_row {
	const char *pattern;
	const uint8_t *sha256; /* SL_SHA256_LEN bytes */
	struct sl_grant grant;
};

/* Each calls `row` until it returns other than 0, and returns that; else 0. */
int sl_compiled_paths_each(const struct sl_compiled *compiled, enum sl_path_table table,
			   int (*row)(const struct sl_path_row *row, void *arg), void *arg);
int sl_compiled_pins_each(const struct sl_compiled *compiled,
			  int (*row)(const struct sl_pin_row *row, void *arg), void *arg);

size_t sl_compiled_bit_count(const struct sl_compiled *compiled);
const struct sl_bits *sl_compiled_script_bits(const struct sl_compiled *compiled);
const struct sl_bits *sl_compiled_strict_bits(const struct sl_compiled *compiled);

/*
 * What the kernel can't find out alone: patterns that need user space for this policy. With
 * all three false, no exec has to be held.
 */
struct sl_compiled_needs {
	bool globs; /* wildcards within an executable's path, or a long one */
	bool digests;
	bool scripts; /* wildcards within a script's path */
};
void sl_compiled_needs(const struct sl_compiled *compiled, struct sl_compiled_needs *out);

/* One image of a lineage. */
struct sl_image {
	const char *path;      /* NULL: it has no identity (memfd, deleted, not known) */
	const char *script;    /* that it was started for; NULL: none */
	bool any_script;       /* as if it were the right one: who asks narrows that himself */
	const uint8_t *sha256; /* NULL: not known */
	bool changed; /* its bytes are not those trusted for the path (trust on first use) */
	bool loader;  /* it was started with variables of the loader */
};

/* `missed`: bits that the path would have earned, had the digest been right. */
struct sl_image_bits {
	struct sl_grant granted;
	struct sl_grant missed;
	struct sl_bits withheld;      /* own strict bits, but for the variables of the loader */
	const struct sl_bits *strict; /* then: all strict bits, which ancestors don't hand on */
	const uint8_t *expected;      /* the first pin that it missed; NULL: none */
	bool pinned;                  /* a pin has the path: under first use that decides */
	bool pin_right;
	bool identity;
};

/* What the name of a script is granted, by wildcards too: one half of what it takes. */
void sl_compiled_script(const struct sl_compiled *compiled, const char *name, struct sl_grant *out);

/* A pure function of the image; a caller may keep the answer as long as the policy. */
void sl_compiled_image(const struct sl_compiled *compiled, const struct sl_image *image,
		       struct sl_image_bits *out);

/* --- Destinations --- */

struct sl_port_row {
	enum sl_transport transport;
	uint16_t first, last;
	uint32_t port_class;
};

struct sl_dest_row {
	uint32_t port_class;
	struct sl_prefix prefix;
	uint32_t class_id;
};

struct sl_name_row {
	uint32_t port_class;
	const char *host;                  /* pattern, normal form */
	const struct sl_prefixes *allowed; /* count 0: allowed_ips was not given */
	uint32_t class_id;
};

struct sl_listen_row {
	enum sl_transport transport;
	uint16_t first, last;
	uint32_t class_id;
};

enum sl_class_flag {
	SL_CLASS_RESERVED = 1 << 0, /* a miss here is reason reserved-address */
};

struct sl_class {
	const struct sl_bits *allowed;
	unsigned int flags;  /* enum sl_class_flag */
	uint32_t first_rule; /* lowest entry that names the destination; SL_RULE_NONE: none */
};

int sl_compiled_ports_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_port_row *row, void *arg), void *arg);
int sl_compiled_dests_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_dest_row *row, void *arg), void *arg);
int sl_compiled_names_each(const struct sl_compiled *compiled,
			   int (*row)(const struct sl_name_row *row, void *arg), void *arg);
int sl_compiled_listens_each(const struct sl_compiled *compiled,
			     int (*row)(const struct sl_listen_row *row, void *arg), void *arg);

/*
 * Splits a range of ports into prefixes of the 16-bit big-endian number (at most 30), for an
 * LPM trie: bits[i] of port[i] count. Returns how many.
 */
#define SL_PORT_PREFIXES_MAX 30
struct sl_port_prefix {
	uint16_t port;
	uint8_t bits;
};
size_t sl_port_prefixes(uint16_t first, uint16_t last, struct sl_port_prefix *out);

size_t sl_compiled_class_count(const struct sl_compiled *compiled);
/* Of an id below the count. Valid until the next sl_compiled_address(). */
struct sl_class sl_compiled_class(const struct sl_compiled *compiled, uint32_t id);

/* The lowest entry of class `id` that one of `bits` matches; SL_RULE_NONE: none does. */
uint32_t sl_compiled_rule(const struct sl_compiled *compiled, uint32_t id,
			  const struct sl_bits *bits);

/* SL_PORT_CLASS_NONE: no endpoint names the port. */
uint32_t sl_compiled_port(const struct sl_compiled *compiled, enum sl_transport transport,
			  uint16_t port);

/* The class of an address by prefixes alone; SL_CLASS_NONE when there is none. */
uint32_t sl_compiled_dest(const struct sl_compiled *compiled, uint32_t port_class,
			  const struct sl_addr *addr);

/* The class of a listening port; SL_CLASS_NONE when no entry has it. */
uint32_t sl_compiled_listen(const struct sl_compiled *compiled, enum sl_transport transport,
			    uint16_t port);

/*
 * Whether any rule, on any port, names the host (normal form): whether policy DNS answers
 * for it at all.
 */
bool sl_compiled_host(const struct sl_compiled *compiled, const char *name);
/* Whether one does without a wildcard: there are only as many such names as the policy has. */
bool sl_compiled_host_exact(const struct sl_compiled *compiled, const char *name);

/*
 * Why a rule that matches a name does not let it have an address. Whoever runs the DNS of a
 * name chooses its addresses, so those that lead back to the machine, or to what is private,
 * take somebody's word.
 */
enum sl_withheld {
	SL_WITHHELD_NOT,      /* it may have it */
	SL_WITHHELD_RESERVED, /* no name may (addr.h) */
	SL_WITHHELD_UNLISTED, /* allowed_ips was given, without it */
	SL_WITHHELD_PRIVATE,  /* the host has a wildcard, and there is no allowed_ips */
	SL_WITHHELD_OWN,      /* it is the machine's own, and there is no allowed_ips */
};

/* `host` may be a wildcard; `allowed` is its allowed_ips. */
enum sl_withheld sl_name_withheld(const char *host, const struct sl_prefixes *allowed,
				  const struct sl_addr *addr, enum sl_addr_kind kind);

/*
 * Calls `row` for each rule of a port class that matches the name, with its class or, when it
 * does not let the name have the address, with one that allows nothing and has flag
 * SL_CLASS_RESERVED. Returns what `row` returned, or 0.
 */
int sl_compiled_name_each(const struct sl_compiled *compiled, uint32_t port_class, const char *name,
			  const struct sl_addr *addr, enum sl_addr_kind kind,
			  int (*row)(uint32_t class_id, void *arg), void *arg);

/*
 * Whether any rule would let the name have the address, on any port: which answers policy
 * DNS passes on.
 */
bool sl_compiled_answer(const struct sl_compiled *compiled, const char *name,
			const struct sl_addr *addr, enum sl_addr_kind kind);

/* The class of a lease, made if there is no such class yet. -E2BIG (no class left), -ENOMEM. */
int sl_compiled_address(struct sl_compiled *compiled, enum sl_transport transport, uint16_t port,
			const struct sl_addr *addr, enum sl_addr_kind kind,
			const char *const *names, size_t count, uint32_t *class_id);

#endif
