/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attach and Detach of which a killed worker did one half: what is left of them ends. */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/bpffs.h"
#include "kernel/cgroup.h"
#include "kernel/set.h"
#include "system/agent.h"
#include "system/cli.h"
#include "system/expect.h"

TestSuite(agent_detach, .init = agent_up, .fini = agent_down, .timeout = 120);

static struct sl_set *open_set(void)
{
	struct sl_set *set = NULL;
	struct sl_err err = {};

	cr_assert_eq(sl_set_open(&set, agent.set, &err), 0, "%s", err.text);
	return set;
}

static unsigned long long cgroup_of(const struct box *box)
{
	_cleanup_fd_ int fd = -1;
	unsigned long long id;
	struct sl_err err = {};

	cr_assert_eq(sl_cgroup_open(&fd, box->cgroup, &err), 0, "%s", err.text);
	cr_assert_eq(sl_cgroup_id(&id, fd), 0);
	return id;
}

static bool has_row(unsigned long long cgroup_id)
{
	_cleanup_(sl_set_free) struct sl_set *set = open_set();
	unsigned int id;
	int ret = sl_sandbox_of_cgroup(set, cgroup_id, &id);

	cr_assert(!ret || ret == -ENOENT);
	return !ret;
}

static bool is_gone(void *arg)
{
	return !has_row(*(unsigned long long *)arg) && !agent_sessions();
}

/* By which members are told: the first row that a detach removes. */
Test(agent_detach, cut_short_between_its_rows)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	unsigned long long cgroup_id;
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	cgroup_id = cgroup_of(&box);
	cr_assert(has_row(cgroup_id));
	set = open_set();
	cr_assert_eq(bpf_map_delete_elem(sl_set_map_fd(set, SL_MAP_CGROUPS), &cgroup_id), 0);
	agent_do(box.control, "Detach", "{'sandbox': '%s'}", box.sandbox);
	cr_expect_not(has_row(cgroup_id));
	box.sandbox[0] = '\0';
	box_free(&box);
}

/* Without its programs nothing is enforced, whatever the rows say. */
Test(agent_detach, cut_short_after_the_programs)
{
	char pins[PATH_MAX], *log;
	unsigned long long cgroup_id;
	struct sl_err err = {};
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	cgroup_id = cgroup_of(&box);
	snprintf(pins, sizeof(pins), "%s/sandbox/%s", agent.set, box.sandbox);
	cr_assert_eq(access(pins, F_OK), 0);
	cr_assert_eq(sl_bpffs_remove(pins, &err), 0, "%s", err.text);
	cr_assert_eq(kill(agent_worker(), SIGKILL), 0);
	cr_expect(eventually(is_gone, &cgroup_id));
	log = agent_log();
	cr_expect_not_null(strstr(log, "it was being detached when the agent was killed"));
	free(log);
	box.sandbox[0] = '\0';
	box_free(&box);
}

/* An id whose detach was cut short at the end: the next sandbox of that id has none of its rows. */
Test(agent_detach, cut_short_before_the_end)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	const struct sl_process_key key = { .tgid = 0x7ffffff0, .start_ns = 1 };
	struct sl_process process = { .key = key }, found;
	char pins[PATH_MAX], id[16];
	struct box box;

	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	snprintf(id, sizeof(id), "%s", box.sandbox);
	box_free(&box);
	set = open_set();
	snprintf(pins, sizeof(pins), "%s/sandbox/%s", agent.set, id);
	cr_expect_eq(access(pins, F_OK), -1);
	cr_assert_eq(mkdir(pins, 0700), 0);
	process.sandbox = (__u32)atoi(id);
	cr_assert_eq(bpf_map_update_elem(sl_set_map_fd(set, SL_MAP_PROCS), &key, &process, BPF_ANY),
		     0);
	box_make(&box, NULL, NULL);
	box_attach(&box, agent_policy(false, 1), NULL);
	cr_expect_str_eq(box.sandbox, id);
	cr_expect_eq(bpf_map_lookup_elem(sl_set_map_fd(set, SL_MAP_PROCS), &key, &found), -ENOENT);
	box_free(&box);
	cr_expect_eq(access(pins, F_OK), -1);
}

/* An attach that is cut short after its first row: its client can attach again. */
Test(agent_detach, attach_cut_short)
{
	_cleanup_(sl_set_free) struct sl_set *set = NULL;
	struct sl_sandbox row = { .id = 7, .name = "half" };
	_cleanup_fd_ int lock = -1;
	char *log;
	struct box box;
	pid_t worker = agent_worker();

	box_make(&box, NULL, NULL);
	set = open_set();
	/* Keeps the agent where it is about to attach: the rest is done here in its place. */
	lock = open(SL_SET_ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(flock(lock, LOCK_EX), 0);
	box_begin(&box, agent_policy(false, 1));
	cr_assert_eq(agent_sessions(), 1);
	row.cgroup_id = cgroup_of(&box);
	snprintf(row.cgroup, sizeof(row.cgroup), "%s", strrchr(box.cgroup, '/'));
	cr_assert_eq(bpf_map_update_elem(sl_set_map_fd(set, SL_MAP_SANDBOXES), &row.id, &row,
					 BPF_ANY),
		     0);
	cr_assert_eq(kill(worker, SIGKILL), 0);
	sl_cleanup_fd(&lock);
	sl_control_free(&box.control);
	box.control = agent_connect();
	cr_expect_not(has_row(row.cgroup_id));
	log = agent_log();
	cr_expect_not_null(strstr(log, "was taken back: the agent was killed meanwhile"));
	free(log);
	box_attach(&box, agent_policy(false, 1), NULL);
	box_free(&box);
}
