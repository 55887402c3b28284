/* SPDX-License-Identifier: MIT */
/* netpawld's command line. */
#pragma once

#include <stdbool.h>

#include "events/retention.h"

enum task { TASK_RUN, TASK_UNINSTALL, TASK_PROBE };

struct options {
	enum task task;
	const char *policy; /* NULL: the embedded defaults */
	const char *run_dir;
	const char *state_dir;
	const char *data_dir; /* workspaces; NULL: "data" in the state directory */
	const char *pin_dir;
	const char *cgroup;
	const char *roots;     /* certificates that origins are trusted by */
	const char *resolvers; /* NULL: those of /etc/resolv.conf */
	int inspectors;	       /* processes; -1: as many as CPUs */
	unsigned inspector_uid, decider_uid, exporter_uid;
	struct keep_limits events;
	bool force;
	bool verbose;
};

/* 0 to go on; otherwise the exit code plus one, everything having been said. */
int options_parse(int argc, char **argv, struct options *ret);
