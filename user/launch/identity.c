/* SPDX-License-Identifier: MIT */
#include "launch/identity.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "base/chars.h"

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
	const char *rest = text + strcspn(text, ":");
	uint64_t uid, gid;

	if (pw)
		return identity_from_passwd(pw, ret);
	if (!isdigit((unsigned char)*text))
		return -ENOENT;
	/* The highest number means "leave as it is" to setresuid(). */
	if (number_parse(text, (size_t)(rest - text), UINT32_MAX - 1, &uid) < 0)
		return -EINVAL;
	pw = getpwuid((uid_t)uid);
	if (!*rest)
		return pw ? identity_from_passwd(pw, ret) : -ENOENT;
	if (number_parse(rest + 1, strlen(rest + 1), UINT32_MAX - 1, &gid) < 0)
		return -EINVAL;
	*ret = (struct identity){ .uid = (uid_t)uid, .gid = (gid_t)gid, .ngroups = 1, .groups = { (gid_t)gid } };
	if (pw)
		identity_describe(ret, pw);
	return 0;
}
