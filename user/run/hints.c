/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "run/hints.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/escape.h"
#include "base/log.h"
#include "policy/decide.h"
#include "run/advice.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define NSCD_SOCKET "/var/run/nscd/socket"
#define DNS_PORT 53
#define SCRIPT_LINE_MAX 256 /* BINPRM_BUF_SIZE, include/uapi/linux/binfmts.h */

size_t sl_nameservers(const char *resolv_conf, struct sl_addr out[SL_NAMESERVERS_MAX])
{
	FILE *file = fopen(resolv_conf, "re");
	char line[256], word[64];
	struct sl_prefix prefix;
	size_t n = 0;

	while (file && n < SL_NAMESERVERS_MAX && fgets(line, sizeof(line), file)) {
		if (sscanf(line, " nameserver %63[^ \t\n%%]", word) == 1 &&
		    !sl_prefix_parse(word, &prefix) && prefix.len == 128)
			out[n++] = prefix.addr;
	}
	if (file)
		fclose(file);
	return n;
}

/* The line behind "#!"; false when there is none. */
static bool script_line(char line[SCRIPT_LINE_MAX + 1], const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	n = pread(fd, line, SCRIPT_LINE_MAX, 0);
	if (n < 2 || memcmp(line, "#!", 2) != 0)
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	memmove(line, line + 2, strlen(line + 2) + 1);
	return true;
}

bool sl_hint_script(char *dst, size_t size, const char *rule, const char *path)
{
	char line[SCRIPT_LINE_MAX + 1], safe[SL_ESCAPE_MAX(SCRIPT_LINE_MAX)];
	char *rest = line, *word, *found;

	if (!script_line(line, path))
		return false;
	word = strsep(&rest, " \t");
	while (word && !*word)
		word = strsep(&rest, " \t");
	if (!word)
		return false;
	found = strrchr(word, '/');
	sl_escape_text(safe, sizeof(safe), word);
	if (found && !strcmp(found, "/env"))
		snprintf(dst, size,
			 "'%s' of '%s' is a script: what runs is the interpreter that %s finds; "
			 "write that one's path",
			 path, rule, safe);
	else
		snprintf(dst, size,
			 "'%s' of '%s' is a script: what runs is its interpreter; write path: %s, "
			 "script: %s",
			 path, rule, safe, path);
	return true;
}

static bool has_names(const struct sl_policy_entry *entry)
{
	for (size_t i = 0; i < entry->endpoint_count; i++)
		if (entry->endpoints[i].host)
			return true;
	return false;
}

/* A binary that can be asked about: one without wildcards. */
static const struct sl_policy_binary *plain_binary(const struct sl_policy_entry *entry)
{
	for (size_t i = 0; i < entry->binary_count; i++)
		if (!strchr(entry->binaries[i].path, '*'))
			return &entry->binaries[i];
	return NULL;
}

bool sl_hint_resolver(char *dst, size_t size, const struct sl_compiled *compiled, size_t rule,
		      const struct sl_addr *servers, size_t count)
{
	const struct sl_policy_entry *entry = &sl_compiled_policy(compiled)->entries[rule];
	const struct sl_policy_binary *binary = plain_binary(entry);
	struct sl_advice advice = { .proto = "udp", .rule = entry->key };
	char add[SL_ADVICE_MAX];

	if (!count || !binary || !has_names(entry))
		return false;
	for (size_t i = count; i-- > 0;) {
		const struct sl_image image = { .path = binary->path, .script = binary->script };
		const struct sl_query query = { .images = &image,
						.image_count = 1,
						.transport = SL_TRANSPORT_UDP,
						.port = DNS_PORT,
						.addr = servers[i] };
		struct sl_decision decision;

		sl_decide(compiled, &query, &decision);
		/* A wrong or missing digest is another matter. */
		if (decision.verdict == SL_VERDICT_ALLOW || decision.reason == SL_REASON_INTEGRITY)
			return false;
	}
	advice.reason = sl_reserved_addr(&servers[0]) ? SL_REASON_RESERVED_ADDRESS
						      : SL_REASON_ENDPOINT;
	memcpy(advice.remote.addr_be, servers[0].be, sizeof(advice.remote.addr_be));
	advice.remote.port_be = htons(DNS_PORT);
	sl_advice_text(add, sizeof(add), &advice);
	snprintf(dst, size, "'%s' has names, but may not ask the resolver for them; %s", entry->key,
		 add);
	return true;
}

void sl_hints_tell(const struct sl_compiled *compiled, bool resolvers)
{
	const struct sl_policy *policy = sl_compiled_policy(compiled);
	struct sl_addr servers[SL_NAMESERVERS_MAX];
	/* With nscd, programs ask it over a socket of the file system. */
	size_t count = resolvers && access(NSCD_SOCKET, F_OK) ? sl_nameservers(RESOLV_CONF, servers)
							      : 0;
	unsigned int told = 0;
	char text[2 * SL_ADVICE_MAX];

	for (size_t i = 0; i < policy->entry_count && told < SL_HINTS_MAX; i++) {
		const struct sl_policy_entry *entry = &policy->entries[i];

		for (size_t j = 0; j < entry->binary_count && told < SL_HINTS_MAX; j++) {
			const struct sl_policy_binary *binary = &entry->binaries[j];

			if (!binary->script &&
			    sl_hint_script(text, sizeof(text), entry->key, binary->path)) {
				sl_log_warning("%s", text);
				told++;
			}
		}
		if (sl_hint_resolver(text, sizeof(text), compiled, i, servers, count)) {
			sl_log_warning("%s", text);
			told++;
		}
	}
}
