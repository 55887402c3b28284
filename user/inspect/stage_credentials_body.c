/* SPDX-License-Identifier: MIT */
/* Values in the place of placeholders in the body of a request, or the look that no placeholder is in it. */
#include <string.h>
#include <strings.h>

#include "inspect/stage_credentials.h"

static bool type_is(const struct head *head, const char *type)
{
	const struct field *field = fields_find(&head->fields, "content-type");
	size_t len = strlen(type);

	return field && field->value_len >= len && !strncasecmp(field->value, type, len) &&
	       (field->value_len == len || strchr("; \t", field->value[len]));
}

/* Values may stand in it, if some credential that is for this request may stand in such a body, and we can read it. */
void credentials_body_open(struct exchange *ex, const struct policy *policy)
{
	const bool form = type_is(&ex->head, "application/x-www-form-urlencoded");
	const struct slot_place place = { .kind = ex->head.upgrade ? SLOT_WEBSOCKET : form ? SLOT_FORM : SLOT_JSON };
	bool readable = ex->head.upgrade || ((form || type_is(&ex->head, "application/json")) &&
					     !fields_find(&ex->head.fields, "content-encoding"));

	ex->carried->body = place.kind;
	for (size_t i = 0; readable && i < policy->n_credentials; i++) {
		const struct credential *credential = &policy->credentials[i];

		ex->carried->body_values |=
			(slot_fits(credential, &place) && credential_fits(ex, policy, credential)) ||
			(slot_fits_token(credential, false, &place) && credential_token_fits(ex, policy, credential));
	}
	if (ex->head.has_body)
		stage_wants(ex, &stage_credentials, WAY_REQUEST, ex->carried->body_values ? WANT_REPLACE : WANT_LOOK);
}

/* A placeholder may begin in the piece before: its last bytes stand in front of the first ones of this. */
static const struct placeholder *piece_find(const struct placeholder_set *set, struct carried *carried,
					    const char *data, size_t len)
{
	char joint[2 * NP_PLACEHOLDER_MAX];
	const size_t most = set->longest - 1, ahead = len < most ? len : most;
	const struct placeholder *found;
	size_t at, keep;

	if (!len) /* the end of the body, which may be no piece of it */
		return NULL;
	memcpy(joint, carried->tail, carried->tail_len);
	memcpy(joint + carried->tail_len, data, ahead);
	/* No token: that is not cut in two, because it waits to be whole. */
	found = carried->tail_len ? placeholder_set_find_own(set, joint, carried->tail_len + ahead, &at) : NULL;
	if (!found)
		found = placeholder_set_find(set, data, len, &at);
	if (len >= most) {
		memcpy(carried->tail, data + len - most, most);
		carried->tail_len = most;
	} else {
		keep = carried->tail_len + len < most ? carried->tail_len + len : most;
		memmove(carried->tail, joint + carried->tail_len + len - keep, keep);
		carried->tail_len = keep;
	}
	return found;
}

/* No value belongs there. */
static const struct slot_place nowhere = { .kind = SLOT_KINDS };

/* True: one has a placeholder, and look says so. */
static bool trailers_look(struct credential_look *look, const struct piece *piece)
{
	const struct placeholder *found = NULL;
	size_t at;

	for (uint32_t i = 0; !found && piece->trailers && i < piece->trailers->n; i++)
		found = placeholder_set_find(look->finder.set, piece->trailers->items[i].value,
					     piece->trailers->items[i].value_len, &at);
	if (found)
		credential_look_placeholder(look, found, &nowhere);
	return found;
}

static enum stage_result piece_look(struct credential_look *look, struct piece *piece)
{
	const struct placeholder *found;

	if (!piece->end)
		piece->used = piece->len - placeholder_set_pending_token(look->finder.set, piece->data, piece->len);
	found = piece_find(look->finder.set, look->ex->carried, piece->data, piece->used);
	if (found)
		credential_look_placeholder(look, found, &nowhere);
	else if (!trailers_look(look, piece))
		return STAGE_NEXT;
	return credential_look_end(look);
}

static enum stage_result body_piece(struct exchange *ex, struct piece *piece)
{
	const struct slot_place place = { .kind = ex->carried->body };
	struct credential_look look;
	int r;

	credential_look_begin(&look, ex);
	if (!look.finder.set)
		return look.policy->n_credentials ? credential_look_end(&look) : STAGE_NEXT;
	if (!ex->carried->body_values)
		return piece_look(&look, piece);
	piece->used = piece->end ? piece->len
				 : piece->len - placeholder_set_pending(look.finder.set, piece->data, piece->len);
	r = slot_replace(&look.finder, &place, piece->data, piece->used, piece->out);
	if (r < 0 || trailers_look(&look, piece))
		return credential_look_end(&look);
	return r > 0 ? STAGE_REPLACED : STAGE_NEXT;
}

enum stage_result credentials_body_look(struct exchange *ex, struct piece *piece)
{
	enum stage_result r = body_piece(ex, piece);

	if (r != STAGE_OVER && piece->end && ex->carried->signs[0])
		hold_wake(&ex->hold);
	return r;
}
