/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The guard: what a sandbox's policy looks like to the BPF programs. A policy is loaded
 * under an id of its own beside the one in force and then switched to by one store, so a
 * verdict never sees half of one. Ids are never used again while a set lives.
 *
 *	verdict = f(sandbox, lineage, transport, address, port)
 *
 *	guards[sandbox]                          -> policy, mode
 *	guard_lineages{policy, lineage}          -> bits that the lineage has
 *	guard_ports{policy, transport, port}     -> port class
 *	guard_leases{policy, class, address}     -> destination class    (names)
 *	guard_dests{policy, class, prefix}       -> destination class    (longest match)
 *
 * and allowed is: the lineage and the destination have a bit in common. A look-up that
 * fails denies. The lineage's bits are computed when the lineage comes into being, at exec:
 *
 *	guard_paths{policy, table, path}         -> bits that an image earns
 *	guard_files{policy, file}                -> the same, for what is held at exec
 *
 * Two kinds of rules withhold bits that the path earns. Under `integrity: first-use` they
 * count only when guard_files says that the file's bytes are those trusted for its path.
 * Strict bits count only for images whose environment the exec hook found to be without
 * variables of the loader (SL_LINEAGE_CHECKED), and on sockets whose opener has them too.
 */
#ifndef SLUICE_GUARD_H
#define SLUICE_GUARD_H

#include <sluice/abi.h>
#include <sluice/policy.h>
#include <sluice/process.h>
#include <sluice/reason.h>
#include <sluice/sock.h>

/* X(NAME, "name") */
#define SL_GUARD_MODES(X)     \
	X(OBSERVE, "observe") \
	X(AUDIT, "audit")     \
	X(ENFORCE, "enforce") \
	X(FROZEN, "frozen")

enum sl_guard_mode {
#define X(name, text) SL_GUARD_##name,
	SL_GUARD_MODES(X)
#undef X
		SL_GUARD_MODE_MAX
};

enum sl_guard_flag {
	SL_GUARD_OWN_NETNS = 1 << 0, /* all of loopback is the sandbox's own */
	SL_GUARD_RAW = 1 << 1,       /* raw and ping sockets may be created */
	SL_GUARD_KEEP = 1 << 2,      /* a reload leaves established connections alone */
	SL_GUARD_STRICT = 1 << 3,    /* a policy has strict bits: exec looks at environments */
	SL_GUARD_NAMES = 1 << 4,     /* somebody tells names: hooks look them up */
	SL_GUARD_DNS = 1 << 5,       /* calls to port 53 go to the policy DNS */
	SL_GUARD_DATAGRAMS = 1 << 6, /* who sends a datagram is published */
	SL_GUARD_PROXY = 1 << 7,     /* TCP connections go to the proxy */
	SL_GUARD_SYNTHETIC = 1 << 8, /* names have addresses that no host has (sluice/dns.h) */
};
/* Not a policy's: a load leaves them as they are. */
#define SL_GUARD_LASTING \
	(SL_GUARD_NAMES | SL_GUARD_DNS | SL_GUARD_DATAGRAMS | SL_GUARD_PROXY | SL_GUARD_SYNTHETIC)

/* Value of array `guards`, by sandbox id. All zero: observe. */
struct sl_guard {
	__u32 policy;     /* id in force, 0: none, which denies in every mode but observe */
	__u32 pending;    /* being loaded: exec computes bits for it as well; 0: none */
	__u32 mode;       /* enum sl_guard_mode */
	__u32 flags;      /* enum sl_guard_flag */
	__s32 deny_errno; /* positive */
	__u32 mnt_ns;     /* inode number of the mount namespace whose paths policies mean */
	__u32 thawed;     /* while frozen: the mode before, enum sl_guard_mode */
};

/* Value of hash `guard_policies`, by policy id. */
struct sl_guard_policy {
	struct sl_bits script_bits; /* need a script's grant as well as the image's */
	struct sl_bits strict_bits;
	__u32 sandbox;
	__u32 has_scripts;
	__u32 first_use; /* paths count with SL_GUARD_FILE_TRUSTED only */
	__u32 pad;
};

/* Key of LPM trie `guard_paths`; the value is a struct sl_grant. */
struct sl_guard_path {
	__u32 prefix_bits; /* of what follows; an exact path includes its terminator */
	__u8 policy[4];    /* the id's bytes, in host order */
	__u8 table;        /* enum sl_guard_table */
	char path[SL_GUARD_PATH_MAX];
};

enum sl_guard_table { SL_GUARD_TABLE_EXE, SL_GUARD_TABLE_SCRIPT };

#define SL_GUARD_FILES_MAX 65536

/*
 * Key of hash `guard_files`: an executable that user space has looked at before its exec,
 * by what the kernel's own record of it will say (struct sl_exe_key).
 */
struct sl_guard_file {
	__u64 ino;
	__u64 ctime_ns;
	__u64 path_hash; /* a hard link is another path */
	__u32 dev;
	__u32 policy;
};

enum sl_guard_file_flag {
	SL_GUARD_FILE_TRUSTED = 1 << 0,  /* its bytes are those trusted for the path */
	SL_GUARD_FILE_PINNED = 1 << 1,   /* a pin decides that, whatever was seen first */
	SL_GUARD_FILE_HASHED = 1 << 2,   /* `found` is its digest */
	SL_GUARD_FILE_EXPECTED = 1 << 3, /* `expected` is what the policy or first use wants */
};

#define SL_GUARD_SHA256_LEN 32

/*
 * Its value: what it earns beyond its path, and what it would have earned; all before its
 * script is looked at, which is not the file's.
 */
struct sl_guard_grant {
	struct sl_grant granted;
	struct sl_grant missed;  /* had the digest been the pinned one */
	struct sl_grant trusted; /* with SL_GUARD_FILE_TRUSTED */
	__u8 found[SL_GUARD_SHA256_LEN];
	__u8 expected[SL_GUARD_SHA256_LEN];
	__u32 flags; /* enum sl_guard_file_flag */
	__u32 pad;
};

/*
 * Key of hash `guard_trust`, which only user space reads: what a sandbox trusts the file at
 * a path to be, from its first use on, over all policies of the sandbox.
 */
struct sl_guard_trust_key {
	__u64 path_hash; /* the path is compared */
	__u32 sandbox;
	__u32 pad;
};

struct sl_guard_trust {
	__u8 sha256[SL_GUARD_SHA256_LEN];
	__u64 since_ns;
	char path[SL_PATH_MAX];
};

struct sl_guard_lineage_key {
	__u32 policy;
	__u32 lineage;
};

enum sl_guard_lineage_flag {
	SL_GUARD_NO_IDENTITY = 1 << 0, /* the leaf is no file that can be matched */
	SL_GUARD_UNCHECKED = 1 << 1,   /* strict bits were withheld, and are in `missed` */
};

/* Value of hash `guard_lineages`. */
struct sl_guard_lineage {
	struct sl_bits match;
	struct sl_bits inherited; /* what descendants start with */
	struct sl_bits missed;    /* earned by the path, withheld for bytes or environment */
	__u32 flags;              /* enum sl_guard_lineage_flag */
	__u32 pad;
};

/* Key of LPM trie `guard_ports`; the value is the port class, __u32. */
struct sl_guard_port {
	__u32 prefix_bits;
	__u32 policy;
	__u8 transport; /* enum sl_transport; SL_GUARD_LISTEN is added for listening ports */
	__u8 pad;
	__be16 port_be;
};
#define SL_GUARD_LISTEN 2
#define SL_GUARD_LISTEN_CLASS 0x80000000U /* or-ed with the destination class of the port */
#define SL_GUARD_PORT_BITS(bits) (48 + (bits))

/*
 * Key of LPM trie `guard_dests` and, with all its bits, of hash `guard_leases`. Port class
 * 0 stands for ports that no rule has: its rows tell reserved addresses apart, and are those of
 * policy 0, for all. A listening port is a lease of the unspecified address under SL_GUARD_LISTEN_CLASS.
 */
struct sl_guard_dest_key {
	__u32 prefix_bits; /* 128 for a lease */
	__u32 policy;
	__u32 port_class;
	__be32 addr_be[4];
};
#define SL_GUARD_DEST_BITS(bits) (64 + (bits))

enum sl_guard_dest_flag {
	SL_GUARD_RESERVED = 1 << 0, /* a miss here is for a reserved address */
	SL_GUARD_RULE = 1 << 1,     /* at least one rule names it */
};

struct sl_guard_dest {
	struct sl_bits allowed;
	__u32 class_id; /* of the compiled policy */
	__u32 flags;    /* enum sl_guard_dest_flag */
};

/* Key of hash `guard_rules`: which entry of a policy a destination class stands for. */
struct sl_guard_rule_key {
	__u32 policy;
	__u32 class_id;
};

/* Its value: the key of the first entry that names the destination, for people. */
#define SL_GUARD_RULE_MAX 132 /* with the NUL */
struct sl_guard_rule {
	char key[SL_GUARD_RULE_MAX];
};

/*
 * A verdict that is not plain "allowed", and the body of decision events. Equal ones (all
 * but times and counts) share a row of LRU hash `decisions`, and are told at most once
 * every SL_DECISION_INTERVAL_NS, with the number that were not told yet.
 */
#define SL_DECISION_INTERVAL_NS 1000000000ULL

/*
 * Type of a decision about connect() of a UDP socket: getaddrinfo() does that with each
 * address of a name, so nothing may ever have been meant to be sent. SOCK_DGRAM.
 */
#define SL_DECISION_TRIED 2

struct sl_decision_key {
	struct sl_endpoint remote;
	__u32 sandbox;
	__u32 lineage;
	__u32 policy;
	__u16 family; /* for reason family: of the refused socket; with type and protocol */
	__u16 type;   /* of others, 0 or SL_DECISION_TRIED */
	__u16 protocol;
	__u8 verdict; /* enum sl_verdict */
	__u8 reason;  /* enum sl_reason */
	__u32 name;   /* id of the name that was asked for, or looked up; 0: not known */
};

struct sl_decision_row {
	struct sl_owner owner; /* of the first; all zero when the caller is no member */
	__u64 first_ns;
	__u64 last_ns;
	__u64 told_ns;
	__u64 count;
	__u64 told;     /* of `count`, those that events have told */
	__u32 class_id; /* of the first */
	__u32 pad;
};

struct sl_decision_record {
	struct sl_decision_key key;
	struct sl_owner owner; /* of the latest; all zero when the caller is no member */
	__u64 cookie;          /* of the latest's socket; 0: none was made */
	__u64 first_ns;
	__u64 last_ns;
	__u64 count;    /* since the last event for this key, this one included */
	__u32 class_id; /* destination class, SL_CLASS_NONE when there is none */
	__u32 pad;
};

/* What user space gives program on_refused: a denial of its own. */
struct sl_refused {
	struct sl_decision_key key; /* without verdict */
	struct sl_owner owner;      /* all zero when the caller is no member */
};

#endif
