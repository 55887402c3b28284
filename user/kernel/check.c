/* SPDX-License-Identifier: MIT */
/*
 * Is the gate whole? Root can remove a pin, detach a program or remove a cgroup; most often by mistake. The kernel does
 * not report any of that, so the daemon looks periodically and puts back what it can. What it cannot put back is
 * reported, and no raise is acknowledged until it is there again.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "kernel/internal.h"

#define ADOPTED_AT_ONCE \
	64 /* adopted cgroups that one look goes over, in turn: 30 links each, a few milliseconds in all */

void mended(struct kernel *kernel, const char *what)
{
	if (!kernel->started)
		return; /* at a start that is how it is made */
	lists_doubt(kernel);
	if (!kernel->mended++)
		snprintf(kernel->mended_what, sizeof(kernel->mended_what), "%s", what);
	log_warning("%s was gone, and is there again", what);
}

/* Programs know it by its number: one that was made again is another. */
static int slice_check(struct kernel *kernel)
{
	struct gate_cgroup now;
	int r = cgroup_look(kernel->mount, kernel->slice.path, &now);

	if (r == 0 && now.id != kernel->slice.id)
		r = -ESTALE;
	return r < 0 ? r : links_attach(kernel, &kernel->slice, "slice", false);
}

static int lsm_check(struct kernel *kernel)
{
	return kernel->features.lsm ? links_attach_lsm(kernel, kernel->skel) : 0;
}

/* An adopted cgroup that is gone is the service's to notice. */
static int adopted_check(struct kernel *kernel)
{
	unsigned looked = 0, adopted = 0;
	int result = 0;

	for (const struct place *p = place_next(kernel, NULL); p; p = place_next(kernel, p)) {
		struct gate_cgroup cg;
		uint64_t id;
		int r;

		if (!place_is_adopted(p, &id) || adopted++ < kernel->adopted_turn)
			continue;
		if (looked++ == ADOPTED_AT_ONCE)
			break;
		r = cgroup_by_id(kernel->mount, id, &cg);
		if (r == 0)
			r = links_attach(kernel, &cg, p->name, false);
		if (r < 0 && r != -ENOENT && result == 0)
			result = r;
	}
	kernel->adopted_turn = looked > ADOPTED_AT_ONCE ? kernel->adopted_turn + ADOPTED_AT_ONCE : 0;
	return result;
}

static int containers_check(struct kernel *kernel)
{
	unsigned looked = 0, n = 0;
	int result = 0;

	for (struct namespace *ns = namespace_next(kernel, NULL); ns; ns = namespace_next(kernel, ns)) {
		int r;

		if (!ns->pub.wired || n++ < kernel->namespaces_turn)
			continue;
		if (looked++ == ADOPTED_AT_ONCE)
			break;
		r = devices_follow(ns);
		result = result ? result : r;
	}
	kernel->namespaces_turn = looked > ADOPTED_AT_ONCE ? kernel->namespaces_turn + ADOPTED_AT_ONCE : 0;
	return result;
}

int kernel_check(struct kernel *kernel, char problem[static 512])
{
	const struct {
		int (*look)(struct kernel *kernel);
		const char *what;
	} parts[] = {
		{ slice_check, "the programs on the slice" },
		{ inspector_check, "the inspector's cgroup" },
		{ lsm_check, "the LSM programs" },
		{ ports_check, "the program on the network namespace" },
		{ devices_attach, "the programs on the network devices" },
		{ adopted_check, "the programs on an adopted cgroup" },
		{ containers_check, "the programs on a container's network devices" },
		{ object_repin, "the pins of maps and programs" },
	};
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		int r = parts[i].look(kernel);

		if (r < 0 && result == 0) {
			result = r;
			snprintf(problem, 512, "the gate: %s: %s", parts[i].what, strerror(-r));
		}
	}
	kernel->broken = result < 0;
	return result;
}

bool kernel_mended(struct kernel *kernel, char text[static 512])
{
	if (!kernel->mended)
		return false;
	snprintf(text, 512, "%.400s", kernel->mended_what);
	if (kernel->mended > 1)
		snprintf(text + strlen(text), 512 - strlen(text), ", and %u more", kernel->mended - 1);
	kernel->mended = 0;
	return true;
}

bool gate_stands(void *ctx)
{
	const struct kernel *kernel = ctx;
	bool stands = !kernel->broken;
	uint64_t id;

	for (const struct place *p = place_next(kernel, NULL); p && stands; p = place_next(kernel, p))
		stands = place_is_adopted(p, &id) || place_stands(kernel, p);
	return stands;
}

int gate_whole(void *ctx, char problem[static 512])
{
	return gate_stands(ctx) ? 0 : kernel_check(ctx, problem);
}
