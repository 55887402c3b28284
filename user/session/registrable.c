/* SPDX-License-Identifier: MIT */
#include "session/registrable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libpsl.h>
#include <stdio.h>
#include <string.h>

/* Of the host's list and the library's own the newer; read once. */
static const psl_ctx_t *suffixes_list(void)
{
	static psl_ctx_t *list;

	if (!list)
		list = psl_latest(NULL);
	return list ? list : psl_builtin();
}

int registrable_domain(const char *host, char ret[static 256])
{
	const psl_ctx_t *list = suffixes_list();
	const char *top = strrchr(host, '.'), *domain;
	struct in_addr v4;

	if (!list)
		return -ENOTSUP;
	/* Without the rule "*", which calls every top-level domain a suffix: one that is in no list is not known. */
	if (!top || strchr(host, ':') || inet_pton(AF_INET, host, &v4) == 1 ||
	    !psl_is_public_suffix2(list, top + 1, PSL_TYPE_ANY | PSL_TYPE_NO_STAR_RULE))
		return -EINVAL;
	domain = psl_registrable_domain(list, host);
	if (!domain || psl_is_public_suffix(list, domain) || snprintf(ret, 256, "%s", domain) >= 256)
		return -EINVAL;
	return 0;
}
