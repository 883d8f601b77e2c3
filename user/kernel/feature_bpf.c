/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Probes that ask the kernel by loading the smallest program, or making a map. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/feature_private.h"

/* return 0; */
static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static enum sl_feature_state unprivileged(char value[SL_FEATURE_VALUE_MAX])
{
	snprintf(value, SL_FEATURE_VALUE_MAX, "not tried: it takes the capabilities above");
	return SL_FEATURE_UNKNOWN;
}

/* Of libbpf's probes and of loads: 1 or an fd, 0, or -errno. */
static enum sl_feature_state verdict(int rc, char value[SL_FEATURE_VALUE_MAX])
{
	if (rc < 0)
		snprintf(value, SL_FEATURE_VALUE_MAX, "%s", strerror(-rc));
	return rc > 0 ? SL_FEATURE_YES : SL_FEATURE_NO;
}

enum sl_feature_state sl_probe_helper(const struct sl_feature_run *run, const char *arg,
				      char value[SL_FEATURE_VALUE_MAX])
{
	static const struct {
		const char *name;
		enum bpf_func_id id;
	} known[] = { { "loop", BPF_FUNC_loop } };

	if (!run->may_bpf)
		return unprivileged(value);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, arg))
			return verdict(libbpf_probe_bpf_helper(BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
							       known[i].id, NULL),
				       value);
	return SL_FEATURE_UNKNOWN;
}

enum sl_feature_state sl_probe_map(const struct sl_feature_run *run, const char *arg,
				   char value[SL_FEATURE_VALUE_MAX])
{
	static const struct {
		const char *name;
		enum bpf_map_type type;
	} known[] = { { "ringbuf", BPF_MAP_TYPE_RINGBUF },
		      { "task_storage", BPF_MAP_TYPE_TASK_STORAGE },
		      { "sk_storage", BPF_MAP_TYPE_SK_STORAGE } };

	if (!run->may_bpf)
		return unprivileged(value);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, arg))
			return verdict(libbpf_probe_bpf_map_type(known[i].type, NULL), value);
	return SL_FEATURE_UNKNOWN;
}

enum sl_feature_state sl_probe_program(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX])
{
	static const struct {
		const char *name;
		enum bpf_prog_type type;
	} known[] = { { "cgroup_sock", BPF_PROG_TYPE_CGROUP_SOCK },
		      { "cgroup_sock_addr", BPF_PROG_TYPE_CGROUP_SOCK_ADDR },
		      { "sock_ops", BPF_PROG_TYPE_SOCK_OPS },
		      { "cgroup_skb", BPF_PROG_TYPE_CGROUP_SKB } };

	if (!run->may_bpf)
		return unprivileged(value);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, arg))
			return verdict(libbpf_probe_bpf_prog_type(known[i].type, NULL), value);
	return SL_FEATURE_UNKNOWN;
}

/* A kernel that can link to cgroups gets as far as looking at the bad descriptor. */
enum sl_feature_state sl_probe_cgroup_link(const struct sl_feature_run *run, const char *arg,
					   char value[SL_FEATURE_VALUE_MAX])
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_CGROUP_INET_SOCK_CREATE);
	_cleanup_fd_ int prog = -1;
	int link;

	(void)arg;
	if (!run->may_bpf)
		return unprivileged(value);
	prog = bpf_prog_load(BPF_PROG_TYPE_CGROUP_SOCK, "sl_probe", "GPL", nothing,
			     ARRAY_SIZE(nothing), &opts);
	if (prog < 0)
		return verdict(prog, value);
	link = bpf_link_create(prog, -1, BPF_CGROUP_INET_SOCK_CREATE, NULL);
	if (link >= 0)
		close(link);
	return link == -EBADF ? SL_FEATURE_YES : verdict(link, value);
}

/* Loads a program of a type that is tied to something in the kernel's BTF. */
static enum sl_feature_state try_attach_point(const struct sl_feature_run *run,
					      enum bpf_prog_type type, enum bpf_attach_type attach,
					      const char *name, __u32 kind,
					      char value[SL_FEATURE_VALUE_MAX])
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach);
	_cleanup_fd_ int fd = -1;
	__s32 id;

	if (!run->btf) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "not tried: it takes the kernel's BTF");
		return SL_FEATURE_UNKNOWN;
	}
	id = btf__find_by_name_kind(run->btf, name, kind);
	if (id < 0) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "the kernel has no %s", name);
		return SL_FEATURE_NO;
	}
	if (!run->may_bpf)
		return unprivileged(value);
	opts.attach_btf_id = (__u32)id;
	fd = bpf_prog_load(type, "sl_probe", "GPL", nothing, ARRAY_SIZE(nothing), &opts);
	/* A descriptor may be 0. */
	return verdict(fd >= 0 ? 1 : fd, value);
}

enum sl_feature_state sl_probe_tracepoint(const struct sl_feature_run *run, const char *arg,
					  char value[SL_FEATURE_VALUE_MAX])
{
	char name[128];

	snprintf(name, sizeof(name), "btf_trace_%s", arg);
	return try_attach_point(run, BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, name,
				BTF_KIND_TYPEDEF, value);
}

enum sl_feature_state sl_probe_iterator(const struct sl_feature_run *run, const char *arg,
					char value[SL_FEATURE_VALUE_MAX])
{
	char name[128];

	snprintf(name, sizeof(name), "bpf_iter_%s", arg);
	return try_attach_point(run, BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, name, BTF_KIND_FUNC,
				value);
}

/* Loading makes no trampoline, attaching does: kernels without it refuse only then. */
enum sl_feature_state sl_probe_fentry(const struct sl_feature_run *run, const char *arg,
				      char value[SL_FEATURE_VALUE_MAX])
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	_cleanup_fd_ int prog = -1;
	_cleanup_fd_ int link = -1;
	__s32 id;

	(void)arg;
	if (!run->btf || !run->may_bpf)
		return unprivileged(value);
	/* Called by bpf(BPF_PROG_TEST_RUN) only: nobody runs the program meanwhile. */
	id = btf__find_by_name_kind(run->btf, "bpf_fentry_test1", BTF_KIND_FUNC);
	if (id < 0) {
		snprintf(value, SL_FEATURE_VALUE_MAX, "not tried: no function to try it on");
		return SL_FEATURE_UNKNOWN;
	}
	opts.attach_btf_id = (__u32)id;
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sl_probe", "GPL", nothing, ARRAY_SIZE(nothing),
			     &opts);
	if (prog < 0)
		return verdict(prog, value);
	link = bpf_raw_tracepoint_open(NULL, prog);
	return verdict(link >= 0 ? 1 : link, value);
}

enum sl_feature_state sl_probe_bpf_lsm(const struct sl_feature_run *run, const char *arg,
				       char value[SL_FEATURE_VALUE_MAX])
{
	enum sl_feature_state state;

	(void)arg;
	state = try_attach_point(run, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, "bpf_lsm_socket_create",
				 BTF_KIND_FUNC, value);
	/* It loads without being active, and would then never run. */
	return state == SL_FEATURE_YES ? sl_probe_lsm(run, "bpf", value) : state;
}

/*
 * Whether programs of a type may look into task storage. Without arguments the call is
 * refused either way: for its first argument where the helper is there. Other words, of
 * which kernels have several, are taken for a no.
 */
static bool type_reads_storage(enum bpf_prog_type type, enum bpf_attach_type attach)
{
	static const struct bpf_insn call[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_task_storage_get },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	char log[4096] = "";
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach, .log_level = 1,
		    .log_buf = log, .log_size = sizeof(log));
	int fd = bpf_prog_load(type, "sl_probe", "GPL", call, ARRAY_SIZE(call), &opts);

	if (fd >= 0)
		close(fd);
	return fd < 0 && strstr(log, "expected=map_ptr");
}

bool sl_feature_storage_in_hooks(void)
{
	static const struct {
		enum bpf_prog_type type;
		enum bpf_attach_type attach;
	} hooks[] = { { BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE },
		      { BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT },
		      { BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS },
		      { BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS } };

	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!type_reads_storage(hooks[i].type, hooks[i].attach))
			return false;
	return true;
}

/* Byte offset of a member of a struct of the kernel, or -1. */
static int offset_of(const struct btf *btf, const char *type, const char *member)
{
	const struct btf_member *m;
	const struct btf_type *t;
	__s32 id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);

	if (id < 0)
		return -1;
	t = btf__type_by_id(btf, (__u32)id);
	m = btf_members(t);
	for (__u32 i = 0; i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), member))
			return (int)(btf_member_bit_offset(t, i) / 8);
	return -1;
}

bool sl_feature_sock_of_file(const struct btf *btf)
{
	int sk = offset_of(btf, "socket", "sk");
	__s32 id = btf__find_by_name_kind(btf, "bpf_iter_task_file", BTF_KIND_FUNC);
	const struct bpf_insn insns[] = {
		/* ctx->file: the fourth of eight bytes each */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 1, .off = 24 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1, .off = 4 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_sock_from_file },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .off = 2 },
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .off = (__s16)sk },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_socket_cookie },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_ITER);
	int fd;

	if (sk < 0 || id < 0)
		return true; /* loading says what is missing */
	opts.attach_btf_id = (__u32)id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "sl_probe", "GPL", insns, ARRAY_SIZE(insns),
			   &opts);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd != -EACCES;
}

enum sl_feature_state sl_probe_sock_of_file(const struct sl_feature_run *run, const char *arg,
					    char value[SL_FEATURE_VALUE_MAX])
{
	(void)arg;
	if (!run->btf || !run->may_bpf)
		return unprivileged(value);
	return sl_feature_sock_of_file(run->btf) ? SL_FEATURE_YES : SL_FEATURE_NO;
}

enum sl_feature_state sl_probe_storage_in_hooks(const struct sl_feature_run *run, const char *arg,
						char value[SL_FEATURE_VALUE_MAX])
{
	(void)arg;
	return run->may_bpf ? sl_feature_storage_in_hooks() : unprivileged(value);
}

/* Came with memcg accounting in 5.11, which can't be asked for itself (libbpf's method). */
enum sl_feature_state sl_probe_memcg(const struct sl_feature_run *run, const char *arg,
				     char value[SL_FEATURE_VALUE_MAX])
{
	(void)arg;
	if (!run->may_bpf)
		return unprivileged(value);
	return verdict(libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCKET_FILTER,
					       BPF_FUNC_ktime_get_coarse_ns, NULL),
		       value);
}
