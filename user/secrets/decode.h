/* SPDX-License-Identifier: MIT */
/*
 * Content codings undone as a stream: gzip, deflate, br and zstd, one upon the other if a message says so. Memory is bounded by the
 * windows of the codings, output by what the caller takes at a time, and all of it by a ratio.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct decoder;

/* By the value of content-encoding. 0 and *ret NULL: identity. -ENOTSUP: one that is not known, or more than NP_CODINGS at once;
 * -EINVAL: it is no list of tokens; -ENOMEM. */
int decoder_new(const char *codings, size_t len, struct decoder **ret);
void decoder_free(struct decoder *decoder); /* NULL is fine */

enum decoded {
	DECODED_ALL,	/* of what came; more may come */
	DECODED_MORE,	/* out has as much as was wanted: call again with the rest */
	DECODED_BROKEN, /* it is not what it says, or ends too early */
	DECODED_BOMB,	/* much more than its length can account for */
	DECODED_MEMORY,
};

/* Appends at least one byte and up to about `want` to out, or uses all that is there. *used: how much of data it is done with.
 * end: nothing follows. */
enum decoded decoder_read(struct decoder *decoder, const char *data, size_t len, bool end, size_t want, struct buf *out,
			  size_t *used);

/* Of what a client accepts (the value of accept-encoding, or NULL: it does not say) what a decoder knows, appended to out: "identity" at
 * least. Qualities stay with their codings. */
void decoder_narrow(const char *accepts, size_t len, struct buf *out);
