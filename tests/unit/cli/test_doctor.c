/* SPDX-License-Identifier: MIT */
#include "cli/doctor.c"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "../api_client/capture.h"

#define ALL "{\"features\":[{\"feature\":\"a\",\"present\":true,\"means\":\"good\"}]}"
#define SOME                                                                      \
	"{\"features\":[{\"feature\":\"a\",\"present\":true,\"means\":\"good\"}," \
	"{\"feature\":\"long\",\"present\":false,\"means\":\"x stays\\u0007 open\"}]}"

static int show(bool json, const char *text, struct capture *out)
{
	struct cli cli = { .json = json };
	struct capture err;
	int code;

	capture_begin(out, stdout);
	capture_begin(&err, stderr);
	code = features_show(&cli, text);
	capture_end(&err);
	capture_end(out);
	return code;
}

/* What it says of engines and containers is behind that, where this host has some. */
static void features_equal(const char *text, const char *expected)
{
	assert_true(strlen(text) >= strlen(expected));
	assert_memory_equal(text, expected, strlen(expected));
	text += strlen(expected);
	assert_true(!*text || !strncmp(text, "\nENGINE ", 8) || !strncmp(text, "\nCONTAINER ", 11));
}

static void codes_and_tables(void **state)
{
	struct capture out;

	(void)state;
	assert_int_equal(show(false, ALL, &out), CLI_OK);
	features_equal(out.text, "FEATURE  HERE  WHAT IT MEANS\na        yes   good\n");
	assert_int_equal(show(false, SOME, &out), CLI_MISSING);
	features_equal(out.text, "FEATURE  HERE  WHAT IT MEANS\na        yes   good\n"
				 "long     no    x stays? open\n\n1 missing.\n");
	assert_int_equal(show(true, SOME, &out), CLI_MISSING);
	assert_string_equal(out.text, SOME "\n");
	assert_int_equal(show(false, "{}", &out), CLI_REFUSED);
	assert_int_equal(show(false, "", &out), CLI_REFUSED);
}

/* Without a daemon a netpawld in PATH is asked: here one of our own making. */
static void probe_instead_of_daemon(void **state)
{
	char dir[] = "/tmp/np-doctor-XXXXXX", path[64], *argv[] = { (char *)"doctor", NULL };
	struct cli cli = { .socket = "/tmp/np-no-such-dir/s" };
	struct capture out, err;
	FILE *f;
	int code;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/netpawld", dir);
	setenv("PATH", dir, 1);
	capture_begin(&err, stderr);
	code = command_doctor(&cli, 1, argv);
	capture_end(&err);
	assert_int_equal(code, CLI_NO_DAEMON);
	f = fopen(path, "w");
	fputs("#!/bin/sh\n[ \"$1\" = --probe ] && echo '" SOME "'\n", f);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	capture_begin(&out, stdout);
	code = command_doctor(&cli, 1, argv);
	capture_end(&out);
	unlink(path);
	rmdir(dir);
	assert_int_equal(code, CLI_MISSING);
	assert_non_null(strstr(out.text, "1 missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_and_tables),
		cmocka_unit_test(probe_instead_of_daemon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
