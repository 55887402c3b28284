/* SPDX-License-Identifier: MIT */
/* Any text is a hosts file: what a simple reader sees in it is found, and nothing else. */
#include "resolver/hosts.c"

#include <stdint.h>

#include "vocab/limits.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_among(const struct addresses *addresses, const struct np_addr *addr)
{
	for (unsigned i = 0; i < addresses->count; i++)
		if (memcmp(&addresses->addrs[i], addr, sizeof(*addr)) == 0)
			return true;
	return false;
}

/* Sorted, canonical names. */
static void check_items(const struct hosts *hosts)
{
	char name[NAME_SIZE];

	for (size_t i = 0; i < hosts->n; i++) {
		const struct hosts_item *item = &hosts->items[i];

		check(name_canonical(item->name, strlen(item->name), name) == 0 && strcmp(name, item->name) == 0);
		check(i == 0 || item_compare(&hosts->items[i - 1], item) < 0);
	}
}

/* One name of one line. Returns whether it counts. */
static bool check_word(const struct hosts *hosts, const struct np_addr *addr, const char *word)
{
	struct addresses found[FAMILY_COUNT], *family = &found[np_addr_is_v4(addr) ? FAMILY_V4 : FAMILY_V6];
	char name[NAME_SIZE];

	if (name_canonical(word, strlen(word), name) < 0)
		return false;
	check(hosts_find(hosts, name, found));
	check(found[FAMILY_V6].count <= NP_ADDRS_PER_NAME && found[FAMILY_V4].count <= NP_ADDRS_PER_NAME);
	check(found[FAMILY_V6].count + found[FAMILY_V4].count > 0);
	/* It may be one of too many. */
	check(is_among(family, addr) || found[FAMILY_V6].count + found[FAMILY_V4].count >= NP_ADDRS_PER_NAME);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *lines = text, *line;
	size_t names = 0;
	struct hosts *hosts;

	check(text && hosts_new(text, &hosts) == 0);
	check_items(hosts);
	while ((line = strsep(&lines, "\n"))) {
		char *words = line, *word;
		struct np_addr addr;
		bool has_addr = false;

		line[strcspn(line, "#")] = '\0';
		while ((word = strsep(&words, " \t\r\f\v"))) {
			if (!*word)
				continue;
			if (!has_addr && addr_parse(word, strlen(word), &addr) < 0)
				break;
			if (has_addr)
				names += check_word(hosts, &addr, word);
			has_addr = true;
		}
	}
	check(names == hosts->n);
	hosts_free(hosts);
	free(text);
	return 0;
}
