/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* TCP clients: tcp-send with its ways, tcp-idle. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "proc.h"
#include "stream.h"

static int tcp_send(const struct sl_opts *o)
{
	return sl_stream_run(o, 16);
}

static int tcp_idle(const struct sl_opts *o)
{
	uint64_t count = sl_or(o->count, 1), opened;
	_cleanup_free_ struct sl_stream *streams = calloc(count, sizeof(*streams));
	int rc = 0, end;

	if (!streams)
		return sl_fail("calloc", ENOMEM);
	if (o->n_servers == 0)
		return sl_usage("%s needs --server", o->cmd);
	for (opened = 0; rc == 0 && opened < count; opened++) {
		streams[opened] = (struct sl_stream)SL_STREAM_INIT;
		rc = sl_stream_open(&streams[opened], o, &o->server[0]);
		if (rc == 0)
			sl_stream_tell_open(&streams[opened]);
	}
	if (rc == 0)
		sl_wait_stdin();
	for (uint64_t i = 0; i < opened; i++) {
		end = sl_stream_end(&streams[i], rc);
		if (rc == 0)
			rc = end;
	}
	return rc;
}

const struct sl_cmd sl_tcp_cmds[] = {
	{ .name = "tcp-send",
	  .run = tcp_send,
	  .options = "server bytes count via uring recv half-close rst connect-only v6 mapped "
		     "mptcp bind connect disconnect then identify hold",
	  .help = "connects and sends COUNT messages of BYTES. --via send write writev sendmsg "
		  "sendmmsg sendfile splice vmsplice uring-send uring-sendmsg uring-sendzc "
		  "msg-zerocopy fastopen fastopen-sendmsg fastopen-connect; --recv recv read "
		  "splice recvmmsg uring-recv peek (needs an echoing server)" },
	{ .name = "tcp-idle",
	  .run = tcp_idle,
	  .options = "server count v6 mapped mptcp bind connect uring rst",
	  .help = "opens COUNT connections and keeps them until stdin ends" },
	{ 0 },
};
