/* SPDX-License-Identifier: MIT */
#include "decider/frame.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "vocab/level.h"

static int frame_fail(const char **ret_problem, const char *problem)
{
	*ret_problem = problem;
	return -EPROTO;
}

/* A text member: NULL in *ret when it is not there. */
static bool member_text(const json_t *object, const char *key, const char **ret)
{
	const json_t *value = json_object_get(object, key);

	*ret = json_string_value(value);
	return !value || *ret;
}

/* A whole number in bounds; *ret is left alone when it is not there. */
static bool member_number(const json_t *object, const char *key, uint64_t most, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 1 || (uint64_t)json_integer_value(value) > most)
		return false;
	*ret = (uint64_t)json_integer_value(value);
	return true;
}

/* Has it members beside these? */
static bool members_known(json_t *object, const char *const *known)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		const char *const *name = known;

		while (*name && strcmp(*name, key) != 0)
			name++;
		if (!*name)
			return false;
	}
	return true;
}

static int hello_read(json_t *object, struct frame *ret, const char **ret_problem)
{
	static const char *const known[] = { "type", "version", NULL };
	uint64_t version = 0;

	if (!members_known(object, known))
		return frame_fail(ret_problem, "its hello has an unknown field");
	if (!member_number(object, "version", UINT32_MAX, &version) || version != FRAME_VERSION)
		return frame_fail(ret_problem, "its hello is not of version 1");
	*ret = (struct frame){ .type = FRAME_HELLO };
	return 0;
}

/* What belongs to one kind of answer only. */
static const char *answer_problem(const struct decision *decision, const char *reason, const char *level,
				  const char *remember, bool ttl)
{
	const bool final = decision->kind == DECISION_ALLOW || decision->kind == DECISION_DENY;

	if ((decision->kind == DECISION_RAISE) != (level != NULL))
		return "\"level\" is of the answer raise, and of no other";
	if ((decision->kind == DECISION_NEED_BODY) != (decision->max > 0))
		return "\"max\" is of the answer need_body, and of no other";
	if (decision->kind == DECISION_NEED_BODY && reason)
		return "\"reason\" is of an answer, and need_body is none";
	if (!final && (remember || ttl))
		return "\"remember\" and \"ttl\" are of allow and deny";
	if (ttl && decision->remember == REMEMBER_NONE)
		return "\"ttl\" needs a \"remember\" that is not none";
	return NULL;
}

static int answer_read(json_t *object, struct frame *ret, const char **ret_problem)
{
	static const char *const known[] = {
		"type", "id", "answer", "reason", "level", "remember", "ttl", "max", NULL
	};
	const char *answer, *reason, *level, *remember;
	struct decision decision = { 0 };
	enum level to = LEVEL_PUBLIC;
	uint64_t ttl = 0, max = 0;

	if (!members_known(object, known))
		return frame_fail(ret_problem, "its answer has an unknown field");
	if (!member_number(object, "id", INT64_MAX, &decision.id) || !decision.id)
		return frame_fail(ret_problem, "\"id\" is the number of what was asked");
	if (!member_text(object, "answer", &answer) || !answer || decision_kind_parse(answer, &decision.kind) < 0)
		return frame_fail(ret_problem, "\"answer\" is allow, deny, ask, raise or need_body");
	if (!member_text(object, "reason", &reason))
		return frame_fail(ret_problem, "\"reason\" is a text");
	if (!member_text(object, "level", &level) || (level && level_parse(level, &to) < 0))
		return frame_fail(ret_problem, "\"level\" is PUBLIC, INTERNAL, CONFIDENTIAL or SECRET");
	if (!member_text(object, "remember", &remember) ||
	    (remember && decision_scope_parse(remember, &decision.remember) < 0))
		return frame_fail(ret_problem, "\"remember\" is none, host or session");
	if (!member_number(object, "ttl", NP_DECISION_TTL_MAX_S, &ttl))
		return frame_fail(ret_problem, "\"ttl\" is a number of seconds, at most a day");
	if (!member_number(object, "max", NP_DECIDE_BODY, &max))
		return frame_fail(ret_problem, "\"max\" is a number of bytes, at most 4096");
	decision.max = (uint32_t)max;
	*ret_problem = answer_problem(&decision, reason, level, remember, ttl);
	if (*ret_problem)
		return -EPROTO;
	decision.level = to;
	decision.ttl_s = (uint32_t)ttl;
	text_printable(decision.words, sizeof(decision.words), reason ? reason : "");
	*ret = (struct frame){ .type = FRAME_ANSWER, .decision = decision };
	return 0;
}

static void json_free(json_t **object)
{
	json_decref(*object);
}

int frame_read(const char *line, size_t len, struct frame *ret, const char **ret_problem)
{
	cleanup(json_free) json_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const char *type;

	if (!json_is_object(object))
		return frame_fail(ret_problem, "a line is no JSON object");
	if (!member_text(object, "type", &type) || !type)
		return frame_fail(ret_problem, "a frame has no \"type\"");
	if (!strcmp(type, "hello"))
		return hello_read(object, ret, ret_problem);
	if (!strcmp(type, "answer"))
		return answer_read(object, ret, ret_problem);
	return frame_fail(ret_problem, "a frame is of an unknown type");
}

int unanswered_add(struct unanswered *unanswered, uint64_t id)
{
	if (unanswered->n && unanswered->all[unanswered->n - 1].id >= id)
		return -EPROTO;
	if (unanswered->n == NP_DECIDER_UNANSWERED)
		return -E2BIG;
	unanswered->all[unanswered->n++] = (struct unanswered_one){ .id = id };
	return 0;
}

static struct unanswered_one *unanswered_find(struct unanswered *unanswered, uint64_t id)
{
	size_t low = 0, high = unanswered->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unanswered->all[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < unanswered->n && unanswered->all[low].id == id ? &unanswered->all[low] : NULL;
}

bool unanswered_take(struct unanswered *unanswered, uint64_t id)
{
	struct unanswered_one *one = unanswered_find(unanswered, id);

	if (!one)
		return false;
	unanswered->n--;
	memmove(one, one + 1, (size_t)(&unanswered->all[unanswered->n] - one) * sizeof(*one));
	return true;
}

bool unanswered_need_body(struct unanswered *unanswered, uint64_t id)
{
	struct unanswered_one *one = unanswered_find(unanswered, id);

	if (!one || one->needed_body)
		return false;
	one->needed_body = true;
	return true;
}
