/* SPDX-License-Identifier: MIT */
#include "launch/identity.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* Digits up to the end or to a colon. The highest number means "leave as it is" to setresuid(). */
static int number_parse(const char *text, char end, unsigned *ret, const char **ret_rest)
{
	char *rest;
	unsigned long long value;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &rest, 10);
	if (errno || (*rest && *rest != end) || value >= (unsigned)-1)
		return -EINVAL;
	*ret = (unsigned)value;
	*ret_rest = rest;
	return 0;
}

/* What does not fit is left out: half a path would be another one. */
static void identity_describe(struct identity *id, const struct passwd *pw)
{
	if (strlen(pw->pw_name) < sizeof(id->name))
		memcpy(id->name, pw->pw_name, strlen(pw->pw_name) + 1);
	if (strlen(pw->pw_dir) < sizeof(id->home))
		memcpy(id->home, pw->pw_dir, strlen(pw->pw_dir) + 1);
}

static int identity_from_passwd(const struct passwd *pw, struct identity *ret)
{
	struct identity id = { .uid = pw->pw_uid, .gid = pw->pw_gid, .ngroups = IDENTITY_GROUPS_MAX };

	if (getgrouplist(pw->pw_name, pw->pw_gid, id.groups, &id.ngroups) < 0)
		return -E2BIG;
	identity_describe(&id, pw);
	*ret = id;
	return 0;
}

bool identity_has_root(const struct identity *identity)
{
	bool root = identity->uid == 0 || identity->gid == 0;

	for (int i = 0; i < identity->ngroups && !root; i++)
		root = identity->groups[i] == 0;
	return root;
}

uid_t identity_outside(const struct identity *identity)
{
	return identity->uid ? identity->uid : identity->root;
}

int identity_find(const char *text, struct identity *ret)
{
	const struct passwd *pw = getpwnam(text);
	const char *rest;
	unsigned uid, gid;
	int err;

	if (pw)
		return identity_from_passwd(pw, ret);
	if (!isdigit((unsigned char)*text))
		return -ENOENT;
	err = number_parse(text, ':', &uid, &rest);
	if (err < 0)
		return err;
	pw = getpwuid(uid);
	if (!*rest)
		return pw ? identity_from_passwd(pw, ret) : -ENOENT;
	err = number_parse(rest + 1, '\0', &gid, &rest);
	if (err < 0)
		return err;
	*ret = (struct identity){ .uid = uid, .gid = gid, .ngroups = 1, .groups = { gid } };
	if (pw)
		identity_describe(ret, pw);
	return 0;
}
