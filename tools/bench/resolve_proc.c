/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The search through /proc that sluice is compared with. Written to be fast. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "resolve.h"

/* "0100007F:1F90" and the like: words of the address in host order, as the kernel prints. */
static void endpoint_text(char out[48], const union resolve_addr *addr)
{
	const uint32_t *words;

	if (addr->sa.sa_family == AF_INET) {
		snprintf(out, 48, "%08X:%04X", addr->in.sin_addr.s_addr, ntohs(addr->in.sin_port));
		return;
	}
	words = addr->in6.sin6_addr.s6_addr32;
	snprintf(out, 48, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
		 ntohs(addr->in6.sin6_port));
}

/* Inode of the socket whose local end is `local` and whose remote end is `remote`. */
static int find_inode(const char *file, const char *local, const char *remote,
		      unsigned long long *inode, uint64_t *entries)
{
	_cleanup_file_ FILE *list = fopen(file, "re");
	char line[512], from[48], to[48];
	unsigned long long found;

	if (!list)
		return -errno;
	while (fgets(line, sizeof(line), list)) {
		++*entries;
		/* Most lines are others': compare before taking one apart. */
		if (!strstr(line, local))
			continue;
		if (sscanf(line, " %*u: %47s %47s %*s %*s %*s %*s %*u %*u %llu", from, to,
			   &found) != 3)
			continue;
		if (strcmp(from, local) != 0 || strcmp(to, remote) != 0)
			continue;
		if (!found)
			return -ENOENT; /* closed: TIME_WAIT or orphaned */
		*inode = found;
		return 0;
	}
	return -ENOENT;
}

/* Whether a process, by its directory in /proc, holds the socket. */
static bool holds(int proc, const char *pid, const char *target, uint64_t *entries)
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[288], link[64];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "%s/fd", pid);
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return false;
	}
	while ((entry = readdir(dir))) {
		++*entries;
		len = readlinkat(fd, entry->d_name, link, sizeof(link) - 1);
		if (len <= 0)
			continue;
		link[len] = '\0';
		if (!strcmp(link, target))
			return true;
	}
	return false;
}

static int find_holder(unsigned long long inode, uint32_t *pid, uint64_t *entries)
{
	_cleanup_dir_ DIR *proc = opendir("/proc");
	struct dirent *entry;
	char target[48];

	if (!proc)
		return -errno;
	snprintf(target, sizeof(target), "socket:[%llu]", inode);
	while ((entry = readdir(proc))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (holds(dirfd(proc), entry->d_name, target, entries)) {
			*pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
			return 0;
		}
	}
	return -ENOENT;
}

int resolve_proc(int fd, struct resolve_truth *out, uint64_t *entries)
{
	union resolve_addr local = { 0 }, peer = { 0 };
	socklen_t local_len = sizeof(local), peer_len = sizeof(peer);
	struct resolve_truth found = { 0 };
	char near[48], far[48], path[64];
	unsigned long long inode = 0;
	int rc;

	*entries = 0;
	/* getpeername() says ENOTCONN once the client has closed and been acknowledged. */
	if (getsockname(fd, &local.sa, &local_len) || getpeername(fd, &peer.sa, &peer_len))
		return -errno;
	endpoint_text(near, &local);
	endpoint_text(far, &peer);
	rc = find_inode(local.sa.sa_family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", far,
			near, &inode, entries);
	if (!rc)
		rc = find_holder(inode, &found.pid, entries);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/proc/%u/stat", found.pid);
	rc = resolve_start_ticks(path, &found.start_ticks);
	if (!rc)
		*out = found;
	return rc;
}
