/* SPDX-License-Identifier: MIT */
#include "api_client/message.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "base/chars.h"
#include "vocab/words.h"

void output_text(struct buf *out, const char *text, size_t len)
{
	while (len) {
		uint32_t c;
		size_t n = char_decode(text, len, &c);

		if (n && char_is_printable(c))
			buf_append(out, text, n);
		else
			buf_puts(out, "?");
		text += n ? n : 1;
		len -= n ? n : 1;
	}
}

void output_clean_line(FILE *to, const char *fmt, ...)
{
	cleanup(buf_free) struct buf out = BUF_INIT(OUTPUT_TEXT_MAX);
	_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (text)
		output_text(&out, text, strlen(text));
	if (out.len)
		fwrite(out.data, 1, out.len, to);
	fputc('\n', to);
}

int output_finish(int code)
{
	static bool is_reported; /* a command may have asked before main() does */

	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	if (!is_reported)
		fprintf(stderr, "netpawl: cannot write to standard output\n");
	is_reported = true;
	return code == CLI_OK ? CLI_REFUSED : code;
}

void complain_text(const char *subject, const char *sentence, const char *token, const char *detail)
{
	if (detail && (!*detail || (subject && !strcmp(detail, subject)))) /* it is said once */
		detail = NULL;
	output_clean_line(stderr, "netpawl: %s%s%s (%s)%s%s", subject ? subject : "", subject ? ": " : "", sentence,
			  token, detail ? ": " : "", detail ? detail : "");
}

void error_print(const char *subject, unsigned reason, const char *detail)
{
	complain_text(subject, reason_sentence(reason), reason_token(reason), detail);
}

int usage_error(const char *command, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	output_clean_line(stderr, "netpawl: %s%s%s; see netpawl %s%s--help", command ? command : "",
			  command ? ": " : "", text, command ? command : "", command ? " " : "");
	return CLI_USAGE;
}

long long member_number(const json_t *object, const char *name)
{
	return (long long)json_integer_value(json_object_get(object, name));
}

const char *member_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

void refusal_text(const json_t *answer, const char *otherwise, char *text, size_t size)
{
	const char *detail = member_text(answer, "detail");

	snprintf(text, size, "%s%s%s", member_text(answer, "message") ?: otherwise, detail ? ": " : "", detail ?: "");
}
