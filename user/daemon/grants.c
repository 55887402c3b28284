/* SPDX-License-Identifier: MIT */
/* The file that answers "always" are written to, in the steps of policy_files.c. The reviewed file is never touched. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "policy/grant.h"
#include "vocab/limits.h"

static int grants_fail(struct failure *ret, int r, unsigned reason, const char *file, const char *text)
{
	*ret = (struct failure){ .reason = reason };
	snprintf(ret->text, sizeof(ret->text), "%.200s: %.400s", file, text);
	return r;
}

static void facts_fill(const struct question_row *row, struct grant_facts *facts)
{
	*facts = (struct grant_facts){ .question = row->id,
				       .host = row->host,
				       .port = row->port,
				       .kind = !row->method[0] ? GRANT_CONNECT
					       : row->write    ? GRANT_WRITE
							       : GRANT_READ,
				       .tls = row->tls,
				       .level = row->rung.level,
				       .session = row->session.text,
				       .who = row->who,
				       .reason = row->reason,
				       .answered_us = row->answered_us };
}

/* What the file will say: with the lines at its end, or without them; nothing: it goes. */
static int text_make(int dir, const char *name, const struct buf *lines, bool add, struct buf *out)
{
	_buf_ struct buf old = BUF_INIT(NP_POLICY_BYTES);
	int r = policy_file_get(dir, name, &old);
	const char *text = r == 0 && !old.len ? "" : old.data, *at;

	if (r < 0 && r != -ENOENT)
		return r;
	if (add) {
		buf_puts(out, text ? text : grant_file_head);
		if (out->len && out->data[out->len - 1] != '\n')
			buf_puts(out, "\n");
		buf_append(out, lines->data, lines->len);
	} else {
		at = text ? strstr(text, lines->data) : NULL;
		if (!at)
			return -ENOENT;
		buf_append(out, text, (size_t)(at - text));
		buf_puts(out, at + lines->len);
		if (out->len == strlen(grant_file_head) && !strcmp(out->data, grant_file_head))
			buf_clear(out);
	}
	return buf_error(out);
}

/* Reads the policy as it would be: it is the live one, and one grant more or less. */
static int text_check_policy(const struct loaded_policy *loaded, const struct buf *text, bool add,
			     struct failure *ret_failure)
{
	const char *name = loaded->policy->approval.grants;
	_policy_ struct policy *now = NULL, *then = NULL;
	_problems_ struct problems problems = { 0 };
	char line[PROBLEM_LINE_SIZE];
	int r = policy_load_file(loaded->file, &now, &problems);

	if (r < 0 || strcmp(now->hash, loaded->policy->hash) != 0)
		return grants_fail(ret_failure, r < 0 ? r : -ESTALE, NP_R_BAD_POLICY, loaded->file,
				   "the files are not those of the live policy: reload it first");
	r = policy_load_with(loaded->file, name, text->len ? text->data : NULL, &then, &problems);
	if (r < 0) {
		problems_first(&problems, line);
		return grants_fail(ret_failure, r, NP_R_BAD_POLICY, name, line);
	}
	if (then->n_grants + !add != now->n_grants + add || then->n_rules != now->n_rules)
		return grants_fail(ret_failure, -EINVAL, NP_R_BAD_POLICY, name,
				   "\"grants\" is not the last thing in it");
	return 0;
}

int grant_change(void *data, const struct question_row *row, bool add, const char *who, struct failure *ret_failure)
{
	struct daemon *d = data;
	const struct loaded_policy *loaded = &d->policy;
	const struct policy *before = loaded->policy;
	const char *name = before->approval.grants;
	_buf_ struct buf lines = BUF_INIT(4096), text = BUF_INIT(NP_POLICY_BYTES);
	struct policy_reloaded done = { 0 };
	struct grant_facts facts;
	_close_ int dir = -1;
	int r;

	if (!name || !loaded->file)
		return grants_fail(ret_failure, -ENOTSUP, NP_R_BAD_FIELD, "always",
				   "the policy names no file for such answers (approval: grants:); answer host");
	facts_fill(row, &facts);
	r = grant_write(&facts, &lines);
	if (r < 0)
		return grants_fail(ret_failure, r, NP_R_BAD_FIELD, "always",
				   "the host cannot be written into a policy");
	dir = policy_dir_open(loaded->file);
	r = dir < 0 ? dir : text_make(dir, name, &lines, add, &text);
	if (r == -ENOENT && !add)
		return grants_fail(ret_failure, r, NP_R_NO_SUCH_QUESTION, name, "it has no such lines: look there");
	if (r < 0)
		return grants_fail(ret_failure, r, NP_R_NOT_RECORDED, name, policy_file_strerror(r));
	r = text_check_policy(loaded, &text, add, ret_failure);
	if (r < 0)
		return r;
	r = policy_file_put(dir, name, &text);
	if (r < 0)
		return grants_fail(ret_failure, r, NP_R_NOT_RECORDED, name, policy_file_strerror(r));
	r = policy_reload_by(d, who, &done, ret_failure);
	/* It is not live, and who answered is told so: the next reload must not make it so. Its name was the old policy's, which stays. */
	buf_clear(&text);
	if (r < 0 && add && loaded->policy == before && text_make(dir, name, &lines, false, &text) == 0)
		policy_file_put(dir, name, &text);
	return r;
}
