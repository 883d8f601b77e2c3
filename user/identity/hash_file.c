/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "identity/hash_file.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/cleanup.h"

/* Large enough that a read's cost vanishes beside SHA-256's, small enough for the RSS. */
#define READ_BYTES (64 * 1024)

struct sl_hasher {
	EVP_MD_CTX *ctx;
	const atomic_bool *stop;
	unsigned char buf[READ_BYTES];
};

int sl_hasher_new(struct sl_hasher **out, const atomic_bool *stop)
{
	struct sl_hasher *hasher = malloc(sizeof(*hasher));

	if (!hasher)
		return -ENOMEM;
	hasher->stop = stop;
	hasher->ctx = EVP_MD_CTX_new();
	if (!hasher->ctx) {
		free(hasher);
		return -ENOMEM;
	}
	*out = hasher;
	return 0;
}

void sl_hasher_free(struct sl_hasher **hasher)
{
	if (!*hasher)
		return;
	EVP_MD_CTX_free((*hasher)->ctx);
	free(*hasher);
	*hasher = NULL;
}

/* Exactly `size` bytes: what was appended meanwhile is caught by the second look. */
static int update(struct sl_hasher *hasher, int fd, unsigned long long size)
{
	unsigned long long left = size;

	while (left) {
		ssize_t n;

		if (hasher->stop && atomic_load(hasher->stop))
			return -ECANCELED;
		n = read(fd, hasher->buf, left < READ_BYTES ? left : READ_BYTES);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ESTALE;
		if (!EVP_DigestUpdate(hasher->ctx, hasher->buf, (size_t)n))
			return -ELIBBAD;
		left -= (unsigned long long)n;
	}
	return 0;
}

int sl_hasher_bytes(struct sl_hasher *hasher, int fd, unsigned long long size,
		    unsigned char *sha256)
{
	int ret;

	if (!EVP_DigestInit_ex(hasher->ctx, EVP_sha256(), NULL))
		return -ELIBBAD;
	ret = update(hasher, fd, size);
	if (!ret && !EVP_DigestFinal_ex(hasher->ctx, sha256, NULL))
		ret = -ELIBBAD;
	return ret;
}

int sl_hasher_run(struct sl_hasher *hasher, const struct sl_exe_ref *ref, int pin_fd,
		  struct sl_digest *out)
{
	struct sl_digest digest = { 0 };
	_cleanup_fd_ int fd = -1;
	int ret;

	digest.error = sl_exe_verify(ref, pin_fd);
	if (!digest.error)
		digest.error = sl_exe_open_pinned(pin_fd, &fd);
	if (digest.error) {
		*out = digest;
		return 0;
	}
	ret = sl_hasher_bytes(hasher, fd, ref->size, digest.sha256);
	if (ret == -ECANCELED || ret == -ELIBBAD)
		return ret == -ELIBBAD ? -EIO : ret;
	if (ret)
		digest.error = ret == -ESTALE ? SL_DIGEST_CHANGED : SL_DIGEST_UNREADABLE;
	else if (sl_exe_verify(ref, fd))
		digest.error = SL_DIGEST_CHANGED;
	if (digest.error)
		memset(digest.sha256, 0, sizeof(digest.sha256));
	*out = digest;
	return 0;
}
