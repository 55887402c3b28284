/* SPDX-License-Identifier: MIT */
#include "console/logins.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "vocab/limits.h"

struct token {
	char text[SECRET_SIZE]; /* empty: no token */
	uint64_t until_s;
	uint64_t number; /* the lowest is the oldest */
};

struct login {
	char cookie[SECRET_SIZE], key[SECRET_SIZE]; /* empty: nobody */
	uint64_t used;				    /* the lowest was unused for longest */
};

struct logins {
	pthread_mutex_t lock;
	uint64_t number; /* goes up with each use of anything */
	struct token tokens[NP_CONSOLE_TOKENS];
	struct login logins[NP_CONSOLE_LOGINS];
};

int logins_new(struct logins **ret)
{
	struct logins *logins = calloc(1, sizeof(*logins));

	if (!logins)
		return -ENOMEM;
	pthread_mutex_init(&logins->lock, NULL);
	*ret = logins;
	return 0;
}

static int secret_make(char out[static SECRET_SIZE])
{
	unsigned char bytes[(SECRET_SIZE - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

/* In a time that says nothing about where they differ. */
static bool secret_is(const char *secret, const char *text)
{
	unsigned char difference = 0;

	if (!*secret || strlen(text) != SECRET_SIZE - 1)
		return false;
	for (size_t i = 0; i < SECRET_SIZE - 1; i++)
		difference |= (unsigned char)(secret[i] ^ text[i]);
	return difference == 0;
}

int logins_invite(struct logins *logins, uint64_t now_s, char ret_token[static SECRET_SIZE])
{
	struct token token = { .until_s = now_s + NP_CONSOLE_TOKEN_S }, *oldest = &logins->tokens[0];
	int r = secret_make(token.text);

	if (r < 0)
		return r;
	pthread_mutex_lock(&logins->lock);
	for (size_t i = 0; i < ARRAY_SIZE(logins->tokens); i++)
		if (logins->tokens[i].number < oldest->number)
			oldest = &logins->tokens[i];
	token.number = ++logins->number;
	*oldest = token;
	pthread_mutex_unlock(&logins->lock);
	memcpy(ret_token, token.text, SECRET_SIZE);
	return 0;
}

static bool token_spend(struct logins *logins, uint64_t now_s, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(logins->tokens); i++) {
		struct token *token = &logins->tokens[i];
		bool good;

		if (!secret_is(token->text, text))
			continue;
		good = now_s < token->until_s;
		*token = (struct token){ 0 };
		return good;
	}
	return false;
}

int logins_enter(struct logins *logins, uint64_t now_s, const char *token, char ret_cookie[static SECRET_SIZE],
		 char ret_key[static SECRET_SIZE])
{
	struct login login = { 0 }, *oldest = &logins->logins[0];
	int r = secret_make(login.cookie);

	if (r == 0)
		r = secret_make(login.key);
	if (r < 0)
		return r;
	pthread_mutex_lock(&logins->lock);
	if (!token_spend(logins, now_s, token)) {
		pthread_mutex_unlock(&logins->lock);
		return -EACCES;
	}
	for (size_t i = 0; i < ARRAY_SIZE(logins->logins); i++)
		if (logins->logins[i].used < oldest->used)
			oldest = &logins->logins[i];
	login.used = ++logins->number;
	*oldest = login;
	pthread_mutex_unlock(&logins->lock);
	memcpy(ret_cookie, login.cookie, SECRET_SIZE);
	memcpy(ret_key, login.key, SECRET_SIZE);
	return 0;
}

bool logins_know(struct logins *logins, const char *cookie, const char *key)
{
	bool known = false;

	if (!cookie || !key)
		return false;
	pthread_mutex_lock(&logins->lock);
	for (size_t i = 0; i < ARRAY_SIZE(logins->logins); i++) {
		struct login *login = &logins->logins[i];

		if (!secret_is(login->cookie, cookie) || !secret_is(login->key, key))
			continue;
		login->used = ++logins->number;
		known = true;
	}
	pthread_mutex_unlock(&logins->lock);
	return known;
}

int cookie_find(const char *header, const char *name, char ret[static SECRET_SIZE])
{
	size_t name_len = strlen(name);
	const char *found = NULL;

	while (header && *header) {
		size_t len;

		header += strspn(header, "; \t");
		len = strcspn(header, ";");
		if (len > name_len && header[name_len] == '=' && !memcmp(header, name, name_len)) {
			if (found || len - name_len - 1 != SECRET_SIZE - 1)
				return -ENOENT;
			found = header + name_len + 1;
		}
		header += len;
	}
	if (!found)
		return -ENOENT;
	memcpy(ret, found, SECRET_SIZE - 1);
	ret[SECRET_SIZE - 1] = '\0';
	return 0;
}
