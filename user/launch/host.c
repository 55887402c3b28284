/* SPDX-License-Identifier: MIT */
#include "launch/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "launch/hidden_mounts.h"

/* A host with thousands of containers has a table of a few megabytes. */
#define MOUNTINFO_BYTES (32u << 20)
#define HOST_MEMORY	(64u << 20)
#define ACCOUNT_BYTES	(4u << 20) /* 40,000 users; more are none of a sandbox's business */

/* Each takes its time when a sandbox starts. Not /sys as a whole: what lies in fs and kernel are windows. */
static const char *const system_paths[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc",
	"/opt",
	"/nix",
	"/sys/class",
	"/sys/devices",
	/* Of /var what programs in /usr read and packages made: formats of TeX, what is installed, dictionaries. */
	"/var/lib/texmf",
	"/var/lib/dpkg",
	"/var/lib/ghc",
	"/var/lib/aspell",
};

static const char *const bundle_paths[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/ssl/cert.pem",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
};

struct list {
	struct host_path **items;
	size_t *n, size;
};

static int list_add(struct host *host, struct list *list, const char *path, enum host_kind kind, const char *target)
{
	struct host_path item = { .kind = kind };

	item.path = arena_text(host->arena, path, strlen(path));
	item.target = target ? arena_text(host->arena, target, strlen(target)) : NULL;
	if (!item.path || (target && !item.target) || ARRAY_RESERVE(*list->items, list->size, *list->n + 1) < 0)
		return -ENOMEM;
	(*list->items)[(*list->n)++] = item;
	return 0;
}

/* What is not there is left out. */
static int path_look(struct host *host, struct list *list, const char *path, bool follow)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if ((follow ? stat(path, &st) : lstat(path, &st)) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? 0 : -errno;
	if (follow) { /* binds are compared as their links lead */
		if (!realpath(path, target))
			return -errno;
		path = target;
	}
	if (!S_ISLNK(st.st_mode))
		return list_add(host, list, path, S_ISDIR(st.st_mode) ? HOST_DIRECTORY : HOST_FILE, NULL);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -EPROTO;
	target[n] = '\0';
	return list_add(host, list, path, HOST_LINK, target);
}

static int paths_look(struct host *host, struct list *list, const char *const *paths, size_t n, bool follow)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = path_look(host, list, paths[i], follow);
	return r;
}

/* The table writes space, tab, newline and backslash as three octal digits. */
static void octal_decode(char *text)
{
	char *out = text;

	for (const char *in = text; *in; out++) {
		if (in[0] == '\\' && in[1] && in[2] && in[3]) {
			*out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
			in += 4;
		} else {
			*out = *in++;
		}
	}
	*out = '\0';
}

/*
 * One line: "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [FIELDS...] - TYPE SOURCE OPTIONS". The device must be the one that the
 * path leads to now: a mount that something else covers is out of sight already, and what covers it is not ours to hide.
 */
static int mount_look(struct host *host, struct list *windows, char *line)
{
	char point[PATH_MAX] = "", type[64];
	const char *rest = strstr(line, " - ");
	unsigned major_nr, minor_nr;
	struct stat st;

	if (!rest || sscanf(line, "%*u %*u %u:%u %*s %4095s", &major_nr, &minor_nr, point) != 3 ||
	    sscanf(rest, " - %63s", type) != 1)
		return -EPROTO;
	octal_decode(point);
	if (!type_is_window(type) || !strcmp(point, "/sys") || path_below(point, "/proc") || path_below(point, "/dev"))
		return 0;
	if (stat(point, &st) < 0 || st.st_dev != makedev(major_nr, minor_nr))
		return 0;
	return list_add(host, windows, point, S_ISDIR(st.st_mode) ? HOST_DIRECTORY : HOST_FILE, NULL);
}

static int table_look(struct host *host, struct list *windows)
{
	_free_ char *table = NULL;
	int r = fs_read_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_BYTES, &table);

	if (r < 0)
		return r;
	for (char *save = NULL, *line = strtok_r(table, "\n", &save); line && r == 0;
	     line = strtok_r(NULL, "\n", &save))
		r = mount_look(host, windows, line);
	return r;
}

/* As their links lead: a mount over a link would follow it, before the sandbox's root is what it leads from. */
static int bundles_look(struct host *host, struct list *list)
{
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(bundle_paths) && r == 0; i++) {
		bool known =
			!realpath(bundle_paths[i], path) || (!path_below(path, "/etc") && !path_below(path, "/usr"));

		for (size_t k = 0; k < host->n_bundles && !known; k++)
			known = !strcmp(host->bundles[k].path, path);
		if (!known)
			r = list_add(host, list, path, HOST_FILE, NULL);
	}
	return r;
}

static const char *account_look(struct host *host, const char *path)
{
	_free_ char *text = NULL;
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || fs_read_at(AT_FDCWD, path, ACCOUNT_BYTES, &text) < 0)
		return NULL;
	return arena_text(host->arena, text, strlen(text));
}

/* As its links lead. */
static const char *text_look(struct host *host, const char *path)
{
	_free_ char *text = NULL;

	return fs_read_at(AT_FDCWD, path, ACCOUNT_BYTES, &text) < 0 ? NULL
								    : arena_text(host->arena, text, strlen(text));
}

/* Where /etc/resolv.conf leads to when it is a link: a private /run hides what lives there. */
static int resolver_look(struct host *host)
{
	struct stat st;
	char path[PATH_MAX];

	if (lstat("/etc/resolv.conf", &st) < 0 || !S_ISLNK(st.st_mode) || !realpath("/etc/resolv.conf", path) ||
	    !path_below(path, "/run"))
		return 0;
	host->resolver = arena_text(host->arena, path, strlen(path));
	return host->resolver ? 0 : -ENOMEM;
}

int host_look(const char *const *hidden, struct host *ret)
{
	struct list system = { &ret->system, &ret->n_system, 0 }, windows = { &ret->windows, &ret->n_windows, 0 };
	struct list bundles = { &ret->bundles, &ret->n_bundles, 0 };
	size_t n = 0;
	int r;

	*ret = (struct host){ 0 };
	while (hidden && hidden[n])
		n++;
	r = arena_new(HOST_MEMORY, &ret->arena);
	if (r == 0)
		r = paths_look(ret, &system, system_paths, ARRAY_SIZE(system_paths), false);
	if (r == 0)
		r = table_look(ret, &windows);
	if (r == 0)
		r = paths_look(ret, &windows, hidden, n, true);
	if (r == 0)
		r = bundles_look(ret, &bundles);
	if (r < 0)
		return r;
	ret->passwd = account_look(ret, "/etc/passwd");
	ret->group = account_look(ret, "/etc/group");
	ret->resolv_conf = text_look(ret, "/etc/resolv.conf");
	ret->upstream = text_look(ret, "/run/systemd/resolve/resolv.conf");
	return resolver_look(ret);
}

void host_free(struct host *host)
{
	free(host->system);
	free(host->windows);
	free(host->bundles);
	arena_free(host->arena);
	*host = (struct host){ 0 };
}
