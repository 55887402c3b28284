/* SPDX-License-Identifier: MIT */
/* File systems that are windows to the kernel or to other namespaces. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool type_is_window(const char *type)
{
	static const char *const types[] = {
		"cgroup",   "cgroup2", "bpf",	   "tracefs", "debugfs", "securityfs",	"configfs",
		"efivarfs", "pstore",  "resctrl",  "nsfs",    "pidfs",	 "binfmt_misc", "fusectl",
		"proc",	    "sysfs",   "devtmpfs", "devpts",  "mqueue",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}
