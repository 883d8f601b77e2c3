/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's copies of the policies that clients gave, in a directory of its own:
 *
 *	KEY-ID.yaml	the text that was loaded as policy ID (guard/guard.h) of that session
 *	KEY.from	a link to the file that the client had it from, if it said so
 *	KEY.tmp		being loaded
 *
 * So the guard itself says which text is in force, whenever a worker died: the copy has its
 * name before the guard is switched to it, and the one before stays until that is noted.
 * Functions return 0 or -errno; missing files are no error when they are removed.
 */
#ifndef SLUICE_USER_AGENT_COPY_H
#define SLUICE_USER_AGENT_COPY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "session/record.h"

struct sl_copies;

/* Below the state directory, which must be there. */
int sl_copies_open(struct sl_copies **out, const char *state_dir, struct sl_err *err);
void sl_copies_free(struct sl_copies **copies);

/*
 * Writes KEY.tmp; not synced to the disk, since the sandbox that needs it does not outlive the
 * host either.
 */
int sl_copies_write(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		    const char *text, size_t len, struct sl_err *err);

/* KEY.tmp becomes the copy of a policy id. */
int sl_copies_name(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id);

/* Its path; id 0: of KEY.tmp. */
int sl_copies_path(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id, char out[PATH_MAX]);

/* The caller frees *text. -ENOENT; -EFBIG: larger than a policy may be. */
int sl_copies_read(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		   uint32_t policy_id, char **text, size_t *len);

/* Where it came from; NULL, or what is no absolute path: forgets it. */
int sl_copies_set_from(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		       const char *from);
/* "" when it was not said. */
void sl_copies_from(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		    char out[PATH_MAX]);

/* What the session's egress is to be (serve.h), in KEY.egress, whole. */
int sl_copies_set_egress(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
			 const char *text);
/* The caller frees *text. -ENOENT; -EFBIG as above. */
int sl_copies_egress(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		     char **text);

/* Removes all of this key but the copy of `keep`; 0: all, KEY.from and KEY.egress too. */
void sl_copies_clean(const struct sl_copies *copies, const uint8_t key[SL_SESSION_KEY],
		     uint32_t keep);

/* Removes what belongs to no key of the records. */
void sl_copies_sweep(const struct sl_copies *copies, const struct sl_record_table *records);

/* SHA-256 of a text. -EIO: libcrypto. */
int sl_copies_digest(const char *text, size_t len, uint8_t sha256[SL_SHA256_LEN]);

#endif
