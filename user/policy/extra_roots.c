/* SPDX-License-Identifier: MIT */
/* extra_roots: certificates for the inspector. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "policy/include.h"
#include "policy/pem.h"
#include "policy/quote.h"
#include "vocab/limits.h"

static int root_load(struct loading *l, const struct node *entry, const char *name, struct buf *pem)
{
	_free_ char *text = NULL;
	const char *problem;
	size_t len;
	int e = text_load(l, name, entry, &text, &len);

	if (e < 0 || !text)
		return e;
	problem = pem_problem(text, len);
	if (problem) {
		error_at(&l->reader, entry, "%s: %s", QUOTE(name, strlen(name)), problem);
		return 0;
	}
	buf_append(pem, text, len);
	buf_puts(pem, "\n");
	return buf_error(pem);
}

int roots_load(struct loading *l, const struct file *first)
{
	const struct node *key = first->sections[SECTION_EXTRA_ROOTS], *entry = NULL;
	size_t n = key ? field_entries(&l->reader, key, &entry) : 0;
	_buf_ struct buf pem = BUF_INIT(2 * NP_POLICY_BYTES);
	_free_ char *name = malloc(PATH_MAX);
	struct policy *policy = l->reader.policy;
	int e = name ? 0 : -ENOMEM;

	for (; n && e == 0; n--, entry = entry->next)
		if (entry_is_text(&l->reader, key, entry) && path_resolve(&l->reader, first, key, entry, name) == 0)
			e = root_load(l, entry, name, &pem);
	if (e < 0)
		return e;
	policy->extra_roots = arena_text(policy->arena, pem.data ? pem.data : "", pem.len);
	policy->extra_roots_len = pem.len;
	return policy->extra_roots ? 0 : -ENOMEM;
}
