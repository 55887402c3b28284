/* SPDX-License-Identifier: MIT */
/* netpawl console: becomes netpawl-console, which is a program of its own, for it links a web server. */
#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "cli/options.h"
#include "reason.h"

static const char console_help[] =
	"Usage: netpawl console [OPTIONS]\n\n"
	"Shows sessions, live traffic, questions and the policy in a browser. It prints a link that is good once, for\n"
	"ten minutes; Enter prints another one, for another browser. It listens on loopback and speaks to the daemon\n"
	"as whoever has started it.\n\n"
	"Options:\n"
	"  --listen WHERE   ADDRESS:PORT of loopback (127.0.0.1:0, a port that is free), or unix:PATH for a\n"
	"                   reverse proxy\n"
	"  --url URL        what browsers call it, where that differs: https://console.example\n"
	"  --open           open the link in this user's browser\n"
	"  --read-only      show, and change nothing\n"
	"  --approver       questions and runs that wait, by approve.sock, and nothing else\n" OPTIONS_NO_JSON
	"\nExample:\n"
	"  netpawl console --open\n\n"
	"Exit codes: 0 it was ended; 1 it could not start; 2 wrong usage; 3 no daemon.\n";

int command_console(struct cli *cli, int argc, char **argv)
{
	const char *listen = NULL, *url = NULL;
	bool open = false, read_only = false, approver = false;
	const struct option_spec specs[] = { { "listen", .value = &listen },
					     { "url", .value = &url },
					     { "open", .flag = &open },
					     { "read-only", .flag = &read_only },
					     { "approver", .flag = &approver } };
	const struct options options = { argv[0],
					 console_help,
					 specs,
					 ARRAY_SIZE(specs),
					 .operands = { 0, 0, "no word but its options", false },
					 .no_json = "programs call the control API, see docs/api.md" };
	const char *words[16] = { "netpawl-console", "--socket" };
	char path[FS_PATH_SIZE];
	int next, r, n = 2, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	words[n++] = cli->socket;
	if (listen) {
		words[n++] = "--listen";
		words[n++] = listen;
	}
	if (url) {
		words[n++] = "--url";
		words[n++] = url;
	}
	if (open)
		words[n++] = "--open";
	if (read_only)
		words[n++] = "--read-only";
	if (approver)
		words[n++] = "--approver";
	r = fs_beside(path, "netpawl-console");
	if (r == 0) {
		execv(path, (char *const *)words);
		r = -errno;
	}
	error_print("netpawl-console", NP_R_FAILED, strerror(-r));
	return CLI_REFUSED;
}
