/* SPDX-License-Identifier: MIT */
/*
 * Placeholders become values where the policy says so, and nowhere else. The head that the client sent, which is judged,
 * captured and reported, keeps its placeholders: values are in the copy that the origin gets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "inspect/carried.h"
#include "inspect/exchange.h"
#include "inspect/stage.h"
#include "secrets/sigv4.h"
#include "secrets/slots.h"

#define TEXT_MAX (NP_HEAD_BYTES + 4 * NP_SECRET_MAX)

/* A look at one request, or at a part of its body. */
struct looking {
	struct exchange *ex;
	const struct policy *policy;
	const struct credential *refused; /* the one that is the reason, ... */
	enum np_reason reason;		  /* ... which is this one, ... */
	const char *words;		  /* ... in words */
	const struct credential *signs;	  /* the request is to be signed with this one */
};

const struct credential *carried_credential(const struct exchange *ex, unsigned i)
{
	return credential_find(ex->client->worker->policy, ex->carried->names[i]);
}

/* -- may it? ---------------------------------------------------------------------------- */

/* They send back what they get. */
static bool method_echoes(const char *method)
{
	return !strcasecmp(method, "TRACE") || !strcasecmp(method, "TRACK");
}

static struct credential_facts facts_of(const struct exchange *ex)
{
	const struct sandbox *sandbox = ex->client->sandbox;

	return (struct credential_facts){
		.host = &ex->host,
		.port = ex->port,
		.method = ex->head.method,
		.path = ex->head.target,
		.session = sandbox->session->name,
		.rung = sandbox->rung,
		.named = ex->credential,
	};
}

static bool is_bound(const struct exchange *ex, const struct policy *policy, const struct credential *credential)
{
	const struct credential_facts facts = facts_of(ex);

	/* The origin is whom its certificate says, the name is the one that was judged, and we have looked it up: what is
	 * left is whether that is the right one. */
	return ex->tls && !method_echoes(ex->head.method) && credential_is_bound(policy, credential, &facts);
}

static int carried_get(struct exchange *ex)
{
	if (ex->carried)
		return 0;
	ex->carried = calloc(1, sizeof(*ex->carried));
	if (!ex->carried)
		return -ENOMEM;
	ex->carried->generation = ex->client->worker->secrets.generation;
	return 0;
}

/* It goes with the request from now on. False: with so many that nobody keeps count. */
static bool carried_note(struct exchange *ex, const struct credential *credential)
{
	struct carried *carried = ex->carried;

	for (unsigned i = 0; i < carried->n; i++)
		if (!strcmp(carried->names[i], credential->name))
			return true;
	if (carried->n == NP_CARRIED_MAX)
		return false;
	snprintf(carried->names[carried->n++], sizeof(carried->names[0]), "%s", credential->name);
	if (!ex->report.credential[0])
		snprintf(ex->report.credential, sizeof(ex->report.credential), "%s", credential->name);
	return true;
}

static const struct secret *look_refuse(struct looking *look, const struct credential *credential,
					enum np_reason reason, const char *words)
{
	look->refused = credential;
	look->reason = reason;
	look->words = words;
	return NULL;
}

/* A value that may go with the request, which carries it then; NULL: look says why not. */
static const struct secret *value_get(struct looking *look, const struct credential *credential)
{
	const struct worker *worker = look->ex->client->worker;
	const struct secret *secret =
		secrets_find(&worker->secrets, look->policy->hash, credential->name, loop_now_ns());

	if (!secret)
		return look_refuse(look, credential, NP_R_CREDENTIAL_MISSING, "its source has given no value");
	/* In its body, later: its response is searched for the values that there were when it began, and not for this one. */
	if (look->ex->carried->generation != worker->secrets.generation)
		return look_refuse(look, credential, NP_R_CREDENTIAL_MISSING,
				   "values have changed since the request began: it may be sent again");
	if (!carried_note(look->ex, credential))
		return look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE, "too many of them in one request");
	return secret;
}

static const struct secret *on_placeholder(void *ctx, const struct placeholder *placeholder,
					   const struct slot_place *place)
{
	static const struct secret nothing;
	struct looking *look = ctx;
	const struct credential *credential = &look->policy->credentials[placeholder->credential];

	if (!look->ex->tls)
		return look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE, "the request goes without TLS");
	if (!is_bound(look->ex, look->policy, credential))
		return look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
				   "it is not for this host, this request, or this session at its level");
	if (!slot_fits(credential, place))
		return look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE,
				   "it stands in another place of the request than \"as\" says");
	if (place->kind != SLOT_SIGV4)
		return value_get(look, credential);
	look->signs = credential; /* what stands there now is written anew: request_sign() */
	return &nothing;
}

static enum stage_result look_end(struct looking *look)
{
	struct exchange *ex = look->ex;
	char words[NP_NAME_MAX + 128];

	if (!look->refused) {
		exchange_stop(ex, NP_R_INTERNAL, NULL, "there is no room for a credential");
		return STAGE_OVER;
	}
	snprintf(ex->report.credential, sizeof(ex->report.credential), "%s", look->refused->name);
	snprintf(words, sizeof(words), "the credential %s: %s", look->refused->name, look->words);
	upstream_reset(ex);
	exchange_stop(ex, look->reason, NULL, words);
	return STAGE_OVER;
}

/* -- the head --------------------------------------------------------------------------- */

static int fields_rewrite(struct looking *look, const struct slot_finder *finder)
{
	const struct fields *fields = &look->ex->head.fields;

	for (uint32_t i = 0; i < fields->n; i++) {
		const struct field *field = &fields->items[i];
		_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
		int r = slot_header(finder, field->name, field->name_len, field->value, field->value_len, &fresh);
		struct head *outgoing = r > 0 ? exchange_outgoing(look->ex) : NULL;

		if (r > 0)
			r = outgoing ? fields_set(&outgoing->fields, i, fresh.data, fresh.len) : -ENOMEM;
		if (r < 0)
			return r;
	}
	return 0;
}

static int target_rewrite(struct looking *look, const struct slot_finder *finder)
{
	const char *target = look->ex->head.target;
	_wiped_ struct buf fresh = BUF_INIT(TEXT_MAX);
	int r = slot_target(finder, target, strlen(target), &fresh);
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
static int head_sign(struct looking *look, const struct credential *credential, const struct sigv4_key *key)
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
	case SIGV4_READY:
		r = sigv4_sign(&request, key, NULL, &fresh);
		if (r == 0)
			r = outgoing_set(outgoing, "authorization", fresh.data, fresh.len);
		if (r != -EINVAL)
			return r;
		problem = "it is none that can be signed";
		break;
	case SIGV4_BODY:
		problem = "the client does not say the hash of its body (x-amz-content-sha256)";
		break;
	case SIGV4_NONE:
	case SIGV4_REFUSED:
		break;
	}
	look_refuse(look, credential, NP_R_CREDENTIAL_ELSEWHERE, problem);
	return -EACCES;
}

static int request_sign(struct looking *look, const struct credential *credential)
{
	const struct secret *secret = value_get(look, credential);
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
		look_refuse(look, credential, NP_R_CREDENTIAL_MISSING, "its value is not KEY_ID:SECRET");
		r = -EACCES;
	}
	explicit_bzero(text, sizeof(text));
	return r;
}

/* inject: always. The client's own value of the place goes first: it has no say there. */
static int value_inject(struct looking *look, const struct credential *credential)
{
	const struct credential_slot *slot = &credential->slots[0];
	const char *name = slot->kind == SLOT_HEADER ? slot->name : "authorization";
	const struct secret *secret = value_get(look, credential);
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

static int values_inject(struct looking *look)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < look->policy->n_credentials; i++) {
		const struct credential *credential = &look->policy->credentials[i];

		if (!credential->always || !is_bound(look->ex, look->policy, credential))
			continue;
		r = carried_get(look->ex);
		if (r == 0 && credential->slots[0].kind == SLOT_SIGV4)
			look->signs = credential;
		else if (r == 0)
			r = value_inject(look, credential);
	}
	/* Last, for what is signed is the head as it goes. */
	return r == 0 && look->signs ? request_sign(look, look->signs) : r;
}

/* -- the body --------------------------------------------------------------------------- */

static bool type_is(const struct head *head, const char *type)
{
	const struct field *field = fields_find(&head->fields, "content-type");
	size_t len = strlen(type);

	return field && field->value_len >= len && !strncasecmp(field->value, type, len) &&
	       (field->value_len == len || strchr("; \t", field->value[len]));
}

/* Values may stand in it, if some credential that is for this request may stand in such a body, and we can read it. */
static void body_open(struct exchange *ex, const struct policy *policy)
{
	const bool form = type_is(&ex->head, "application/x-www-form-urlencoded");
	const struct slot_place place = { .kind = form ? SLOT_FORM : SLOT_JSON };
	bool readable =
		(form || type_is(&ex->head, "application/json")) && !fields_find(&ex->head.fields, "content-encoding");

	ex->carried->body = place.kind;
	for (size_t i = 0; readable && i < policy->n_credentials; i++)
		ex->carried->body_values |=
			slot_fits(&policy->credentials[i], &place) && is_bound(ex, policy, &policy->credentials[i]);
	stage_wants(ex, &stage_credentials, WAY_REQUEST, ex->carried->body_values ? WANT_REPLACE : WANT_LOOK);
}

static enum stage_result on_start(struct exchange *ex)
{
	const struct worker *worker = ex->client->worker;
	struct looking look = { .ex = ex, .policy = worker->policy };
	const struct slot_finder finder = { session_placeholders(worker, ex->client->sandbox->session), on_placeholder,
					    &look };
	int r;

	if (!worker->policy->n_credentials)
		return STAGE_NEXT;
	r = finder.set ? carried_get(ex) : -ENOMEM;
	if (r == 0)
		r = fields_rewrite(&look, &finder);
	if (r == 0)
		r = target_rewrite(&look, &finder);
	if (r == 0)
		r = values_inject(&look);
	if (r < 0)
		return look_end(&look);
	if (ex->head.has_body)
		body_open(ex, worker->policy);
	return STAGE_NEXT;
}

/* A placeholder may begin in the piece before: its last bytes stand in front of the first ones of this. */
static const struct placeholder *piece_find(const struct placeholder_set *set, struct carried *carried,
					    const char *data, size_t len)
{
	char joint[2 * NP_PLACEHOLDER_MAX];
	const size_t most = set->longest - 1, ahead = len < most ? len : most;
	const struct placeholder *found;
	size_t at, keep;

	memcpy(joint, carried->tail, carried->tail_len);
	memcpy(joint + carried->tail_len, data, ahead);
	found = carried->tail_len ? placeholder_set_find(set, joint, carried->tail_len + ahead, &at) : NULL;
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
static bool trailers_look(struct looking *look, const struct placeholder_set *set, const struct piece *piece)
{
	const struct placeholder *found = NULL;
	size_t at;

	for (uint32_t i = 0; !found && piece->trailers && i < piece->trailers->n; i++)
		found = placeholder_set_find(set, piece->trailers->items[i].value, piece->trailers->items[i].value_len,
					     &at);
	if (found)
		on_placeholder(look, found, &nowhere);
	return found;
}

static enum stage_result piece_look(struct looking *look, const struct placeholder_set *set, const struct piece *piece)
{
	const struct placeholder *found = piece_find(set, look->ex->carried, piece->data, piece->len);

	if (found)
		on_placeholder(look, found, &nowhere);
	else if (!trailers_look(look, set, piece))
		return STAGE_NEXT;
	return look_end(look);
}

static enum stage_result on_request_body(struct exchange *ex, struct piece *piece)
{
	const struct worker *worker = ex->client->worker;
	struct looking look = { .ex = ex, .policy = worker->policy };
	const struct slot_finder finder = { session_placeholders(worker, ex->client->sandbox->session), on_placeholder,
					    &look };
	const struct slot_place place = { .kind = ex->carried->body };
	int r;

	if (!finder.set) { /* no credential is left, or no memory */
		if (!worker->policy->n_credentials)
			return STAGE_NEXT;
		return look_end(&look);
	}
	if (!ex->carried->body_values)
		return piece_look(&look, finder.set, piece);
	piece->used =
		piece->end ? piece->len : piece->len - placeholder_set_pending(finder.set, piece->data, piece->len);
	r = slot_replace(&finder, &place, piece->data, piece->used, piece->out);
	if (r < 0)
		return look_end(&look);
	if (trailers_look(&look, finder.set, piece))
		return look_end(&look);
	return r > 0 ? STAGE_REPLACED : STAGE_NEXT;
}

/* -- what changes while it is under way --------------------------------------------------- */

const char *carried_lost(const struct carried *carried, const struct client *client,
			 const struct credential_facts *facts)
{
	const struct policy *policy = client->worker->policy;

	for (unsigned i = 0; i < carried->n; i++) {
		const struct credential *credential = credential_find(policy, carried->names[i]);

		if (!credential || !credential_is_bound(policy, credential, facts))
			return carried->names[i];
	}
	return NULL;
}

/* What it carries has to be for it still: at this level, and by this policy. */
static enum stage_result on_rejudge(struct exchange *ex, enum np_reason by)
{
	struct worker *worker = ex->client->worker;
	const struct credential_facts facts = facts_of(ex);
	const char *lost = ex->carried ? carried_lost(ex->carried, ex->client, &facts) : NULL;
	char words[NP_NAME_MAX + 64];

	if (!lost)
		return STAGE_NEXT;
	reporter_count_cut(&worker->reporter);
	report_end(&ex->report, worker, ex->client->sandbox, by, NULL);
	snprintf(words, sizeof(words), "the credential %s is not for it any more", lost);
	upstream_reset(ex);
	exchange_stop(ex, by, NULL, words);
	return STAGE_OVER;
}

static void on_forget(struct exchange *ex)
{
	if (ex->carried && ex->carried->n && ex->outgoing)
		fields_wipe(&ex->outgoing->fields);
	free(ex->carried);
	ex->carried = NULL;
}

const struct stage stage_credentials = { .name = "credentials",
					 .role = STAGE_MODIFIES,
					 .start = on_start,
					 .request_body = on_request_body,
					 .rejudge = on_rejudge,
					 .forget = on_forget };
