/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include "egress/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "egress/passage.h"
#include "kernel/netns.h"

/* Between looks at the leases, and readings of the hosts file. */
#define SWEEP_MS 5000
#define HOSTS_MS 60000

/* --- a loop --- */

/* Streams of before whose rule is gone. Those are reset; the application sees why. */
static void reconsider(struct sl_egress_loop *loop)
{
	struct sl_passage *passage;

	TAILQ_FOREACH(passage, &loop->passages, entry)
	{
		if (sl_passage_may_stay(passage))
			continue;
		if (passage->flow)
			sl_relay_flow_reset(passage->flow);
		else
			sl_relay_reset(passage->stream);
	}
}

/* The first loop's: leases that end, and hosts that have changed. */
static int sweep(struct sl_egress_loop *loop)
{
	struct sl_egress *egress = loop->egress;
	int64_t now = sl_monotonic_ms();

	if (now >= loop->hosts_ms) {
		sl_egress_read_hosts(egress);
		loop->hosts_ms = now + HOSTS_MS;
	}
	if (now >= loop->sweep_ms) {
		pthread_mutex_lock(&egress->lock);
		(void)sl_leases_sweep(egress->leases, now);
		pthread_mutex_unlock(&egress->lock);
		loop->sweep_ms = now + SWEEP_MS;
	}
	return (int)(loop->sweep_ms - now);
}

/* Who asks before there is a policy is not refused for want of one. */
static void await_policy(struct sl_egress_loop *loop)
{
	struct pollfd fd = { .fd = loop->wake, .events = POLLIN };

	while (!atomic_load(&loop->egress->stop) && !atomic_load(&loop->egress->begun))
		(void)poll(&fd, 1, -1);
}

/* One loop does. */
static void serve_dns(struct sl_egress_loop *loop)
{
	sl_dns_run(loop->dns);
	atomic_store(&loop->egress->lost, sl_dns_count(loop->dns, SL_DNS_COUNT_LOST));
}

static void *loop_main(void *arg)
{
	struct sl_egress_loop *loop = arg;
	struct epoll_event events[4];
	int wait_ms = 0, relay_ms;
	uint64_t woken;

	await_policy(loop);
	while (!atomic_load(&loop->egress->stop)) {
		if (epoll_wait(loop->epoll, events, ARRAY_SIZE(events), wait_ms) < 0 &&
		    errno != EINTR)
			sl_log_error("sandbox %u: %s", loop->egress->sandbox, strerror(errno));
		(void)!read(loop->wake, &woken, sizeof(woken));
		if (loop->dns)
			serve_dns(loop);
		else if (loop->resolver)
			sl_resolver_run(loop->resolver);
		wait_ms = loop->dns ? sweep(loop) : -1;
		if (!loop->relay)
			continue;
		if (atomic_exchange(&loop->reconsider, false))
			reconsider(loop);
		relay_ms = sl_relay_run(loop->relay, 0);
		wait_ms = sl_sooner_ms(wait_ms, relay_ms);
	}
	return NULL;
}

static int watch(struct sl_egress_loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int loop_relay(struct sl_egress_loop *loop, struct sl_err *err)
{
	struct sl_egress *egress = loop->egress;
	const struct sl_relay_options options = {
		.ops = &sl_egress_relay_ops,
		.arg = loop,
		.idle_ms = egress->idle_ms,
	};
	int rc = sl_relay_new(&loop->relay, &options, err);

	for (unsigned int i = 0; !rc && i < SL_STEER_DNS; i++) {
		const struct sl_relay_listener listener = {
			.fd = egress->listeners[i],
			.kind = i & SL_STEER_UDP ? SL_RELAY_UDP : SL_RELAY_TRANSPARENT,
			.netns = egress->netns,
		};

		/* A flow's later datagrams may come from anywhere: one loop has them all. */
		if (listener.fd >= 0 && (listener.kind != SL_RELAY_UDP || loop->dns))
			rc = sl_relay_listen(loop->relay, &listener, err);
	}
	for (int i = 0; !rc && i < 2; i++) {
		const struct sl_relay_listener listener = {
			.fd = egress->proxies[i],
			.kind = SL_RELAY_PROXY,
			.netns = egress->netns,
		};

		if (listener.fd >= 0)
			rc = sl_relay_listen(loop->relay, &listener, err);
	}
	return rc;
}

static int loop_dns(struct sl_egress_loop *loop, struct sl_err *err)
{
	struct sl_egress *egress = loop->egress;
	const struct sl_dns_options options = {
		.ops = &loop->dns_ops,
		.arg = loop,
		.resolver = loop->resolver,
	};
	int *fds = egress->relay ? &egress->listeners[SL_STEER_DNS] : egress->dns_fds;
	int rc;

	loop->dns_ops = sl_egress_dns_ops(egress);
	rc = sl_dns_new(&loop->dns, &options, err);

	for (int i = 0; !rc && i < 4; i++)
		if (fds[i] >= 0)
			rc = sl_dns_listen(loop->dns, TAKE_FD(fds[i]), err);
	return rc;
}

static int loop_new(struct sl_egress *egress, unsigned int index, struct sl_err *err)
{
	struct sl_egress_loop *loop = &egress->loops[index];
	struct sl_view_ops ops = sl_view_ops_of_set(egress->set);
	int rc;

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->epoll < 0 || loop->wake < 0)
		return sl_err_sys(err, errno, "can't serve the sandbox's egress");
	rc = sl_view_source_new(&loop->source, &ops);
	if (rc)
		return sl_err_sys(err, -rc, "can't serve the sandbox's egress");
	rc = sl_resolver_new(&loop->resolver, &egress->upstreams, err);
	if (!rc && !index)
		rc = loop_dns(loop, err);
	if (!rc && egress->relay)
		rc = loop_relay(loop, err);
	if (rc)
		return rc;
	rc = watch(loop, loop->wake);
	rc = rc ?: watch(loop, loop->dns ? sl_dns_fd(loop->dns) : sl_resolver_fd(loop->resolver));
	rc = rc ?: loop->relay ? watch(loop, sl_relay_fd(loop->relay)) : 0;
	return rc ? sl_err_sys(err, -rc, "can't serve the sandbox's egress") : 0;
}

static void loop_free(struct sl_egress_loop *loop)
{
	sl_relay_free(&loop->relay);
	sl_dns_free(&loop->dns);
	sl_resolver_free(&loop->resolver);
	sl_view_source_free(&loop->source);
	sl_cleanup_fd(&loop->epoll);
	sl_cleanup_fd(&loop->wake);
}

static void wake(struct sl_egress_loop *loop)
{
	const uint64_t one = 1;

	(void)!write(loop->wake, &one, sizeof(one));
}

/* --- making and ending --- */

static void read_search(struct sl_egress *egress, const char *path)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	char line[1024], *rest, *word;

	while (file && fgets(line, sizeof(line), file)) {
		rest = line;
		word = strsep(&rest, " \t\n");
		if (strcmp(word, "search") != 0 && strcmp(word, "domain") != 0)
			continue;
		egress->search_count = 0; /* the last one counts */
		while ((word = strsep(&rest, " \t\n")) && egress->search_count < SL_EGRESS_SEARCH)
			if (*word &&
			    !sl_host_normal(egress->search[egress->search_count], word, NULL))
				egress->search_count++;
	}
	if (file)
		fclose(file);
}

/* What proxies are told, as `sandbox list` shows it. */
static int take_name(const struct sl_sandbox *sandbox, void *arg)
{
	struct sl_egress *egress = arg;

	if (sandbox->id != egress->sandbox)
		return 0;
	snprintf(egress->name, sizeof(egress->name), "%s", sandbox->name);
	return 1;
}

static int copy_options(struct sl_egress *egress, const struct sl_egress_options *options,
			struct sl_err *err)
{
	int ns = options->netns;

	egress->set = options->set;
	egress->sandbox = options->sandbox;
	egress->relay = ns >= 0 && !options->direct;
	egress->upstreams = options->resolver;
	egress->proxy = options->proxy;
	egress->inspector = options->inspector;
	egress->mark = options->mark;
	egress->idle_ms = options->idle_ms;
	(void)sl_sandbox_each(egress->set, take_name, egress);
	snprintf(egress->device, sizeof(egress->device), "%s",
		 options->device ? options->device : "");
	read_search(egress, options->search);
	if (options->hosts) {
		egress->hosts_path = strdup(options->hosts);
		if (!egress->hosts_path)
			return sl_err_sys(err, ENOMEM, "egress");
	}
	ns = ns < 0 ? open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)
		    : fcntl(ns, F_DUPFD_CLOEXEC, 0);
	if (ns < 0)
		return sl_err_sys(err, errno, "can't open the network namespace");
	egress->netns = ns;
	ns = sl_netns_cookie(egress->netns, &egress->netns_cookie);
	return ns ? sl_err_sys(err, -ns, "can't tell the network namespace") : 0;
}

/*
 * Where a name may not lead by itself: to the machine on which the relay dials, and where
 * members go directly, to what is local there or would come back here.
 */
static int open_own(struct sl_egress *egress, const struct sl_egress_options *options,
		    struct sl_err *err)
{
	int rc = sl_own_new(&egress->own, options->mark, options->device, err);

	rc = rc ?: sl_own_add(egress->own, -1, err);
	if (!rc && !egress->relay && options->netns >= 0)
		rc = sl_own_add(egress->own, options->netns, err);
	return rc;
}

static unsigned int loops_wanted(const struct sl_egress *egress,
				 const struct sl_egress_options *options)
{
	cpu_set_t cpus;
	unsigned int n = options->threads;

	if (!egress->relay)
		return 1;
	if (!n)
		n = sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned int)CPU_COUNT(&cpus);
	return n < SL_EGRESS_LOOPS ? n : SL_EGRESS_LOOPS;
}

static struct sl_egress *alloc(void)
{
	struct sl_egress *egress = calloc(1, sizeof(*egress));

	if (!egress)
		return NULL;
	pthread_mutex_init(&egress->lock, NULL);
	egress->netns = -1;
	for (unsigned int i = 0; i < SL_STEER_MAX; i++)
		egress->listeners[i] = -1;
	for (int i = 0; i < 2; i++)
		egress->proxies[i] = -1;
	for (int i = 0; i < 4; i++)
		egress->dns_fds[i] = -1;
	for (unsigned int i = 0; i < SL_EGRESS_LOOPS; i++) {
		egress->loops[i].egress = egress;
		egress->loops[i].epoll = -1;
		egress->loops[i].wake = -1;
		TAILQ_INIT(&egress->loops[i].passages);
	}
	return egress;
}

int sl_egress_new(struct sl_egress **out, const struct sl_egress_options *options,
		  struct sl_err *err)
{
	_cleanup_(sl_egress_free) struct sl_egress *egress = alloc();
	const struct sl_leases_options leases = { .ops = &sl_egress_lease_ops, .arg = egress };
	int rc;

	if (!egress)
		return sl_err_sys(err, ENOMEM, "egress");
	rc = copy_options(egress, options, err);
	rc = rc ?: open_own(egress, options, err);
	if (rc)
		return rc;
	rc = sl_leases_new(&egress->leases, &leases);
	rc = rc ?: sl_naming_new(&egress->naming, egress->set, egress->sandbox);
	if (!rc && egress->relay)
		rc = sl_pool_new(&egress->pool, (uint16_t)options->sandbox, 0);
	if (!rc && options->resume)
		rc = sl_egress_resume(egress);
	if (rc)
		return sl_err_sys(err, -rc, "egress");
	rc = sl_guard_names(egress->set, egress->sandbox, true, err);
	rc = rc ?: sl_egress_listen(egress, err);
	egress->loop_count = loops_wanted(egress, options);
	for (unsigned int i = 0; !rc && i < egress->loop_count; i++)
		rc = loop_new(egress, i, err);
	if (!rc)
		*out = TAKE_PTR(egress);
	return rc;
}

int sl_egress_start(struct sl_egress *egress, struct sl_err *err)
{
	int rc = 0;

	for (unsigned int i = 0; !rc && i < egress->loop_count; i++) {
		rc = pthread_create(&egress->loops[i].thread, NULL, loop_main, &egress->loops[i]);
		egress->loops[i].running = !rc;
	}
	return rc ? sl_err_sys(err, rc, "can't start a thread") : 0;
}

void sl_egress_free(struct sl_egress **out)
{
	struct sl_egress *egress = *out;

	if (!egress)
		return;
	*out = NULL;
	atomic_store(&egress->stop, true);
	for (unsigned int i = 0; i < SL_EGRESS_LOOPS; i++) {
		if (!egress->loops[i].running)
			continue;
		wake(&egress->loops[i]);
		pthread_join(egress->loops[i].thread, NULL);
	}
	for (unsigned int i = 0; i < SL_EGRESS_LOOPS; i++)
		loop_free(&egress->loops[i]);
	sl_egress_unlisten(egress);
	sl_leases_free(&egress->leases);
	sl_pool_free(&egress->pool);
	sl_naming_free(&egress->naming);
	sl_own_free(&egress->own);
	sl_cleanup_fd(&egress->netns);
	pthread_mutex_destroy(&egress->lock);
	sl_array_free(&egress->hosts);
	free(egress->hosts_path);
	free(egress);
}

/* --- policies --- */

int sl_egress_ready(struct sl_egress *egress, struct sl_apply *apply, __u32 policy_id,
		    struct sl_err *err)
{
	int rc;

	pthread_mutex_lock(&egress->lock);
	egress->next = (struct sl_egress_policy){ apply, policy_id };
	rc = sl_egress_lease_all(egress, err);
	if (rc)
		egress->next = (struct sl_egress_policy){ 0 };
	pthread_mutex_unlock(&egress->lock);
	/* Before the first policy is in force, so that nobody finds it without. */
	if (!rc)
		sl_egress_read_hosts(egress);
	return rc;
}

void sl_egress_switch(struct sl_egress *egress, bool loaded)
{
	pthread_mutex_lock(&egress->lock);
	if (loaded && egress->next.apply)
		egress->now = egress->next;
	egress->next = (struct sl_egress_policy){ 0 };
	pthread_mutex_unlock(&egress->lock);
	if (loaded)
		atomic_store(&egress->begun, true);
	for (unsigned int i = 0; loaded && i < egress->loop_count; i++) {
		atomic_store(&egress->loops[i].reconsider, true);
		wake(&egress->loops[i]);
	}
}

void sl_egress_stats(struct sl_egress *egress, struct sl_egress_stats *out)
{
	*out = (struct sl_egress_stats){
		.refused_names = atomic_load(&egress->refused_names),
		.unleased = atomic_load(&egress->unleased),
		.crowded = atomic_load(&egress->crowded),
		.limited = atomic_load(&egress->limited),
		.lost = atomic_load(&egress->lost),
		.streams = atomic_load(&egress->streams),
		.flows = atomic_load(&egress->flows),
		.denied = atomic_load(&egress->denied),
		.dial_failed = atomic_load(&egress->dial_failed),
		.strangers = atomic_load(&egress->strangers),
		.queries = atomic_load(&egress->queries),
	};
	pthread_mutex_lock(&egress->lock);
	out->leases = sl_leases_live(egress->leases);
	out->synthetic = egress->pool ? sl_pool_count(egress->pool) : 0;
	pthread_mutex_unlock(&egress->lock);
}
