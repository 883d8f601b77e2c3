/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "kernel/cgroup.h"

#define CGROUP_PREFIX "sluice-bench-"
#define SET_PREFIX "bench-"
#define DESTROY_MS 5000

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

bool sl_world_stopped(void)
{
	return stopped;
}

/* No SA_RESTART: a wait that a signal interrupts returns, and its loop looks. */
static void watch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Whether a benchmark with the pid that ends `name` runs now. */
static bool owner_lives(const char *name, const char *prefix)
{
	_cleanup_fd_ int fd = -1;
	char path[64], comm[32] = "";
	uint32_t pid;

	if (sl_parse_u32(name + strlen(prefix), 1, INT32_MAX, &pid))
		return true; /* not a name of ours: hands off */
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, comm, sizeof(comm) - 1) < 0)
		return false;
	return !strcmp(comm, "sluice-bench\n");
}

/* Calls `fn` with the path of each directory that a benchmark without a process left. */
static void each_stale(const char *parent, const char *prefix, void (*fn)(const char *path))
{
	_cleanup_dir_ DIR *dir = opendir(parent);
	struct dirent *entry;
	char path[PATH_MAX];

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 ||
		    owner_lives(entry->d_name, prefix))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) <
		    (int)sizeof(path))
			fn(path);
	}
}

/* A set that is in use is locked (set.h, invariant 2). */
static void remove_set(const char *path)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sl_err err = { 0 };

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return;
	if (sl_set_destroy(path, &err))
		sl_log_err(SL_LOG_WARNING, &err);
}

static void remove_cgroup(const char *path)
{
	int rc = sl_cgroup_destroy(path, DESTROY_MS);

	if (rc)
		sl_log_warning("can't remove cgroup '%s': %s", path, strerror(-rc));
}

static void sysctl_write(const char *path, const char *value)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		sl_log_notice("can't set %s", path);
}

static int add_address(int fd, struct sl_err *err)
{
	struct ifreq ifr = { .ifr_name = "lo:1" };
	const struct sockaddr_in addr = { .sin_family = AF_INET,
					  .sin_addr.s_addr = htonl(SL_WORLD_ADDR) };

	memcpy(&ifr.ifr_addr, &addr, sizeof(addr));
	if (ioctl(fd, SIOCSIFADDR, &ifr))
		return sl_err_sys(err, errno, "can't add an address to loopback");
	return 0;
}

/*
 * A namespace of its own keeps the host's ports and its list of sockets out of the
 * measurement. Few closed connections are remembered (TIME_WAIT): they would only use up
 * ports, and make the lists of /proc/net long, to the disadvantage of who reads those.
 */
static int enter_netns(struct sl_err *err)
{
	struct ifreq ifr = { .ifr_flags = IFF_UP };
	_cleanup_fd_ int fd = -1;

	if (unshare(CLONE_NEWNET))
		return sl_err_sys(err, errno, "can't make a network namespace");
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sl_err_sys(err, errno, "socket");
	strcpy(ifr.ifr_name, "lo");
	if (ioctl(fd, SIOCSIFFLAGS, &ifr))
		return sl_err_sys(err, errno, "can't set up loopback");
	sysctl_write("/proc/sys/net/ipv4/ip_local_port_range", "10240 65535");
	sysctl_write("/proc/sys/net/ipv4/tcp_max_tw_buckets", "1024");
	return add_address(fd, err);
}

static int make_cgroups(struct sl_world *world, struct sl_err *err)
{
	char mount[PATH_MAX - 64];
	int rc;

	rc = sl_cgroup_mount(mount, sizeof(mount), err);
	if (rc)
		return rc;
	each_stale(mount, CGROUP_PREFIX, remove_cgroup);
	snprintf(world->cgroup, sizeof(world->cgroup), "%s/" CGROUP_PREFIX "%d", mount, getpid());
	snprintf(world->plain, sizeof(world->plain), "%s/" CGROUP_PREFIX "%d/plain", mount,
		 getpid());
	snprintf(world->box, sizeof(world->box), "%s/" CGROUP_PREFIX "%d/box", mount, getpid());
	/* An earlier process with this pid. */
	remove_cgroup(world->cgroup);
	rc = sl_cgroup_create(world->cgroup, err);
	if (!rc)
		rc = sl_cgroup_create(world->plain, err);
	if (!rc)
		rc = sl_cgroup_create(world->box, err);
	return rc;
}

int sl_world_new(struct sl_world **out, struct sl_err *err)
{
	_cleanup_world_ struct sl_world *world = calloc(1, sizeof(*world));
	int rc;

	if (!world)
		return sl_err_sys(err, ENOMEM, "benchmark");
	if (geteuid()) {
		sl_err_set(err, EPERM, "benchmarks load BPF programs and make cgroups");
		return sl_err_hint(err, "run as root");
	}
	watch_signals();
	each_stale(SL_SET_ROOT, SET_PREFIX, remove_set);
	snprintf(world->set_dir, sizeof(world->set_dir), SL_SET_ROOT "/" SET_PREFIX "%d", getpid());
	remove_set(world->set_dir);
	rc = enter_netns(err);
	if (!rc)
		rc = make_cgroups(world, err);
	if (rc)
		return rc;
	*out = TAKE_PTR(world);
	return 0;
}

void sl_world_free(struct sl_world **world)
{
	struct sl_err err = { 0 };

	if (!*world)
		return;
	if ((*world)->cgroup[0])
		sl_cgroup_kill((*world)->cgroup);
	if ((*world)->set && sl_world_unload(*world, &err))
		sl_log_err(SL_LOG_WARNING, &err);
	if ((*world)->cgroup[0])
		remove_cgroup((*world)->cgroup);
	free(*world);
	*world = NULL;
}

int sl_world_load(struct sl_world *world, unsigned int events, struct sl_err *err)
{
	struct sl_set_options options = { .events = events };
	struct sl_err ignored;
	int rc;

	rc = sl_set_create(&world->set, world->set_dir, &options, err);
	if (rc)
		return rc;
	rc = sl_sandbox_attach(world->set, world->box, "bench", &world->sandbox, err);
	if (rc)
		sl_world_unload(world, &ignored);
	return rc;
}

int sl_world_unload(struct sl_world *world, struct sl_err *err)
{
	int rc = 0;

	if (world->sandbox)
		rc = sl_sandbox_detach(world->set, world->sandbox, err);
	world->sandbox = 0;
	sl_set_free(&world->set);
	return sl_set_destroy(world->set_dir, rc ? NULL : err) ?: rc;
}
