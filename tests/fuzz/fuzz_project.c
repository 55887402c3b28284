/* SPDX-License-Identifier: MIT */
/* A project's files, as a stranger wrote them: hosts come out, plain and bounded. The first byte says which file. */
#include "cli/project_files.c"

#include <stdint.h>
#include <stdlib.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct project project;

	if (!size || size > NP_PROJECT_FILE)
		return 0;
	project.n = project.left_out = 0;
	project_read(&project_files[data[0] % ARRAY_SIZE(project_files)], (const char *)data + 1, size - 1, &project);
	check(project.n <= NP_PROJECT_HOSTS);
	for (size_t i = 0; i < project.n; i++) {
		const struct project_found *found = &project.found[i];

		check(found->port && found->where[0]);
		for (const char *c = found->where; *c; c++)
			check(*c >= ' ' && *c < 0x7f && !strchr("\"\\#@", *c));
		for (const char *c = found->host.is_addr ? "" : found->host.name; *c; c++)
			check(islower((unsigned char)*c) || isdigit((unsigned char)*c) || strchr("-_.", *c));
	}
	return 0;
}
