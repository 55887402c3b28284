/* SPDX-License-Identifier: MIT */
/* A page of events with the entries of an HTTP archive that they make: the page of the browser keeps those that its filter shows. */
#include "console/har_page.h"

#include <string.h>

#include "api_client/har_entry.h"

int har_page_make(const struct buf *events, struct buf *out)
{
	_buf_ struct buf entry = BUF_INIT(8u << 20);
	const char *at = events->data, *end = at ? at + events->len : NULL, *line_end;

	for (; at && at < end && (line_end = memchr(at, '\n', (size_t)(end - at))); at = line_end + 1) {
		json_t *event = json_loadb(at, (size_t)(line_end - at), 0, NULL);

		if (!event)
			continue;
		buf_puts(out, "{\"event\":");
		buf_append(out, at, (size_t)(line_end - at));
		if (har_is_entry(event)) {
			buf_clear(&entry);
			har_entry_put(event, &entry);
			buf_puts(out, ",\"entry\":");
			buf_append(out, entry.data, entry.len);
		}
		buf_puts(out, "}\n");
		json_decref(event);
		if (buf_error(&entry))
			return buf_error(&entry);
	}
	return buf_error(out);
}
