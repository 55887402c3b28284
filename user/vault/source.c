/* SPDX-License-Identifier: MIT */
#include "vault/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "secrets/locked.h"

const char *value_problem(const char *text, size_t *len)
{
	if (*len && text[*len - 1] == '\n')
		--*len;
	if (*len && text[*len - 1] == '\r')
		--*len;
	if (!*len)
		return "it is empty";
	if (*len > NP_SECRET_MAX)
		return "it is too long";
	for (size_t i = 0; i < *len; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return "it is more than one line, or has a space, a control character or more than ASCII";
	return *len < NP_SECRET_MIN ? "it is too short to be told from other text" : NULL;
}

/* Root's alone: anybody else who could read it would have the value, and anybody who could write it would choose
 * what is sent. */
static const char *file_read(const char *path, char ret[static SOURCE_ROOM], size_t *ret_len)
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t n = 0;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	if (st.st_uid != geteuid())
		return "it does not belong to root";
	if (st.st_mode & 077)
		return "others than root may read or write it; chmod 600";
	while (n < SOURCE_ROOM && got > 0) {
		got = read(fd, ret + n, SOURCE_ROOM - n);
		if (got < 0)
			return strerror(errno);
		n += (size_t)got;
	}
	*ret_len = n;
	return NULL;
}

/* The directory is netpawld's own, made by its service manager, who also says that it is. */
static const char *systemd_read(const char *name, char ret[static SOURCE_ROOM], size_t *ret_len)
{
	const char *directory = getenv("CREDENTIALS_DIRECTORY");
	char path[FS_PATH_SIZE];

	if (!directory || directory[0] != '/')
		return "netpawld has no $CREDENTIALS_DIRECTORY: its unit needs LoadCredential=";
	if (fs_path(path, "%s/%s", directory, name) < 0)
		return "its path is too long";
	return file_read(path, ret, ret_len);
}

/* A variable of the environment, taken out of it: there it would be in core dumps, in /proc, and handed on to children. */
struct variable {
	struct variable *next;
	char name[NP_NAME_MAX + 1], value[SOURCE_ROOM];
	size_t len;
};

static const char *env_read(const char *name, char ret[static SOURCE_ROOM], size_t *ret_len)
{
	static struct variable *variables; /* for as long as the process lives */
	struct variable *variable = variables;
	char *value;

	while (variable && strcmp(variable->name, name) != 0)
		variable = variable->next;
	value = variable ? NULL : getenv(name);
	if (value) {
		variable = locked_alloc(sizeof(*variable));
		if (!variable)
			return "there is no memory that can be locked";
		snprintf(variable->name, sizeof(variable->name), "%s", name);
		variable->len = strnlen(value, SOURCE_ROOM);
		memcpy(variable->value, value, variable->len);
		explicit_bzero(value, strlen(value));
		unsetenv(name);
		variable->next = variables;
		variables = variable;
	}
	if (!variable)
		return "netpawld has no such variable";
	*ret_len = variable->len;
	memcpy(ret, variable->value, variable->len);
	return NULL;
}

const char *source_read(const struct credential_source *source, char ret[static SOURCE_ROOM], size_t *ret_len)
{
	const char *problem = source->kind == SOURCE_SYSTEMD ? systemd_read(source->name, ret, ret_len)
			      : source->kind == SOURCE_ENV   ? env_read(source->name, ret, ret_len)
							     : file_read(source->name, ret, ret_len);

	return problem ? problem : value_problem(ret, ret_len);
}
