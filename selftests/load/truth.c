/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "load.h"

static int proc_fd = -1;

/* Keeps one byte free for the newline; a line that is too long loses its end. */
static void put(struct sl_line *line, char c)
{
	if (line->len + 1 < sizeof(line->text))
		line->text[line->len++] = c;
}

static void put_text(struct sl_line *line, const char *text)
{
	while (*text)
		put(line, *text++);
}

static void put_value(struct sl_line *line, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c > ' ' && c < 0x7f && c != '=' && c != '%') {
			put(line, *text);
			continue;
		}
		put(line, '%');
		put(line, hex[c >> 4]);
		put(line, hex[c & 15]);
	}
}

void sl_line_start(struct sl_line *line, const char *what)
{
	line->len = 0;
	put_text(line, "what=");
	put_text(line, what);
}

void sl_line_add(struct sl_line *line, const char *key, const char *fmt, ...)
{
	char value[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	put(line, ' ');
	put_text(line, key);
	put(line, '=');
	put_value(line, value);
}

void sl_line_u64(struct sl_line *line, const char *key, uint64_t value)
{
	sl_line_add(line, key, "%llu", (unsigned long long)value);
}

void sl_line_addr(struct sl_line *line, const char *key, const struct sl_addr *addr)
{
	char text[SL_ADDR_TEXT];

	sl_addr_text(addr, text);
	sl_line_add(line, key, "%s", text);
}

void sl_line_errno(struct sl_line *line, const char *key, int err)
{
	const char *name = strerrorname_np(err);

	if (name)
		sl_line_add(line, key, "%s", name);
	else
		sl_line_add(line, key, "%d", err);
}

void sl_line_start_time(struct sl_line *line, uint64_t ticks)
{
	uint64_t hz = (uint64_t)sysconf(_SC_CLK_TCK);

	sl_line_u64(line, "start_ticks", ticks);
	sl_line_u64(line, "start_ns", ticks * (1000000000ULL / hz));
}

void sl_line_self(struct sl_line *line)
{
	struct sl_self self;

	sl_self_read(&self);
	sl_line_add(line, "pid", "%d", self.pid);
	sl_line_add(line, "tid", "%d", self.tid);
	sl_line_add(line, "ns_pid", "%d", self.ns_pid);
	sl_line_start_time(line, self.start_ticks);
}

void sl_line_note(struct sl_line *line, const struct sl_sock_note *note)
{
	bool mapped = sl_addr_is_mapped(&note->local) || sl_addr_is_mapped(&note->remote);

	sl_line_u64(line, "cookie", note->cookie);
	sl_line_add(line, "family", "%d", note->family);
	sl_line_add(line, "type", "%d", note->type);
	sl_line_add(line, "protocol", "%d", note->protocol);
	sl_line_addr(line, "local", &note->local);
	sl_line_addr(line, "remote", &note->remote);
	sl_line_add(line, "mapped", "%d", mapped);
}

void sl_line_end(struct sl_line *line)
{
	ssize_t rc;

	line->text[line->len++] = '\n';
	do {
		rc = write(STDOUT_FILENO, line->text, line->len);
	} while (rc < 0 && errno == EINTR);
}

static void get_option(int fd, int name, void *out, socklen_t len)
{
	(void)getsockopt(fd, SOL_SOCKET, name, out, &len);
}

void sl_sock_note(struct sl_sock_note *note, int fd)
{
	get_option(fd, SO_COOKIE, &note->cookie, sizeof(note->cookie));
	get_option(fd, SO_DOMAIN, &note->family, sizeof(note->family));
	get_option(fd, SO_TYPE, &note->type, sizeof(note->type));
	get_option(fd, SO_PROTOCOL, &note->protocol, sizeof(note->protocol));
	(void)sl_addr_local(fd, &note->local);
	(void)sl_addr_remote(fd, &note->remote);
}

void sl_truth_proc_fd(int fd)
{
	proc_fd = fd;
}

/* Opens a path below /proc, through the directory kept for a chroot if there is one. */
static int proc_open(const char *path)
{
	char full[64];

	if (proc_fd >= 0)
		return openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	snprintf(full, sizeof(full), "/proc/%s", path);
	return open(full, O_RDONLY | O_CLOEXEC);
}

static int proc_link(const char *path, char *out, size_t size)
{
	char full[64];
	ssize_t n;

	if (proc_fd >= 0) {
		n = readlinkat(proc_fd, path, out, size - 1);
	} else {
		snprintf(full, sizeof(full), "/proc/%s", path);
		n = readlink(full, out, size - 1);
	}
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

/* Fields 3 and later: the name in field 2 may hold blanks and parentheses. */
static int stat_ticks(const char *path, uint64_t *ticks)
{
	_cleanup_fd_ int fd = proc_open(path);
	char text[1024], *at;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ESRCH;
	text[n] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -EPROTO;
	*ticks = strtoull(at + 1, NULL, 10);
	return 0;
}

int sl_start_ticks(pid_t pid, uint64_t *ticks)
{
	char path[32];

	snprintf(path, sizeof(path), "%d/stat", pid);
	return stat_ticks(path, ticks);
}

void sl_self_read(struct sl_self *out)
{
	struct sl_self self = { .ns_pid = getpid() };
	char text[64], *slash;

	self.pid = self.ns_pid;
	self.tid = (pid_t)syscall(SYS_gettid);
	/* "PID/task/TID", both in the namespace of the mount. */
	if (proc_link("thread-self", text, sizeof(text)) == 0) {
		self.pid = atoi(text);
		slash = strrchr(text, '/');
		if (slash)
			self.tid = atoi(slash + 1);
	}
	(void)stat_ticks("self/stat", &self.start_ticks);
	*out = self;
}

void sl_truth_proc(void)
{
	char exe[PATH_MAX] = "-", comm[64] = "-";
	_cleanup_fd_ int fd = proc_open("thread-self/comm");
	struct sl_line line;
	ssize_t n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);

	if (n > 0)
		comm[n - 1] = '\0';
	(void)proc_link("self/exe", exe, sizeof(exe));
	sl_line_start(&line, "proc");
	sl_line_self(&line);
	sl_line_add(&line, "ppid", "%d", getppid());
	sl_line_add(&line, "uid", "%u", getuid());
	sl_line_add(&line, "comm", "%s", comm);
	sl_line_add(&line, "exe", "%s", exe);
	sl_line_end(&line);
}

int sl_fail(const char *step, int err)
{
	struct sl_line line;

	sl_line_start(&line, "error");
	sl_line_self(&line);
	sl_line_add(&line, "step", "%s", step);
	sl_line_errno(&line, "errno", err);
	sl_line_end(&line);
	fprintf(stderr, "sl-load: %s: %s\n", step, strerror(err));
	return -err;
}

int sl_skip(const char *feature, int err)
{
	struct sl_line line;

	sl_line_start(&line, "skip");
	sl_line_add(&line, "feature", "%s", feature);
	sl_line_errno(&line, "errno", err);
	sl_line_end(&line);
	fprintf(stderr, "sl-load: this kernel lacks: %s (%s)\n", feature, strerror(err));
	return -SL_ENOFEATURE;
}
