// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#define _GNU_SOURCE
#include "kernel/steer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "kernel/netns.h"
#include "kernel/set_private.h"
#include "steer.skel.h"

/* Pins in the sandbox's directory. */
#define PIN_LINK "steer"
#define PIN_MAP "listeners"

/* linux/in.h and linux/in6.h, which libc's headers keep from being included. */
#ifndef IP_RECVORIGDSTADDR
#define IP_RECVORIGDSTADDR 20
#endif
#ifndef IPV6_RECVORIGDSTADDR
#define IPV6_RECVORIGDSTADDR 74
#endif
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

struct sl_steer {
	int listeners;
};

static int pin_path(char out[PATH_MAX], const struct sl_set *set, unsigned int sandbox,
		    const char *name)
{
	char sub[32];

	snprintf(sub, sizeof(sub), SL_SET_SANDBOXES "/%u", sandbox);
	return sl_set_path(out, set->dir, sub, name);
}

/* --- attaching --- */

static void cleanup_skel(struct steer_bpf **skel)
{
	steer_bpf__destroy(*skel);
}

static int load(struct steer_bpf **out, struct sl_err *err)
{
	_cleanup_(cleanup_skel) struct steer_bpf *skel = NULL;
	int rc;

	libbpf_set_print(sl_libbpf_log);
	skel = steer_bpf__open();
	if (!skel)
		return sl_err_sys(err, errno, "can't open the built-in program");
	rc = steer_bpf__load(skel);
	if (rc) {
		sl_err_sys(err, -rc, "the kernel refused to load the program that steers");
		return sl_err_hint(err, "run again with -v for the verifier's words");
	}
	*out = TAKE_PTR(skel);
	return 0;
}

/* The map first: whoever finds the link finds the map as well. */
static int pin(const struct sl_set *set, unsigned int sandbox, int map, int link)
{
	char map_path[PATH_MAX], link_path[PATH_MAX];
	int rc = pin_path(map_path, set, sandbox, PIN_MAP);

	rc = rc ?: pin_path(link_path, set, sandbox, PIN_LINK);
	if (rc)
		return rc;
	if (bpf_obj_pin(map, map_path))
		return -errno;
	if (!bpf_obj_pin(link, link_path))
		return 0;
	rc = -errno;
	unlink(map_path);
	return rc;
}

static int steer_new(struct sl_steer **out, int listeners)
{
	struct sl_steer *steer = calloc(1, sizeof(*steer));

	if (!steer)
		return -ENOMEM;
	steer->listeners = listeners;
	*out = steer;
	return 0;
}

int sl_steer_attach(struct sl_steer **out, const struct sl_set *set, unsigned int sandbox, int ns,
		    struct sl_err *err)
{
	_cleanup_(cleanup_skel) struct steer_bpf *skel = NULL;
	_cleanup_fd_ int link = -1, map = -1;
	int rc = load(&skel, err);

	if (rc)
		return rc;
	link = bpf_link_create(bpf_program__fd(skel->progs.on_lookup), ns, BPF_SK_LOOKUP, NULL);
	if (link < 0)
		return sl_err_sys(err, errno, "can't attach to the network namespace");
	map = fcntl(bpf_map__fd(skel->maps.listeners), F_DUPFD_CLOEXEC, 0);
	if (map < 0)
		return sl_err_sys(err, errno, "can't keep the map of listeners");
	rc = pin(set, sandbox, map, link);
	if (rc)
		return sl_err_sys(err, -rc, "can't pin the steering of sandbox %u", sandbox);
	rc = steer_new(out, map);
	if (rc) {
		sl_steer_detach(set, sandbox);
		return sl_err_sys(err, -rc, "steering of sandbox %u", sandbox);
	}
	(void)TAKE_FD(map);
	return 0;
}

int sl_steer_open(struct sl_steer **out, const struct sl_set *set, unsigned int sandbox,
		  struct sl_err *err)
{
	_cleanup_fd_ int map = -1;
	char path[PATH_MAX];
	int rc = pin_path(path, set, sandbox, PIN_MAP);

	if (!rc) {
		map = bpf_obj_get(path);
		rc = map < 0 ? -errno : steer_new(out, map);
	}
	if (rc)
		return sl_err_sys(err, -rc, "can't open the steering of sandbox %u", sandbox);
	(void)TAKE_FD(map);
	return 0;
}

void sl_steer_detach(const struct sl_set *set, unsigned int sandbox)
{
	_cleanup_fd_ int link = -1;
	char path[PATH_MAX];

	if (pin_path(path, set, sandbox, PIN_LINK))
		return;
	link = bpf_obj_get(path);
	if (link >= 0) {
		/* Now; without its pin it would end some time later. */
		bpf_link_detach(link);
		unlink(path);
	}
	if (!pin_path(path, set, sandbox, PIN_MAP))
		unlink(path);
}

void sl_steer_free(struct sl_steer **steer)
{
	if (!*steer)
		return;
	close((*steer)->listeners);
	free(*steer);
	*steer = NULL;
}

/* --- listeners --- */

static const char *which_name(enum sl_steer_which which)
{
	static const char *const names[] = {
		[SL_STEER_TCP_V4] = "TCP over IPv4",
		[SL_STEER_TCP_V6] = "TCP over IPv6",
		[SL_STEER_UDP_V4] = "UDP over IPv4",
		[SL_STEER_UDP_V6] = "UDP over IPv6",
		[SL_STEER_DNS_TCP_V4] = "DNS by TCP over IPv4",
		[SL_STEER_DNS_TCP_V6] = "DNS by TCP over IPv6",
		[SL_STEER_DNS_UDP_V4] = "DNS by UDP over IPv4",
		[SL_STEER_DNS_UDP_V6] = "DNS by UDP over IPv6",
	};
	_Static_assert(ARRAY_SIZE(names) == SL_STEER_MAX, "a name for each");

	return names[which];
}

int sl_steer_listener(struct sl_steer *steer, enum sl_steer_which which, int fd, struct sl_err *err)
{
	__u32 key = which;
	__u64 value = (__u64)fd;

	if (bpf_map_update_elem(steer->listeners, &key, &value, BPF_ANY))
		return sl_err_sys(err, errno, "can't steer %s to its listener", which_name(which));
	return 0;
}

int sl_steer_clear(struct sl_steer *steer, enum sl_steer_which which)
{
	__u32 key = which;

	if (bpf_map_delete_elem(steer->listeners, &key) && errno != ENOENT && errno != EINVAL)
		return -errno;
	return 0;
}

struct listener {
	enum sl_steer_which which;
	int fd;
};

static int set_on(int fd, int level, int option)
{
	return setsockopt(fd, level, option, &(int){ 1 }, sizeof(int)) ? -errno : 0;
}

/*
 * What is to come beside a datagram: the address it was sent to. A reply comes from there,
 * which IPv6 wants to be an interface's unless told otherwise (ipv6_can_nonlocal_bind()).
 */
static int datagram_options(int fd, bool v6, bool dns)
{
	int rc = v6 && dns ? set_on(fd, IPPROTO_IPV6, IPV6_FREEBIND) : 0;

	if (rc)
		return rc;
	if (v6)
		return set_on(fd, IPPROTO_IPV6, dns ? IPV6_RECVPKTINFO : IPV6_RECVORIGDSTADDR);
	return set_on(fd, IPPROTO_IP, dns ? IP_PKTINFO : IP_RECVORIGDSTADDR);
}

static int bind_listener(int fd, bool v6, bool dns)
{
	const struct sockaddr_in6 addr6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(dns ? SL_DNS_PORT : 0),
		.sin6_addr = dns ? (struct in6_addr)IN6ADDR_ANY_INIT
				 : (struct in6_addr)IN6ADDR_LOOPBACK_INIT,
	};
	const struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(dns ? SL_DNS_PORT : 0),
		.sin_addr.s_addr = htonl(dns ? INADDR_ANY : INADDR_LOOPBACK),
	};
	int rc = v6 ? bind(fd, (const struct sockaddr *)&addr6, sizeof(addr6))
		    : bind(fd, (const struct sockaddr *)&addr, sizeof(addr));

	return rc ? -errno : 0;
}

static int listener_inside(void *arg)
{
	struct listener *listener = arg;
	bool v6 = listener->which & SL_STEER_V6, udp = listener->which & SL_STEER_UDP;
	bool dns = listener->which & SL_STEER_DNS;
	_cleanup_fd_ int fd =
		socket(v6 ? AF_INET6 : AF_INET,
		       (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : 0;

	if (!rc && v6)
		rc = set_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	/* One that serves after another has died has its connections in TIME_WAIT. */
	if (!rc && !udp)
		rc = set_on(fd, SOL_SOCKET, SO_REUSEADDR);
	if (!rc && udp)
		rc = datagram_options(fd, v6, dns);
	rc = rc ?: bind_listener(fd, v6, dns);
	if (!rc && !udp && listen(fd, SOMAXCONN))
		rc = -errno;
	if (!rc)
		listener->fd = TAKE_FD(fd);
	return rc;
}

int sl_steer_socket(int ns, enum sl_steer_which which, int *fd, struct sl_err *err)
{
	struct listener listener = { .which = which, .fd = -1 };
	int rc = sl_netns_run(ns, listener_inside, &listener);

	if (rc)
		return sl_err_sys(err, -rc, "can't make the listener of %s in the sandbox",
				  which_name(which));
	*fd = listener.fd;
	return 0;
}
