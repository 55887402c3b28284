/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
#include <cmocka.h>

#include "cni/cni_request.c"

#define UID "0b5cfd4e-1f2a-4d1b-9a55-3e6f2a9c1b77"
#define ARGS                                                                                                     \
	"IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=agent-0;K8S_POD_INFRA_CONTAINER_ID=c0ffee;K8S_POD_" \
	"UID=" UID
#define CONFIG(more) \
	"{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"type\":\"netpawl-cni\",\"prevResult\":{\"ips\":[]}" more "}"
#define ASKS(text) ",\"runtimeConfig\":{\"" CNI_ANNOTATIONS "\":{" text "}}"

static const struct cni_environment add = { "ADD", "c0ffee", "/run/netns/x", ARGS };

static int read_as(const struct cni_environment *env, const char *text, struct cni_request *ret,
		   struct cni_problem *problem)
{
	*problem = (struct cni_problem){ 0 };
	return cni_request_read(env, text, strlen(text), ret, problem);
}

static void test_what_containerd_says(void **state)
{
	struct cni_problem problem;
	struct cni_request q;
	char *result;

	(void)state;
	assert_int_equal(
		read_as(&add, CONFIG(ASKS("\"netpawl.dev/session\":\"alice/demo\",\"netpawl.dev/level\":\"SECRET\"")),
			&q, &problem),
		0);
	assert_int_equal(q.command, CNI_ADD);
	assert_string_equal(q.container, "c0ffee");
	assert_string_equal(q.pod_uid, UID);
	assert_string_equal(q.wish.session.text, "alice/demo");
	assert_true(q.wish.has_level && q.wish.level == LEVEL_SECRET);
	result = json_dumps(q.result, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(result, "{\"cniVersion\":\"1.0.0\",\"ips\":[]}");
	free(result);
	cni_request_free(&q);
}

static void test_what_the_configuration_says(void **state)
{
	struct cni_problem problem;
	struct cni_request q;

	(void)state;
	assert_int_equal(read_as(&add,
				 CONFIG(",\"netpawl\":{\"session\":\"{namespace}/{pod}\",\"level\":\"CONFIDENTIAL\","
					"\"socket\":\"/run/np.sock\",\"cgroup\":\"/x/{id}/{uid}\"}"),
				 &q, &problem),
			 0);
	assert_string_equal(q.wish.session.text, "team/agent-0");
	assert_true(!q.wish.has_level && q.has_least && q.least == LEVEL_CONFIDENTIAL);
	assert_string_equal(q.socket, "/run/np.sock");
	assert_string_equal(q.cgroup, "/x/c0ffee/" UID);
	cni_request_free(&q);
	/* the pod's own comes first */
	assert_int_equal(read_as(&add,
				 CONFIG(",\"netpawl\":{\"session\":\"a/b\"}" ASKS("\"netpawl.dev/session\":\"c/d\"")),
				 &q, &problem),
			 0);
	assert_string_equal(q.wish.session.text, "c/d");
	cni_request_free(&q);
}

static void test_what_is_wrong(void **state)
{
	static const struct {
		struct cni_environment env;
		const char *text;
		enum cni_code code;
	} cases[] = {
		{ { "ADD", "c", "/n", NULL }, "", CNI_BAD_JSON },
		{ { "ADD", "c", "/n", NULL }, "[]", CNI_BAD_JSON },
		{ { "ADD", "c", "/n", NULL }, "{\"cniVersion\":\"1.0.0\",\"cniVersion\":\"1.0.0\"}", CNI_BAD_JSON },
		{ { "ADD", "c", "/n", NULL }, "{\"cniVersion\":\"0.2.0\"}", CNI_BAD_VERSION },
		{ { "ADD", "c", "/n", NULL }, "{\"cniVersion\":1}", CNI_BAD_VERSION },
		{ { "ADD", "c", "/n", NULL }, "{\"cniVersion\":\"1.0.0\"}", CNI_BAD_CONFIG }, /* nobody before us */
		{ { NULL, "c", "/n", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "add", "c", "/n", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", NULL, "/n", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "../c", "/n", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", ".", "/n", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "", NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", NULL, NULL }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "/n", "a;b=c" }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "/n", "K8S_POD_UID=../x" }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "/n", "K8S_POD_UID=x;K8S_POD_UID=y" }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "/n", "K8S_POD_NAME=" }, "{}", CNI_BAD_ENVIRONMENT },
		{ { "ADD", "c", "/n", NULL }, CONFIG(ASKS("\"netpawl.dev/session\":\"..\"")), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(ASKS("\"netpawl.dev/level\":\"SECRET\"")), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":[]"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"sesion\":\"a/b\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"level\":\"HIGH\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"session\":\"{pod}/x\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"session\":\"{id}/x\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"cgroup\":\"/a/../b\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"cgroup\":\"/..\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"cgroup\":\"/\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"cgroup\":\"\"}"), CNI_BAD_CONFIG },
		{ { "ADD", "c", "/n", NULL }, CONFIG(",\"netpawl\":{\"cgroup\":\"/{uid}\"}"), CNI_BAD_CONFIG },
	};
	struct cni_problem problem;
	struct cni_request q;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(read_as(&cases[i].env, cases[i].text, &q, &problem), -EINVAL);
		assert_int_equal(problem.code, cases[i].code);
		assert_non_null(problem.text);
	}
}

/* What keeps a pod from starting does not keep it from going. */
static void test_del_needs_little(void **state)
{
	const struct cni_environment del = { "DEL", "c0ffee", NULL, ARGS };
	struct cni_problem problem;
	struct cni_request q;

	(void)state;
	assert_int_equal(read_as(&del,
				 "{\"cniVersion\":\"0.4.0\",\"netpawl\":{\"session\":\"?\",\"level\":\"?\"}" ASKS(
					 "\"netpawl.dev/session\":1") "}",
				 &q, &problem),
			 0);
	assert_null(q.result);
	assert_string_equal(q.pod_uid, UID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_containerd_says),
		cmocka_unit_test(test_what_the_configuration_says),
		cmocka_unit_test(test_what_is_wrong),
		cmocka_unit_test(test_del_needs_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
