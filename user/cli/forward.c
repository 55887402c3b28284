/* SPDX-License-Identifier: MIT */
/* netpawl forward USER/SESSION PORT [LOCAL] */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "wire/url.h"
#include "base/cleanup.h"
#include "api_client/api.h"
#include "cli/forward.h"
#include "cli/options.h"
#include "cli/output.h"
#include "reason.h"

#define SPEAK_MS 10000 /* between two words to the daemon; see NP_FORWARD_SILENT_S */

static const char forward_help[] =
	"Usage: netpawl forward USER/SESSION PORT [LOCAL] [OPTIONS]\n\n"
	"Listens on 127.0.0.1 and carries connections to PORT of a sandbox of the session, at the address (IPv4\n"
	"or IPv6) at which it listens, to look at a server that an agent runs. Nobody else on this host reaches\n"
	"it, but whoever can reach LOCAL here. It works until interrupted, in every mode but NONE: when the\n"
	"session is raised to that, the kernel cuts it off, and netpawl says so and ends. What\n"
	"netpawl had in its hands before (at most 64 kB of a connection) may still be read.\n\n"
	"LOCAL is PORT where that is free; a sandbox's listener takes it from this host as well, so mostly it is\n"
	"another one, and printed.\n\n"
	"Options:\n"
	"  --sandbox ID     of several sandboxes that listen there\n" OPTIONS_COMMON "\nExample:\n"
	"  netpawl forward alice/demo 8000 18000\n\n"
	"Exit codes: 0 interrupted; 1 refused or failed (nobody listens, the mode is NONE); 2 wrong usage; 3 no\n"
	"daemon, or it went away.\n";

struct forward {
	struct cli *cli;
	const char *session, *sandbox;
	uint16_t port;
	json_int_t id;
	int code; /* of a call that failed */
	struct carrier *carrier;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signo)
{
	(void)signo;
	interrupted = 1;
}

/* "192.0.2.1" or "::1". */
static bool address_read(const char *text, struct sockaddr_storage *ret)
{
	*ret = (struct sockaddr_storage){ .ss_family = AF_INET };
	if (text && inet_pton(AF_INET, text, &((struct sockaddr_in *)ret)->sin_addr) == 1)
		return true;
	*ret = (struct sockaddr_storage){ .ss_family = AF_INET6 };
	return text && inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)ret)->sin6_addr) == 1;
}

/* Reports a socket to the daemon (key: "cookie", "gone"), or only that we are there (NULL). ret: the address at which the
 * sandbox listens; may be NULL. */
static int forward_speak(struct forward *f, const char *key, uint64_t cookie, struct sockaddr_storage *ret)
{
	_api_answer_ struct api_answer answer = { 0 };
	int code;
	json_t *body = key ? json_pack("{s:I}", key, (json_int_t)cookie) : json_object();
	char path[64];

	snprintf(path, sizeof(path), "/v1/forwards/%lld", (long long)f->id);
	code = api_call(f->cli->socket, f->session, "POST", path, body, &answer);
	if (code == CLI_OK && ret && !address_read(member_text(answer.json, "address"), ret)) {
		error_print(f->session, NP_R_FAILED, "the daemon gave no address to call");
		code = CLI_REFUSED;
	}
	return code;
}

static int on_call(void *data, uint64_t cookie, struct sockaddr_storage *ret)
{
	struct forward *f = data;

	f->code = forward_speak(f, "cookie", cookie, ret);
	return f->code == CLI_OK ? 0 : -ECONNREFUSED;
}

static void on_end(void *data, uint64_t cookie)
{
	forward_speak(data, "gone", cookie, NULL);
}

/* Connections into a sandbox with a network of its own are made there; what listens is open already, and stays here. */
static int forward_enter(struct forward *f, const json_t *netns)
{
	const char *path = member_text(netns, "path"), *inode = member_text(netns, "inode");
	_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	struct stat st;

	if (!netns)
		return CLI_OK;
	if (fd >= 0 && (!inode || fstat(fd, &st) < 0 || st.st_ino != strtoull(inode, NULL, 10)))
		errno = ENOENT; /* the number is another's by now */
	else if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0)
		return CLI_OK;
	error_print(f->session, NP_R_FAILED,
		    errno == EACCES || errno == EPERM ? "the sandbox has a network of its own, which only root enters"
						      : "the sandbox's network is gone");
	return CLI_REFUSED;
}

static int forward_open(struct forward *f)
{
	_api_answer_ struct api_answer answer = { 0 };
	json_t *body;
	const char *sandbox;
	int code = api_body(
		f->session,
		json_pack("{s:s,s:I,s:s*}", "session", f->session, "port", (json_int_t)f->port, "sandbox", f->sandbox),
		&body);

	if (code == CLI_OK)
		code = api_call(f->cli->socket, f->session, "POST", "/v1/forwards", body, &answer);
	if (code != CLI_OK)
		return code;
	f->id = json_integer_value(json_object_get(answer.json, "forward"));
	code = forward_enter(f, json_object_get(answer.json, "netns"));
	if (code != CLI_OK)
		return code;
	sandbox = member_text(answer.json, "sandbox");
	if (f->cli->json) {
		json_object_set_new(answer.json, "local", json_integer(carrier_port(f->carrier)));
		json_dumpf(answer.json, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		output_clean_line(stdout, "127.0.0.1:%u -> %s port %u (%s)", carrier_port(f->carrier), f->session,
				  f->port, sandbox ? sandbox : "?");
	}
	fflush(stdout);
	return CLI_OK;
}

static void forward_close(struct forward *f)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/v1/forwards/%lld", (long long)f->id);
	client_call(f->cli->socket, "DELETE", path, NULL, &answer); /* it ends by itself otherwise */
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int forward_serve(struct forward *f)
{
	uint64_t spoke_ms = now_ms();
	int code = CLI_OK;

	while (!interrupted && code == CLI_OK) {
		if (carrier_turn(f->carrier, 1000) < 0 && errno != EINTR)
			return CLI_REFUSED;
		if (now_ms() - spoke_ms < SPEAK_MS && f->code == CLI_OK)
			continue;
		/* A connection that was refused: is it the listener that is gone, or all of it? */
		code = forward_speak(f, NULL, 0, NULL);
		f->code = CLI_OK;
		spoke_ms = now_ms();
	}
	return code;
}

int command_forward(struct cli *cli, int argc, char **argv)
{
	struct forward f = { .cli = cli };
	const struct option_spec specs[] = { { "sandbox", .value = &f.sandbox } };
	const struct options options = { argv[0], forward_help, specs, ARRAY_SIZE(specs),
					 .operands = { 2, 3, "a session, a port, and perhaps a local port", true } };
	struct sigaction action = { .sa_handler = on_interrupt };
	uint16_t local = 0;
	int next, r, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	f.session = argv[next];
	if (port_parse(argv[next + 1], strlen(argv[next + 1]), &f.port) < 0 ||
	    (argc - next == 3 && port_parse(argv[next + 2], strlen(argv[next + 2]), &local) < 0))
		return usage_error(argv[0], "a port is a number from 1 to 65535");
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	r = carrier_new(
		&(struct carrier_config){
			.local = local, .port = f.port, .on_call = on_call, .on_end = on_end, .data = &f },
		&f.carrier);
	if (r < 0) {
		output_clean_line(stderr, "netpawl: forward: cannot listen on 127.0.0.1:%u: %s", local, strerror(-r));
		return CLI_REFUSED;
	}
	code = forward_open(&f);
	if (code == CLI_OK)
		code = forward_serve(&f);
	if (f.id)
		forward_close(&f);
	carrier_free(f.carrier);
	return code;
}
