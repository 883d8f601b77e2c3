// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "run/world.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kernel/bpffs.h"
#include "kernel/cgroup.h"
#include "kernel/shared.h"

#define RUN_PREFIX "run-"

/* Of one command; a set that many sandboxes share has more. */
#define PROCS_DEFAULT 16384
#define EXES_DEFAULT 2048
#define SOCKS_DEFAULT 16384

/* In the directory of the set: a link to the cgroup. */
#define CGROUP_LINK "cgroup"

/* How long killed processes may take to be gone before their cgroup is left behind. */
#define DESTROY_MS 5000

static int cgroup_link(char out[PATH_MAX], const char *dir)
{
	return snprintf(out, PATH_MAX, "%s/" CGROUP_LINK, dir) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static void remove_stale(const char *dir)
{
	_cleanup_fd_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char link[PATH_MAX], cgroup[PATH_MAX];
	ssize_t len;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || !sl_bpffs_is(fd, dir))
		return;
	len = cgroup_link(link, dir) ? -1 : readlink(link, cgroup, sizeof(cgroup) - 1);
	if (len > 0) {
		cgroup[len] = '\0';
		sl_cgroup_destroy(cgroup, DESTROY_MS);
	}
	if (!sl_set_destroy(dir, NULL))
		sl_log_notice("removed what a killed run had left at %s", dir);
}

static void remove_all_stale(void)
{
	_cleanup_dir_ DIR *root = opendir(SL_SET_ROOT);
	char path[PATH_MAX];
	struct dirent *entry;

	while (root && (entry = readdir(root))) {
		if (strncmp(entry->d_name, RUN_PREFIX, strlen(RUN_PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), SL_SET_ROOT "/%s", entry->d_name);
		remove_stale(path);
	}
}

/* What the keeper is told: nothing is left to do, or the token of a session that is to end. */
#define KEEPER_QUIT "q"
#define TOKEN_MAX 128

static void clean_up(const struct sl_run_world *world, const char *token)
{
	sl_cgroup_destroy(world->cgroup, DESTROY_MS);
	if (world->agent && token[0])
		sl_run_agent_finish(sl_run_agent_socket(world->agent), token);
	else if (!world->agent)
		sl_set_destroy(world->dir, NULL);
}

/* The connection to the agent is to end with the process whose session it is. */
static int keep_only(int fd)
{
	if (fd != STDERR_FILENO + 1)
		fd = dup2(fd, STDERR_FILENO + 1);
	(void)close_range(STDERR_FILENO + 2, ~0U, 0);
	return fd;
}

/* Waits for the end of `fd`, or to be told that nothing is left to do. */
static _Noreturn void keeper_main(const struct sl_run_world *world, int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char words[TOKEN_MAX], token[TOKEN_MAX] = "";
	ssize_t n;

	setsid();
	/* Not to hold the caller's pipes open. */
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (world->agent)
		fd = keep_only(fd);
	while ((n = read(fd, words, sizeof(words) - 1)) > 0 || (n < 0 && errno == EINTR)) {
		if (n < 0)
			continue;
		words[n] = '\0';
		if (!strcmp(words, KEEPER_QUIT))
			_exit(0);
		strcpy(token, words);
	}
	clean_up(world, token);
	_exit(0);
}

static int keeper_start(struct sl_run_world *world, struct sl_err *err)
{
	int fds[2];

	/* O_DIRECT: what is written at once is read at once (pipe(2)). */
	if (pipe2(fds, O_CLOEXEC | O_DIRECT))
		return sl_err_sys(err, errno, "can't make a pipe");
	world->keeper = fork();
	if (!world->keeper) {
		close(fds[1]);
		keeper_main(world, fds[0]);
	}
	close(fds[0]);
	if (world->keeper < 0) {
		close(fds[1]);
		return sl_err_sys(err, errno, "can't start the keeper");
	}
	world->keeper_fd = fds[1];
	return 0;
}

/* Where the cgroup will be; without an agent, told to whoever has to clean up before there is one. */
static int name_cgroup(struct sl_run_world *world, struct sl_err *err)
{
	char self[PATH_MAX - 64], link[PATH_MAX];
	int rc = sl_cgroup_self(self, sizeof(self), err);

	if (rc)
		return rc;
	snprintf(world->cgroup, sizeof(world->cgroup), "%s/sluice-run-%d", self, getpid());
	if (world->agent)
		return 0;
	rc = cgroup_link(link, world->dir);
	if (!rc && symlink(world->cgroup, link))
		rc = -errno;
	return rc ? sl_err_sys(err, -rc, "can't note the cgroup in '%s'", world->dir) : 0;
}

static int world_fill(struct sl_run_world *world, const char *name, struct sl_err *err)
{
	int rc = name_cgroup(world, err);

	rc = rc ? rc : keeper_start(world, err);
	rc = rc ? rc : sl_cgroup_create(world->cgroup, err);
	return rc ? rc : sl_sandbox_attach(world->set, world->cgroup, name, &world->sandbox, err);
}

int sl_run_world_make(struct sl_run_world *world, const char *name,
		      const struct sl_set_options *options, struct sl_err *err)
{
	struct sl_set_options sizes = *options;
	int rc;

	sizes.max_sandboxes = 1;
	sizes.max_procs = sizes.max_procs ?: PROCS_DEFAULT;
	sizes.max_exes = sizes.max_exes ?: EXES_DEFAULT;
	sizes.max_socks = sizes.max_socks ?: SOCKS_DEFAULT;

	*world = (struct sl_run_world){ .keeper = -1, .keeper_fd = -1 };
	remove_all_stale();
	snprintf(world->dir, sizeof(world->dir), SL_SET_ROOT "/" RUN_PREFIX "%d", getpid());
	rc = sl_set_create(&world->set, world->dir, &sizes, err);
	if (rc)
		return rc;
	rc = world_fill(world, name, err);
	if (rc) {
		sl_run_world_end(world);
		sl_run_world_free(world);
	}
	return rc;
}

int sl_run_world_make_with(struct sl_run_world *world, struct sl_run_agent *agent,
			   struct sl_err *err)
{
	int rc;

	*world = (struct sl_run_world){ .agent = agent, .keeper = -1, .keeper_fd = -1 };
	rc = name_cgroup(world, err);
	rc = rc ? rc : keeper_start(world, err);
	rc = rc ? rc : sl_cgroup_create(world->cgroup, err);
	if (rc)
		sl_run_world_end(world);
	return rc;
}

int sl_run_world_attach(struct sl_run_world *world, const struct sl_run_attach *attach,
			const struct sl_set_options *options, struct sl_err *err)
{
	struct sl_set_options sizes = *options;
	struct sl_run_attach wanted = *attach;
	const char *token;
	int rc;

	wanted.cgroup = world->cgroup;
	rc = sl_run_agent_attach(world->agent, &wanted, &world->set, &world->sandbox, err);
	if (rc)
		return rc;
	token = sl_run_agent_token(world->agent);
	if (write(world->keeper_fd, token, strlen(token)) < 0)
		return sl_err_sys(err, errno, "can't tell the keeper");
	/* The ring buffer is the run's own. */
	sizes.ring_bytes = 0;
	if (!sl_shared_check(world->set, &sizes, err))
		return 0;
	return sl_err_hint(err, "use --agent " SL_RUN_AGENT_NONE " for a set of its own");
}

void sl_run_world_end(struct sl_run_world *world)
{
	int rc = world->cgroup[0] ? sl_cgroup_destroy(world->cgroup, DESTROY_MS) : 0;

	if (rc)
		sl_log_warning("cgroup %s could not be removed: %s", world->cgroup, strerror(-rc));
	if (!world->agent)
		sl_set_destroy(world->dir, NULL);
	else if (world->set)
		sl_run_agent_detach(world->agent, world->set, world->sandbox);
	if (world->keeper_fd >= 0)
		(void)!write(world->keeper_fd, KEEPER_QUIT, strlen(KEEPER_QUIT));
	sl_cleanup_fd(&world->keeper_fd);
	if (world->keeper > 0)
		waitpid(world->keeper, NULL, 0);
}

void sl_run_world_free(struct sl_run_world *world)
{
	sl_set_free(&world->set);
}
