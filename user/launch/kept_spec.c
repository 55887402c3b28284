/* SPDX-License-Identifier: MIT */
#include "launch/kept_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/hash.h"
#include "vocab/words.h"
#include "vocab/kept_files.h"
#include "vocab/limits.h"

#define WHOLE "whole=1\n" /* the last line */

/* Limits of the sandbox; those of time and output are each run's own. */
static const struct run_option *bound_next(const struct run_option *limit)
{
	while (limit < run_limits + RUN_N_LIMITS && !limit->of_sandbox)
		limit++;
	return limit < run_limits + RUN_N_LIMITS ? limit : NULL;
}
#define BOUNDS_EACH(b)                                       \
	const struct run_option *b = bound_next(run_limits); \
	b;                                                   \
	b = bound_next(b + 1)

static uint64_t bound_of(const struct run_option *limit, const struct limits *limits)
{
	return *run_limit_of(limit, (struct limits *)limits);
}

/* -- writing ------------------------------------------------------------------------------- */

static void bind_put(struct buf *out, const struct bind *bind)
{
	buf_printf(out, "%s:%s%s", bind->source, bind->dest, bind->readonly ? ":ro" : "");
}

static void groups_put(struct buf *out, const struct groups *groups)
{
	for (size_t i = 0; i < groups->n_v1; i++)
		buf_printf(out, NP_KEPT_GROUP "%s\n", groups->v1[i].path);
	if (groups->memory[0])
		buf_printf(out, "counts=%s\n", groups->memory);
}

static void spec_put(struct buf *out, const struct run *run, const struct groups *groups, const char *missing)
{
	for (BOUNDS_EACH(b))
		if (bound_of(b, &run->limits))
			buf_printf(out, "%s=%" PRIu64 "\n", b->name, bound_of(b, &run->limits));
	if (run->options.user)
		buf_printf(out, "user=%s\n", run->options.user);
	if (run->identity.uid)
		buf_printf(out, "uid=%u\n", (unsigned)run->identity.uid);
	for (size_t i = 0; i < run->options.bind.n; i++) {
		buf_puts(out, "bind=");
		bind_put(out, &run->binds[i]);
		buf_puts(out, "\n");
	}
	if (run->has_trust)
		buf_printf(out, "trust=%016" PRIx64 "\n", hash_mark(run->trust.ca.data, run->trust.ca.len));
	if (run->notices)
		buf_puts(out, "notices=1\n");
	buf_puts(out, "apart=1\n");
	for (size_t i = 0; i < run->host.n_system; i++)
		if (run->host.system[i].kind == HOST_DIRECTORY && !strchr(run->host.system[i].path, '\n'))
			buf_printf(out, "seen=%s\n", run->host.system[i].path);
	if (groups)
		groups_put(out, groups);
	if (missing && missing[0])
		buf_printf(out, "missing=%s\n", missing);
	if (groups)
		buf_puts(out, WHOLE);
}

int kept_spec_write(int file, const struct run *run, const struct groups *groups, const char *missing)
{
	_buf_ struct buf out = BUF_INIT(NP_KEPT_NOTE);

	for (size_t i = 0; i < run->options.bind.n; i++)
		if (strchr(run->binds[i].source, '\n') || strchr(run->binds[i].dest, '\n'))
			return -EINVAL;
	spec_put(&out, run, groups, missing);
	if (buf_error(&out))
		return buf_error(&out);
	if (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0)
		return -errno;
	return out.len ? fs_write_all(file, out.data, out.len) : 0;
}

/* -- reading ------------------------------------------------------------------------------- */

static bool bound_read(struct kept_spec *spec, const char *name, const char *value)
{
	for (BOUNDS_EACH(b))
		if (!strcmp(b->name, name))
			return count_parse(value, INT64_MAX, run_limit_of(b, &spec->limits));
	return false;
}

static bool group_read(struct kept_spec *spec, const char *path)
{
	struct groups *groups = &spec->groups;

	if (groups->n_v1 == ARRAY_SIZE(groups->v1))
		return false;
	groups->v1[groups->n_v1].tasks = -1;
	return fs_path(groups->v1[groups->n_v1++].path, "%s", path) == 0;
}

static bool line_read(struct kept_spec *spec, const char *name, const char *value)
{
	if (!strcmp(name, "user"))
		spec->user = value;
	else if (!strcmp(name, "uid"))
		return count_parse(value, UINT32_MAX, &spec->uid);
	else if (!strcmp(name, "whole"))
		return spec->whole;
	else if (!strcmp(name, "missing"))
		spec->missing = value;
	else if (!strcmp(name, "trust"))
		spec->trust = value;
	else if (!strcmp(name, "notices"))
		spec->notices = true;
	else if (!strcmp(name, "apart"))
		spec->apart = true;
	else if (!strcmp(name, "counts"))
		return fs_path(spec->groups.memory, "%s", value) == 0;
	else if (!strcmp(name, "group"))
		return group_read(spec, value);
	else if (!strcmp(name, "bind") && spec->n_binds < ARRAY_SIZE(spec->binds))
		spec->binds[spec->n_binds++] = value;
	else if (!strcmp(name, "seen")) {
		/* One too many is one where a command would start in the workspace instead. */
		if (spec->n_seen < ARRAY_SIZE(spec->seen))
			spec->seen[spec->n_seen++] = (struct host_path){ .path = value, .kind = HOST_DIRECTORY };
	} else
		return bound_read(spec, name, value);
	return true;
}

int kept_spec_read(int file, const char *cgroup, struct kept_spec *ret)
{
	_buf_ struct buf text = BUF_INIT(NP_KEPT_NOTE);
	int r = lseek(file, 0, SEEK_SET) < 0 ? -errno : fs_read_fd(file, &text);

	if (r < 0)
		return r;
	buf_append(&text, "", 0);
	ret->whole = text.len >= strlen(WHOLE) && !strcmp(text.data + text.len - strlen(WHOLE), WHOLE);
	ret->text = buf_take(&text);
	if (!ret->text)
		return -ENOMEM;
	if (fs_path(ret->groups.unified, "%s", cgroup) < 0)
		return -EINVAL;
	for (char *save = NULL, *line = strtok_r(ret->text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value)
			return -EINVAL;
		*value++ = '\0';
		if (!line_read(ret, line, value))
			return -EINVAL;
	}
	return 0;
}

void kept_spec_free(struct kept_spec *spec)
{
	free(spec->text);
	spec->text = NULL;
}

/* -- comparing ------------------------------------------------------------------------------- */

/* What the options say must be what it has; what they leave out need only be within the policy. */
static bool bound_fits(uint64_t have, uint64_t want, bool requested)
{
	return requested ? have == want : !want || (have && have <= want);
}

static bool binds_fit(const struct kept_spec *spec, const struct run *run)
{
	bool fits = spec->n_binds == run->options.bind.n;

	for (size_t i = 0; fits && i < spec->n_binds; i++) {
		_buf_ struct buf bind = BUF_INIT(4 * FS_PATH_SIZE);

		bind_put(&bind, &run->binds[i]);
		fits = !buf_error(&bind) && !strcmp(bind.data, spec->binds[i]);
	}
	return fits;
}

bool kept_spec_fits(const struct kept_spec *spec, const struct run *run, struct buf *why)
{
	const struct run_options *o = &run->options;

	for (BOUNDS_EACH(b)) {
		uint64_t have = bound_of(b, &spec->limits), want = bound_of(b, &run->limits);

		if (bound_fits(have, want, *run_option_word(b, (struct run_options *)o)))
			continue;
		if (have)
			buf_printf(why, "%s--%s was %" PRIu64, why->len ? ", " : "", b->name, have);
		else
			buf_printf(why, "%sthere was no --%s", why->len ? ", " : "", b->name);
		buf_printf(why, " and would have to be %" PRIu64, want);
	}
	if ((!spec->user) != (!o->user) || (spec->user && strcmp(spec->user, o->user) != 0))
		buf_printf(why, "%s--user was %s", why->len ? ", " : "", spec->user ? spec->user : "left out");
	else if (spec->uid != run->identity.uid) /* the workspace is another one, or the user has another number */
		buf_printf(why, "%sits user was number %" PRIu64, why->len ? ", " : "", spec->uid);
	if (!binds_fit(spec, run)) {
		buf_printf(why, "%s--bind was", why->len ? ", " : "");
		for (size_t i = 0; i < spec->n_binds; i++)
			buf_printf(why, " %s", spec->binds[i]);
		buf_puts(why, spec->n_binds ? "" : " left out");
	}
	if (spec->missing && !o->best_effort)
		buf_printf(why, "%s%s could not be set, and was left out with --best-effort", why->len ? ", " : "",
			   spec->missing);
	return !why->len && !buf_error(why);
}
