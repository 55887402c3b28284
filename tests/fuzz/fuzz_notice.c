/* SPDX-License-Identifier: MIT */
/* The texts of notices: what the check lets pass is written, in its bounds, and with every brace accounted for. */
#include "policy/notice_text.c"

#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy *policy;
	_free_ char *text = calloc(1, size + 1);
	_buf_ struct buf out = BUF_INIT(NP_NOTICE_TEXT);
	char problem[NOTICE_PROBLEM_SIZE];
	const struct notice_facts facts = {
		.session = "a/b",
		.rung = { .mode = NP_PROXIED, .level = LEVEL_CONFIDENTIAL },
		.dataset = "{d}",
	};
	const char *port_rule;

	if (!policy && policy_default(&policy) < 0)
		abort();
	if (!text || memchr(data, '\0', size))
		return 0;
	memcpy(text, data, size);
	port_rule = notice_template_check(text, size, problem);
	if (port_rule && !*port_rule)
		abort();
	if (size > NP_NOTICE_TEMPLATE && !port_rule)
		abort();
	policy->notices[NP_PROXIED] = text; /* also what was refused: it must do no harm */
	notice_write(policy, &facts, &out);
	if (buf_error(&out) || out.len > NP_NOTICE_TEXT)
		abort();
	/* Without braces it is written as it is. */
	if (size && size <= NP_NOTICE_TEMPLATE && !strpbrk(text, "{}") &&
	    (out.len != size || memcmp(out.data, text, size) != 0))
		abort();
	policy->notices[NP_PROXIED] = NULL;
	return 0;
}
