/* SPDX-License-Identifier: MIT */
/*
 * What a container runtime tells a CNI plugin (specification 1.0.0): variables of the environment, and the network's configuration as
 * JSON on standard input. Names, annotations and arguments in it came from whoever started the pod. Pure: bytes in, facts out.
 *
 * Ours in the configuration is one object, in which an unknown key is an error; the rest belongs to others:
 *
 *   "netpawl": { "session": "{namespace}/{pod}", "level": "CONFIDENTIAL", "socket": PATH, "cgroup": "/nerdctl/{id}" }
 */
#pragma once

#include <stddef.h>

#include "containers/annotations.h"
#include "vocab/limits.h"

#define CNI_VERSION_NEWEST "1.0.0"
#define CNI_ANNOTATIONS	   "io.kubernetes.cri.pod-annotations" /* containerd and CRI-O; asked for by "capabilities" */

enum cni_command { CNI_ADD, CNI_CHECK, CNI_DEL, CNI_VERSION };

/* Of an error object. Up to 99 they are the specification's. */
enum cni_code {
	CNI_BAD_VERSION = 1,
	CNI_BAD_ENVIRONMENT = 4,
	CNI_BAD_JSON = 6,
	CNI_BAD_CONFIG = 7,
	CNI_TRY_LATER = 11,
	CNI_NOT_CONFINED = 100,
};

struct cni_problem {
	enum cni_code code;
	const char *text; /* a sentence of which every part is ours */
};

struct cni_environment {
	const char *command, *container, *netns, *args; /* CNI_...; NULL: not set */
};

struct cni_request {
	enum cni_command command;
	char version[8];
	char container[NP_CONTAINER_ID_MAX + 1];
	char pod_uid[NP_POD_UID_MAX + 1]; /* empty: nobody told, this is no Kubernetes */
	struct annotations wish;	  /* what the pod asks for; else the configuration's session, if there is one */
	bool has_least;			  /* of the configuration: no session is below it */
	enum level least;
	char socket[NP_CNI_TEXT_MAX + 1]; /* empty: the usual one */
	char cgroup[NP_CNI_TEXT_MAX + 1]; /* from the root of the cgroups; empty: the pod's */
	json_t *result;			  /* of the plugin before us; NULL unless the command is ADD */
};
void cni_request_free(struct cni_request *request);

/* The versions that results are passed on in: in these they look alike. Ends with NULL. */
extern const char *const cni_versions[];

/* 0, to be freed; or -EINVAL with the problem. */
int cni_request_read(const struct cni_environment *env, const char *data, size_t len, struct cni_request *ret,
		     struct cni_problem *ret_problem);
