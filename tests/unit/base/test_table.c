/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/table.c"

#include "base/hash.h"

#define KEY(n) (&(const struct hash_key){ { (n), 0x9e3779b97f4a7c15u } })

struct thing {
	unsigned number;
	struct table_node node;
};

static struct thing *thing_find(const struct table *table, unsigned number, uint64_t hash)
{
	for (struct table_node *n = table_first(table, hash); n; n = table_next(n)) {
		struct thing *thing = container_of(n, struct thing, node);

		if (thing->number == number)
			return thing;
	}
	return NULL;
}

/* A walk meets each thing once, and may remove what it has left. */
static void check_walk(struct table *table, const struct thing *things)
{
	static unsigned met[2000];
	size_t count = 0;

	memset(met, 0, sizeof(met));
	for (struct table_node *n = table_walk(table, NULL), *next; n; n = next) {
		unsigned number = container_of(n, struct thing, node)->number;

		assert_ptr_equal(n, &things[number].node);
		met[number]++;
		count++;
		next = table_walk(table, n);
		table_remove(table, n);
	}
	assert_int_equal(count, 1000);
	for (unsigned i = 0; i < 2000; i++)
		assert_int_equal(met[i], i % 2);
	assert_int_equal(table->count, 0);
}

/* Adds, removes half, finds all. With hash_of a constant everything is one chain. */
static void check(uint64_t (*hash_of)(unsigned number))
{
	static struct thing things[2000];
	struct table table = { 0 };

	assert_null(thing_find(&table, 1, hash_of(1)));
	for (unsigned i = 0; i < 2000; i++) {
		things[i].number = i;
		assert_int_equal(table_reserve(&table), 0);
		table_add(&table, &things[i].node, hash_of(i));
	}
	assert_int_equal(table.count, 2000);
	for (unsigned i = 0; i < 2000; i += 2)
		table_remove(&table, &things[i].node);
	assert_int_equal(table.count, 1000);
	for (unsigned i = 0; i < 2000; i++)
		assert_ptr_equal(thing_find(&table, i, hash_of(i)), i % 2 ? &things[i] : NULL);
	check_walk(&table, things);
	table_clear(&table);
	assert_null(table_walk(&table, NULL));
}

static uint64_t spread(unsigned number)
{
	return hash_number(KEY(7), number);
}

static uint64_t collide(unsigned number)
{
	return number % 3; /* three hashes, all in different buckets */
}

static uint64_t same_bucket(unsigned number)
{
	return (uint64_t)(number % 5) << 40;
}

static void test_table(void **state)
{
	(void)state;
	check(spread);
	check(collide);
	check(same_bucket);
}

static void test_hash_depends_on_seed_and_every_byte(void **state)
{
	(void)state;
	assert_true(hash_text(KEY(1), "alice/demo") == hash_text(KEY(1), "alice/demo"));
	assert_true(hash_text(KEY(1), "alice/demo") != hash_text(KEY(2), "alice/demo"));
	assert_true(hash_text(KEY(1), "alice/demo") != hash_text(KEY(1), "alice/demp"));
	assert_true(hash_text(KEY(1), "blice/demo") != hash_text(KEY(1), "alice/demo"));
	assert_true(hash_text(KEY(1), "ab") != hash_text(KEY(1), "ba"));
	assert_true(hash_number(KEY(1), 5) != hash_number(KEY(2), 5));
}

static void test_hash_spreads(void **state)
{
	unsigned buckets[1024] = { 0 };
	char text[32];

	(void)state;
	for (unsigned i = 0; i < 4096; i++) {
		snprintf(text, sizeof(text), "user/session-%u", i);
		buckets[hash_text(KEY(42), text) & 1023]++;
	}
	for (unsigned i = 0; i < 1024; i++)
		assert_true(buckets[i] < 24); /* 4 on average */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_hash_depends_on_seed_and_every_byte),
		cmocka_unit_test(test_hash_spreads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
