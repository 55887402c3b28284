/* SPDX-License-Identifier: MIT */
/*
 * Attaching the gate, and keeping it there: with pins, for when no daemon runs, and with descriptors that are held open, so
 * that whoever removes a pin under a running daemon detaches nothing. kernel_check() puts the pin back.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "kernel/internal.h"

/* struct bpf_link_info as far as it is the same for all, and as we need it: the kernel writes no more than it is asked for. */
struct link_facts {
	__u32 type, id, prog_id, pad;
	union {
		__u64 wide;   /* of a cgroup: its id */
		__u32 narrow; /* of a network namespace: its inode; of a device: its number */
	};
};

/* What a link is attached to. One outlives its cgroup or device as an empty shell, that is attached to 0. */
static int link_look(int fd, enum link_kind kind, uint64_t *ret_target, uint32_t *ret_program)
{
	struct link_facts facts = { 0 };
	__u32 len = sizeof(facts);

	if (bpf_obj_get_info_by_fd(fd, &facts, &len) < 0)
		return -errno;
	*ret_target = kind == LINK_LSM ? 1 : kind == LINK_CGROUP ? facts.wide : facts.narrow;
	*ret_program = facts.prog_id;
	return 0;
}

/* -- places: what links are held at ---------------------------------------------------------- */

static uint64_t place_hash(const char *name)
{
	return hash_mark(name, strlen(name));
}

static struct place *place_find(const struct kernel *kernel, const char *name)
{
	return TABLE_FIND(&kernel->places, place_hash(name), struct place, node, it, !strcmp(it->name, name));
}

static struct place *place_get(struct kernel *kernel, const char *name)
{
	struct place *place = place_find(kernel, name);

	if (place)
		return place;
	place = table_reserve(&kernel->places) == 0 ? calloc(1, sizeof(*place)) : NULL;
	if (!place)
		return NULL;
	snprintf(place->name, sizeof(place->name), "%s", name);
	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		place->links[i].fd = -1;
	table_add(&kernel->places, &place->node, place_hash(place->name));
	return place;
}

static void place_free(struct kernel *kernel, struct place *place)
{
	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		cleanup_close(&place->links[i].fd);
	table_remove(&kernel->places, &place->node);
	free(place);
}

struct place *place_next(const struct kernel *kernel, const struct place *place)
{
	struct table_node *n = table_walk(&kernel->places, place ? &place->node : NULL);

	return n ? container_of(n, struct place, node) : NULL;
}

void places_close(struct kernel *kernel)
{
	struct place *place;

	while ((place = place_next(kernel, NULL)))
		place_free(kernel, place);
	table_clear(&kernel->places);
}

void place_forget(struct kernel *kernel, const char *name)
{
	struct place *place = place_find(kernel, name);

	if (place)
		place_free(kernel, place);
}

bool place_stands(const struct kernel *kernel, const struct place *place)
{
	for (size_t i = 0; i < kernel->n_programs; i++) {
		const struct held_link *link = &place->links[i];
		uint64_t target = 0;
		uint32_t program = 0;

		if (link->fd >= 0 && (link_look(link->fd, link->kind, &target, &program) < 0 ||
				      target != link->target || program != kernel->programs[i].id))
			return false;
	}
	return true;
}

bool place_is_adopted(const struct place *place, uint64_t *ret_id)
{
	unsigned long long id;
	char rest;

	if (sscanf(place->name, "c%llu%c", &id, &rest) != 1)
		return false;
	*ret_id = id;
	return true;
}

/* -- one link -------------------------------------------------------------------------------- */

/* Its pin may have been removed, and the folder with it. */
static int link_pin(struct kernel *kernel, int fd, const char *path)
{
	char folder[FS_PATH_SIZE];

	if (access(path, F_OK) == 0)
		return 0;
	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	if (fs_mkdir_all(folder, 0700) < 0 || bpf_obj_pin(fd, path) < 0)
		return -errno;
	mended(kernel, path);
	return 0;
}

static int link_make(struct kernel *kernel, const struct link_want *want, int prog_fd, struct held_link *held)
{
	_close_ int fresh = -1;
	int r;

	if (want->kind == LINK_CGROUP)
		lists_unsure(kernel);
	fresh = want->kind == LINK_LSM
			? bpf_raw_tracepoint_open(NULL, prog_fd)
			: bpf_link_create(prog_fd, want->target_fd, (enum bpf_attach_type)want->attach_type, NULL);
	if (fresh < 0)
		return -errno;
	r = pins_link_replace(fresh, want->path);
	if (r < 0)
		return r;
	if (held->fd >= 0)
		mended(kernel, want->path); /* it was attached, and nobody of us has detached it */
	cleanup_close(&held->fd);
	*held = (struct held_link){ .fd = take_fd(fresh), .kind = want->kind, .target = want->target };
	return 0;
}

int link_hold(struct kernel *kernel, const char *name, const struct bpf_program *prog, const struct link_want *want)
{
	struct place *place = place_get(kernel, name);
	size_t index = program_index(kernel, prog);
	struct held_link *held;
	uint64_t target = 0;
	uint32_t program = 0;

	if (!place || index == SIZE_MAX)
		return place ? -ENOENT : -ENOMEM;
	held = &place->links[index];
	if (held->fd < 0)
		*held = (struct held_link){ bpf_obj_get(want->path), want->kind, want->target };
	if (held->fd < 0 || link_look(held->fd, want->kind, &target, &program) < 0 || target != want->target)
		return link_make(kernel, want, kernel->programs[index].fd, held);
	if (program != kernel->programs[index].id) {
		/* A link of an LSM program takes no other: the new one is attached beside the old, which goes with its
		 * pin. Both ask the same maps. */
		if (want->kind == LINK_LSM)
			return link_make(kernel, want, kernel->programs[index].fd, held);
		/* In one step; there is no moment without a program. */
		if (bpf_link_update(held->fd, kernel->programs[index].fd, NULL) < 0)
			return -errno;
	}
	return link_pin(kernel, held->fd, want->path);
}

/* -- cgroups, and the whole kernel ------------------------------------------------------------- */

static bool belongs_to_cgroups(const struct bpf_program *prog)
{
	switch (bpf_program__type(prog)) {
	case BPF_PROG_TYPE_CGROUP_SKB:
	case BPF_PROG_TYPE_CGROUP_SOCK:
	case BPF_PROG_TYPE_CGROUP_SOCK_ADDR:
	case BPF_PROG_TYPE_CGROUP_SOCKOPT:
	case BPF_PROG_TYPE_SOCK_OPS:
		return true;
	default:
		return false;
	}
}

/* Programs for the inspector's cgroup are none for sandboxes. */
static bool is_for_workers(const struct bpf_program *prog)
{
	return !strncmp(bpf_program__name(prog), "np_worker_", 10);
}

static int links_folder(const struct kernel *kernel, const char *name)
{
	char path[FS_PATH_SIZE];
	int r = fs_path(path, "%s/links/%s", kernel->pins, name);

	return r < 0 ? r : fs_mkdir_all(path, 0700);
}

static int link_path(const struct kernel *kernel, const char *name, const struct bpf_program *prog,
		     char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/links/%s/%s", kernel->pins, name, bpf_program__name(prog));
}

int links_attach(struct kernel *kernel, const struct gate_cgroup *cg, const char *name, bool worker)
{
	_close_ int cgroup_fd = open(cg->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct place *place;
	int r = cgroup_fd < 0 ? -errno : links_folder(kernel, name);

	for (size_t i = 0; r == 0 && i < kernel->n_programs; i++) {
		const struct bpf_program *prog = kernel->programs[i].prog;
		char path[FS_PATH_SIZE];
		struct link_want want = { path, LINK_CGROUP, cg->id, cgroup_fd,
					  bpf_program__expected_attach_type(prog) };

		if (!belongs_to_cgroups(prog) || is_for_workers(prog) != worker)
			continue;
		r = link_path(kernel, name, prog, path);
		if (r == 0)
			r = link_hold(kernel, name, prog, &want);
	}
	place = place_find(kernel, name);
	if (place)
		place->whole = r == 0;
	return r;
}

bool links_stand(const struct kernel *kernel, const char *name)
{
	const struct place *place = place_find(kernel, name);

	return place && place->whole && place_stands(kernel, place);
}

int links_attach_lsm(struct kernel *kernel, const struct gate_bpf *skel)
{
	const struct bpf_program *programs[] = { skel->progs.np_lsm_connect, skel->progs.np_lsm_send };
	int r = links_folder(kernel, "lsm");

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(programs); i++) {
		char path[FS_PATH_SIZE];
		struct link_want want = { path, LINK_LSM, 1, -1, 0 };

		r = link_path(kernel, "lsm", programs[i], path);
		if (r == 0)
			r = link_hold(kernel, "lsm", programs[i], &want);
	}
	return r;
}

void links_detach(struct kernel *kernel, const char *name)
{
	char path[FS_PATH_SIZE];

	fs_path(path, "%s/links/%s", kernel->pins, name);
	pins_remove_tree(path);
	place_forget(kernel, name);
}
