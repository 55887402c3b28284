/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/exposition.c"

static struct buf out = { .max = 1 << 16 };

static int empty(void **state)
{
	(void)state;
	buf_clear(&out);
	return 0;
}

static void test_a_family_and_its_numbers(void **state)
{
	(void)state;
	metric_family(&out, "n_total", METRIC_COUNTER, "What it is.");
	metric_put(&out, "n_total", 3, NULL);
	metric_put(&out, "n_total", UINT64_MAX, "a", "x", "b", "y", NULL);
	metric_put_seconds(&out, "t_seconds_total", 1500000001, "p", "q", NULL);
	assert_string_equal(out.data, "# HELP n_total What it is.\n# TYPE n_total counter\nn_total 3\n"
				      "n_total{a=\"x\",b=\"y\"} 18446744073709551615\n"
				      "t_seconds_total{p=\"q\"} 1.500000001\n");
}

static void test_a_value_cannot_end_its_label(void **state)
{
	(void)state;
	metric_put(&out, "n", 1, "a", "x\"} 9\nn{a=\"\\", NULL);
	assert_string_equal(out.data, "n{a=\"x\\\"} 9\\nn{a=\\\"\\\\\"} 1\n");
}

static void test_a_histogram_adds_up(void **state)
{
	static histogram_bounds bounds = { 100, 2500000, 60000000 };
	struct histogram h = { 0 };

	(void)state;
	histogram_note(&h, bounds, 0);
	histogram_note(&h, bounds, 100); /* no longer than its bound */
	histogram_note(&h, bounds, 101);
	histogram_note(&h, bounds, 70000000);
	metric_put_histogram(&out, "h", &h, bounds, "d", "x");
	assert_string_equal(out.data, "h_bucket{d=\"x\",le=\"0.0001\"} 2\nh_bucket{d=\"x\",le=\"2.5\"} 3\n"
				      "h_bucket{d=\"x\",le=\"60.0\"} 3\nh_bucket{d=\"x\",le=\"+Inf\"} 4\n"
				      "h_sum{d=\"x\"} 70.000201000\nh_count{d=\"x\"} 4\n");
}

static void test_a_histogram_without_a_label_and_with_all_bounds(void **state)
{
	static histogram_bounds bounds = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	struct histogram h = { 0 };

	(void)state;
	histogram_note(&h, bounds, 12);
	histogram_note(&h, bounds, 13);
	metric_put_histogram(&out, "h", &h, bounds, NULL, NULL);
	assert_non_null(strstr(out.data,
			       "h_bucket{le=\"0.000012\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 0.000025000\nh_count 2\n"));
}

static void test_openmetrics(void **state)
{
	struct buf open = BUF_INIT(1 << 16);

	(void)state;
	metric_family(&out, "n_bytes_total", METRIC_COUNTER, "A _total of n_bytes_total.");
	metric_put(&out, "n_bytes_total", 3, "a", "# TYPE x_total", NULL);
	metric_family(&out, "t_seconds", METRIC_HISTOGRAM, "h");
	metric_family(&out, "seconds", METRIC_GAUGE, "g");
	exposition_to_open(out.data, out.len, &open);
	assert_string_equal(open.data,
			    "# HELP n_bytes A _total of n_bytes_total.\n# TYPE n_bytes counter\n# UNIT n_bytes bytes\n"
			    "n_bytes_total{a=\"# TYPE x_total\"} 3\n"
			    "# HELP t_seconds h\n# TYPE t_seconds histogram\n# UNIT t_seconds seconds\n"
			    "# HELP seconds g\n# TYPE seconds gauge\n# EOF\n");
	buf_free(&open);
}

static void test_who_wants_openmetrics(void **state)
{
	(void)state;
	assert_true(exposition_wants_open("application/openmetrics-text"));
	assert_true(exposition_wants_open("text/plain, Application/OpenMetrics-Text; version=1.0.0;q=0.5,*/*;q=0.1"));
	assert_true(exposition_wants_open("application/openmetrics-text,text/plain;q=0"));
	assert_false(exposition_wants_open("application/openmetrics-text;q=0.0,text/plain"));
	assert_false(exposition_wants_open("application/openmetrics-textual"));
	assert_false(exposition_wants_open("text/plain;version=0.0.4"));
	assert_false(exposition_wants_open("*/*"));
	assert_false(exposition_wants_open(""));
	assert_false(exposition_wants_open(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_family_and_its_numbers, empty),
		cmocka_unit_test_setup(test_a_value_cannot_end_its_label, empty),
		cmocka_unit_test_setup(test_openmetrics, empty),
		cmocka_unit_test(test_who_wants_openmetrics),
		cmocka_unit_test_setup(test_a_histogram_adds_up, empty),
		cmocka_unit_test_setup(test_a_histogram_without_a_label_and_with_all_bounds, empty),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_free(&out);
	return failed;
}
