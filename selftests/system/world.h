/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The world of one system test: a set, a cgroup and a sandbox of its own, and sl-load
 * programs inside or outside of it, whose facts (see sl-load) are the truth.
 *
 * Order of use: world_up() as .init (or world_make() in the test), load_start(),
 * load_end(), compare, world_down() as .fini. Nothing here returns an error: what can't
 * be made fails the test. `world` owns all but a struct load's text, which is freed by
 * load_free().
 */
#ifndef SLUICE_SYSTEM_WORLD_H
#define SLUICE_SYSTEM_WORLD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/set.h"

struct world {
	struct sl_set *set;
	char dir[128];
	char cgroup[PATH_MAX];
	char scratch[64]; /* a directory for copies of programs */
	unsigned int sandbox;
};

extern struct world world;

/* Removes what dead runners left, then makes the set with default sizes and attaches. */
void world_up(void);
/* The same with sizes; `attach` false leaves the cgroup alone, for world_attach(). */
void world_make(const struct sl_set_options *options, bool attach);
void world_attach(void);
void world_down(void);
/* The path of sl-load. */
char *world_load(void);
/* Copies sl-load to NAME in the scratch directory, mode 0755; its path. */
const char *world_copy(const char *name, char path[PATH_MAX]);
/* The same of any program. */
const char *world_copy_of(const char *program, const char *name, char path[PATH_MAX]);
/* What sha256sum makes of the file. */
void world_sha256(const char *path, char hex[65]);
/* Writes a script there, mode 0755; its path. */
const char *world_script(const char *name, const char *text, char path[PATH_MAX]);

struct load {
	pid_t pid;
	int in;     /* write end of its stdin; closed by load_end() */
	int out;    /* read end of its stdout */
	char *text; /* does not move: lines stay valid until load_free() */
	size_t len;
};

enum load_where { INSIDE, OUTSIDE };

/* Starts `sl-load <words of fmt>`; words are separated by single blanks. */
void load_start(struct load *load, enum load_where where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, as the process `pid`, which is reused. False when somebody else has it already. */
bool load_start_as(struct load *load, pid_t pid, enum load_where where, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same with any program, found by its absolute path. */
void load_exec(struct load *load, enum load_where where, char *const argv[]);
/* The same with /bin/sh -c and a command line; ends it, expects 0, skips the test at 77. */
void load_shell(struct load *load, enum load_where where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Reads until `count` lines of this kind are there; fails at the end of the output. */
void load_await(struct load *load, const char *what, unsigned int count);
/* Ends its stdin, reads the rest, returns the exit code or 128 + signal. */
int load_end(struct load *load);
void load_free(struct load *load);
/* start, end, expect exit code 0; skips the test at 77. */
void load_run(struct load *load, enum load_where where, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Starts `sl-load <words> --until-eof --listen 127.0.0.1:0` outside; returns its port. */
unsigned int server_start(struct load *load, const char *words);
unsigned int server_start_at(struct load *load, enum load_where where, const char *words,
			     const char *address);

/* The next line of this kind after `line` (NULL: from the start), or NULL. */
const char *fact_next(const struct load *load, const char *line, const char *what);
/* The one with a key's value. */
const char *fact_with(const struct load *load, const char *what, const char *key, uint64_t value);
unsigned int fact_count(const struct load *load, const char *what);
uint64_t fact_u64(const char *line, const char *key);
/* Text of a key up to the blank, still escaped; false when the line has no such key. */
bool fact_text(const char *line, const char *key, char *out, size_t size);

#endif
