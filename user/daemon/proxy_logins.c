/* SPDX-License-Identifier: MIT */
#include "daemon/proxy_logins.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

void proxy_logins_wipe(struct link_proxy_logins *logins)
{
	explicit_bzero(logins, sizeof(*logins));
}

/* One line, "user:password". What is wrong with it; NULL: nothing. */
static const char *text_problem(char *text, size_t len)
{
	if (len && text[len - 1] == '\n')
		text[--len] = '\0';
	if (memchr(text, '\0', len))
		return "it holds a NUL";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return "it holds more than one line, or a control character";
	return len && text[0] != ':' && strchr(text, ':') ? NULL : "it does not hold user:password";
}

/* What is wrong with the file; NULL: nothing. Anybody besides root who can read or write it would have the password. */
static const char *file_read(const char *path, char text[static NP_PROXY_LOGIN_SIZE])
{
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	if (st.st_uid != 0)
		return "it does not belong to root";
	if (st.st_mode & 077)
		return "others than root may read or write it; chmod 600";
	n = read(fd, text, NP_PROXY_LOGIN_SIZE);
	if (n < 0)
		return strerror(errno);
	if (n == NP_PROXY_LOGIN_SIZE)
		return "it is too long";
	return text_problem(text, (size_t)n);
}

int proxy_logins_load(const struct policy *policy, struct link_proxy_logins *ret, struct failure *ret_failure)
{
	for (size_t i = 0; i < policy->n_proxies; i++) {
		const struct upstream_proxy *proxy = &policy->proxies[i];
		const char *problem = proxy->credentials ? file_read(proxy->credentials, ret->of[i]) : NULL;
		char place[PLACE_TEXT_SIZE];

		if (!problem)
			continue;
		proxy_logins_wipe(ret);
		place_format(policy, &proxy->credentials_at, place);
		ret_failure->reason = NP_R_BAD_POLICY;
		snprintf(ret_failure->text, sizeof(ret_failure->text),
			 "%s: \"credentials\" of \"upstream_proxy\": %.100s: %s", place, proxy->credentials, problem);
		return -EACCES;
	}
	return 0;
}
