/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a decision was and why: one enum for the guard, decide(), the log, metrics and the
 * command line. Values are part of the ABI: add at the end only.
 */
#ifndef SLUICE_REASON_H
#define SLUICE_REASON_H

#include <sluice/abi.h>

enum sl_verdict {
	SL_VERDICT_ALLOW,
	SL_VERDICT_DENY,
	SL_VERDICT_AUDIT, /* would be denied, passes: `mode: audit` */
	SL_VERDICT_MAX
};

/* X(NAME, "name", "what it means") */
#define SL_REASONS(X)                                                                              \
	X(NONE, "none", "allowed")                                                                 \
	X(ENDPOINT, "endpoint", "no rule names this destination")                                  \
	X(BINARY, "binary", "a rule names this destination, but not for this binary")              \
	X(INTEGRITY, "integrity", "the binary's path is in the rule, its bytes are not")           \
	X(NO_IDENTITY, "no-identity", "the process or its binary has no identity to match")        \
	X(RESERVED_ADDRESS, "reserved-address",                                                    \
	  "loopback, link-local, metadata or the like, or an address its name may not have")       \
	X(UNMAPPED_NAME, "unmapped-name", "a synthetic address that stands for no name")           \
	X(STALE_POLICY, "stale-policy", "an earlier policy allowed it, the one in force does not") \
	X(FAMILY, "family", "a socket family or type that is not mediated")                        \
	X(FROZEN, "frozen", "the sandbox is frozen")                                               \
	X(OWNER_GONE, "owner-gone", "the process had exited before its call could be decided")     \
	X(INTERNAL, "internal", "sluice could not decide; see the faults")                         \
	X(LISTEN, "listen", "no `listen` entry has this port for this binary")                     \
	X(STRICT, "strict",                                                                        \
	  "the rule is strict: started with loader variables, or another's socket")                \
	X(PROXY, "proxy", "a rule allows it, but the sandbox's proxy can't take it")

enum sl_reason {
#define X(name, text, help) SL_REASON_##name,
	SL_REASONS(X)
#undef X
		SL_REASON_MAX
};

#endif
