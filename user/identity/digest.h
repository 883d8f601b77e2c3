/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * SHA-256 of executables, computed only through a descriptor whose identity equals
 * what the kernel recorded at exec (struct sl_exe), never of "the file at that path".
 *
 *	synchronous:	sl_digest_now()
 *	in the loop:	sl_digest_store_new(); add sl_digest_fd() to epoll;
 *			sl_digest_request(); when readable: sl_digest_drain();
 *			sl_digest_get() at any time; sl_digest_store_free()
 *
 * Threads: every function may be called from any thread, except that the store must
 * have no other user while it is freed. One worker thread does all reading.
 *
 * Invariants
 * 1. A digest is given out only if inode, ctime, size and (where stat tells it) device
 *    equalled the record before and after the bytes were read.
 * 2. An executable is hashed once however many ask; a success stays until evicted.
 * 3. The caller's thread never waits for a file system: it pins the file with O_PATH,
 *    from cached directory entries only. All that may block is left to the worker.
 * 4. Memory, descriptors and time are bounded by the limits below.
 *
 * What it can't see: a rewrite of equal size within the clock tick of the recorded
 * ctime (1 to 10 ms), and a file system whose server answers each read as it likes.
 */
#ifndef SLUICE_USER_DIGEST_H
#define SLUICE_USER_DIGEST_H

#include <sluice/exe.h>

#define SL_SHA256_LEN 32

/* Larger files are not hashed (too-large): one of them would hold up all others. */
#define SL_DIGEST_FILE_MAX (1ULL << 30)

/* Files waiting for the worker, each with a descriptor; one more is answered `busy`. */
#define SL_DIGEST_QUEUE_MAX 256

/* Results kept. The oldest that is not in flight is evicted, delivered or not. */
#define SL_DIGEST_CACHE_MAX 4096

/*
 * X(NAME, "name"): NAME makes SL_DIGEST_NAME, "name" is `sha256_error` in JSON.
 *
 * gone: no source led to the file. mismatch: the file found is not, or no longer, as
 * recorded (unlink, chmod and link move the ctime as well). changed: it changed while
 * it was read. memfd: a memfd whose process is no longer there to open it through.
 * no-file: the record names no file (a script's label). busy: the queue was full.
 */
#define SL_DIGEST_ERRORS(X)           \
	X(NONE, "none")               \
	X(PENDING, "pending")         \
	X(GONE, "gone")               \
	X(MISMATCH, "mismatch")       \
	X(CHANGED, "changed")         \
	X(UNREADABLE, "unreadable")   \
	X(NOT_REGULAR, "not-regular") \
	X(MEMFD, "memfd")             \
	X(NO_FILE, "no-file")         \
	X(TOO_LARGE, "too-large")     \
	X(BUSY, "busy")

enum sl_digest_error {
#define X(name, text) SL_DIGEST_##name,
	SL_DIGEST_ERRORS(X)
#undef X
		SL_DIGEST_ERROR_MAX
};

struct sl_digest {
	enum sl_digest_error error;
	unsigned char sha256[SL_SHA256_LEN]; /* valid with SL_DIGEST_NONE only */
};

/* Name of an error, "unknown" for a value out of range. */
const char *sl_digest_error_name(enum sl_digest_error error);

/* Lower-case hexadecimal with terminator. */
void sl_digest_hex(const struct sl_digest *digest, char hex[2 * SL_SHA256_LEN + 1]);

/*
 * Finds and hashes now, in this thread; may block as reading a file does. `pid` is a
 * process thought to run the executable, or 0; a wrong one does no harm. That no digest
 * could be had is a result (*out), not an error. -ENOMEM, or -EIO from libcrypto.
 */
int sl_digest_now(const struct sl_exe *exe, int pid, struct sl_digest *out);

struct sl_digest_store;

/* Starts the worker, all signals blocked in it. The caller owns *out. */
int sl_digest_store_new(struct sl_digest_store **out);

/* Stops the worker: prompt, unless a file system blocks a read. Takes NULL. */
void sl_digest_store_free(struct sl_digest_store **store);

/*
 * Asks for the digest of `exe`, known by exe->id from then on. The file is pinned here,
 * so call it as soon as the exec is known. A success or an answer in flight is not
 * asked for again; a failure is retried, and its answer replaces one not yet delivered.
 * Each answer, also an immediate failure, is delivered by sl_digest_drain() once.
 * -EINVAL for id 0, -ENOMEM.
 */
int sl_digest_request(struct sl_digest_store *store, const struct sl_exe *exe, int pid);

/* The result so far, SL_DIGEST_PENDING included. -ENOENT when not asked for, or evicted. */
int sl_digest_get(struct sl_digest_store *store, unsigned int exe_id, struct sl_digest *out);

/* As sl_digest_get(), once it is no longer pending. -ETIMEDOUT; timeout_ms < 0: for ever. */
int sl_digest_wait(struct sl_digest_store *store, unsigned int exe_id, int timeout_ms,
		   struct sl_digest *out);

/* An eventfd, readable while answers wait for sl_digest_drain(). Borrowed. */
int sl_digest_fd(const struct sl_digest_store *store);

/* `fn` may call the functions above, but not sl_digest_store_free(). */
typedef void (*sl_digest_fn)(unsigned int exe_id, const struct sl_digest *digest, void *arg);

/* Delivers the answers since the last call; returns how many. */
int sl_digest_drain(struct sl_digest_store *store, sl_digest_fn fn, void *arg);

struct sl_digest_stats {
	unsigned long long requested;
	unsigned long long hashed; /* digests the worker computed */
	unsigned long long evicted;
	unsigned int queued;
	unsigned int cached;
};

void sl_digest_store_stats(struct sl_digest_store *store, struct sl_digest_stats *out);

#endif
