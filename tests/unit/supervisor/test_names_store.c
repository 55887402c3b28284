/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "supervisor/names_store.c"

#include <ftw.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "vocab/limits.h"

static struct supervisor supervisor;
static struct session_brief session;
static struct process process;
static char dir[] = "/tmp/np-names-XXXXXX", path[FS_PATH_SIZE];

/* -- instead of processes: what they would have been told ---------------------------- */

static struct link_name last, others;
static unsigned n_others, n_one, n_batches, n_before; /* n_one when the others were told */
static size_t batch_len;

void process_send(struct process *p, enum link_type type, const void *data, size_t len, int fd)
{
	assert_ptr_equal(p, &process);
	assert_int_equal(type, LINK_NAME);
	assert_int_equal(len, sizeof(last));
	assert_int_equal(fd, -1);
	memcpy(&last, data, sizeof(last));
	n_one++;
}

void send_others(struct supervisor *w, const struct process *but, enum link_type type, const void *data, size_t len,
		 int fd)
{
	(void)fd;
	assert_ptr_equal(w, &supervisor);
	assert_ptr_equal(but, &process);
	assert_int_equal(type, LINK_NAME);
	assert_int_equal(len, sizeof(last));
	memcpy(&others, data, sizeof(others));
	n_others++;
	n_before = n_one;
}

void send_all(struct supervisor *w, enum link_type type, const void *data, size_t len, int fd)
{
	struct stat st;

	(void)data, (void)len;
	assert_ptr_equal(w, &supervisor);
	assert_int_equal(type, LINK_BATCH);
	assert_int_equal(fstat(fd, &st), 0);
	batch_len = (size_t)st.st_size;
	n_batches++;
}

struct session_brief *session_brief_find(struct supervisor *w, const char *name)
{
	assert_ptr_equal(w, &supervisor);
	return strcmp(name, session.ca.session) == 0 ? &session : NULL;
}

void batch_add(struct buf *out, enum link_type type, const void *data, size_t len)
{
	struct link_message message = { .type = type, .len = (uint32_t)len };

	buf_append(out, &message, sizeof(message));
	buf_append(out, data, len);
}

/* -- shorthands -------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	supervisor = (struct supervisor){ .key = { { 1, 2 } } };
	process = (struct process){ .supervisor = &supervisor };
	session = (struct session_brief){ .names_fd = -1 };
	strcpy(session.ca.session, "alice/demo");
	assert_int_equal(fs_path(supervisor.names_dir, "%s", dir), 0);
	assert_int_equal(fs_path(path, "%s/alice,demo", dir), 0);
	n_others = n_batches = n_one = n_before = 0;
	return 0;
}

static int remove_one(const char *name, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	return remove(name);
}

static int teardown(void **state)
{
	(void)state;
	return nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void open_names(void)
{
	assert_int_equal(names_open(&supervisor, &session), 0);
}

static void again(void)
{
	names_close(&supervisor, &session, false);
	session.names = NULL;
	session.names_fd = -1;
	open_names();
}

static uint32_t learn_as(const char *name, bool refused)
{
	struct link_name want = { .refused = refused };

	strcpy(want.session, "alice/demo");
	strcpy(want.name, name);
	memset(&last, 0x5a, sizeof(last));
	names_learn(&process, &want);
	assert_string_equal(last.session, "alice/demo");
	assert_string_equal(last.name, name);
	return last.index;
}

static uint32_t learn(const char *name)
{
	return learn_as(name, false);
}

static uint32_t learn_refused(const char *name)
{
	return learn_as(name, true);
}

static void file_write(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void assert_file(const char *text)
{
	char got[512] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	got[fread(got, 1, sizeof(got) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(got, text);
}

/* -- tests ------------------------------------------------------------------------------- */

/* What changed hands often is written anew, each name once, before the file gets too long to be read. */
static void long_files_are_written_anew(void **state)
{
	(void)state;
	open_names();
	assert_int_equal(learn("a.example"), 1);
	assert_int_equal(learn("b.example"), 2);
	file_write("1 old.example\n1 older.example\n1 a.example\n2 b.example\n");
	again();
	session.names_bytes = FILE_MAX / 2 + 1;
	assert_int_equal(learn("c.example"), 3);
	assert_file("1 a.example\n2 b.example\n3 c.example\n");
	assert_int_equal(session.names_bytes, 36);
	assert_int_equal(learn("d.example"), 4);
	assert_file("1 a.example\n2 b.example\n3 c.example\n4 d.example\n");
	again();
	assert_int_equal(learn("b.example"), 2);
	/* Nowhere to write it: no more names are given out. */
	session.names_bytes = FILE_MAX / 2 + 1;
	assert_int_equal(fs_path(supervisor.names_dir, "%s/none", dir), 0);
	assert_int_equal(learn("e.example"), 0);
	assert_int_equal(learn("f.example"), 0);
	names_close(&supervisor, &session, false);
}

static void names_are_kept(void **state)
{
	struct stat st;

	(void)state;
	open_names();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(learn("a.example"), 1);
	assert_int_equal(learn("b.example"), 2);
	assert_int_equal(n_others, 2); /* everybody is told of a new one ... */
	assert_int_equal(n_one, 2);
	assert_int_equal(n_before, 1); /* ... and who asked, last ... */
	assert_memory_equal(&others, &last, sizeof(last));
	assert_int_equal(learn("a.example"), 1);
	assert_int_equal(n_others, 2);
	assert_int_equal(n_one, 3); /* ... and who asks again alone of an old one */
	assert_file("1 a.example\n2 b.example\n");
	again();
	assert_int_equal(learn("b.example"), 2);
	assert_int_equal(learn("c.example"), 3);
	assert_file("1 a.example\n2 b.example\n3 c.example\n");
	names_close(&supervisor, &session, true);
	assert_int_equal(access(path, F_OK), -1);
}

static void nonsense_is_not_learnt(void **state)
{
	struct link_name want = { 0 };

	(void)state;
	open_names();
	strcpy(want.session, "bob/demo"); /* a session without sandboxes */
	strcpy(want.name, "a.example");
	names_learn(&process, &want);
	strcpy(want.session, "alice/demo");
	strcpy(want.name, "A.example");
	names_learn(&process, &want);
	strcpy(want.name, "two\nlines.example");
	names_learn(&process, &want);
	strcpy(want.name, "");
	names_learn(&process, &want);
	memset(want.name, 'a', sizeof(want.name));
	names_learn(&process, &want);
	strcpy(want.name, "a.example");
	memset(want.session, 'a', sizeof(want.session));
	names_learn(&process, &want);
	assert_int_equal(n_others + n_one, 0);
	assert_int_equal(names_count(session.names, NAMES_ALLOWED), 0);
	assert_file("");
	names_close(&supervisor, &session, true);
}

static void what_an_earlier_daemon_left(void **state)
{
	(void)state;
	file_write(
		"1 a.example\n2 b.example\n1 c.example\nx y\n 7\n0 zero.example\n99999 far.example\n4 Not.Canonical\n"
		"-1 minus.example\n18446744073709551617 wraps.example\n\n6 tail.example\n7 half");
	open_names();
	assert_string_equal(names_find(session.names, 1), "c.example"); /* the last line of an index counts */
	assert_string_equal(names_find(session.names, 2), "b.example");
	assert_string_equal(names_find(session.names, 6), "tail.example");
	assert_int_equal(names_count(session.names, NAMES_ALLOWED), 3);
	assert_int_equal(learn("a.example"), 3);
	names_close(&supervisor, &session, true);
}

/* What follows the half line of a crash must not become part of it. */
static void a_line_after_a_half_one(void **state)
{
	(void)state;
	file_write("1 a.example\n2 b.exam");
	open_names();
	assert_int_equal(learn("c.example"), 2);
	again();
	assert_string_equal(names_find(session.names, 1), "a.example");
	assert_string_equal(names_find(session.names, 2), "c.example");
	names_close(&supervisor, &session, true);
}

/* Without a record the next daemon could give the address to another name. */
static void nothing_is_given_out_that_is_not_kept(void **state)
{
	(void)state;
	open_names();
	assert_int_equal(learn("a.example"), 1);
	close(session.names_fd);
	session.names_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(learn("b.example"), 0);
	assert_int_equal(session.names_fd, -1);
	assert_int_equal(learn("a.example"), 0); /* none at all from here on */
	names_close(&supervisor, &session, false);
	/* A file that cannot be opened, or is too large. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	open_names();
	assert_int_equal(session.names_fd, -1);
	assert_int_equal(learn("a.example"), 0);
	names_close(&supervisor, &session, false);
	assert_int_equal(rmdir(path), 0);
	file_write("");
	assert_int_equal(truncate(path, FILE_MAX + 1), 0);
	open_names();
	assert_int_equal(session.names_fd, -1);
	names_close(&supervisor, &session, true);
}

static void a_link_is_not_followed(void **state)
{
	char other[FS_PATH_SIZE];

	(void)state;
	assert_int_equal(fs_path(other, "%s/other", dir), 0);
	assert_int_equal(symlink(other, path), 0);
	open_names();
	assert_int_equal(session.names_fd, -1);
	assert_int_equal(access(other, F_OK), -1);
	names_close(&supervisor, &session, false);
}

static void full(void **state)
{
	char name[64];

	(void)state;
	open_names();
	for (unsigned i = 1; i <= NP_NAMES_PER_SESSION; i++) {
		snprintf(name, sizeof(name), "n%u.example", i);
		assert_int_equal(learn(name), i);
	}
	assert_int_equal(learn("one-more.example"), 0);
	assert_int_equal(learn("n1.example"), 1);
	/* Refused ones have their own, which outlive a daemon as well. */
	assert_int_equal(learn_refused("r.example"), NP_NAMES_PER_SESSION + 1);
	assert_int_equal(learn_refused("n1.example"), NP_NAMES_PER_SESSION + 2);
	again();
	assert_int_equal(names_count(session.names, NAMES_ALLOWED), NP_NAMES_PER_SESSION);
	assert_int_equal(names_count(session.names, NAMES_REFUSED), 2);
	assert_string_equal(names_find(session.names, NP_NAMES_PER_SESSION + 1), "r.example");
	names_close(&supervisor, &session, true);
}

#define ONE (sizeof(struct link_message) + sizeof(struct link_name))

static void batches(void **state)
{
	_buf_ struct buf all = BUF_INIT(1000 * ONE), little = BUF_INIT(2 * ONE + 1);

	(void)state;
	open_names();
	names_send(&supervisor, &session);
	assert_int_equal(n_batches, 0); /* there is nothing to tell */
	learn("a.example");
	learn("b.example");
	learn("c.example");
	names_batch(&session, &all);
	assert_int_equal(all.len, 3 * ONE);
	names_batch(&session, &little); /* what has no room is left out, and is no error */
	assert_int_equal(little.len, 2 * ONE);
	assert_int_equal(buf_error(&little), 0);
	n_batches = 0;
	names_send(&supervisor, &session);
	assert_int_equal(n_batches, 1);
	assert_int_equal(batch_len, 3 * ONE);
	names_close(&supervisor, &session, true);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_files_are_written_anew),
		TEST(names_are_kept),
		TEST(nonsense_is_not_learnt),
		TEST(what_an_earlier_daemon_left),
		TEST(a_line_after_a_half_one),
		TEST(nothing_is_given_out_that_is_not_kept),
		TEST(a_link_is_not_followed),
		TEST(full),
		TEST(batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
