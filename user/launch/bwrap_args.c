/* SPDX-License-Identifier: MIT */
/* A plan as bubblewrap reads it. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "launch/plan.h"

const char *step_name(enum step_kind kind)
{
	static const char *const names[] = {
		[STEP_BIND] = "bind",	[STEP_RO_BIND] = "ro-bind", [STEP_SYMLINK] = "symlink",
		[STEP_PROC] = "proc",	[STEP_DEV] = "dev",	    [STEP_DIR] = "dir",
		[STEP_TMPFS] = "tmpfs", [STEP_FILE] = "file",	    [STEP_REMOUNT_RO] = "remount-ro",
	};

	return names[kind];
}

static void word_put(struct buf *out, const char *word)
{
	buf_append(out, word, strlen(word) + 1);
}

static void number_put(struct buf *out, const char *fmt, unsigned long long number)
{
	char text[32];

	snprintf(text, sizeof(text), fmt[0] == 'o' ? "%04llo" : "%llu", number);
	word_put(out, text);
}

static void step_put(const struct step *step, int *file_fd, struct buf *out)
{
	if (step->size) {
		word_put(out, "--size");
		number_put(out, "d", step->size);
	}
	if (step->kind == STEP_TMPFS || step->kind == STEP_DIR) {
		word_put(out, "--perms");
		number_put(out, "o", step->mode);
	}
	if (step->kind == STEP_FILE) {
		word_put(out, "--perms");
		word_put(out, "0444");
		word_put(out, "--ro-bind-data");
		number_put(out, "d", (unsigned)(*file_fd)++);
	} else {
		char name[32];

		snprintf(name, sizeof(name), "--%s", step_name(step->kind));
		word_put(out, name);
	}
	if (step->source)
		word_put(out, step->source);
	word_put(out, step->dest);
}

void plan_words(const struct plan *plan, int file_fd, struct buf *out)
{
	/* The user namespace is made before and handed over; the net is the gate's business and stays the host's. */
	static const char *const always[] = { "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
					      "--as-pid-1",    "--hostname",	"localhost",	 "--cap-drop",
					      "ALL",	       "--cap-add",	"CAP_SETUID",	 "--cap-add",
					      "CAP_SETGID",    "--cap-add",	"CAP_SETPCAP",	 "--clearenv" };

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		word_put(out, always[i]);
	if (!plan->kept)
		word_put(out, "--die-with-parent");
	for (char *const *e = plan->environ; *e; e++) {
		const char *value = strchr(*e, '=') + 1;

		word_put(out, "--setenv");
		buf_append(out, *e, (size_t)(value - *e) - 1);
		buf_append(out, "", 1);
		word_put(out, value);
	}
	for (size_t i = 0; i < plan->n_steps; i++)
		step_put(&plan->steps[i], &file_fd, out);
	word_put(out, "--chdir");
	word_put(out, plan->directory);
}
