/* SPDX-License-Identifier: MIT */
/*
 * netpawl-run SOCKET RUN: runs what is on record, as it is on record, for netpawld (daemon/launches.c). It takes no option:
 * the command, the session and how it is run were approved, and come from the daemon.
 */
#include <fcntl.h>
#include <string.h>

#include "api_client/message.h"
#include "base/fs.h"
#include "launch/run.h"
#include "vocab/words.h"

#define USAGE                                                                                     \
	"Usage: netpawl-run SOCKET RUN\n\n"                                                       \
	"Runs the command of a run on record (POST /v1/runs), by its number, in a new sandbox.\n" \
	"netpawld starts it for runs with \"launch\", and prints what it prints. People have\n"   \
	"netpawl run.\n\n"                                                                        \
	"Exit codes: those of netpawl run.\n"

int main(int argc, char **argv)
{
	static struct run run; /* too large for a stack */
	uint64_t number;
	int code;

	if (fs_stdio_fill() < 0)
		return CLI_REFUSED;
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		fputs(USAGE, stdout);
		return output_finish(CLI_OK);
	}
	if (argc != 3 || !count_parse(argv[2], INT64_MAX, &number)) {
		fputs(USAGE, stderr);
		return CLI_USAGE;
	}
	/* What netpawld has us hold is for nobody below us. */
	for (int fd = 3; fd < 5; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	run.socket = argv[1];
	run.launched = true;
	snprintf(run.id, sizeof(run.id), "%llu", (unsigned long long)number);
	code = run_perform(&run);
	if (run.has_ended)
		run_result_print(&run);
	run_free(&run);
	return code;
}
