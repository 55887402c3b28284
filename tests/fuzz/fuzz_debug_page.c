/* SPDX-License-Identifier: MIT */
/* Random bytes as a page of an inspector that is lost to an attacker: in bounds or none, and what is written of it is JSON. */
#include "link/debug_page.c"
#include "supervisor/debug_ask.c"

#include <jansson.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void page_check(const void *bytes, size_t size)
{
	const struct debug_page *page = debug_page_read(bytes, size);
	_buf_ struct buf out = BUF_INIT(4u << 20);
	json_t *json;

	if (!page)
		return;
	check(page->n <= DEBUG_ENTRIES_MAX && size == sizeof(*page) + page->n * sizeof(page->entries[0]));
	json_open_object(&out, NULL);
	page_put(&out, page);
	json_close_object(&out);
	check(!buf_error(&out));
	json = json_loads(out.data, 0, NULL);
	check(json != NULL);
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t entry = sizeof(struct debug_entry), head = sizeof(struct debug_page);
	size_t n = size > head ? (size - head) / entry + 1 : 0;
	struct debug_page *page;
	void *copy = malloc(size ? size : 1);

	check(copy != NULL);
	memcpy(copy, data, size);
	page_check(copy, size);
	free(copy);
	/* One of the right size, which the fuzzer would hardly hit. */
	if (n > DEBUG_ENTRIES_MAX)
		return 0;
	page = calloc(1, head + n * entry);
	check(page != NULL);
	memcpy(page, data, size < head + n * entry ? size : head + n * entry);
	page->n = (uint32_t)n;
	page->policy[sizeof(page->policy) - 1] = '\0';
	for (size_t i = 0; i < n; i++) {
		struct debug_entry *e = &page->entries[i];

		e->kind %= DEBUG_KINDS;
		e->life %= 6;
		e->tls &= 1;
		e->h2 &= 1;
		e->host[sizeof(e->host) - 1] = e->session[sizeof(e->session) - 1] = '\0';
	}
	page_check(page, head + n * entry);
	free(page);
	return 0;
}
