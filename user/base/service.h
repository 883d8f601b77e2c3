/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a service tells systemd (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET
 * names. Written out here, since it is a page of code and libsystemd would be mapped, with
 * all it depends on, into each process for it. Nothing happens without that variable.
 */
#ifndef SLUICE_USER_SERVICE_H
#define SLUICE_USER_SERVICE_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1", …; what can't be told is left untold. */
void sl_service_tell(const char *state);

/*
 * How often WATCHDOG=1 is to come, in milliseconds: half of what WATCHDOG_USEC allows.
 * 0: never.
 */
uint32_t sl_service_watchdog_ms(void);

#endif
