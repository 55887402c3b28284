/* SPDX-License-Identifier: MIT */
/* The log in front of the store: what a block holds, what a crash leaves of it, and which blocks are used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned folders_synced;

/* Everybody's: this one comes first when symbols are looked up. */
int fsync(int fd)
{
	struct stat st;

	folders_synced += fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	return (int)syscall(SYS_fsync, fd);
}

#include "session/raise_log.c"

#define RUNG(l, m, g) ((struct np_rung){ .level = (l), .mode = (m), .generation = (g) })

static const struct dataset_row dataset = { "customers.csv", LEVEL_SECRET, "ticket 4711", 1234567 };
static const struct notice_row notice = { .made_us = 7654321,
					  .rung = { .mode = NP_NONE, .level = LEVEL_SECRET, .generation = 5 },
					  .dataset = "customers.csv",
					  .reason = "ticket 4711",
					  .text = "nothing is reached any more" };
static const struct raise_entry whole = {
	.session = "alice/demo",
	.rung = { .mode = NP_NONE, .level = LEVEL_SECRET, .generation = 5 },
	.dataset = &dataset,
	.notice = &notice,
};

static char dir[64], path[96];
static struct raise_log *raises;

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/netpawl-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/raises", dir);
	folders_synced = 0;
	return raise_log_open(path, &raises);
}

static int teardown(void **state)
{
	(void)state;
	raise_log_close(raises);
	raises = NULL;
	unlink(path);
	return rmdir(dir);
}

static void reopen(void)
{
	raise_log_close(raises);
	raises = NULL;
	assert_int_equal(raise_log_open(path, &raises), 0);
}

static void assert_whole(const struct raise_read *read, bool with_dataset, bool with_notice)
{
	assert_string_equal(read->entry.session, "alice/demo");
	assert_true(np_rung_equal(&read->entry.rung, &whole.rung));
	assert_int_equal(!!read->entry.dataset, with_dataset);
	assert_int_equal(!!read->entry.notice, with_notice);
	if (with_dataset) {
		assert_string_equal(read->entry.dataset->name, dataset.name);
		assert_string_equal(read->entry.dataset->reason, dataset.reason);
		assert_int_equal(read->entry.dataset->level, dataset.level);
		assert_int_equal(read->entry.dataset->added_us, dataset.added_us);
	}
	if (with_notice) {
		assert_string_equal(read->entry.notice->dataset, notice.dataset);
		assert_string_equal(read->entry.notice->reason, notice.reason);
		assert_string_equal(read->entry.notice->text, notice.text);
		assert_int_equal(read->entry.notice->made_us, notice.made_us);
		assert_int_equal(read->entry.notice->rung.level, LEVEL_SECRET);
		assert_int_equal(read->entry.notice->rung.mode, NP_NONE);
	}
}

static void test_block(void **state)
{
	char block[RAISE_BLOCK];
	struct raise_read read;

	(void)state;
	for (int with = 0; with < 4; with++) {
		struct raise_entry entry = whole;

		entry.dataset = with & 1 ? &dataset : NULL;
		entry.notice = with & 2 ? &notice : NULL;
		memset(block, 'x', sizeof(block)); /* of one that was longer */
		assert_int_equal(raise_block_write(&entry, 42, block), 0);
		assert_int_equal(raise_block_read(block, &read), 0);
		assert_int_equal(read.number, 42);
		assert_whole(&read, with & 1, with & 2);
	}
}

/* Whichever byte of it is another: there is no entry. */
static void test_torn_block(void **state)
{
	char block[RAISE_BLOCK];
	struct block_head head;
	struct raise_read read;

	(void)state;
	assert_int_equal(raise_block_write(&whole, 42, block), 0);
	memcpy(&head, block, sizeof(head));
	for (size_t i = 0; i < sizeof(head) + head.len; i++) {
		block[i] ^= 0x40;
		assert_int_equal(raise_block_read(block, &read), -ENOENT);
		block[i] ^= 0x40;
	}
	assert_int_equal(raise_block_read(block, &read), 0);
	/* Half of it, as of a crash, with the half of an older one behind it. */
	memset(block + 100, 0, sizeof(block) - 100);
	assert_int_equal(raise_block_read(block, &read), -ENOENT);
	memset(block, 0, sizeof(block));
	assert_int_equal(raise_block_read(block, &read), -ENOENT);
}

/* With a digest that fits, and what no raise says. */
static void test_strange_block(void **state)
{
	static const struct raise_entry strange[] = {
		{ .session = "no slash", .rung = { .mode = NP_NONE } },
		{ .session = "", .rung = { .mode = NP_NONE } },
		{ .session = "a/b", .rung = { .mode = 0 } },
		{ .session = "a/b", .rung = { .mode = 4 } },
		{ .session = "a/b", .rung = { .mode = NP_NONE, .level = NP_LEVELS } },
		{ .session = "a/b", .rung = { .mode = NP_NONE, .flags = 0x80 } },
	};
	struct dataset_row high = dataset;
	struct raise_entry entry = whole;
	char block[RAISE_BLOCK];
	struct raise_read read;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(strange); i++) {
		assert_int_equal(raise_block_write(&strange[i], 1, block), 0);
		assert_int_equal(raise_block_read(block, &read), -ENOENT);
	}
	high.level = LEVEL_COUNT;
	entry.dataset = &high;
	assert_int_equal(raise_block_write(&entry, 1, block), 0);
	assert_int_equal(raise_block_read(block, &read), -ENOENT);
}

static void test_longest(void **state)
{
	static char words[NP_NOTICE_TEXT];
	struct dataset_row longest = dataset;
	struct notice_row long_notice = notice;
	struct raise_entry entry = whole;
	char block[RAISE_BLOCK];
	struct raise_read read;

	(void)state;
	memset(longest.name, 'd', NP_DATASET_MAX);
	memset(longest.reason, 'r', NP_REASON_TEXT_MAX);
	entry.dataset = &longest;
	memset(words, 'w', sizeof(words) - 1);
	long_notice.text = words;
	entry.notice = &long_notice;
	assert_int_equal(raise_block_write(&entry, 1, block), -E2BIG);
	words[2048] = '\0'; /* the longest text that a policy can have is this long before places are filled in */
	assert_int_equal(raise_block_write(&entry, 1, block), 0);
	assert_int_equal(raise_block_read(block, &read), 0);
	assert_string_equal(read.entry.notice->text, words);
	assert_string_equal(read.entry.dataset->reason, longest.reason);
	/* To the last byte. */
	words[2048] = 'w';
	words[RAISE_BLOCK - sizeof(struct block_head) - strlen("alice/demo") - NP_DATASET_MAX - NP_REASON_TEXT_MAX -
	      4] = '\0';
	assert_int_equal(raise_block_write(&entry, 1, block), 0);
	assert_int_equal(raise_block_read(block, &read), 0);
	assert_string_equal(read.entry.notice->text, words);
	words[strlen(words)] = 'w';
	assert_int_equal(raise_block_write(&entry, 1, block), -E2BIG);
}

struct numbers {
	uint64_t n[2 * RAISE_BLOCKS];
	size_t count;
};

static int number_add(void *data, const struct raise_read *read)
{
	struct numbers *numbers = data;

	assert_whole(read, true, true);
	numbers->n[numbers->count++] = read->number;
	return 0;
}

static struct numbers numbers_of(void)
{
	struct numbers numbers = { 0 };

	assert_int_equal(raise_log_each(raises, number_add, &numbers), 0);
	return numbers;
}

static uint64_t put(void)
{
	uint64_t number = 0;

	struct raise_read read;

	assert_int_equal(raise_log_put(raises, &whole, &number), 0);
	assert_int_equal(raise_log_wait(raises), 0);
	assert_int_equal(raise_log_last(raises, &read), 0);
	assert_int_equal(read.number, number);
	assert_whole(&read, true, true);
	return number;
}

/* A block is used again when the store is sure of what is in it, and not before. */
static void test_ring(void **state)
{
	struct numbers numbers;
	uint64_t number;

	(void)state;
	assert_int_equal(numbers_of().count, 0);
	for (uint64_t i = 1; i <= RAISE_BLOCKS; i++)
		assert_int_equal(put(), i);
	assert_int_equal(raise_log_put(raises, &whole, &number), -EAGAIN);
	assert_int_equal(numbers_of().count, RAISE_BLOCKS);
	raise_log_settled(raises, 1);
	assert_int_equal(put(), RAISE_BLOCKS + 1);
	assert_int_equal(raise_log_put(raises, &whole, &number), -EAGAIN);
	raise_log_settled(raises, 0); /* nobody is less sure later */
	raise_log_settled(raises, 10);
	for (int i = 0; i < 9; i++)
		put();
	assert_int_equal(raise_log_put(raises, &whole, &number), -EAGAIN);
	/* The oldest first, wherever they are. */
	numbers = numbers_of();
	assert_int_equal(numbers.count, RAISE_BLOCKS);
	for (size_t i = 0; i < numbers.count; i++)
		assert_int_equal(numbers.n[i], 11 + i);
	/* Numbers go on after a start, which has put all that was there into the store. */
	reopen();
	assert_int_equal(numbers_of().count, RAISE_BLOCKS);
	assert_int_equal(put(), RAISE_BLOCKS + 11);
}

static int stop_at_two(void *data, const struct raise_read *read)
{
	(void)read;
	return ++*(int *)data == 2 ? -EXDEV : 0;
}

static void test_each_stops(void **state)
{
	int seen = 0;

	(void)state;
	put();
	put();
	put();
	assert_int_equal(raise_log_each(raises, stop_at_two, &seen), -EXDEV);
	assert_int_equal(seen, 2);
}

static void test_file(void **state)
{
	uint64_t number;
	struct stat st;

	(void)state;
	assert_true(folders_synced); /* or the file may have no name after a power failure, and the raises in it none */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, RAISE_BLOCKS * RAISE_BLOCK);
	put();
	put();
	/* Shorter than it should be, and open to others: as long as it was is what there is, and the rest is laid out again. */
	assert_int_equal(truncate(path, 2 * RAISE_BLOCK + 100), 0);
	assert_int_equal(chmod(path, 0644), 0);
	reopen();
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, RAISE_BLOCKS * RAISE_BLOCK);
	assert_int_equal(numbers_of().count, 1); /* number 2 was in the third block */
	/* One that was removed takes nothing: what is written there would be lost. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(raise_log_put(raises, &whole, &number), -ESTALE);
	/* Not one that somebody put in its place, either. */
	assert_int_equal(close(creat(path, 0600)), 0);
	assert_int_equal(raise_log_put(raises, &whole, &number), -ESTALE);
	reopen();
	assert_int_equal(put(), 1);
}

static void test_what_is_no_file(void **state)
{
	struct raise_log *other = NULL;
	char name[128];

	(void)state;
	snprintf(name, sizeof(name), "%s/other", dir);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_equal(raise_log_open(name, &other), -EISDIR);
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_int_equal(raise_log_open(name, &other), -EPROTO);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(symlink(path, name), 0);
	assert_int_equal(raise_log_open(name, &other), -ELOOP);
	assert_int_equal(unlink(name), 0);
	assert_null(other);
}

#define log_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_torn_block),
		cmocka_unit_test(test_strange_block),
		cmocka_unit_test(test_longest),
		log_test(test_ring),
		log_test(test_each_stops),
		log_test(test_file),
		log_test(test_what_is_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
