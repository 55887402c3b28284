/* SPDX-License-Identifier: MIT */
/* Chunked bodies (RFC 9112, 7.1), byte by byte up to their trailers. Extensions are checked and dropped. */
#include <string.h>

#include "base/chars.h"
#include "http/h1_internal.h"
#include "vocab/limits.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int size_read(struct h1 *h1, char c)
{
	int digit = hex_digit(c);

	if (digit >= 0) {
		if (h1->chunk_digits++ == H1_CHUNK_DIGITS)
			return h1_refuse(h1, "the size of a chunk has too many digits");
		h1->left = h1->left << 4 | (unsigned)digit;
		return 0;
	}
	if (!h1->chunk_digits || (c != '\r' && c != ';' && !is_blank(c)))
		return h1_refuse(h1, "the size of a chunk is not a number");
	h1->chunk = c == '\r' ? H1_CHUNK_LF : c == ';' ? H1_CHUNK_EXT : H1_CHUNK_BLANK;
	return 0;
}

/* Behind a name or a value: more space, the next extension, or the end of the line. A name may get its value. */
static enum h1_chunk extension_next(char c, bool named)
{
	if (is_blank(c))
		return named ? H1_CHUNK_NAME_END : H1_CHUNK_BLANK;
	if (c == '=' && named)
		return H1_CHUNK_EQUALS;
	if (c == ';')
		return H1_CHUNK_EXT;
	return c == '\r' ? H1_CHUNK_LF : H1_CHUNK_BROKEN;
}

/* chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] ): no CR and no LF is anywhere in it. */
static enum h1_chunk extension_read(enum h1_chunk at, char c)
{
	bool token = field_name_is_valid(&c, 1), text = (unsigned char)c >= ' ' ? c != 0x7f : c == '\t';

	switch (at) {
	case H1_CHUNK_BLANK: /* space is there to be followed by an extension */
		return is_blank(c) ? at : c == ';' ? H1_CHUNK_EXT : H1_CHUNK_BROKEN;
	case H1_CHUNK_EXT:
		return is_blank(c) ? at : token ? H1_CHUNK_NAME : H1_CHUNK_BROKEN;
	case H1_CHUNK_NAME:
		return token ? at : extension_next(c, true);
	case H1_CHUNK_NAME_END:
		return c == '\r' ? H1_CHUNK_BROKEN : extension_next(c, true);
	case H1_CHUNK_EQUALS:
		return is_blank(c) ? at : c == '"' ? H1_CHUNK_QUOTED : token ? H1_CHUNK_VALUE : H1_CHUNK_BROKEN;
	case H1_CHUNK_VALUE:
		return token ? at : extension_next(c, false);
	case H1_CHUNK_QUOTED:
		return c == '"' ? H1_CHUNK_QUOTED_END : c == '\\' ? H1_CHUNK_ESCAPED : text ? at : H1_CHUNK_BROKEN;
	case H1_CHUNK_ESCAPED:
		return text ? H1_CHUNK_QUOTED : H1_CHUNK_BROKEN;
	case H1_CHUNK_QUOTED_END:
		return extension_next(c, false);
	default:
		return H1_CHUNK_BROKEN;
	}
}

/* The line is complete. A long body may have an extension on each chunk: what counts is how much more they are. */
static void line_end(struct h1 *h1)
{
	h1->chunk_extra -= h1->chunk_extra < h1->left ? h1->chunk_extra : (size_t)h1->left;
	h1->chunk_digits = 0;
	h1->chunk = h1->left ? H1_CHUNK_DATA : H1_CHUNK_SIZE;
	if (!h1->left)
		h1->state = H1_READ_TRAILERS;
}

static int line_read(struct h1 *h1, char c)
{
	if (h1->chunk == H1_CHUNK_SIZE)
		return size_read(h1, c);
	if (h1->chunk == H1_CHUNK_LF) {
		if (c != '\n')
			return h1_refuse(h1, "the line of a chunk ends without LF");
		line_end(h1);
		return 0;
	}
	if (h1->chunk_extra++ == NP_CHUNK_EXTENSIONS)
		return h1_refuse(h1, "the extensions of chunks are too long");
	h1->chunk = extension_read(h1->chunk, c);
	return h1->chunk == H1_CHUNK_BROKEN ? h1_refuse(h1, "the extension of a chunk is not one") : 0;
}

ssize_t h1_chunks_read(struct h1 *h1, const char *data, size_t len)
{
	int e;

	switch (h1->chunk) {
	case H1_CHUNK_DATA:
		if (len > h1->left)
			len = (size_t)h1->left;
		h1->left -= len;
		if (!h1->left)
			h1->chunk = H1_CHUNK_DATA_CR;
		e = h1->events->body(h1->ctx, data, len);
		return e < 0 ? e : (ssize_t)len;
	case H1_CHUNK_DATA_CR:
	case H1_CHUNK_DATA_LF:
		if (*data != (h1->chunk == H1_CHUNK_DATA_CR ? '\r' : '\n'))
			return h1_refuse(h1, "the chunks are not framed as they should be");
		h1->chunk = h1->chunk == H1_CHUNK_DATA_CR ? H1_CHUNK_DATA_LF : H1_CHUNK_SIZE;
		return 1;
	default:
		e = line_read(h1, *data);
		return e < 0 ? e : 1;
	}
}

/* One line without its CRLF. */
static int trailer_read(struct h1 *h1, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : 0;

	if (!field_name_is_valid(line, name_len))
		return h1_refuse(h1, "a field has a byte that does not belong there");
	return h1_trailer(h1, line, name_len, colon + 1, len - name_len - 1);
}

int h1_trailers_parse(struct h1 *h1, const char *lines, size_t len)
{
	int e = 0;

	/* Lines end in CRLF, and the last one is empty. */
	while (e == 0 && len > 2) {
		size_t n = (size_t)((const char *)memchr(lines, '\r', len) - lines);

		e = trailer_read(h1, lines, n);
		lines += n + 2;
		len -= n + 2;
	}
	return e;
}
