// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "broker/keeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "broker/keeper_private.h"

#define HEALTHY_MS 10000
#define LATE_MS 1000 /* rule 6: so late it was not the worker alone that did nothing */

struct keeper {
	const struct sl_keeper_options *options;
	struct sl_keeper_link link; /* as the next worker is to see it */
	int signals;                /* signalfd */
	int sock;                   /* the keeper's end; the worker's is link.sock */
	pid_t worker;
	bool ending; /* SIGTERM has come */
	int status;
	int64_t alive_at_ms; /* next; of options->alive */
	int64_t given_ms;    /* from when on a worker that was waited for too late counts */
};

/* --- the two watches: over the worker, and over the keeper --- */

/* Says that the keeper is there when that is due; ms to the next time, -1: never. */
static int tell_alive(struct keeper *k)
{
	const struct sl_keeper_options *options = k->options;
	int64_t now_ms = sl_monotonic_ms();

	if (!options->alive || !options->alive_ms)
		return -1;
	if (now_ms >= k->alive_at_ms) {
		options->alive(options->ctx);
		k->alive_at_ms = now_ms + options->alive_ms;
	}
	return (int)(k->alive_at_ms - now_ms);
}

/* Rule 6. In how many ms it is to be looked again, -1: never. */
static int look_at_worker(struct keeper *k)
{
	const struct sl_keeper_options *options = k->options;
	int64_t now_ms = sl_monotonic_ms(), due_ms = atomic_load(k->link.beat_ms);

	if (!options->hung_ms)
		return -1;
	if (due_ms < k->given_ms)
		due_ms = k->given_ms;
	due_ms += options->hung_ms;
	if (now_ms < due_ms)
		return (int)(due_ms - now_ms);
	k->given_ms = now_ms;
	if (now_ms - due_ms < LATE_MS) {
		if (options->hung)
			options->hung(options->ctx, options->hung_ms);
		kill(k->worker, SIGKILL);
	}
	return (int)options->hung_ms;
}

/* --- the worker --- */

static _Noreturn void worker_main(struct keeper *k, pid_t keeper_pid, const sigset_t *mask)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != keeper_pid)
		_exit(1);
	sl_cleanup_fd(&k->signals);
	sl_cleanup_fd(&k->sock);
	sigprocmask(SIG_SETMASK, mask, NULL);
	status = k->options->worker(&k->link, k->options->ctx);
	fflush(NULL);
	/* What is registered with atexit() is the keeper's, or of whoever forked that one. */
	_exit(status);
}

static int start_worker(struct keeper *k, const sigset_t *mask, struct sl_err *err)
{
	pid_t self = getpid();
	int ret = sl_keeper_sockets(&k->sock, &k->link.sock);

	if (ret)
		return sl_err_sys(err, -ret, "can't make the keeper's socket");
	sl_keeper_beat(&k->link);
	k->worker = fork();
	if (!k->worker)
		worker_main(k, self, mask);
	ret = errno;
	sl_cleanup_fd(&k->link.sock);
	if (k->worker > 0)
		return 0;
	sl_cleanup_fd(&k->sock);
	return sl_err_sys(err, ret, "can't fork the worker");
}

static void on_signal(struct keeper *k)
{
	struct signalfd_siginfo info;

	if (read(k->signals, &info, sizeof(info)) != sizeof(info) || info.ssi_signo == SIGCHLD)
		return;
	if (info.ssi_signo == SIGTERM)
		k->ending = true;
	if (k->worker > 0)
		kill(k->worker, (int)info.ssi_signo);
}

/* Serves the worker until it is dead and its messages are read. */
static void serve_worker(struct keeper *k)
{
	struct pollfd fds[2] = { { .fd = k->sock, .events = POLLIN },
				 { .fd = k->signals, .events = POLLIN } };

	for (;;) {
		if (poll(fds, 2, sl_sooner_ms(tell_alive(k), look_at_worker(k))) < 0)
			continue;
		if (fds[1].revents)
			on_signal(k);
		/* What it sent before it died counts: messages first. */
		if (fds[0].revents & POLLIN && sl_keeper_serve(&k->link, k->sock) == 0)
			continue;
		if (waitpid(k->worker, &k->status, WNOHANG) == k->worker)
			break;
		/* The socket was closed by a worker that lives: nothing more will come. */
		if (fds[0].revents & (POLLHUP | POLLERR))
			fds[0].fd = -1;
	}
	k->worker = -1;
	while (sl_keeper_serve(&k->link, k->sock) == 0)
		;
	sl_cleanup_fd(&k->sock);
}

/* False when SIGTERM came meanwhile. */
static bool pause_for(struct keeper *k, unsigned int pause_ms)
{
	struct pollfd fd = { .fd = k->signals, .events = POLLIN };
	int64_t end = sl_monotonic_ms() + pause_ms;

	for (int64_t left = pause_ms; left > 0 && !k->ending; left = end - sl_monotonic_ms()) {
		if (poll(&fd, 1, sl_sooner_ms(tell_alive(k), (int)left)) > 0)
			on_signal(k);
	}
	return !k->ending;
}

static unsigned int next_pause(const struct sl_keeper_options *options, unsigned int pause_ms,
			       int64_t lived_ms)
{
	if (lived_ms > HEALTHY_MS || pause_ms < options->restart_min_ms)
		return options->restart_min_ms;
	pause_ms = pause_ms ? 2 * pause_ms : 1;
	return pause_ms < options->restart_max_ms ? pause_ms : options->restart_max_ms;
}

static int keep(struct keeper *k, const sigset_t *mask, struct sl_err *err)
{
	unsigned int pause_ms = 0;
	bool first = true;

	for (;;) {
		int64_t start = sl_monotonic_ms();
		int ret = start_worker(k, mask, err);

		if (ret && first)
			return ret;
		if (!ret) {
			serve_worker(k);
			if (k->ending || (WIFEXITED(k->status) && !WEXITSTATUS(k->status)))
				return 0;
			if (!k->link.generation && WIFEXITED(k->status) &&
			    WEXITSTATUS(k->status) == SL_KEEPER_GIVE_UP)
				return -ECANCELED;
			k->link.generation++;
		}
		pause_ms = first ? k->options->restart_min_ms
				 : next_pause(k->options, pause_ms, sl_monotonic_ms() - start);
		first = false;
		if (k->options->crashed)
			k->options->crashed(k->options->ctx, ret ? -1 : k->status, pause_ms);
		if (!pause_for(k, pause_ms))
			return 0;
	}
}

static int share(struct keeper *k)
{
	int ret = sl_inflight_new(&k->link.inflight, k->options->slots);

	if (ret)
		return ret;
	k->link.beat_ms = mmap(NULL, sizeof(*k->link.beat_ms), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (k->link.beat_ms != MAP_FAILED)
		return 0;
	k->link.beat_ms = NULL;
	return -ENOMEM;
}

static void unshare_all(struct keeper *k)
{
	if (k->link.beat_ms)
		munmap(k->link.beat_ms, sizeof(*k->link.beat_ms));
	sl_inflight_free(&k->link.inflight);
}

int sl_keeper_run(const struct sl_keeper_options *options, struct sl_err *err)
{
	struct keeper k = { .options = options, .signals = -1, .sock = -1, .worker = -1 };
	sigset_t wanted, mask;
	int ret;

	k.link.sock = -1;
	k.alive_at_ms = sl_monotonic_ms() + options->alive_ms;
	pthread_mutex_init(&k.link.lock, NULL);
	ret = share(&k);
	if (ret) {
		unshare_all(&k);
		return sl_err_sys(err, -ret, "can't make the table of held calls");
	}
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGHUP);
	sigprocmask(SIG_BLOCK, &wanted, &mask);
	k.signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (k.signals < 0)
		ret = sl_err_sys(err, errno, "can't make a signal descriptor");
	else
		ret = keep(&k, &mask, err);
	sl_cleanup_fd(&k.signals);
	sl_keeper_close_all(&k.link);
	unshare_all(&k);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return ret;
}
