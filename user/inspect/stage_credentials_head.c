/* SPDX-License-Identifier: MIT */
/* Values in the head of a request: in the place of placeholders, where the policy says "always", and in signatures. */
#include <errno.h>
#include <string.h>

#include "inspect/stage_credentials.h"
#include "secrets/sigv4.h"

#define TEXT_MAX (NP_HEAD_BYTES + 4 * NP_SECRET_MAX)

static int fields_rewrite(struct credential_look *look)
{
	const struct fields *fields = &look->ex->head.fields;

	for (uint32_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
		int r = slot_header(&look->finder, field->name, field->name_len, field->value, field->value_len,
				    &fresh);
		struct head *outgoing = r > 0 ? exchange_outgoing(look->ex) : NULL;

		if (r > 0)
			r = outgoing ? fields_set(&outgoing->fields, i, fresh.data, fresh.len) : -ENOMEM;
		if (r < 0)
			return r;
	}
	return 0;
}

static int target_rewrite(struct credential_look *look)
{
	const char *target = look->ex->head.target;
	_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
	int r = slot_target(&look->finder, target, strlen(target), &fresh);
	struct head *outgoing = r > 0 ? exchange_outgoing(look->ex) : NULL;

	if (r > 0)
		r = outgoing ? head_set_target(outgoing, fresh.data, fresh.len) : -ENOMEM;
	return r;
}

/* KEY_ID:SECRET or KEY_ID:SECRET:TOKEN, taken apart where it lies. */
static bool sigv4_key_read(char *text, struct sigv4_key *ret)
{
	char *secret = strchr(text, ':'), *token = secret ? strchr(secret + 1, ':') : NULL;

	if (!secret || secret == text || !secret[1] || secret + 1 == token || (token && !token[1]))
		return false;
	*secret = '\0';
	if (token)
		*token = '\0';
	ret->id = text;
	ret->secret = secret + 1;
	ret->token = token ? token + 1 : NULL;
	return true;
}

static int outgoing_set(struct head *outgoing, const char *name, const char *value, size_t len)
{
	fields_remove(&outgoing->fields, name);
	return value ? fields_add(&outgoing->fields, name, strlen(name), value, len) : 0;
}

/* What the client has signed with the placeholder, or with anything, is signed anew: the head as it goes. */
static int head_sign(struct credential_look *look, const struct credential *credential, const struct sigv4_key *key)
{
	static const char token[] = "x-amz-security-token";
	struct head *outgoing = exchange_outgoing(look->ex);
	struct sigv4_header headers[NP_HEAD_FIELDS];
	_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
	const char *problem = "the client has not signed it: it needs a key, for which the placeholder is good";
	struct sigv4_request request;
	int r = outgoing ? outgoing_set(outgoing, token, key->token, key->token ? strlen(key->token) : 0) : -ENOMEM;

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < outgoing->fields.n; i++)
		headers[i] =
			(struct sigv4_header){ outgoing->fields.items[i].name, outgoing->fields.items[i].name_len,
					       outgoing->fields.items[i].value, outgoing->fields.items[i].value_len };
	request = (struct sigv4_request){ .method = outgoing->method,
					  .target = outgoing->target,
					  .host = outgoing->authority,
					  .headers = headers,
					  .n = outgoing->fields.n };
	switch (sigv4_look(&request, outgoing->has_body, &problem)) {
	case SIGV4_BODY:
		if (!look->body_hash && (!outgoing->has_length || outgoing->length > NP_SIGNED_BODY)) {
			problem = "the client does not say the hash of its body (x-amz-content-sha256), which is long, "
				  "or of a "
				  "length that nobody knows";
			break;
		}
		look->needs_body = !look->body_hash;
		if (look->needs_body)
			return 0;
		/* fall through */
	case SIGV4_READY:
		r = sigv4_sign(&request, key, look->body_hash, &fresh);
		if (r == 0)
			r = outgoing_set(outgoing, "authorization", fresh.data, fresh.len);
		if (r != -EINVAL)
			return r;
		problem = "it is none that can be signed";
		break;
	case SIGV4_NONE:
	case SIGV4_REFUSED:
		break;
	}
	credential_look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE, problem);
	return -EACCES;
}

int credentials_head_sign(struct credential_look *look, const struct credential *credential)
{
	const struct secret *secret = credential_look_value(look, credential);
	struct sigv4_key key = { .service = credential->slots[0].name, .region = credential->slots[0].region };
	char text[NP_SECRET_MAX + 1];
	int r;

	if (!secret)
		return -EACCES;
	memcpy(text, secret->value, secret->len);
	text[secret->len] = '\0';
	if (sigv4_key_read(text, &key)) {
		r = head_sign(look, credential, &key);
	} else {
		credential_look_refuse(look, credential, NP_R_CREDENTIAL_MISSING, "its value is not KEY_ID:SECRET");
		r = -EACCES;
	}
	explicit_bzero(text, sizeof(text));
	return r;
}

/* inject: always. The client's own value of the place goes first: it has no say there. */
static int value_inject(struct credential_look *look, const struct credential *credential)
{
	const struct credential_slot *slot = &credential->slots[0];
	const char *name = slot->kind == SLOT_HEADER ? slot->name : "authorization";
	const struct secret *secret = credential_look_value(look, credential);
	struct head *outgoing = secret ? exchange_outgoing(look->ex) : NULL;
	_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);

	if (!secret)
		return -EACCES;
	if (!outgoing)
		return -ENOMEM;
	if (slot->kind == SLOT_QUERY) {
		slot_write_query(slot, secret, outgoing->target, &fresh);
		return fresh.error ? fresh.error : head_set_target(outgoing, fresh.data, fresh.len);
	}
	slot_write(slot, secret, &fresh);
	fields_remove(&outgoing->fields, name);
	return fresh.error ? fresh.error : fields_add(&outgoing->fields, name, strlen(name), fresh.data, fresh.len);
}

static int values_inject(struct credential_look *look)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < look->policy->n_credentials; i++) {
		const struct credential *credential = &look->policy->credentials[i];

		if (!credential->always || !credential_fits(look->ex, look->policy, credential))
			continue;
		r = carried_get(look->ex);
		if (r == 0 && credential->slots[0].kind == SLOT_SIGV4)
			look->signs = credential;
		else if (r == 0)
			r = value_inject(look, credential);
	}
	return r;
}

int credentials_head_rewrite(struct credential_look *look)
{
	int r = fields_rewrite(look);

	if (r == 0)
		r = target_rewrite(look);
	if (r == 0)
		r = values_inject(look);
	/* Last, for what is signed is the head as it goes. */
	return r == 0 && look->signs ? credentials_head_sign(look, look->signs) : r;
}
