// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "relay/pipes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void sl_pipes_init(struct sl_pipes *pipes, unsigned int bytes)
{
	*pipes = (struct sl_pipes){ .bytes = bytes };
}

static void destroy(struct sl_pipes *pipes, struct sl_pipe *pipe)
{
	close(pipe->fd[0]);
	close(pipe->fd[1]);
	free(pipe);
	pipes->count--;
}

void sl_pipes_clear(struct sl_pipes *pipes)
{
	while (pipes->idle_count)
		destroy(pipes, pipes->idle[--pipes->idle_count]);
}

struct sl_pipe *sl_pipes_take(struct sl_pipes *pipes)
{
	struct sl_pipe *pipe;

	if (pipes->idle_count)
		return pipes->idle[--pipes->idle_count];
	pipe = calloc(1, sizeof(*pipe));
	if (!pipe || pipe2(pipe->fd, O_CLOEXEC | O_NONBLOCK)) {
		free(pipe);
		return NULL;
	}
	fcntl(pipe->fd[1], F_SETPIPE_SZ, pipes->bytes);
	pipes->count++;
	return pipe;
}

void sl_pipes_give(struct sl_pipes *pipes, struct sl_pipe *pipe)
{
	if (!pipe)
		return;
	/* Emptying one by reading it would take longer than making another. */
	if (pipe->held || pipes->idle_count == SL_PIPES_IDLE_MAX)
		destroy(pipes, pipe);
	else
		pipes->idle[pipes->idle_count++] = pipe;
}
