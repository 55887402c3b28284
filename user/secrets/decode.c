/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "secrets/decode.h"
#include "vocab/limits.h"

#define STEP (16u << 10) /* bytes that one coding makes before the next gets them */

enum coding { CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD };

struct layer {
	enum coding coding;
	bool begun; /* deflate: whether it has zlib's header is known */
	bool whole; /* it has said that it is over; gzip and zstd may go on with another member */
	bool fed;   /* something of a member has come */
	z_stream zlib;
	bool has_zlib;
	BrotliDecoderState *brotli;
	ZSTD_DStream *zstd;
	struct buf in; /* what the layer before has made */
};

struct decoder {
	struct layer layers[NP_CODINGS]; /* the outermost first */
	unsigned n;
	unsigned long long in, out;
};

static const struct {
	const char *name;
	enum coding coding;
} known[] = { { "gzip", CODING_GZIP },
	      { "x-gzip", CODING_GZIP },
	      { "deflate", CODING_DEFLATE },
	      { "br", CODING_BR },
	      { "zstd", CODING_ZSTD } };

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* The next member of a comma-separated list, without space around it; false: there is none. */
static bool list_next(const char **at, const char *end, const char **ret, size_t *ret_len)
{
	const char *p = *at, *comma;

	if (p >= end)
		return false;
	comma = memchr(p, ',', (size_t)(end - p));
	*at = comma ? comma + 1 : end;
	end = comma ? comma : end;
	while (p < end && is_space(*p))
		p++;
	while (p < end && is_space(end[-1]))
		end--;
	*ret = p;
	*ret_len = (size_t)(end - p);
	return true;
}

static int coding_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == len && strncasecmp(known[i].name, name, len) == 0)
			return (int)known[i].coding;
	return -1;
}

static bool is_identity(const char *name, size_t len)
{
	return len == 8 && strncasecmp(name, "identity", 8) == 0;
}

static int layer_open(struct layer *layer, enum coding coding)
{
	layer->coding = coding;
	layer->in = BUF_INIT(2 * STEP);
	switch (coding) {
	case CODING_GZIP:
	case CODING_DEFLATE:
		/* 32: zlib's or gzip's header. What has neither is found out when its first byte has come. */
		layer->has_zlib =
			inflateInit2(&layer->zlib, coding == CODING_GZIP ? 16 + MAX_WBITS : MAX_WBITS) == Z_OK;
		return layer->has_zlib ? 0 : -ENOMEM;
	case CODING_BR:
		layer->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
		return layer->brotli ? 0 : -ENOMEM;
	case CODING_ZSTD:
		break;
	}
	layer->zstd = ZSTD_createDStream();
	if (!layer->zstd || ZSTD_isError(ZSTD_DCtx_setParameter(layer->zstd, ZSTD_d_windowLogMax, NP_ZSTD_WINDOW_LOG)))
		return -ENOMEM;
	return 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	for (unsigned i = 0; i < d->n; i++) {
		if (d->layers[i].has_zlib)
			inflateEnd(&d->layers[i].zlib);
		if (d->layers[i].brotli)
			BrotliDecoderDestroyInstance(d->layers[i].brotli);
		ZSTD_freeDStream(d->layers[i].zstd);
		buf_free(&d->layers[i].in);
	}
	free(d);
}

int decoder_new(const char *codings, size_t len, struct decoder **ret)
{
	const char *at = codings, *end = codings + len, *name;
	enum coding list[NP_CODINGS];
	struct decoder *d;
	unsigned n = 0;
	size_t name_len;

	while (list_next(&at, end, &name, &name_len)) {
		int coding = coding_find(name, name_len);

		if (!name_len || is_identity(name, name_len))
			continue;
		if (memchr(name, ' ', name_len) || memchr(name, ';', name_len))
			return -EINVAL;
		if (coding < 0 || n == NP_CODINGS)
			return -ENOTSUP;
		list[n++] = (enum coding)coding;
	}
	if (!n) {
		*ret = NULL;
		return 0;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	/* They are listed in the order in which they were applied. */
	while (n) {
		d->n++;
		if (layer_open(&d->layers[d->n - 1], list[--n]) < 0) {
			decoder_free(d);
			return -ENOMEM;
		}
	}
	*ret = d;
	return 0;
}

/* -- one layer: some of the input becomes at most room bytes ------------------------------------------- */

struct step {
	const char *in;
	size_t in_len, in_used;
	char *out;
	size_t room, made;
};

static enum decoded zlib_step(struct layer *layer, struct step *step)
{
	z_stream *z = &layer->zlib;
	int r;

	if (layer->coding == CODING_DEFLATE && !layer->begun && step->in_len) {
		/* RFC 9110 says zlib's format; many send what is in it alone. A first byte of zlib has method 8 and a window of
		 * at most 32 KiB. */
		if ((step->in[0] & 0x0f) != 8 || (unsigned char)step->in[0] > 0x78) {
			if (inflateReset2(z, -MAX_WBITS) != Z_OK)
				return DECODED_MEMORY;
		}
		layer->begun = true;
	}
	if (layer->whole) {
		/* Other members may follow one of gzip; behind deflate there is nothing. */
		if (!step->in_len)
			return DECODED_ALL;
		if (layer->coding != CODING_GZIP || inflateReset(z) != Z_OK)
			return DECODED_BROKEN;
		layer->whole = false;
	}
	z->next_in = (unsigned char *)(uintptr_t)step->in;
	z->avail_in = (unsigned)step->in_len;
	z->next_out = (unsigned char *)step->out;
	z->avail_out = (unsigned)step->room;
	r = inflate(z, Z_NO_FLUSH);
	step->in_used = step->in_len - z->avail_in;
	step->made = step->room - z->avail_out;
	layer->whole = r == Z_STREAM_END;
	if (r == Z_MEM_ERROR)
		return DECODED_MEMORY;
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? DECODED_ALL : DECODED_BROKEN;
}

static enum decoded brotli_step(struct layer *layer, struct step *step)
{
	size_t in_left = step->in_len, out_left = step->room;
	const uint8_t *in = (const uint8_t *)step->in;
	uint8_t *out = (uint8_t *)step->out;
	BrotliDecoderResult r;

	if (layer->whole)
		return step->in_len ? DECODED_BROKEN : DECODED_ALL;
	r = BrotliDecoderDecompressStream(layer->brotli, &in_left, &in, &out_left, &out, NULL);
	step->in_used = step->in_len - in_left;
	step->made = step->room - out_left;
	layer->whole = r == BROTLI_DECODER_RESULT_SUCCESS;
	return r == BROTLI_DECODER_RESULT_ERROR ? DECODED_BROKEN : DECODED_ALL;
}

static enum decoded zstd_step(struct layer *layer, struct step *step)
{
	ZSTD_inBuffer in = { step->in, step->in_len, 0 };
	ZSTD_outBuffer out = { step->out, step->room, 0 };
	size_t r;

	if (layer->whole && !step->in_len)
		return DECODED_ALL;
	r = ZSTD_decompressStream(layer->zstd, &out, &in);
	step->in_used = in.pos;
	step->made = out.pos;
	if (ZSTD_isError(r))
		return DECODED_BROKEN;
	layer->whole = r == 0;
	return DECODED_ALL;
}

static enum decoded layer_step(struct layer *layer, struct step *step)
{
	enum decoded r;

	if (step->in_len)
		layer->fed = true;
	if (layer->coding == CODING_BR)
		r = brotli_step(layer, step);
	else if (layer->coding == CODING_ZSTD)
		r = zstd_step(layer, step);
	else
		r = zlib_step(layer, step);
	return r;
}

/* -- all of them ------------------------------------------------------------------------------------- */

/* One step of the layer that is furthest on and has something to do. *moved: something happened. */
static enum decoded decoder_step(struct decoder *d, const char *data, size_t len, size_t *used, struct buf *out,
				 bool *moved)
{
	static const char nothing[1];
	char made[STEP];

	*moved = false;
	for (unsigned i = d->n; i-- && !*moved;) {
		struct layer *layer = &d->layers[i], *next = i + 1 < d->n ? &d->layers[i + 1] : NULL;
		struct step step = { .out = made, .room = sizeof(made) };
		enum decoded r;

		step.in = i ? layer->in.data : data + *used;
		step.in_len = i ? layer->in.len : len - *used;
		if (!step.in)
			step.in = nothing;
		if (next)
			step.room = STEP - (next->in.len < STEP ? next->in.len : STEP);
		if (!step.room || (layer->whole && !step.in_len))
			continue;
		r = layer_step(layer, &step);
		if (r != DECODED_ALL)
			return r;
		if (i)
			buf_drop(&layer->in, step.in_used);
		else
			*used += step.in_used, d->in += step.in_used;
		buf_append(next ? &next->in : out, made, step.made);
		if (!next)
			d->out += step.made;
		if (buf_error(next ? &next->in : out))
			return DECODED_MEMORY;
		*moved = step.in_used || step.made;
	}
	return DECODED_ALL;
}

enum decoded decoder_read(struct decoder *d, const char *data, size_t len, bool end, size_t want, struct buf *out,
			  size_t *used)
{
	const size_t before = out->len;
	bool moved = true;

	*used = 0;
	while (moved && out->len - before < want) {
		enum decoded r = decoder_step(d, data, len, used, out, &moved);

		if (r != DECODED_ALL)
			return r;
		if (d->out > NP_DECODED_FREE && d->out / NP_DECODED_RATIO > d->in)
			return DECODED_BOMB;
	}
	if (moved)
		return DECODED_MORE;
	/* A body that is empty altogether is none of a coding, and passes: HEAD, and servers that say it all the same. */
	for (unsigned i = 0; end && i < d->n && d->in; i++)
		if (!d->layers[i].whole)
			return DECODED_BROKEN;
	return DECODED_ALL;
}

void decoder_narrow(const char *accepts, size_t len, struct buf *out)
{
	const char *at = accepts, *end = accepts ? accepts + len : NULL, *item;
	const size_t before = out->len;
	size_t item_len;

	while (accepts && list_next(&at, end, &item, &item_len)) {
		const char *semicolon = memchr(item, ';', item_len);
		size_t name_len = semicolon ? (size_t)(semicolon - item) : item_len;

		while (name_len && is_space(item[name_len - 1]))
			name_len--;
		if (coding_find(item, name_len) < 0 && !is_identity(item, name_len))
			continue;
		if (out->len > before)
			buf_puts(out, ", ");
		buf_append(out, item, item_len);
	}
	if (out->len == before)
		buf_puts(out, "identity");
}
