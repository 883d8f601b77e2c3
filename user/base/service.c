/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/service.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/parse.h"

void sl_service_tell(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	_cleanup_fd_ int fd = -1;

	if (!len || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	/* A name in the abstract namespace begins with a NUL byte. */
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)!sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			      (const struct sockaddr *)&to,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

uint32_t sl_service_watchdog_ms(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t us;

	if (!text || sl_parse_u64(text, 2000, UINT64_MAX, &us))
		return 0;
	us /= 2000;
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}
