/* SPDX-License-Identifier: MIT */
#include "supervisor/config_blobs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/log.h"
#include "link/link.h"
#include "vocab/limits.h"
#include "wire/resolver_list.h"

/* "nameserver ADDRESS" lines of resolv.conf, as c-ares wants them. */
static void resolvers_read(struct buf *out)
{
	_free_ char *text = NULL;
	char *line, *rest;

	if (fs_read_at(AT_FDCWD, "/etc/resolv.conf", 64u << 10, &text) < 0)
		return;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char address[64];

		if (sscanf(line, "nameserver %63s", address) != 1)
			continue;
		/* One word that c-ares does not know, and it takes none of them. */
		if (resolver_address_is_valid(address, strlen(address)))
			buf_printf(out, strchr(address, ':') ? "%s[%s]" : "%s%s", out->len ? "," : "", address);
		else
			log_warning("/etc/resolv.conf: '%s' is no address, and is not asked", address);
	}
}

int blob_settings(const char *resolvers, int *ret_fd)
{
	_buf_ struct buf text = BUF_INIT(2u << 20);
	_free_ char *hosts = NULL;

	if (resolvers)
		buf_puts(&text, resolvers);
	else
		resolvers_read(&text);
	buf_append(&text, "", 1);
	if (fs_read_at(AT_FDCWD, "/etc/hosts", 1u << 20, &hosts) == 0)
		buf_puts(&text, hosts);
	buf_append(&text, "", 1);
	return buf_error(&text) ? buf_error(&text) : link_blob(text.data, text.len, ret_fd);
}

int blob_roots(const char *file, int *ret_fd)
{
	_free_ char *pem = NULL;
	int r = fs_read_at(AT_FDCWD, file, NP_BUNDLE_BYTES, &pem);

	if (r < 0) {
		log_warning("%s: %s; no origin will be trusted", file, strerror(-r));
		return link_blob("", 0, ret_fd);
	}
	if (!*pem)
		log_warning("%s is empty; no origin will be trusted", file);
	return link_blob(pem, strlen(pem), ret_fd);
}
