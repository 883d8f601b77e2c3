/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "proc.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* proc(5): in pages. */
struct statm {
	unsigned long long resident, shared;
};

static struct statm read_statm(pid_t pid)
{
	_cleanup_file_ FILE *file = NULL;
	struct statm pages = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%*u %llu %llu", &pages.resident, &pages.shared) != 2)
		return (struct statm){ 0 };
	return pages;
}

uint64_t sl_proc_rss_bytes(pid_t pid)
{
	return read_statm(pid).resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t sl_proc_own_bytes(pid_t pid)
{
	struct statm pages = read_statm(pid);

	return (pages.resident - pages.shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

unsigned int sl_proc_fds(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return sl_dir_entries(path);
}

void sl_proc_kinds(pid_t pid, struct sl_proc_kinds *out)
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	char path[64], target[16];

	*out = (struct sl_proc_kinds){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (!strncmp(target, "socket:", 7))
			out->sockets++;
		else if (!strncmp(target, "pipe:", 5))
			out->pipes++;
		else
			out->others++;
	}
}

unsigned int sl_dir_entries(const char *path)
{
	_cleanup_dir_ DIR *dir = opendir(path);
	struct dirent *entry;
	char below[PATH_MAX];
	unsigned int n = 0;

	while (dir && (entry = readdir(dir))) {
		if (!is_entry(entry))
			continue;
		n++;
		if (entry->d_type == DT_DIR && snprintf(below, sizeof(below), "%s/%s", path,
							entry->d_name) < (int)sizeof(below))
			n += sl_dir_entries(below);
	}
	return n;
}

static uint64_t thread_waits(pid_t pid, const char *tid)
{
	_cleanup_file_ FILE *file = NULL;
	unsigned long long value, sum = 0;
	char path[PATH_MAX], line[256];

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "voluntary_ctxt_switches: %llu", &value) == 1)
			sum += value;
	}
	return sum;
}

static uint64_t thread_cpu_ns(pid_t pid, const char *tid)
{
	_cleanup_file_ FILE *file = NULL;
	unsigned long long ns = 0;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, tid);
	file = fopen(path, "re");
	return file && fscanf(file, "%llu", &ns) == 1 ? ns : 0;
}

static uint64_t sum_threads(pid_t pid, uint64_t (*of_thread)(pid_t pid, const char *tid))
{
	_cleanup_dir_ DIR *dir = NULL;
	struct dirent *entry;
	uint64_t sum = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (is_entry(entry))
			sum += of_thread(pid, entry->d_name);
	}
	return sum;
}

static uint64_t thread_one(pid_t pid, const char *tid)
{
	(void)pid, (void)tid;
	return 1;
}

unsigned int sl_proc_threads(pid_t pid)
{
	return (unsigned int)sum_threads(pid, thread_one);
}

uint64_t sl_proc_waits(pid_t pid)
{
	return sum_threads(pid, thread_waits);
}

uint64_t sl_proc_cpu_ns(pid_t pid)
{
	return sum_threads(pid, thread_cpu_ns);
}

pid_t sl_proc_child(pid_t pid)
{
	_cleanup_file_ FILE *file = NULL;
	char path[64];
	int child = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	file = fopen(path, "re");
	return file && fscanf(file, "%d", &child) == 1 ? child : 0;
}
