// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Loading the programs and pinning them: the beginning of a set. */
#define _GNU_SOURCE
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/format.h"
#include "kernel/bpffs.h"
#include "kernel/feature.h"
#include "kernel/set_private.h"
#include "sluice.skel.h"

#define RING_BYTES_DEFAULT (8U << 20)
#define SLOTS_DEFAULT 16384
#define SLOTS_MIN 64
/* A bucket has 6 places for live connections: 1.5 a slot. */
#define SLOTS_PER_BUCKET 4

/* How often a set's directory is made again when another process has just removed it. */
#define LOCK_TRIES 1000

static void cleanup_skel(struct sluice_bpf **skel)
{
	sluice_bpf__destroy(*skel);
}

/* True when the kernel has the tracepoint: its BTF typedef says so. */
static bool tracepoint_exists(const struct btf *btf, const char *name)
{
	char type[128];

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	return btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
}

static void autoload(struct sluice_bpf *skel, const char *prefix, const char *name, bool on)
{
	struct bpf_program *prog;
	char full[128];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	prog = bpf_object__find_program_by_name(skel->obj, full);
	if (prog)
		bpf_program__set_autoload(prog, on);
}

/* See kernel/adopt.h. */
static void choose_iterators(struct sluice_bpf *skel, const struct btf *btf)
{
	bool direct = sl_feature_sock_of_file(btf);

	autoload(skel, "", "seed_socks", direct);
	autoload(skel, "", "unseed_socks", direct);
	autoload(skel, "", "dump_socks", direct);
	autoload(skel, "", "find_socks", !direct);
	autoload(skel, "", "dump_socks_found", !direct);
}

/*
 * Leaves out what this kernel lacks; tells whether bytes must be counted by cgroup_skb.
 * (libbpf caches the kernel's BTF for the load itself; this one parse is for the probe.)
 */
static int choose_programs(struct sluice_bpf *skel, bool *count_skb, struct sl_err *err)
{
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf) {
		sl_err_sys(err, errno, "can't read the kernel's BTF (/sys/kernel/btf/vmlinux)");
		return sl_err_hint(err, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y "
					"(Debian's are)");
	}
	for (unsigned int i = 0; i < sl_tracepoint_count; i++) {
		const struct sl_tracepoint *tp = &sl_tracepoints[i];
		bool exists = tracepoint_exists(btf, tp->name);

		if (tp->optional && !exists)
			*count_skb = true;
		if (tp->optional && (!exists || *count_skb)) {
			autoload(skel, "enter_", tp->name, false);
			autoload(skel, "", tp->target, false);
		}
	}
	choose_iterators(skel, btf);
	btf__free(btf);
	for (unsigned int i = 0; i < sl_cgroup_prog_count; i++)
		if (sl_cgroup_progs[i].when == SL_PROG_COUNT_SKB)
			autoload(skel, "", sl_cgroup_progs[i].name, *count_skb);
	return 0;
}

static unsigned int power_of_two(unsigned int n, unsigned int least)
{
	unsigned int size = least;

	while (size < n && size < 1U << 30)
		size *= 2;
	return size;
}

static unsigned int or_default(unsigned int n, unsigned int fallback)
{
	return n ? n : fallback;
}

unsigned int sl_set_ring_bytes(const struct sl_set_options *options)
{
	return power_of_two(or_default(options->ring_bytes, RING_BYTES_DEFAULT), 4096);
}

static int choose_sizes(struct sluice_bpf *skel, const struct sl_set_options *o)
{
	unsigned int ring = sl_set_ring_bytes(o);
	unsigned int slots = power_of_two(or_default(o->max_closed, SLOTS_DEFAULT), SLOTS_MIN);
	/* Ids start at 1; index 0 of the counters is what belongs to no sandbox. */
	unsigned int sandboxes = or_default(o->max_sandboxes, SL_SANDBOX_MAX - 1) + 1;
	int rc;

#define RESIZE(map, n) (bpf_map__set_max_entries(skel->maps.map, (n)))
	rc = RESIZE(ring, ring);
	rc = rc ?: (RESIZE(socks, slots) ?: RESIZE(tuple_buckets, slots / SLOTS_PER_BUCKET));
	/* Each question to a policy DNS has a row, as long as its socket is remembered. */
	if (slots > SLOTS_DEFAULT)
		rc = rc ?: RESIZE(sock_more, slots);
	if (o->max_socks)
		rc = rc ?: (RESIZE(socks_over, o->max_socks) ?: RESIZE(tuples, o->max_socks));
	if (o->max_socks)
		rc = rc ?: RESIZE(peers, o->max_socks);
	rc = rc ?: RESIZE(counters, sandboxes);
	rc = rc ?: RESIZE(sandboxes, sandboxes);
	rc = rc ?: RESIZE(cgroups, sandboxes);
	rc = rc ?: (RESIZE(rings, sandboxes) ?: RESIZE(ring_ctl, sandboxes));
	if (o->max_procs)
		rc = rc ?: RESIZE(procs, o->max_procs);
	if (skel->rodata->owners_by_key)
		rc = rc ?: RESIZE(owners, bpf_map__max_entries(skel->maps.procs));
	if (o->max_exes)
		rc = rc ?: (RESIZE(exes, o->max_exes) ?: RESIZE(exe_index, o->max_exes));
	if (o->max_lineages)
		rc = rc
			     ?: (RESIZE(lineages, o->max_lineages)
					 ?: RESIZE(lineage_index, o->max_lineages));
#undef RESIZE
	return rc;
}

static int load_failed(int rc, struct sl_err *err)
{
	sl_err_sys(err, -rc, "the kernel refused to load the programs");
	if (rc == -EPERM)
		return sl_err_hint(err,
				   "this needs CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and "
				   "CAP_SYS_ADMIN, and no lockdown: see 'sluice feature probe'");
	if (rc == -ENOMEM || rc == -E2BIG)
		return sl_err_hint(err, "ask for smaller maps (--max-procs, --max-exes, "
					"--max-lineages, --max-closed, --max-socks, --ring-bytes), "
					"or raise the memory limit of this cgroup");
	if (rc == -EMFILE)
		return sl_err_hint(err, "raise the limit of open files of this process: "
					"'ulimit -n 1024' before it");
	return sl_err_hint(err, "see 'sluice feature probe', and run again with -v for the "
				"verifier's words");
}

static int fill_config(struct sluice_bpf *skel, const struct sl_set_options *o, bool count_skb)
{
	struct sl_config config = {
		.schema = SL_SCHEMA,
		.events = o->events,
		.sock_slots = bpf_map__max_entries(skel->maps.socks),
		.tuple_buckets = bpf_map__max_entries(skel->maps.tuple_buckets),
		.count_skb = count_skb,
		.wake_bytes = bpf_map__max_entries(skel->maps.ring) / 4,
		.realtime_ns = sl_realtime_offset_ns(),
	};
	__u32 zero = 0;

	if (getrandom(&config.hash_seed, sizeof(config.hash_seed), 0) < 0)
		return -errno;
	snprintf(config.version, sizeof(config.version), "%s", SL_VERSION);
	return bpf_map_update_elem(bpf_map__fd(skel->maps.config), &zero, &config, BPF_ANY) ? -errno
											    : 0;
}

static int pin_maps(struct sluice_bpf *skel, const char *dir)
{
	struct bpf_map *map;
	char path[PATH_MAX];
	int rc;

	bpf_object__for_each_map(map, skel->obj) {
		if (bpf_map__is_internal(map)) /* .rodata: the programs hold it */
			continue;
		rc = sl_set_path(path, dir, SL_SET_MAPS, bpf_map__name(map));
		rc = rc ?: bpf_map__pin(map, path);
		if (rc)
			return rc;
	}
	return 0;
}

static int pin_program(struct sluice_bpf *skel, const char *dir, const char *name)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(skel->obj, name);
	char path[PATH_MAX];
	int rc;

	if (!prog || !bpf_program__autoload(prog))
		return 0;
	rc = sl_set_path(path, dir, SL_SET_PROGS, name);
	return rc ?: bpf_program__pin(prog, path);
}

static int pin_programs(struct sluice_bpf *skel, const char *dir)
{
	int rc = pin_program(skel, dir, SL_PROG_REFUSED);

	rc = rc ?: pin_program(skel, dir, SL_PROG_RELAYED);
	rc = rc ?: pin_program(skel, dir, SL_PROG_ADOPTED);
	rc = rc ?: pin_program(skel, dir, SL_PROG_PROXY);
	for (unsigned int i = 0; !rc && i < sl_cgroup_prog_count; i++)
		rc = pin_program(skel, dir, sl_cgroup_progs[i].name);
	return rc;
}

static int pin_link(struct bpf_link *link, const char *dir, const char *sub, const char *name)
{
	char path[PATH_MAX];
	int rc;

	if (!link)
		return -errno;
	rc = sl_set_path(path, dir, sub, name);
	rc = rc ?: bpf_link__pin(link, path);
	/* The pin holds the link from here on. */
	bpf_link__destroy(link);
	return rc;
}

static int attach_tracepoint(struct sluice_bpf *skel, const char *dir,
			     const struct sl_tracepoint *tp)
{
	struct bpf_program *enter, *target;
	struct bpf_map *jump;
	char name[128];
	__u32 zero = 0;
	int fd;

	snprintf(name, sizeof(name), "enter_%s", tp->name);
	enter = bpf_object__find_program_by_name(skel->obj, name);
	snprintf(name, sizeof(name), "jump_%s", tp->name);
	jump = bpf_object__find_map_by_name(skel->obj, name);
	target = bpf_object__find_program_by_name(skel->obj, tp->target);
	if (!enter || !jump || !target)
		return -ENOENT;
	if (!bpf_program__autoload(enter))
		return 0;
	fd = bpf_program__fd(target);
	if (bpf_map_update_elem(bpf_map__fd(jump), &zero, &fd, BPF_ANY))
		return -errno;
	return pin_link(bpf_program__attach(enter), dir, SL_SET_LINKS, tp->name);
}

static int pin_all(struct sluice_bpf *skel, const char *dir, struct sl_err *err)
{
	static const char *const subs[] = { SL_SET_MAPS, SL_SET_PROGS, SL_SET_LINKS, SL_SET_ITERS,
					    SL_SET_SANDBOXES };
	struct bpf_program *prog;
	char path[PATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(subs); i++) {
		rc = sl_set_path(path, dir, subs[i], NULL);
		rc = rc ?: sl_bpffs_mkdirs(path, err);
		if (rc)
			return rc;
	}
	rc = pin_maps(skel, dir);
	rc = rc ?: pin_programs(skel, dir);
	for (unsigned int i = 0; !rc && i < sl_iterator_count; i++) {
		prog = bpf_object__find_program_by_name(skel->obj, sl_iterators[i]);
		if (prog && !bpf_program__autoload(prog))
			continue;
		rc = prog ? pin_link(bpf_program__attach_iter(prog, NULL), dir, SL_SET_ITERS,
				     sl_iterators[i])
			  : -ENOENT;
	}
	if (rc)
		return sl_err_sys(err, -rc, "can't pin below '%s'", dir);
	for (unsigned int i = 0; !rc && i < sl_tracepoint_count; i++) {
		rc = attach_tracepoint(skel, dir, &sl_tracepoints[i]);
		if (rc)
			sl_err_sys(err, -rc, "can't attach to tracepoint %s",
				   sl_tracepoints[i].name);
	}
	return rc;
}

static int load(struct sluice_bpf **out, const struct sl_set_options *options, struct sl_err *err)
{
	_cleanup_(cleanup_skel) struct sluice_bpf *skel = NULL;
	bool count_skb = options->count_skb;
	int rc;

	libbpf_set_print(sl_libbpf_log);
	skel = sluice_bpf__open();
	if (!skel)
		return sl_err_sys(err, errno, "can't open the built-in programs");
	skel->rodata->owners_by_key = options->owners_by_key || !sl_feature_storage_in_hooks();
	rc = choose_programs(skel, &count_skb, err);
	if (rc)
		return rc;
	rc = choose_sizes(skel, options);
	if (rc)
		return sl_err_sys(err, -rc, "a map size is out of range");
	rc = sluice_bpf__load(skel);
	if (rc)
		return load_failed(rc, err);
	rc = fill_config(skel, options, count_skb);
	if (rc)
		return sl_err_sys(err, -rc, "can't write the set's settings");
	*out = TAKE_PTR(skel);
	return 0;
}

/*
 * Makes the directory and locks it before it holds anything, so that nobody takes it for
 * a stale one (invariant 2). Who did so in between holds it for a moment, to remove it.
 */
static int lock_new(int *out, const char *dir, struct sl_err *err)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		_cleanup_fd_ int fd = -1;
		int rc = sl_bpffs_mkdirs(dir, err);

		if (rc)
			return rc;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || flock(fd, LOCK_EX))
			return sl_err_sys(err, errno, "can't lock '%s'", dir);
		if (!sl_bpffs_is(fd, dir))
			continue;
		*out = TAKE_FD(fd);
		return 0;
	}
	return sl_err_set(err, EBUSY, "'%s' is removed as often as it is made", dir);
}

int sl_set_create(struct sl_set **out, const char *dir, const struct sl_set_options *options,
		  struct sl_err *err)
{
	static const struct sl_set_options defaults;
	_cleanup_(cleanup_skel) struct sluice_bpf *skel = NULL;
	_cleanup_fd_ int lock = -1;
	int rc;

	rc = sl_bpffs_mount(err);
	if (rc)
		return rc;
	if (!access(dir, F_OK))
		return sl_err_set(err, EEXIST, "there is a set at '%s' already", dir);
	rc = lock_new(&lock, dir, err);
	if (rc)
		return rc;
	rc = load(&skel, options ? options : &defaults, err);
	rc = rc ?: pin_all(skel, dir, err);
	rc = rc ?: sl_set_open(out, dir, err);
	if (rc) {
		sl_set_destroy(dir, NULL);
		return rc;
	}
	(*out)->lock_fd = TAKE_FD(lock);
	return 0;
}
