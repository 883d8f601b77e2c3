// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* exe accept: other bytes at a path are trusted from now on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/query.h"
#include "guard/file_digest.h"
#include "guard/trust.h"
#include "kernel/shared.h"

struct accept_options {
	const char *sha256;
};

static const struct sl_option accept_options[] = {
	SL_OPTION(TEXT, struct accept_options, sha256, "sha256", 0, "HEX",
		  "the digest to accept (default: of the executable with this id, or of the file "
		  "that is at PATH now)"),
	{ 0 },
};

struct accepted {
	const char *path;
	char sha256[2 * SL_SHA256_LEN + 1];
	char before[2 * SL_SHA256_LEN + 1];
	struct sl_trust_report report;
};

static const struct sl_field accepted_fields[] = {
	SL_FIELD_TEXT(struct accepted, path, NULL),
	SL_FIELD_STRING(struct accepted, sha256, NULL),
	SL_FIELD_STRING(struct accepted, before, NULL, .flags = SL_FIELD_NULL),
	SL_FIELD_AS(UINT, struct accepted, report.sandboxes, "sandboxes", NULL),
	{ 0 },
};

/* What is to be accepted: a path, and the digest of a file there. */
struct accept {
	char path[SL_PATH_MAX];
	uint8_t sha256[SL_SHA256_LEN];
};

/* Of an executable by its id: what a broker has found of it under some policy. */
static int accept_found(struct sl_query *query, struct sl_cli *cli, __u32 id, struct accept *accept,
			bool digest)
{
	_cleanup_free_ struct sl_exe *exe = malloc(sizeof(*exe));
	int ret = exe ? sl_exe_by_id(query->set, id, exe) : -ENOMEM;

	if (ret == -ENOENT) {
		sl_err_set(&cli->err, ENOENT, "no executable of id %u in %s", id, cli->set_dir);
		return sl_err_hint(&cli->err, "'sluice exe list' lists those that are known");
	}
	if (!ret)
		memcpy(accept->path, exe->path, sizeof(accept->path));
	if (!ret && digest)
		ret = sl_trust_found(query->set, exe, accept->sha256);
	if (ret == -ENOENT) {
		sl_err_set(&cli->err, ENOENT,
			   "executable %u was never looked at under a policy with "
			   "`integrity: first-use`",
			   id);
		return sl_err_hint(&cli->err, "give its digest with --sha256");
	}
	return ret ? sl_err_sys(&cli->err, -ret, "executable %u", id) : 0;
}

/* Of the file that is at a path now. */
static int accept_file(struct sl_cli *cli, struct accept *accept)
{
	_cleanup_fd_ int fd = open(accept->path, O_PATH | O_CLOEXEC);
	struct stat st = { 0 };
	int ret = fd < 0 || fstat(fd, &st) ? -errno : 0;

	if (!ret && !S_ISREG(st.st_mode))
		ret = -EINVAL;
	ret = ret ?: sl_file_digest(fd, &st, accept->sha256);
	if (!ret)
		return 0;
	sl_err_sys(&cli->err, -ret, "can't hash the file at the path");
	return sl_err_hint(&cli->err, "name the executable by its id, or give the digest with "
				      "--sha256");
}

static int accept_what(struct sl_query *query, struct sl_cli *cli, const char *word,
		       const char *sha256, struct accept *accept)
{
	__u32 id;

	if (sha256 && sl_sha256_parse(sha256, accept->sha256)) {
		sl_err_set(&cli->err, EINVAL, "--sha256: '%.80s' is no SHA-256 digest", sha256);
		return sl_err_hint(&cli->err, "expected are 64 hexadecimal digits");
	}
	if (!sl_parse_u32(word, 1, UINT32_MAX, &id))
		return accept_found(query, cli, id, accept, !sha256);
	if (word[0] != '/' || strlen(word) >= sizeof(accept->path)) {
		sl_err_set(&cli->err, EINVAL, "'%.80s' is neither an id nor an absolute path",
			   word);
		return sl_err_hint(&cli->err, "'sluice exe list' lists both");
	}
	/* What is remembered is what the kernel runs, not a link to it. */
	if (sha256 || !realpath(word, accept->path))
		snprintf(accept->path, sizeof(accept->path), "%s", word);
	return sha256 ? 0 : accept_file(cli, accept);
}

static int exe_accept(struct sl_cli *cli, const void *values, int argc, char **argv)
{
	const struct accept_options *options = values;
	_cleanup_(sl_query_close) struct sl_query query = { 0 };
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	_cleanup_fd_ int lock = -1;
	struct accepted accepted = { 0 };
	struct accept accept;
	int ret = sl_query_open(&query, cli);

	(void)argc;
	ret = ret ?: accept_what(&query, cli, argv[0], options->sha256, &accept);
	if (ret)
		return ret;
	sl_query_close(&query);
	ret = sl_shared_lock(&set, &lock, cli->set_dir, &cli->err);
	if (ret)
		return ret;
	ret = sl_trust_accept(set, accept.path, accept.sha256, &accepted.report);
	if (ret == -ENOENT) {
		sl_err_set(&cli->err, ENOENT, "no sandbox in %s trusts anything at the path yet",
			   cli->set_dir);
		return sl_err_hint(&cli->err, "a policy with `integrity: first-use` trusts what it "
					      "sees there first");
	}
	if (ret)
		return sl_err_sys(&cli->err, -ret, "accepting");
	if (accepted.report.pinned)
		sl_log_warning("a policy pins this path: the pin wins there");
	accepted.path = accept.path;
	sl_hex(accepted.sha256, accept.sha256, sizeof(accept.sha256));
	if (accepted.report.changed)
		sl_hex(accepted.before, accepted.report.before, SL_SHA256_LEN);
	return sl_print_record(&cli->output, accepted_fields, &accepted);
}

const struct sl_command sl_cmd_exe_accept = {
	.name = "accept",
	.summary = "trust other bytes at a path from now on",
	.synopsis = "ID|PATH",
	.details =
		"Under a policy with `integrity: first-use` the file at a path has to stay what it was\n"
		"when it was first executed. This acknowledges an upgrade: executables with the\n"
		"accepted digest get what the rules say, also those that run already; what was trusted\n"
		"before is denied from its next exec on. It concerns every sandbox of the set (--set)\n"
		"that has seen the path, and lasts as long as the sandbox. A pin (`sha256`) in a policy\n"
		"wins. An id means exactly the bytes that were looked at when it was executed, a path\n"
		"those that are there now.",
	.options = accept_options,
	.options_size = sizeof(struct accept_options),
	.run = exe_accept,
	.min_args = 1,
	.max_args = 1,
};
