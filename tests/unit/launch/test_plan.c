/* SPDX-License-Identifier: MIT */
#include "launch/plan.c"
#include "launch/environment.c"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct host_path system_dirs[] = {
	{ "/usr", HOST_DIRECTORY, NULL },
	{ "/bin", HOST_LINK, "usr/bin" },
	{ "/etc", HOST_DIRECTORY, NULL },
};
static struct host_path windows[] = {
	{ "/usr/x/cgroup", HOST_DIRECTORY, NULL },
	{ "/srv/state", HOST_DIRECTORY, NULL },
	{ "/srv/state/deep", HOST_DIRECTORY, NULL },
	{ "/srv/ns", HOST_FILE, NULL },
};
static struct host_path bundles[] = { { "/etc/ssl/certs/ca-certificates.crt", HOST_FILE, NULL } };
static struct host host = {
	.system = system_dirs,
	.n_system = 3,
	.windows = windows,
	.n_windows = 4,
	.bundles = bundles,
	.n_bundles = 1,
};
static char *command[] = { (char *)"true", NULL };
static char *outer[] = { (char *)"PATH=/bin",  (char *)"NETPAWL_SOCKET=/s",
			 (char *)"TMPDIR=/x",  (char *)"JAVA_TOOL_OPTIONS=-Xmx1g",
			 (char *)"HOME=/root", NULL };
static char *named[] = { (char *)"TMPDIR=/y", (char *)"HOME=/z", (char *)"WORD=a=b", (char *)"SSL_CERT_FILE=/own",
			 NULL };
static struct identity somebody = { .uid = 2000000001, .gid = 2000000001, .ngroups = 1, .groups = { 2000000001 } };
static struct identity root_user = { .name = "root", .home = "/root", .ngroups = 1, .root = 2000000001 };
static const struct permit permits[] = { { "/srv/data", true }, { "/srv", false } };

static struct plan plan;
static char problem[PLAN_PROBLEM_SIZE];

static struct plan_request request_new(void)
{
	return (struct plan_request){
		.session = "alice/demo",
		.argv = command,
		.environ = outer,
		.cwd = "/home/alice",
		.workspace = "/data/alice/demo",
		.workspace_device = 1,
		.workspace_inode = 2,
		.identity = &somebody,
		.permits = permits,
		.n_permits = 2,
	};
}

static int make(const struct plan_request *request)
{
	plan_free(&plan);
	return plan_make(request, &host, &plan, problem);
}

static const struct step *step_at(const char *dest)
{
	const struct step *found = NULL; /* the last one is what is seen */

	for (size_t i = 0; i < plan.n_steps; i++)
		if (!strcmp(plan.steps[i].dest, dest) && plan.steps[i].kind != STEP_REMOUNT_RO)
			found = &plan.steps[i];
	return found;
}

static const char *variable(const char *name)
{
	for (char **e = plan.environ; *e; e++)
		if (name_is(*e, name))
			return *e + strlen(name) + 1;
	return NULL;
}

static void the_usual(void **state)
{
	struct plan_request request = request_new();

	(void)state;
	assert_int_equal(make(&request), 0);
	assert_int_equal(step_at("/usr")->kind, STEP_RO_BIND);
	assert_int_equal(step_at("/bin")->kind, STEP_SYMLINK);
	assert_string_equal(step_at("/bin")->source, "usr/bin");
	assert_int_equal(step_at("/tmp")->kind, STEP_TMPFS);
	assert_int_equal(step_at("/run")->kind, STEP_TMPFS);
	assert_int_equal(step_at("/proc")->kind, STEP_PROC);
	assert_int_equal(step_at("/dev")->kind, STEP_TMPFS);
	assert_int_equal(step_at("/dev/null")->kind, STEP_DEVICE);
	assert_int_equal(step_at("/workspace")->kind, STEP_BIND);
	assert_int_equal(step_at("/workspace")->inode, 2);
	assert_int_equal(step_at("/usr/x/cgroup")->kind, STEP_TMPFS);
	assert_null(step_at("/home"));
	assert_int_equal(step_at("/run")->mode, 0755);
	assert_int_equal(plan.steps[plan.n_steps - 1].kind, STEP_REMOUNT_RO);
	assert_string_equal(plan.directory, "/workspace");
	/* Nothing that is written is the host's, but the workspace. */
	for (size_t i = 0; i < plan.n_steps; i++)
		if (plan.steps[i].kind == STEP_BIND)
			assert_string_equal(plan.steps[i].dest, "/workspace");
}

static void a_name_for_who_has_none(void **state)
{
	struct plan_request request = request_new();

	(void)state;
	host.passwd = "root:x:0:0:root:/root:/bin/sh\n";
	host.group = "root:x:0:\n";
	assert_int_equal(make(&request), 0);
	assert_string_equal(step_at("/etc/passwd")->file->data,
			    "root:x:0:0:root:/root:/bin/sh\nsandbox:x:2000000001:2000000001::/workspace:/bin/sh\n");
	assert_string_equal(step_at("/etc/group")->file->data, "root:x:0:\nsandbox:x:2000000001:\n");
	request.identity = &root_user;
	assert_int_equal(make(&request), 0);
	assert_null(step_at("/etc/passwd"));
	host.passwd = host.group = NULL;
}

static void as_root(void **state)
{
	struct plan_request request = request_new();

	(void)state;
	request.identity = &root_user;
	request.workspace = NULL;
	assert_int_equal(make(&request), 0);
	assert_int_equal(step_at("/workspace")->kind, STEP_TMPFS);
	assert_int_equal(step_at("/run")->mode, 01777);
	assert_string_equal(variable("USER"), "root");
	/* Never as the host's root. */
	root_user.root = 0;
	assert_int_equal(make(&request), -EINVAL);
	root_user.root = 2000000001;
}

static void the_environment(void **state)
{
	struct plan_request request = request_new();

	(void)state;
	assert_int_equal(make(&request), 0);
	assert_null(variable("NETPAWL_SOCKET"));
	assert_null(variable("TMPDIR"));
	assert_null(variable("SSL_CERT_FILE"));
	assert_string_equal(variable("PATH"), "/bin");
	assert_string_equal(variable("HOME"), "/workspace");
	assert_string_equal(variable("NETPAWL_SESSION"), "alice/demo");
	/* What was not named is the caller's. */
	assert_null(variable("JAVA_TOOL_OPTIONS"));
	request.env_all = true;
	assert_int_equal(make(&request), 0);
	assert_string_equal(variable("JAVA_TOOL_OPTIONS"), "-Xmx1g");
	assert_null(variable("TMPDIR"));
	assert_null(variable("NETPAWL_SOCKET"));
	request.env_all = false;
	request.env = named;
	assert_int_equal(make(&request), 0);
	assert_string_equal(variable("TMPDIR"), "/y");
	assert_string_equal(variable("HOME"), "/z");
	assert_string_equal(variable("WORD"), "a=b");
	request.env = NULL;
	/* With no isolation the paths are the host's. */
	request.isolation = ISOLATION_NONE;
	request.identity = &root_user;
	assert_int_equal(make(&request), 0);
	assert_int_equal(plan.n_steps, 0);
	assert_string_equal(variable("HOME"), "/root");
	assert_null(variable("TMPDIR"));
	request.env_all = true;
	assert_int_equal(make(&request), 0);
	assert_string_equal(variable("TMPDIR"), "/x");
	assert_null(variable("NETPAWL_SOCKET"));
	assert_null(plan.directory);
}

static void trust_and_its_variables(void **state)
{
	struct plan_request request = request_new();
	struct trust trust = { 0 };

	(void)state;
	request.trust = &trust;
	request.env_all = true;
	request.env = named;
	assert_int_equal(make(&request), 0);
	assert_ptr_equal(step_at("/etc/ssl/certs/ca-certificates.crt")->file, &trust.bundle);
	assert_ptr_equal(step_at("/run/netpawl/bundle.jks")->file, &trust.store);
	assert_ptr_equal(step_at("/run/netpawl/ca.pem")->file, &trust.ca);
	assert_string_equal(step_at("/run/netpawl/authority.pem")->source,
			    "ca.pem"); /* a link, for who knows that name */
	assert_string_equal(variable("CURL_CA_BUNDLE"), "/run/netpawl/bundle.pem");
	assert_string_equal(variable("SSL_CERT_FILE"), "/own");
	assert_string_equal(variable("NODE_EXTRA_CA_CERTS"), "/run/netpawl/authority.pem");
	assert_non_null(strstr(variable("JAVA_TOOL_OPTIONS"), "-Xmx1g -Djavax.net.ssl.trustStore=/run/netpawl/"));
}

static void directories(void **state)
{
	const struct bind bind = { "/srv/work", "/srv/work", false, 0, 0 },
			  elsewhere = { "/srv/work", "/w", false, 0, 0 };
	struct plan_request request = request_new();

	(void)state;
	request.cwd = "/usr/share";
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.directory, "/usr/share");
	request.cwd = "/usrlocal";
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.directory, "/workspace");
	request.cwd = "/srv/work/a";
	request.n_binds = 1;
	request.binds = &elsewhere; /* not the same place inside */
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.directory, "/workspace");
	request.binds = &bind;
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.directory, "/srv/work/a");
	request.directory = "/tmp";
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.directory, "/tmp");
}

static int bind_try(const char *source, const char *dest, bool readonly)
{
	struct plan_request request = request_new();
	struct bind bind = { source, dest, readonly, 5, 6 };

	request.binds = &bind;
	request.n_binds = 1;
	request.permits = permits;
	request.n_permits = 1; /* /srv/data:ro */
	return make(&request);
}

static void binds_need_a_permit(void **state)
{
	static const char *const taken[] = { "/proc/x",	     "/sys",  "/dev/shm", "/workspace", "/workspace/x",
					     "/run/netpawl", "/run",  "/",	  "x",		"/a/../b",
					     "/a/.",	     "/a//b", "/a/" };

	(void)state;
	assert_int_equal(bind_try("/srv/data/a", "/data", true), 0);
	assert_int_equal(step_at("/data")->kind, STEP_RO_BIND);
	assert_int_equal(step_at("/data")->inode, 6);
	assert_int_equal(bind_try("/srv/data", "/data", true), 0);
	assert_int_equal(bind_try("/srv/data", "/data", false), -EACCES);
	assert_non_null(strstr(problem, "does not permit /srv/data for writing"));
	assert_int_equal(bind_try("/srv/database", "/data", true), -EACCES);
	assert_int_equal(bind_try("/srv", "/data", true), -EACCES);
	assert_int_equal(bind_try("/", "/data", true), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		assert_int_equal(bind_try("/srv/data", taken[i], true), -EINVAL);
}

static void binds_hide_the_windows(void **state)
{
	struct plan_request request = request_new();
	struct bind binds[] = { { "/srv", "/s", false, 0, 0 }, { "/srv/x", "/s/inside", false, 0, 0 } };

	(void)state;
	request.binds = binds;
	request.n_binds = 1;
	assert_int_equal(make(&request), 0);
	assert_int_equal(step_at("/s/state")->kind, STEP_TMPFS);
	assert_string_equal(step_at("/s/ns")->source, "/dev/null");
	assert_null(step_at("/s/state/deep")); /* under the cover */
	/* A mount point in what a sandbox writes could be a link. */
	request.n_binds = 2;
	assert_int_equal(make(&request), -EINVAL);
	/* And what is a window itself is not shown at all. */
	binds[0].source = "/srv/state/deep/er";
	request.n_binds = 1;
	assert_int_equal(make(&request), -EACCES);
	request.isolation = ISOLATION_NONE;
	assert_int_equal(make(&request), -EINVAL);
}

static int teardown(void **state)
{
	(void)state;
	plan_free(&plan);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_usual),
		cmocka_unit_test(a_name_for_who_has_none),
		cmocka_unit_test(as_root),
		cmocka_unit_test(the_environment),
		cmocka_unit_test(trust_and_its_variables),
		cmocka_unit_test(directories),
		cmocka_unit_test(binds_need_a_permit),
		cmocka_unit_test(binds_hide_the_windows),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
