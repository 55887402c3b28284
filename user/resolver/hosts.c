/* SPDX-License-Identifier: MIT */
#include "resolver/hosts.h"

#include <errno.h>
#include <string.h>

#include "addr.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "wire/hostname.h"
#include "vocab/limits.h"

/* A name of two characters takes an item of this size; more than these are not in NP_HOSTS_BYTES. */
#define HOSTS_MEMORY (16u * NP_HOSTS_BYTES)
/* Lines of one name that are looked at: enough to fill both families. */
#define LINES_PER_NAME (FAMILY_COUNT * NP_ADDRS_PER_NAME)

struct hosts_item {
	const char *name;
	size_t order; /* in the file */
	struct np_addr addr;
};

struct hosts {
	struct arena *names;
	struct hosts_item *items; /* by name, then by order */
	size_t n, size;
};

/* A word of a line, the next one from *text on; empty at the line's end or at a comment. */
static size_t word_next(const char **text)
{
	*text += strspn(*text, " \t\r\f\v");
	return strcspn(*text, " \t\r\f\v\n#");
}

static int hosts_add(struct hosts *hosts, const struct np_addr *addr, const char *text, size_t len)
{
	struct hosts_item *item;
	char name[NAME_SIZE];
	int e = name_canonical(text, len, name);

	if (e < 0)
		return e == -ENOMEM ? e : 0;
	if (ARRAY_RESERVE(hosts->items, hosts->size, hosts->n + 1) < 0)
		return -ENOMEM;
	item = &hosts->items[hosts->n];
	*item = (struct hosts_item){ .order = hosts->n, .addr = *addr };
	item->name = arena_text(hosts->names, name, strlen(name));
	if (!item->name)
		return -ENOMEM;
	hosts->n++;
	return 0;
}

static int hosts_line(struct hosts *hosts, const char *text)
{
	size_t len = word_next(&text);
	struct np_addr addr;
	int e = 0;

	if (!len || addr_parse(text, len, &addr) < 0)
		return 0;
	while (e == 0) {
		text += len;
		len = word_next(&text);
		if (!len)
			break;
		e = hosts_add(hosts, &addr, text, len);
	}
	return e;
}

static int item_compare(const void *left, const void *right)
{
	const struct hosts_item *a = left, *b = right;
	int c = strcmp(a->name, b->name);

	return c ? c : (a->order > b->order) - (a->order < b->order);
}

static int hosts_read(struct hosts *hosts, const char *text)
{
	int e = arena_new(HOSTS_MEMORY, &hosts->names);

	while (e == 0 && *text) {
		e = hosts_line(hosts, text);
		text = strchrnul(text, '\n');
		text += *text == '\n';
	}
	if (e == 0 && hosts->n)
		qsort(hosts->items, hosts->n, sizeof(*hosts->items), item_compare);
	return e;
}

int hosts_new(const char *text, struct hosts **ret)
{
	struct hosts *hosts;
	int e;

	if (text && strnlen(text, NP_HOSTS_BYTES + 1) > NP_HOSTS_BYTES)
		return -E2BIG;
	hosts = calloc(1, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	e = hosts_read(hosts, text ? text : "");
	if (e < 0) {
		hosts_free(hosts);
		return e;
	}
	*ret = hosts;
	return 0;
}

void hosts_free(struct hosts *hosts)
{
	if (!hosts)
		return;
	arena_free(hosts->names);
	free(hosts->items);
	free(hosts);
}

static void addresses_add(struct addresses found[static FAMILY_COUNT], const struct np_addr *addr)
{
	struct addresses *family = &found[np_addr_is_v4(addr) ? FAMILY_V4 : FAMILY_V6];

	if (family->count < NP_ADDRS_PER_NAME)
		family->addrs[family->count++] = *addr;
}

bool hosts_find(const struct hosts *hosts, const char *name, struct addresses ret[static FAMILY_COUNT])
{
	static const struct np_addr loopback_v6 = { .b = { [15] = 1 } };
	const struct np_addr loopback_v4 = np_addr_v4(np_net32(0x7f000001));
	size_t low = 0, high = hosts->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(hosts->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < hosts->n && strcmp(hosts->items[low].name, name) == 0) {
		high = hosts->n - low < LINES_PER_NAME ? hosts->n : low + LINES_PER_NAME;
		ret[FAMILY_V6].count = ret[FAMILY_V4].count = 0;
		for (; low < high && strcmp(hosts->items[low].name, name) == 0; low++)
			addresses_add(ret, &hosts->items[low].addr);
		return true;
	}
	if (!name_is_localhost(name))
		return false;
	ret[FAMILY_V6].count = ret[FAMILY_V4].count = 0;
	addresses_add(ret, &loopback_v6);
	addresses_add(ret, &loopback_v4);
	return true;
}
