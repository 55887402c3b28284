/* SPDX-License-Identifier: MIT */
/*
 * A gate of the very same build that is in the kernel already is taken as it is: to load it anew has the kernel verify every
 * program once more, which is most of a start. The pins say what they are, in a symbolic link, which a bpf file system can
 * hold beside them, and which nobody but root can make there:
 *
 *   PIN_DIR/v8/build -> HASH/FEATURES/SETTINGS/ID/ID/...
 *
 * HASH is of the object that was loaded, FEATURES are those of this kernel that it uses, SETTINGS the bytes of its .rodata,
 * and then come the kernel's numbers of all its programs and maps, which no other program or map of this boot has. All of it
 * must be as we would write it, or the gate is loaded anew. Whoever loads one removes the link before anything changes and
 * writes it when all is in place: a crash on the way leaves none. That each program is attached where it should be is looked
 * at after this, as ever.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "gate_build.h"
#include "kernel/internal.h"

#define TEXT_MAX 4000 /* a link of any file system has room for it */

static int build_path(const struct kernel *kernel, char path[static FS_PATH_SIZE])
{
	return fs_path(path, "%s/build", kernel->pins);
}

void build_forget(const struct kernel *kernel)
{
	char path[FS_PATH_SIZE];

	if (build_path(kernel, path) == 0)
		unlink(path);
}

static int build_describe(const struct kernel *kernel, const struct gate_bpf *skel, const struct features *features,
			  struct buf *out)
{
	const unsigned char *settings = (const unsigned char *)skel->rodata;
	const struct bpf_map *map;

	buf_printf(out, "%s/%x/", GATE_BUILD, features_bits(features));
	for (size_t i = 0; i < sizeof(*skel->rodata); i++)
		buf_printf(out, "%02x", settings[i]);
	for (size_t i = 0; i < kernel->n_programs; i++)
		buf_printf(out, "/%u", kernel->programs[i].id);
	bpf_object__for_each_map(map, skel->obj) {
		struct bpf_map_info info = { 0 };
		__u32 len = sizeof(info);

		if (bpf_map__is_internal(map))
			continue; /* the programs hold it, and its bytes are the settings */
		if (bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &len) < 0)
			return -errno;
		buf_printf(out, "/%u", info.id);
	}
	return buf_error(out);
}

static int programs_find(struct kernel *kernel, const struct gate_bpf *skel)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, skel->obj) {
		char path[FS_PATH_SIZE];
		int r = program_path(kernel, prog, path);

		if (r == 0 && bpf_program__autoload(prog)) {
			int fd = bpf_obj_get(path);

			r = fd < 0 ? -errno : program_add(kernel, prog, fd);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int maps_find(const struct kernel *kernel, const struct gate_bpf *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj) {
		char path[FS_PATH_SIZE];
		_close_ int fd = -1;
		int r;

		if (bpf_map__is_internal(map))
			continue;
		r = map_path(kernel, map, path);
		if (r < 0)
			return r;
		fd = bpf_obj_get(path);
		r = fd < 0 ? -errno : bpf_map__reuse_fd(map, fd);
		if (r < 0)
			return r;
	}
	return 0;
}

int build_take(struct kernel *kernel)
{
	_buf_ struct buf ours = BUF_INIT(TEXT_MAX);
	char path[FS_PATH_SIZE], theirs[TEXT_MAX + 1];
	struct features features;
	struct gate_bpf *skel;
	unsigned bits;
	ssize_t n;
	int r = build_path(kernel, path);

	if (r < 0)
		return r;
	n = readlink(path, theirs, sizeof(theirs));
	if (n < 0 || (size_t)n >= sizeof(theirs))
		return n < 0 ? -errno : -E2BIG;
	theirs[n] = '\0';
	/* What a kernel can do does not change while it runs, and no pin outlives it. */
	if (strncmp(theirs, GATE_BUILD "/", strlen(GATE_BUILD) + 1) != 0 ||
	    sscanf(theirs + strlen(GATE_BUILD), "/%x/", &bits) != 1)
		return -ESTALE;
	features = features_of_bits(bits);
	skel = gate_bpf__open();
	if (!skel)
		return -errno;
	r = object_prepare(kernel, skel, &features);
	if (r == 0)
		r = programs_find(kernel, skel);
	if (r == 0)
		r = maps_find(kernel, skel);
	if (r == 0)
		r = build_describe(kernel, skel, &features, &ours);
	if (r == 0 && strcmp(ours.data, theirs) != 0)
		r = -ESTALE;
	r = object_settle(kernel, skel, &features, r);
	kernel->same_build = r == 0;
	return r;
}

int build_note(struct kernel *kernel)
{
	_buf_ struct buf text = BUF_INIT(TEXT_MAX);
	char path[FS_PATH_SIZE];
	int r = build_path(kernel, path);

	if (r < 0 || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return r;
	if (r == 0)
		r = build_describe(kernel, kernel->skel, &kernel->features, &text);
	if (r < 0)
		return r;
	if (symlink(text.data, path) < 0)
		return -errno;
	mended(kernel, path);
	return 0;
}
