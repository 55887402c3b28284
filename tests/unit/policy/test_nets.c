/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "policy/nets.c"

#include "vocab/words.h"
#include "make.h"

/* The ranges that hold addr, narrowest first, but for metadata ranges that no rule names: "10.1.0.0/16 10.0.0.0/8". */
static void assert_found(const struct net_table *table, const char *addr, const char *expected)
{
	struct np_addr a = addr_of(addr);
	char text[512] = "", one[ADDR_TEXT_SIZE];

	for (const struct net_node *node = net_table_find(table, &a); node; node = node->up) {
		if (!node->n_patterns)
			continue;
		addr_format(&node->addr, one);
		sprintf(text + strlen(text), "%s%s/%d", *text ? " " : "", one, node->v4 ? node->bits - 96 : node->bits);
	}
	if (strcmp(text, expected) != 0)
		fail_msg("%s: %s, not %s", addr, text, expected);
}

static void test_ranges_in_ranges(void **state)
{
	_policy_ struct policy *policy = policy_of("rules:\n"
						   "- deny: 10.1.2.0/24\n"
						   "- deny: 10.0.0.0/8\n"
						   "- deny: 10.1.2.3\n"
						   "- deny: 10.2.0.0/16\n"
						   "- deny: ['2001:db8::/32', '2001:db8:1::/48', '::/0']\n"
						   "- deny: 10.1.2.128/25\n");
	const struct net_table *nets = policy->nets;

	(void)state;
	assert_found(nets, "10.1.2.3", "10.1.2.3/32 10.1.2.0/24 10.0.0.0/8");
	assert_found(nets, "10.1.2.4", "10.1.2.0/24 10.0.0.0/8");
	assert_found(nets, "10.1.2.200", "10.1.2.128/25 10.1.2.0/24 10.0.0.0/8");
	assert_found(nets, "10.1.3.0", "10.0.0.0/8");
	assert_found(nets, "10.2.255.255", "10.2.0.0/16 10.0.0.0/8");
	assert_found(nets, "10.255.255.255", "10.0.0.0/8");
	assert_found(nets, "11.0.0.0", "");
	assert_found(nets, "9.255.255.255", "");
	assert_found(nets, "255.255.255.255", "");
	assert_found(nets, "2001:db8:1::7", "2001:db8:1::/48 2001:db8::/32 ::/0");
	assert_found(nets, "2001:db8:2::", "2001:db8::/32 ::/0");
	assert_found(nets, "2001:db9::", "::/0");
	assert_found(nets, "ffff::", "::/0");
	assert_found(policy->full_nets, "10.1.2.3", "");
}

static void test_order_of_nodes_and_patterns(void **state)
{
	_policy_ struct policy *policy =
		policy_of("rules:\n"
			  "- deny: ['2001:db8::/32', 192.0.2.0/24]\n"
			  "- allow: 192.0.2.0/24:22\n"
			  "- allow: [example.com, '192.0.2.0/24:23', '0.0.0.0/0:24', 192.0.2.0/24:25]\n");
	const struct net_table *nets = policy->nets;
	const struct net_node *shared = NULL;

	(void)state;
	for (size_t i = 1; i < nets->n; i++) {
		const struct net_node *a = &nets->nodes[i - 1], *b = &nets->nodes[i];

		assert_true(a->v4 || !b->v4);
		if (a->v4 == b->v4)
			assert_true(memcmp(&a->addr, &b->addr, 16) < 0 ||
				    (memcmp(&a->addr, &b->addr, 16) == 0 && a->bits < b->bits));
		assert_true(!b->up || b->up < b);
		if (b->n_patterns == 4)
			shared = b;
	}
	assert_non_null(shared);
	for (uint32_t i = 1; i < 4; i++)
		assert_true(policy->patterns[shared->patterns[i]].rule >=
			    policy->patterns[shared->patterns[i - 1]].rule);
	assert_int_equal(policy->patterns[shared->patterns[0]].rule, 0);
	assert_int_equal(policy->patterns[shared->patterns[1]].first_port, 22);
	assert_int_equal(policy->patterns[shared->patterns[3]].first_port, 25);
}

static void test_metadata_ranges_are_always_there(void **state)
{
	static const char *const inside[] = { "169.254.169.254", "169.254.0.0",	  "100.100.100.200",
					      "fe80::1",	 "fd00:ec2::254", "168.63.129.16",
					      "192.0.0.192",	 "fd20:ce::254",  "fd00:42::42" };
	static const char *const outside[] = { "169.253.255.255", "169.255.0.0", "100.100.100.201",
					       "fec0::",	  "fd00:ec3::",	 "10.0.0.1" };
	_policy_ struct policy *policy =
		policy_of("rules:\n- allow: ['0.0.0.0/0:22', '[::/0]:22', '169.254.169.254:80', '[fd00::/8]:22']\n");

	(void)state;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		struct np_addr addr = addr_of(inside[i]);

		assert_true(net_table_find(policy->nets, &addr)->metadata);
		assert_true(net_table_find(policy->full_nets, &addr)->metadata);
	}
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		struct np_addr addr = addr_of(outside[i]);

		assert_false(net_table_find(policy->nets, &addr)->metadata);
		assert_null(net_table_find(policy->full_nets, &addr));
	}
}

/* Against a loop over all of them. */
static void test_random_ranges(void **state)
{
	struct pattern patterns[200];
	struct rule rules[200];
	struct policy policy = { .patterns = patterns, .rules = rules, .n_rules = 200, .n_patterns = 200 };
	struct net_table *table;
	_arena_ struct arena *arena = NULL;

	(void)state;
	srand(3);
	assert_int_equal(arena_new(1u << 20, &arena), 0);
	for (uint32_t i = 0; i < 200; i++) {
		struct pattern *p = &patterns[i];

		*p = (struct pattern){ .kind = PATTERN_NET, .rule = i, .v4 = rand() % 2 };
		p->bits = (uint8_t)(p->v4 ? 96 + rand() % 33 : rand() % 129);
		if (p->v4)
			p->addr.b[10] = p->addr.b[11] = 0xff;
		for (uint8_t bit = p->v4 ? 96 : 0; bit < p->bits; bit++)
			if (rand() % 8 == 0)
				p->addr.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		rules[i] = (struct rule){ .number = i, .pattern = i, .n_patterns = 1 };
	}
	assert_int_equal(net_table_make(arena, &policy, rules, 200, &table), 0);
	for (int round = 0; round < 2000; round++) {
		const struct pattern *near = &patterns[rand() % 200];
		struct np_addr addr = near->addr;
		bool v4, expected[200] = { false }, found[200] = { false };

		for (int bit = near->bits; bit < 128; bit++)
			if (rand() % 8 == 0)
				addr.b[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		v4 = np_addr_is_v4(&addr);
		for (uint32_t i = 0; i < 200; i++) {
			expected[i] = patterns[i].v4 == v4;
			for (int bit = 0; bit < patterns[i].bits; bit++)
				if (((addr.b[bit / 8] ^ patterns[i].addr.b[bit / 8]) << bit % 8) & 0x80)
					expected[i] = false;
		}
		for (const struct net_node *node = net_table_find(table, &addr); node; node = node->up)
			for (uint32_t i = 0; i < node->n_patterns; i++)
				found[node->patterns[i]] = true;
		assert_memory_equal(found, expected, sizeof(found));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_in_ranges),
		cmocka_unit_test(test_order_of_nodes_and_patterns),
		cmocka_unit_test(test_metadata_ranges_are_always_there),
		cmocka_unit_test(test_random_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
