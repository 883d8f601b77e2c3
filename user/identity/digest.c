/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "identity/hash_file.h"

static const char *const error_names[] = {
#define X(name, text) [SL_DIGEST_##name] = text,
	SL_DIGEST_ERRORS(X)
#undef X
};

_Static_assert(ARRAY_SIZE(error_names) == SL_DIGEST_ERROR_MAX, "a name for each error");

const char *sl_digest_error_name(enum sl_digest_error error)
{
	if ((unsigned int)error >= SL_DIGEST_ERROR_MAX)
		return "unknown";
	return error_names[error];
}

void sl_digest_hex(const struct sl_digest *digest, char hex[2 * SL_SHA256_LEN + 1])
{
	sl_hex(hex, digest->sha256, SL_SHA256_LEN);
}

int sl_digest_now(const struct sl_exe *exe, int pid, struct sl_digest *out)
{
	struct sl_digest digest = { 0 };
	struct sl_exe_ref ref;
	_cleanup_fd_ int pin = -1;
	struct sl_hasher *hasher;
	bool nomem;
	int ret;

	digest.error = sl_exe_ref_init(&ref, exe, &nomem);
	if (nomem)
		return -ENOMEM;
	if (!digest.error)
		digest.error = sl_exe_pin(&ref, pid, false, &pin);
	if (digest.error) {
		sl_exe_ref_clear(&ref);
		*out = digest;
		return 0;
	}
	ret = sl_hasher_new(&hasher, NULL);
	if (!ret) {
		ret = sl_hasher_run(hasher, &ref, pin, &digest);
		sl_hasher_free(&hasher);
	}
	sl_exe_ref_clear(&ref);
	if (!ret)
		*out = digest;
	return ret;
}
