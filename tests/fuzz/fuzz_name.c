/* SPDX-License-Identifier: MIT */
/* Random bytes as a host name: it has no canonical form, or one that is its own and that nobody can read otherwise. */
#include "wire/hostname.c"

#include <ctype.h>
#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(const char *name)
{
	size_t len = strlen(name), label = 0;

	check(len && len <= 253 && name[len - 1] != '.');
	for (size_t i = 0; i <= len; i++) {
		if (name[i] == '.' || !name[i]) {
			check(label && label <= 63 && name[i - 1] != '-' && name[i - label] != '-');
			label = 0;
			continue;
		}
		check(islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) || name[i] == '-' ||
		      name[i] == '_');
		label++;
	}
}

/* Written in another way, it is the same name. */
static void check_variants(const char *name)
{
	char text[NAME_SIZE + 1], again[NAME_SIZE];
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)toupper((unsigned char)name[i]);
	text[len] = '.';
	check(name_canonical(text, len, again) == 0 && strcmp(again, name) == 0);
	check(name_canonical(text, len + 1, again) == 0 && strcmp(again, name) == 0);
}

static void check_labels(const char *name)
{
	char label[64];

	for (const char *end; *name; name = *end ? end + 1 : end) {
		end = strchrnul(name, '.');
		check(label_canonical(name, (size_t)(end - name), label) == 0);
		check(strlen(label) == (size_t)(end - name) && memcmp(label, name, strlen(label)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_SIZE] = "", label[64], *text = malloc(size ? size : 1);
	struct np_addr addr;
	struct host host;
	int e;

	check(text);
	memcpy(text, data, size);
	e = name_canonical(text, size, name);
	check(e == 0 || (e == -EINVAL && !name[0]));
	if (e == 0) {
		check_bytes(name);
		check_variants(name);
		check_labels(name);
		check(addr_parse(name, strlen(name), &addr) == -EINVAL);
		check(host_parse(text, size, &host) == 0 && !host.is_addr && strcmp(host.name, name) == 0);
	} else {
		check(host_parse(text, size, &host) == -EINVAL || host.is_addr);
	}
	if (label_canonical(text, size, label) == 0) {
		check_bytes(label);
		check(!strchr(label, '.'));
	}
	free(text);
	return 0;
}
