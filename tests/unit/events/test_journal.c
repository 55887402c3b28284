/* SPDX-License-Identifier: MIT */
#include "tempdir.h"
#include "vocab/limits.h"

#include <signal.h>
#include <sys/resource.h>

#define FILE_BYTES 1000 /* ten lines of ours */
#define NEW(ret)   journal_new(dirfd_open, "events", FILE_BYTES *NP_JOURNAL_FILES, ret)

static bool truncate_fails;

static int test_ftruncate(int fd, off_t size)
{
	if (!truncate_fails)
		return ftruncate(fd, size);
	errno = EIO;
	return -1;
}
#define ftruncate test_ftruncate
#include "events/journal.c"
#undef ftruncate

#define LINE_LEN 100

static struct journal *journal;
static int dirfd_open;

static int setup(void **state)
{
	if (tempdir_make(state) < 0)
		return -1;
	truncate_fails = false;
	dirfd_open = open(tempdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return NEW(&journal);
}

static int teardown(void **state)
{
	journal_free(journal);
	journal = NULL;
	close(dirfd_open);
	return tempdir_remove(state);
}

static void reopen(void)
{
	journal_free(journal);
	assert_int_equal(NEW(&journal), 0);
}

/* Puts a line of LINE_LEN bytes. */
static int put(unsigned seq)
{
	char line[LINE_LEN + 1];
	int n = snprintf(line, sizeof(line), "{\"seq\":%u,\"text\":\"", seq);

	memset(line + n, 'x', LINE_LEN - (size_t)n);
	strcpy(line + LINE_LEN - 3, "\"}\n");
	return journal_put(journal, line, LINE_LEN);
}

/* The file holds whole lines with these numbers and nothing else. */
static void assert_lines(const char *name, unsigned first, unsigned last)
{
	char *text = temp_read(name), *p = text;

	for (unsigned seq = first; seq <= last; seq++) {
		assert_int_equal(strtoul(p + strlen("{\"seq\":"), NULL, 10), seq);
		assert_int_equal(strcspn(p, "\n"), LINE_LEN - 1);
		p += LINE_LEN;
	}
	assert_string_equal(p, "");
	free(text);
}

static void test_appends(void **state)
{
	(void)state;
	assert_int_equal(put(1), 0);
	assert_int_equal(put(2), 0);
	assert_lines("events.ndjson", 1, 2);
	reopen();
	assert_int_equal(put(3), 0);
	assert_lines("events.ndjson", 1, 3);
}

static void test_mode(void **state)
{
	mode_t old = umask(077);
	struct stat st;

	(void)state;
	assert_int_equal(put(1), 0);
	umask(old);
	assert_int_equal(stat(temp_path("events.ndjson"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void test_rotates(void **state)
{
	(void)state;
	for (unsigned seq = 1; seq <= 65; seq++)
		assert_int_equal(put(seq), 0);
	assert_lines("events.ndjson", 61, 65);
	assert_lines("events.1.ndjson", 51, 60);
	assert_lines("events.2.ndjson", 41, 50);
	assert_lines("events.3.ndjson", 31, 40);
	assert_false(temp_exists("events.4.ndjson"));
	reopen();
	for (unsigned seq = 66; seq <= 71; seq++)
		assert_int_equal(put(seq), 0);
	assert_lines("events.ndjson", 71, 71);
	assert_lines("events.1.ndjson", 61, 70);
}

/* A rotation that cannot finish drops events but pushes no file out, and goes on once it can. */
static void test_rotation_fails_and_recovers(void **state)
{
	(void)state;
	for (unsigned seq = 1; seq <= 35; seq++)
		assert_int_equal(put(seq), 0);
	assert_int_equal(rename(temp_path("events.3.ndjson"), temp_path("kept")), 0);
	assert_int_equal(mkdir(temp_path("events.3.ndjson"), 0700), 0);
	for (unsigned seq = 36; seq <= 40; seq++)
		assert_int_equal(put(seq), 0);
	for (unsigned seq = 41; seq <= 50; seq++)
		assert_int_equal(put(seq), -EISDIR);
	assert_lines("events.ndjson", 31, 40);
	assert_lines("events.1.ndjson", 21, 30);
	assert_lines("events.2.ndjson", 11, 20);
	assert_int_equal(rmdir(temp_path("events.3.ndjson")), 0);
	assert_int_equal(put(51), 0);
	assert_lines("events.ndjson", 51, 51);
	assert_lines("events.1.ndjson", 31, 40);
	assert_lines("events.3.ndjson", 11, 20);
}

/* As after a crash between two renames: the gap is filled, nothing is overwritten. */
static void test_rotation_carries_on(void **state)
{
	(void)state;
	for (unsigned seq = 1; seq <= 40; seq++)
		assert_int_equal(put(seq), 0);
	assert_int_equal(rename(temp_path("events.1.ndjson"), temp_path("elsewhere")), 0);
	assert_int_equal(put(41), 0);
	assert_lines("events.1.ndjson", 31, 40);
	assert_lines("events.2.ndjson", 11, 20);
	assert_lines("events.3.ndjson", 1, 10);
}

static void test_long_line_in_an_empty_file(void **state)
{
	char line[2 * FILE_BYTES];

	(void)state;
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	assert_int_equal(journal_put(journal, line, sizeof(line)), 0);
	assert_false(temp_exists("events.1.ndjson"));
	assert_int_equal(put(2), 0);
	assert_lines("events.ndjson", 2, 2);
}

static void test_torn_line_after_a_crash(void **state)
{
	char *text;

	(void)state;
	temp_puts("events.ndjson", "{\"seq\":1}\n{\"seq\":2,\"te");
	assert_int_equal(put(3), 0);
	assert_int_equal(put(4), 0);
	text = temp_read("events.ndjson");
	assert_memory_equal(text, "{\"seq\":1}\n{\"seq\":2,\"te\n{\"seq\":3,", 31);
	assert_memory_equal(text + 23 + LINE_LEN, "{\"seq\":4,", 9);
	assert_int_equal(strlen(text), 23 + 2 * LINE_LEN);
	free(text);
}

static void limit_files(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The limit lets half a line through, as a full disk does. */
static void test_half_a_line_is_taken_back(void **state)
{
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	assert_int_equal(put(1), 0);
	limit_files(LINE_LEN + 50);
	assert_int_equal(put(2), -EFBIG);
	assert_lines("events.ndjson", 1, 1);
	assert_int_equal(put(9), -EFBIG);
	limit_files(RLIM_INFINITY);
	assert_int_equal(put(2), 0);
	signal(SIGXFSZ, old);
	assert_int_equal(put(3), 0);
	assert_lines("events.ndjson", 1, 3);
}

/* An operator who empties the file does not make us fill it with zeros. */
static void test_emptied_file(void **state)
{
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);

	(void)state;
	assert_int_equal(put(1), 0);
	assert_int_equal(truncate(temp_path("events.ndjson"), 0), 0);
	limit_files(50);
	assert_int_equal(put(2), -EFBIG);
	limit_files(RLIM_INFINITY);
	signal(SIGXFSZ, old);
	assert_int_equal(put(3), 0);
	assert_lines("events.ndjson", 3, 3);
}

static void test_half_a_line_that_stays_is_taken_back_later(void **state)
{
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	char *text;

	(void)state;
	assert_int_equal(put(1), 0);
	truncate_fails = true;
	limit_files(LINE_LEN + 50);
	assert_int_equal(put(2), -EFBIG);
	limit_files(RLIM_INFINITY);
	signal(SIGXFSZ, old);
	text = temp_read("events.ndjson");
	assert_int_equal(strlen(text), LINE_LEN + 50); /* else this test shows nothing */
	free(text);
	assert_int_equal(put(9), -EIO);
	truncate_fails = false;
	assert_int_equal(put(2), 0);
	assert_int_equal(put(3), 0);
	assert_lines("events.ndjson", 1, 3);
}

/* The newline that mends a torn line is taken back with the line that did not fit. */
static void test_torn_line_on_a_full_disk(void **state)
{
	void (*old)(int) = signal(SIGXFSZ, SIG_IGN);
	char *text;

	(void)state;
	temp_puts("events.ndjson", "{\"seq\":1");
	limit_files(50);
	assert_int_equal(put(2), -EFBIG);
	assert_int_equal(put(3), -EFBIG);
	limit_files(RLIM_INFINITY);
	signal(SIGXFSZ, old);
	text = temp_read("events.ndjson");
	assert_string_equal(text, "{\"seq\":1");
	free(text);
	assert_int_equal(put(4), 0);
	text = temp_read("events.ndjson");
	assert_memory_equal(text, "{\"seq\":1\n{\"seq\":4,", 18);
	free(text);
}

static void test_full_disk(void **state)
{
	unsigned seq = 1;

	(void)state;
	if (!temp_mount("16k"))
		skip();
	close(dirfd_open);
	dirfd_open = temp_dirfd();
	reopen();
	assert_int_equal(put(seq++), 0); /* the file's first page */
	temp_fill("filler");
	while (put(seq) == 0) /* goes on in that page, then needs another file */
		seq++;
	assert_int_equal(put(99), -ENOSPC);
	assert_int_equal(unlink(temp_path("filler")), 0);
	assert_int_equal(put(seq), 0);
	assert_int_equal(put(seq + 1), 0);
	assert_lines("events.ndjson", seq, seq + 1);
	assert_lines("events.1.ndjson", 1, seq - 1);
	umount2(tempdir, MNT_DETACH);
}

static void test_removed_file_is_made_again(void **state)
{
	(void)state;
	assert_int_equal(put(1), 0);
	assert_int_equal(unlink(temp_path("events.ndjson")), 0);
	assert_int_equal(put(2), 0);
	assert_lines("events.ndjson", 2, 2);
}

static void test_moved_file_is_made_again_at_the_rotation(void **state)
{
	(void)state;
	assert_int_equal(put(1), 0);
	assert_int_equal(rename(temp_path("events.ndjson"), temp_path("mine")), 0);
	for (unsigned seq = 2; seq <= 11; seq++)
		assert_int_equal(put(seq), 0);
	assert_lines("mine", 1, 10);
	assert_lines("events.ndjson", 11, 11);
}

static void test_not_a_file(void **state)
{
	(void)state;
	assert_int_equal(symlink("/dev/null", temp_path("events.ndjson")), 0);
	assert_int_equal(put(1), -ELOOP);
	assert_int_equal(unlink(temp_path("events.ndjson")), 0);
	assert_int_equal(mkfifo(temp_path("events.ndjson"), 0600), 0);
	assert_int_equal(put(2), -EINVAL);
	assert_int_equal(journal_last_seq(dirfd_open, "events"), 0);
	assert_int_equal(unlink(temp_path("events.ndjson")), 0);
	assert_int_equal(put(3), 0);
	assert_lines("events.ndjson", 3, 3);
}

static void test_last_seq(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		uint64_t seq;
	} cases[] = {
		{ "", 0, 0 },
		{ "\n", 1, 0 },
		{ "{\"seq\":7,\"x\":1}\n", 0, 7 },
		{ "{\"seq\":7,\"x\":1}\n{\"seq\":8,\"x", 0, 8 }, /* torn behind its seq */
		{ "{\"seq\":7,\"x\":1}\n{\"seq\":81", 0, 7 },	 /* torn in it */
		{ "{\"seq\":7,\"x\":1}\n\0\0\0\0", 20, 7 },
		{ "\0\0\0\n{\"seq\":9,\"x\":1}\n", 20, 9 },
		{ "rubbish\n{\"seq\":9,\"x\":1}\nrubbish\n\n", 0, 9 },
		{ "{\"seq\":99999999999999999999,}\n", 0, 0 },
		{ "{\"seq\":9000000000000000000,}\n", 0, 0 },
		{ "{\"seq\":,}\n", 0, 0 },
	};

	(void)state;
	assert_int_equal(journal_last_seq(dirfd_open, "events"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		temp_write("events.ndjson", cases[i].text, cases[i].len ? cases[i].len : strlen(cases[i].text));
		assert_int_equal(journal_last_seq(dirfd_open, "events"), cases[i].seq);
	}
}

static void test_last_seq_of_older_files(void **state)
{
	char *big = malloc(5 * NP_EVENT_LINE_MAX);
	size_t len = 0;

	(void)state;
	assert_non_null(big);
	temp_puts("events.ndjson", "");
	temp_puts("events.1.ndjson", "torn");
	for (unsigned seq = 1; len < 5 * NP_EVENT_LINE_MAX - 40; seq++)
		len += (size_t)snprintf(big + len, 40, "{\"seq\":%u,\"x\":1}\n", seq);
	temp_write("events.2.ndjson", big, len);
	big[len - 1] = '\0';
	assert_int_equal(journal_last_seq(dirfd_open, "events"), strtoul(strrchr(big, '\n') + 8, NULL, 10));
	free(big);
}

static void set_time(const char *name, time_t seconds)
{
	const struct timespec times[2] = { { .tv_sec = seconds }, { .tv_sec = seconds } };

	assert_int_equal(utimensat(AT_FDCWD, temp_path(name), times, 0), 0);
}

/* Files go by the age of their newest line; the current one, too, and the next line makes a new one. */
static void test_expire(void **state)
{
	(void)state;
	for (unsigned seq = 1; seq <= 25; seq++)
		assert_int_equal(put(seq), 0);
	temp_puts("events.9.txt", "not ours");
	set_time("events.9.txt", 100);
	set_time("events.2.ndjson", 1000);
	set_time("events.1.ndjson", 2000);
	set_time("events.ndjson", 3000);
	journal_expire(journal, 2000000000);
	assert_false(temp_exists("events.2.ndjson"));
	assert_true(temp_exists("events.1.ndjson"));
	journal_expire(journal, 4000000000);
	assert_false(temp_exists("events.1.ndjson"));
	assert_false(temp_exists("events.ndjson"));
	assert_true(temp_exists("events.9.txt"));
	assert_int_equal(put(26), 0);
	assert_int_equal(journal_last_seq(dirfd_open, "events"), 26);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_appends),
		T(test_mode),
		T(test_rotates),
		T(test_rotation_fails_and_recovers),
		T(test_rotation_carries_on),
		T(test_long_line_in_an_empty_file),
		T(test_torn_line_after_a_crash),
		T(test_half_a_line_is_taken_back),
		T(test_emptied_file),
		T(test_half_a_line_that_stays_is_taken_back_later),
		T(test_torn_line_on_a_full_disk),
		T(test_full_disk),
		T(test_removed_file_is_made_again),
		T(test_moved_file_is_made_again_at_the_rotation),
		T(test_not_a_file),
		T(test_expire),
		T(test_last_seq),
		T(test_last_seq_of_older_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
