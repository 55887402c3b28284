/* SPDX-License-Identifier: MIT */
/*
 * Who may use the console: whoever was given a link. A link has a token that is good once, for a short while. It is exchanged for a
 * cookie and a key, and a request needs both. Browsers send cookies to every port of a host, so a server at another port of
 * this one sees the cookie; the key is in the page's own storage, which belongs to this port alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SECRET_SIZE 33 /* 128 random bits, as hexadecimal digits */

struct logins; /* any thread may call; time is passed in, in seconds, and never goes back */

int logins_new(struct logins **ret);

/* A token for a link. The oldest unused one goes when there are NP_CONSOLE_TOKENS. 0 or -errno. */
int logins_invite(struct logins *logins, uint64_t now_s, char ret_token[static SECRET_SIZE]);
/* -EACCES: the token is not, or no longer, good. The login that was unused for longest goes when there are NP_CONSOLE_LOGINS. */
int logins_enter(struct logins *logins, uint64_t now_s, const char *token, char ret_cookie[static SECRET_SIZE],
		 char ret_key[static SECRET_SIZE]);
/* Either may be NULL. */
bool logins_know(struct logins *logins, const char *cookie, const char *key);

/* The value of one cookie in a Cookie header, -ENOENT when it is not there, or there twice, or not as long as a secret. */
int cookie_find(const char *header, const char *name, char ret[static SECRET_SIZE]);
