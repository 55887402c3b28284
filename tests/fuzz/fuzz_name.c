/* SPDX-License-Identifier: MIT */
/* Random bytes as a host name: it has no canonical form, or one that is its own and that nobody can read otherwise. */
#include "wire/hostname.c"

#include <ctype.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static void check_bytes(const char *name)
{
	size_t len = strlen(name), label = 0;

	CHECK(len && len <= 253 && name[len - 1] != '.');
	for (size_t i = 0; i <= len; i++) {
		if (name[i] == '.' || !name[i]) {
			CHECK(label && label <= 63 && name[i - 1] != '-' && name[i - label] != '-');
			label = 0;
			continue;
		}
		CHECK(islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) || name[i] == '-' ||
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
	CHECK(name_canonical(text, len, again) == 0 && strcmp(again, name) == 0);
	CHECK(name_canonical(text, len + 1, again) == 0 && strcmp(again, name) == 0);
}

static void check_labels(const char *name)
{
	char label[64];

	for (const char *end; *name; name = *end ? end + 1 : end) {
		end = strchrnul(name, '.');
		CHECK(label_canonical(name, (size_t)(end - name), label) == 0);
		CHECK(strlen(label) == (size_t)(end - name) && memcmp(label, name, strlen(label)) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NAME_SIZE] = "", label[64], *text = malloc(size ? size : 1);
	struct np_addr addr;
	struct host host;
	int e;

	CHECK(text);
	memcpy(text, data, size);
	e = name_canonical(text, size, name);
	CHECK(e == 0 || (e == -EINVAL && !name[0]));
	if (e == 0) {
		check_bytes(name);
		check_variants(name);
		check_labels(name);
		CHECK(addr_parse(name, strlen(name), &addr) == -EINVAL);
		CHECK(host_parse(text, size, &host) == 0 && !host.is_addr && strcmp(host.name, name) == 0);
	} else {
		CHECK(host_parse(text, size, &host) == -EINVAL || host.is_addr);
	}
	if (label_canonical(text, size, label) == 0) {
		check_bytes(label);
		CHECK(!strchr(label, '.'));
	}
	free(text);
	return 0;
}
