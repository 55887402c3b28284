/* SPDX-License-Identifier: MIT */
/* What the lines of a head mean. Whatever two servers could take for two things is refused. */
#include "http/h1_internal.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

static bool text_is(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

static bool text_is_one_of(const char *text, size_t len, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_is(text, len, words[i]))
			return true;
	return false;
}

enum h1_field h1_field_kind(const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum h1_field kind;
	} of_length[18][3] = {
		[2] = { { "te", H1_FIELD_TE } },
		[4] = { { "host", H1_FIELD_HOST } },
		[6] = { { "expect", H1_FIELD_EXPECT } },
		[7] = { { "upgrade", H1_FIELD_UPGRADE } },
		[10] = { { "connection", H1_FIELD_CONNECTION }, { "keep-alive", H1_FIELD_DROPPED } },
		[14] = { { "content-length", H1_FIELD_LENGTH },
			 { "content_length", H1_FIELD_LOOKALIKE },
			 { "http2-settings", H1_FIELD_DROPPED } },
		[16] = { { "proxy-connection", H1_FIELD_DROPPED } },
		[17] = { { "transfer-encoding", H1_FIELD_CODING }, { "transfer_encoding", H1_FIELD_LOOKALIKE } },
	};

	if (len >= ARRAY_SIZE(of_length) || !of_length[len][0].name)
		return H1_FIELD_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(of_length[0]) && of_length[len][i].name; i++)
		if (name[0] == of_length[len][i].name[0] && memcmp(name, of_length[len][i].name, len) == 0)
			return of_length[len][i].kind;
	return H1_FIELD_OTHER;
}

/* -- one field ---------------------------------------------------------------------- */

struct list {
	const char *at, *end;
};

/* The next element of a comma-separated list; empty ones are skipped. */
static bool list_next(struct list *list, const char **ret, size_t *ret_len)
{
	while (list->at < list->end) {
		const char *start = list->at, *comma = memchr(start, ',', (size_t)(list->end - start)), *stop;

		stop = comma ? comma : list->end;
		list->at = comma ? comma + 1 : list->end;
		while (start < stop && (*start == ' ' || *start == '\t'))
			start++;
		while (start < stop && (stop[-1] == ' ' || stop[-1] == '\t'))
			stop--;
		if (start < stop) {
			*ret = start;
			*ret_len = (size_t)(stop - start);
			return true;
		}
	}
	return false;
}

/* Connection names fields that are for this hop alone, which are dropped. A field that framing or a judgement depends on is not one of
 * them: a reader that drops it would read another message than one that does not. */
static bool may_be_nominated(const char *name, size_t len)
{
	static const char *const never[] = {
		"authorization",
		"content-encoding",
		"content-length",
		"content-type",
		"cookie",
		"content_length",
		"expect",
		"host",
		"set-cookie",
		"trailer",
		"transfer-encoding",
		"transfer_encoding",
	};

	return !text_is_one_of(name, len, never, ARRAY_SIZE(never));
}

static int connection_read(struct h1 *h1, const struct field *field)
{
	struct h1_notes *notes = &h1->notes;
	struct list list = { field->value, field->value + field->value_len };
	const char *name;
	size_t len;

	while (list_next(&list, &name, &len)) {
		if (text_is(name, len, "close")) {
			notes->close = true;
		} else if (text_is(name, len, "upgrade")) {
			notes->upgrades = true;
		} else if (!text_is(name, len, "keep-alive") && !text_is(name, len, "te")) {
			if (!field_name_is_valid(name, len))
				return h1_refuse(h1, "connection is not a list of names");
			if (!may_be_nominated(name, len))
				return h1_refuse(h1, "connection names a field that must not be taken back");
			if (notes->n_nominated == H1_NOMINATED_MAX)
				return h1_refuse(h1, "connection names too many fields");
			notes->nominated[notes->n_nominated].name = name;
			notes->nominated[notes->n_nominated++].len = len;
		}
	}
	return 0;
}

static int length_read(struct h1 *h1, const struct field *field)
{
	uint64_t length = 0;

	if (h1->notes.n_lengths++)
		return h1_refuse(h1, "several content-length");
	if (!field->value_len || field->value_len > 18 || (field->value[0] == '0' && field->value_len > 1))
		return h1_refuse(h1, "content-length is not a plain number");
	for (size_t i = 0; i < field->value_len; i++) {
		if (field->value[i] < '0' || field->value[i] > '9')
			return h1_refuse(h1, "content-length is not a plain number");
		length = length * 10 + (uint64_t)(field->value[i] - '0');
	}
	h1->head.has_length = true;
	h1->head.length = length;
	return 0;
}

static int upgrade_read(struct h1 *h1, const struct field *field)
{
	struct list list = { field->value, field->value + field->value_len };
	const char *protocol;
	size_t len;

	while (list_next(&list, &protocol, &len)) {
		const char *slash = memchr(protocol, '/', len);
		size_t name = slash ? (size_t)(slash - protocol) : len;

		if (!field_name_is_valid(protocol, name) || (slash && !field_name_is_valid(slash + 1, len - name - 1)))
			return h1_refuse(h1, "upgrade is not a list of protocols");
		h1->notes.n_upgrades++;
		h1->notes.upgrade = protocol;
		h1->notes.upgrade_len = len;
	}
	return 0;
}

static void te_read(struct h1 *h1, const struct field *field)
{
	struct list list = { field->value, field->value + field->value_len };
	const char *coding;
	size_t len;

	while (list_next(&list, &coding, &len))
		if (text_is(coding, len, "trailers"))
			h1->head.te_trailers = h1->role == H1_SERVER;
}

static int special_read(struct h1 *h1, enum h1_field kind, const struct field *field)
{
	struct h1_notes *notes = &h1->notes;

	switch (kind) {
	case H1_FIELD_HOST:
		if (notes->n_hosts++)
			return h1_refuse(h1, "several Host");
		notes->host = field->value;
		notes->host_len = field->value_len;
		return 0;
	case H1_FIELD_LENGTH:
		return length_read(h1, field);
	case H1_FIELD_CODING:
		if (notes->n_codings++)
			return h1_refuse(h1, "several transfer-encoding");
		if (!text_is(field->value, field->value_len, "chunked"))
			return h1_refuse(h1, "transfer-encoding is not \"chunked\"");
		return 0;
	case H1_FIELD_CONNECTION:
		return connection_read(h1, field);
	case H1_FIELD_UPGRADE:
		return upgrade_read(h1, field);
	case H1_FIELD_EXPECT:
		if (h1->role == H1_SERVER && !text_is(field->value, field->value_len, "100-continue"))
			return h1_refuse(h1, "expect is not \"100-continue\"");
		h1->head.expects_continue = h1->role == H1_SERVER;
		return 0;
	case H1_FIELD_TE:
		te_read(h1, field);
		return 0;
	case H1_FIELD_LOOKALIKE:
		return h1_refuse(h1, "a field looks like content-length or transfer-encoding");
	default:
		return 0;
	}
}

/* Name and value as they came, the value without the space around it. */
static int field_add(struct h1 *h1, struct fields *fields, const char *name, size_t name_len, const char *value,
		     size_t value_len)
{
	/* llhttp has seen to its bytes. */
	if (!name_len)
		return h1_refuse(h1, "a field has no name, which does not belong there");
	while (value_len && (value[0] == ' ' || value[0] == '\t')) {
		value++;
		value_len--;
	}
	while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
		value_len--;
	return fields_add(fields, name, name_len, value, value_len);
}

int h1_head_field(struct h1 *h1, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct fields *fields = &h1->head.fields;
	enum h1_field kind;
	int e;

	if (h1->notes.n_fields++ == NP_HEAD_FIELDS)
		return -E2BIG;
	e = field_add(h1, fields, name, name_len, value, value_len);
	if (e < 0)
		return e;
	kind = h1_field_kind(fields->items[fields->n - 1].name, name_len);
	/* Its text stays in the block: authority and notes point there. */
	return kind == H1_FIELD_OTHER ? 0 : special_read(h1, kind, &fields->items[--fields->n]);
}

int h1_trailer(struct h1 *h1, const char *name, size_t name_len, const char *value, size_t value_len)
{
	struct fields *trailers = h1->trailers;
	int e = field_add(h1, trailers, name, name_len, value, value_len);

	if (e < 0)
		return e;
	if (!field_is_for_heads(trailers->items[trailers->n - 1].name, name_len))
		return 0;
	if (h1->role == H1_SERVER)
		return h1_refuse(h1, "a trailer is a field that belongs in front of the body");
	trailers->n--; /* dropped: RFC 9110, 6.5.1 forbids to merge it into the head, and the rest of the response is sound */
	return 0;
}

/* -- all of them ------------------------------------------------------------------- */

static void nominated_remove(struct h1 *h1)
{
	struct fields *fields = &h1->head.fields;
	size_t kept = 0;

	for (size_t i = 0; i < fields->n; i++) {
		bool keep = true;

		for (unsigned k = 0; k < h1->notes.n_nominated; k++)
			if (fields->items[i].name_len == h1->notes.nominated[k].len &&
			    strncasecmp(fields->items[i].name, h1->notes.nominated[k].name,
					fields->items[i].name_len) == 0)
				keep = false;
		if (keep)
			fields->items[kept++] = fields->items[i];
	}
	fields->n = kept;
}

/* Upgrade is ignored, as RFC 9110, 7.8 allows, when it names several protocols or when Connection does not name it. */
static int upgrade_finish(struct h1 *h1)
{
	const struct h1_notes *notes = &h1->notes;
	char text[H1_UPGRADE_MAX];

	if (!notes->upgrades || notes->n_upgrades != 1 || h1->old_version)
		return 0;
	if (notes->upgrade_len > sizeof(text))
		return h1_refuse(h1, "upgrade names an overlong protocol");
	for (size_t i = 0; i < notes->upgrade_len; i++) {
		char c = notes->upgrade[i];

		text[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	return head_set_upgrade(&h1->head, text, notes->upgrade_len);
}

static int request_finish(struct h1 *h1)
{
	const struct h1_notes *notes = &h1->notes;
	struct head *head = &h1->head;

	/* What some tools still send to a proxy: the target names the host, and nothing can contradict it. */
	bool hostless = h1->is_connect && h1->old_version && !notes->n_hosts;

	if (!notes->n_hosts && !hostless)
		return h1_refuse(h1, "there is no Host");
	if (!hostless && !h1_authority_is_plain(notes->host, notes->host_len))
		return h1_refuse(h1, "Host is not a host with perhaps a port");
	h1->peer_old = h1->old_version;
	if (h1->old_version)
		head->expects_continue = false;
	if (notes->n_codings)
		h1->body = H1_BODY_CHUNKED;
	else if (head->has_length && head->length)
		h1->body = H1_BODY_LENGTH;
	if (h1->is_connect && (notes->n_codings || head->has_length))
		return h1_refuse(h1, "CONNECT with a body");
	/* In origin-form the target names no host. */
	if (head->authority)
		return h1_authority_check(h1);
	head->authority = notes->host;
	return 0;
}

static int switch_finish(struct h1 *h1)
{
	if (!h1->upgrade[0])
		return h1_refuse(h1, "a switch of protocols that the request did not ask for");
	if (!h1->head.upgrade || strcmp(h1->head.upgrade, h1->upgrade) != 0)
		return h1_refuse(h1, "a switch to another protocol than the request asked for");
	return 0;
}

static int response_finish(struct h1 *h1)
{
	struct head *head = &h1->head;
	bool chunked = h1->notes.n_codings > 0;

	if (head->status != 101)
		head->upgrade = NULL; /* an offer of the server, to which nobody answers */
	if (head->status < 200 || head->status == 204) {
		/* Some servers send "content-length: 0" with 204, some "chunked". Then an empty chunk may follow, so the
		 * connection is not used again. */
		if ((chunked && head->status != 204) || (head->has_length && (head->length || head->status != 204)))
			return h1_refuse(h1, "a body in a response that cannot have one");
		h1->read_closes |= chunked;
		head->has_length = false;
		head->length = BODY_UNKNOWN;
		return head->status == 101 ? switch_finish(h1) : 0;
	}
	if (h1->is_connect && head->status < 300) {
		head->has_length = false;
		head->length = BODY_UNKNOWN;
		return h1->tunnels ? 0 : h1_refuse(h1, "a tunnel, which is not asked for");
	}
	if (h1->is_head || head->status == 304)
		return 0;
	if (chunked)
		h1->body = H1_BODY_CHUNKED;
	else if (!head->has_length)
		h1->body = H1_BODY_CLOSE;
	else if (head->length)
		h1->body = H1_BODY_LENGTH;
	return 0;
}

int h1_head_finish(struct h1 *h1)
{
	const struct h1_notes *notes = &h1->notes;
	bool interim = h1->role == H1_CLIENT && h1->head.status < 200;
	int e;

	if (notes->n_lengths && notes->n_codings)
		return h1_refuse(h1, "both content-length and transfer-encoding");
	if (notes->n_codings && h1->old_version)
		return h1_refuse(h1, "transfer-encoding in HTTP/1.0");
	h1->body = H1_BODY_NONE;
	e = upgrade_finish(h1);
	if (e == 0)
		e = h1->role == H1_SERVER ? request_finish(h1) : response_finish(h1);
	if (e < 0)
		return e;
	if (notes->n_nominated)
		nominated_remove(h1);
	h1->left = h1->head.length;
	h1->head.has_body = h1->body != H1_BODY_NONE;
	if (!interim && (h1->old_version || notes->close || h1->body == H1_BODY_CLOSE))
		h1->read_closes = true;
	return 0;
}
