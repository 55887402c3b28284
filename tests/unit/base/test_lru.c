/* SPDX-License-Identifier: MIT */
#include "base/lru.c"
#include "tls/host_key.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static unsigned freed;

static void count_free(void *value)
{
	freed++;
	free(value);
}

static void put(struct lru *lru, const char *key, int number)
{
	int *value = malloc(sizeof(*value));

	*value = number;
	assert_int_equal(lru_put(lru, key, strlen(key), value), 0);
}

static int get(struct lru *lru, const char *key)
{
	int *value = lru_get(lru, key, strlen(key));

	return value ? *value : -1;
}

static void test_order(void **state)
{
	struct lru *lru;

	(void)state;
	freed = 0;
	assert_int_equal(lru_new(3, count_free, &lru), 0);
	put(lru, "a", 1);
	put(lru, "b", 2);
	put(lru, "c", 3);
	assert_int_equal(get(lru, "a"), 1);
	put(lru, "d", 4); /* b was used least recently */
	assert_int_equal(get(lru, "b"), -1);
	assert_int_equal(freed, 1);
	put(lru, "c", 33); /* in its place, and the newest */
	assert_int_equal(freed, 2);
	put(lru, "e", 5);
	assert_int_equal(get(lru, "a"), -1);
	assert_int_equal(get(lru, "c"), 33);
	assert_int_equal(lru_count(lru), 3);
	lru_drop(lru, "c", 1);
	lru_drop(lru, "c", 1);
	assert_int_equal(get(lru, "c"), -1);
	assert_int_equal(lru_count(lru), 2);
	lru_free(lru);
	assert_int_equal(freed, 6);
	lru_free(NULL);
}

static void test_many(void **state)
{
	struct lru *lru;
	char key[32];

	(void)state;
	assert_int_equal(lru_new(100, count_free, &lru), 0);
	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		put(lru, key, i);
		if (i % 7 == 0)
			lru_drop(lru, key, strlen(key));
	}
	assert_int_equal(lru_count(lru), 100);
	assert_int_equal(get(lru, "key4999"), 4999);
	assert_int_equal(get(lru, "key4800"), -1);
	lru_free(lru);
}

static void test_keys(void **state)
{
	unsigned char a[LRU_KEY_MAX], b[LRU_KEY_MAX], huge[LRU_KEY_MAX + 1] = { 0 };
	struct host name = { .name = "a.test" }, addr = { .is_addr = true }, longest = { 0 };
	struct lru *lru;

	(void)state;
	memset(longest.name, 'x', sizeof(longest.name) - 1);
	assert_true(host_key(&longest, 443, a) <= LRU_KEY_MAX);
	assert_int_equal(host_key(&name, 443, a), 9);
	assert_int_equal(host_key(&name, 444, b), 9);
	assert_memory_not_equal(a, b, 9);
	memcpy(addr.addr.b, "0123456789abcdef", 16);
	memcpy(name.name, "0123456789abcdef", 17);
	assert_int_equal(host_key(&name, 443, a), host_key(&addr, 443, b));
	assert_memory_not_equal(a, b, 19);
	assert_int_equal(lru_new(1, count_free, &lru), 0);
	assert_int_equal(lru_put(lru, huge, sizeof(huge), huge), -EINVAL);
	lru_free(lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
