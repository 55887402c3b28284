/* SPDX-License-Identifier: MIT */
#include "launch/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fs.h"

/* A directory that every host has, for the sandbox's root to grow in; sources that lie in it are taken hold of before. */
#define SCAFFOLD "/tmp"

struct builder {
	const struct plan *plan;
	int *trees; /* of each step: what it shows, mounted nowhere yet; -1 */
	int base;   /* a file system in memory that is gone in the end. Files wait there for their place */
	int root;   /* the sandbox's, in it */
	uid_t uid;  /* the command's, outside */
	gid_t gid;
	char *problem;
};

__attribute__((format(printf, 3, 4))) static int fail(struct builder *b, int error, const char *fmt, ...)
{
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(b->problem, ROOT_PROBLEM_SIZE, fmt, ap);
	va_end(ap);
	len = strlen(b->problem);
	snprintf(b->problem + len, ROOT_PROBLEM_SIZE - len, ": %s", strerror(-error));
	/* What is refused is refused again; what is not there may be so because a mount has gone. */
	return error == -EPERM ? -EINVAL : -EAGAIN;
}

/* -- sources ----------------------------------------------------------------------------- */

/* With all that is mounted below it. */
static int tree_open(int dir, const char *path, uint64_t attributes)
{
	_close_ int tree = open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	/* It takes part in nothing: what the host mounts below it later would come with the host's own flags, and be a window
	 * that nobody covered. The price: what the host unmounts there is held until the sandbox ends. */
	struct mount_attr attr = { .attr_set = attributes, .propagation = MS_PRIVATE };

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return -errno;
	return take_fd(tree);
}

/* A mount is made of a name. Between the look at the name and now somebody may have exchanged what it names. */
static bool is_meant(const struct step *step, int tree)
{
	struct stat st;

	return !step->inode || (!fstat(tree, &st) && st.st_dev == step->device && st.st_ino == step->inode);
}

static int tree_take(struct builder *b, size_t index)
{
	const struct step *step = &b->plan->steps[index];
	uint64_t attributes = MOUNT_ATTR_NOSUID | (step->kind == STEP_DEVICE ? 0 : MOUNT_ATTR_NODEV) |
			      (step->kind == STEP_RO_BIND ? MOUNT_ATTR_RDONLY : 0);
	int tree;

	if (step->kind != STEP_BIND && step->kind != STEP_RO_BIND && step->kind != STEP_DEVICE)
		return 0;
	tree = tree_open(AT_FDCWD, step->source, attributes);
	if (tree < 0)
		return fail(b, tree, "%.200s", step->source);
	b->trees[index] = tree;
	if (is_meant(step, tree))
		return 0;
	snprintf(b->problem, ROOT_PROBLEM_SIZE, "%.200s: what was to be mounted there was exchanged on the way",
		 step->dest);
	return -EINVAL;
}

/* -- places ------------------------------------------------------------------------------ */

/* Nothing of the outside is reached by a link: not by one that the host has, and not by one that somebody put in a
 * directory which is shown. */
static int inside_open(const struct builder *b, const char *dest, int flags)
{
	return fs_open_beneath(b->root, dest[1] ? dest + 1 : ".", O_PATH | O_CLOEXEC | flags);
}

/* The directory around it, and its name there. */
static int around_open(const struct builder *b, const char *dest, bool own, const char **ret_name)
{
	char path[FS_PATH_SIZE];
	int r;

	*ret_name = strrchr(dest, '/') + 1;
	r = fs_path(path, "%.*s", (int)(*ret_name - dest), dest);
	if (r == 0 && own && path[1]) /* who may write there may put a link in our way */
		return fs_open_unlinked(b->root, path + 1, O_PATH | O_DIRECTORY);
	return r < 0 ? r : inside_open(b, path, O_DIRECTORY);
}

/* Unless it is there. */
static int directory_make(const struct builder *b, const struct step *step, mode_t mode)
{
	const char *name;
	_close_ int around = around_open(b, step->dest, step->own, &name);

	if (around < 0)
		return around;
	if (mkdirat(around, name, mode) < 0)
		return errno != EEXIST ? -errno : 0;
	return step->own && fchownat(around, name, b->uid, b->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int file_make(const struct builder *b, const char *dest)
{
	const char *name;
	_close_ int around = around_open(b, dest, false, &name), file = -1;

	if (around < 0)
		return around;
	file = openat(around, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	return file < 0 ? -errno : 0;
}

static int place_open(const struct builder *b, const struct step *step, bool directory)
{
	/* Who may write there may put a link in our way. */
	const int flags = step->own ? O_NOFOLLOW : 0;
	int fd = inside_open(b, step->dest, flags), r;

	if (fd != -ENOENT || step->over)
		return fd;
	r = directory ? directory_make(b, step, 0755) : file_make(b, step->dest);
	return r < 0 ? r : inside_open(b, step->dest, flags);
}

/* -- steps ------------------------------------------------------------------------------- */

static int tree_place(const struct builder *b, int tree, const struct step *step)
{
	_close_ int place = -1;
	struct stat st;

	if (fstat(tree, &st) < 0)
		return -errno;
	place = place_open(b, step, S_ISDIR(st.st_mode));
	if (place < 0)
		return place;
	return move_mount(tree, "", place, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

static int fresh_mount(const struct builder *b, const struct step *step, const char *type, unsigned long flags,
		       const char *options)
{
	_close_ int place = place_open(b, step, true);

	if (place < 0)
		return place;
	return fchdir(place) < 0 || mount(type, ".", type, MS_NOSUID | flags, options) < 0 ? -errno : 0;
}

static int memory_mount(const struct builder *b, const struct step *step)
{
	char options[128];
	int len = snprintf(options, sizeof(options), "mode=%04o", step->mode);

	if (step->size)
		len += snprintf(options + len, sizeof(options) - (size_t)len, ",size=%llu",
				(unsigned long long)step->size);
	if (step->own)
		snprintf(options + len, sizeof(options) - (size_t)len, ",uid=%u,gid=%u", b->uid, b->gid);
	return fresh_mount(b, step, "tmpfs", MS_NODEV, options);
}

/* Files that set something in the kernel are read-only for everybody in the sandbox. */
static int proc_mount(const struct builder *b, const struct step *step)
{
	static const char *const settings[] = { "sys", "sysrq-trigger", "irq", "bus" };
	int r = fresh_mount(b, step, "proc", MS_NODEV | MS_NOEXEC, NULL);
	_close_ int proc = r < 0 ? r : inside_open(b, step->dest, O_DIRECTORY);

	if (proc < 0)
		return proc;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		_close_ int tree = tree_open(proc, settings[i], MOUNT_ATTR_RDONLY);

		if (tree == -ENOENT)
			continue;
		if (tree < 0)
			return tree;
		if (move_mount(tree, "", proc, settings[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -errno;
	}
	return 0;
}

static int file_write(const struct builder *b, const char *name, const struct buf *file)
{
	_close_ int fd = openat(b->base, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

	return fd < 0 ? -errno : fs_write_all(fd, file->data, file->len);
}

static int file_own(const struct builder *b, const struct step *step)
{
	const char *name;
	_close_ int around = around_open(b, step->dest, step->own, &name), fd = -1;

	if (around < 0)
		return around;
	fd = openat(around, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, b->uid, b->gid) < 0)
		return -errno;
	return fs_write_all(fd, step->file->data, step->file->len);
}

/* One that has several places is written once. */
static int file_place(const struct builder *b, size_t index)
{
	const struct step *steps = b->plan->steps;
	_close_ int tree = -1;
	size_t first = 0;
	char name[32];
	int r = 0;

	if (steps[index].own)
		return file_own(b, &steps[index]);
	while (steps[first].file != steps[index].file)
		first++;
	snprintf(name, sizeof(name), "%zu", first);
	if (first == index)
		r = file_write(b, name, steps[index].file);
	if (r < 0)
		return r;
	tree = tree_open(b->base, name, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return tree < 0 ? tree : tree_place(b, tree, &steps[index]);
}

static int link_make(const struct builder *b, const struct step *step)
{
	const char *name;
	_close_ int around = around_open(b, step->dest, step->own, &name);

	if (around < 0)
		return around;
	return symlinkat(step->source, around, name) < 0 ? -errno : 0;
}

static int readonly_make(const struct builder *b, const char *dest)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_close_ int fd = inside_open(b, dest, 0);

	if (fd < 0)
		return fd;
	return mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

static int step_perform(const struct builder *b, size_t index)
{
	const struct step *step = &b->plan->steps[index];

	switch (step->kind) {
	case STEP_BIND:
	case STEP_RO_BIND:
	case STEP_DEVICE:
		return tree_place(b, b->trees[index], step);
	case STEP_SYMLINK:
		return link_make(b, step);
	case STEP_PROC:
		return proc_mount(b, step);
	case STEP_DEVPTS:
		return fresh_mount(b, step, "devpts", MS_NOEXEC, "newinstance,mode=0620,ptmxmode=0666");
	case STEP_DIR:
		return directory_make(b, step, step->mode);
	case STEP_TMPFS:
		return memory_mount(b, step);
	case STEP_FILE:
		return file_place(b, index);
	case STEP_REMOUNT_RO:
		return readonly_make(b, step->dest);
	}
	return -EINVAL;
}

/* -- the whole --------------------------------------------------------------------------- */

static int sources_take(struct builder *b)
{
	int r = 0;

	b->trees = calloc(b->plan->n_steps + 1, sizeof(*b->trees));
	if (!b->trees)
		return fail(b, -ENOMEM, "the sandbox");
	for (size_t i = 0; i < b->plan->n_steps; i++)
		b->trees[i] = -1;
	for (size_t i = 0; i < b->plan->n_steps && r == 0; i++)
		r = tree_take(b, i);
	return r;
}

/* The namespace is of another user namespace than the host's, so nothing that we mount reaches the host. That the kernel says
 * so is not enough to rely on: it is said again. */
static int scaffold_make(struct builder *b)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
	    mount("tmpfs", SCAFFOLD, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0)
		return -errno;
	b->base = open(SCAFFOLD, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->base < 0 || fchdir(b->base) < 0 || mkdir("root", 0755) < 0 ||
	    mount("tmpfs", "root", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		return -errno;
	b->root = openat(b->base, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return b->root < 0 ? -errno : 0;
}

static int steps_perform(struct builder *b)
{
	for (size_t i = 0; i < b->plan->n_steps; i++) {
		const struct step *step = &b->plan->steps[i];
		int r = step_perform(b, i);

		/* All else is made in file systems of the sandbox's own, or is there. */
		if (r == -EROFS && (step->kind == STEP_BIND || step->kind == STEP_RO_BIND)) {
			snprintf(b->problem, ROOT_PROBLEM_SIZE,
				 "--bind: %.150s is not there in the sandbox, and cannot be made: the directory around "
				 "it is the "
				 "host's. Choose a name that is there, or one outside of such directories, as /data",
				 step->dest);
			return -EINVAL;
		}
		if (r < 0)
			return fail(b, r, "%s at %.200s", step_name(step->kind), step->dest);
	}
	return 0;
}

/* The old root is put over the new one, and taken away with all that is in it. */
static int root_enter(const struct builder *b)
{
	if (fchdir(b->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
	    chdir("/") < 0)
		return -errno;
	return 0;
}

int root_build(const struct plan *plan, char problem[static ROOT_PROBLEM_SIZE])
{
	struct builder b = { .plan = plan, .base = -1, .root = -1, .problem = problem };
	const mode_t mask = umask(0);
	int r = sources_take(&b);

	if (plan->identity) {
		b.uid = identity_outside(plan->identity);
		b.gid = plan->identity->gid ? plan->identity->gid : plan->identity->root;
	}

	if (r == 0) {
		r = scaffold_make(&b);
		r = r < 0 ? fail(&b, r, "a file system for the sandbox at " SCAFFOLD) : steps_perform(&b);
	}
	if (r == 0) {
		r = root_enter(&b);
		r = r < 0 ? fail(&b, r, "the sandbox's root") : 0;
	}
	for (size_t i = 0; b.trees && i < plan->n_steps; i++)
		cleanup_close(&b.trees[i]);
	free(b.trees);
	cleanup_close(&b.base);
	cleanup_close(&b.root);
	umask(mask);
	if (r == 0 && chdir(plan->directory) < 0) {
		snprintf(problem, ROOT_PROBLEM_SIZE, "cannot start in %.200s: %s", plan->directory, strerror(errno));
		r = -EINVAL;
	}
	return r;
}
