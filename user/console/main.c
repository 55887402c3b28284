/* SPDX-License-Identifier: MIT */
/*
 * netpawl-console: shows what netpawld knows in a browser, and passes answers on. It listens on loopback, runs as whoever started it
 * and has no privilege of its own: what it may ask of the daemon is what that user may.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_client/api.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "base/long_option.h"
#include "console/console.h"
#include "console/jail.h"
#include "console/listener.h"
#include "vocab/limits.h"

struct settings {
	const char *listen, *url, *socket;
	bool open, read_only, approver;
};

static int settings_read(int argc, char **argv, struct settings *ret)
{
	static const struct option options[] = {
		{ "listen", required_argument, NULL, 'l' }, { "url", required_argument, NULL, 'u' },
		{ "socket", required_argument, NULL, 's' }, { "open", no_argument, NULL, 'o' },
		{ "read-only", no_argument, NULL, 'r' },    { "approver", no_argument, NULL, 'a' },
		{ "help", no_argument, NULL, 'h' },	    { 0 },
	};
	const char *named = getenv("NETPAWL_SOCKET");
	int c, at = 0;

	*ret = (struct settings){ .listen = "127.0.0.1:0", .socket = named && *named ? named : CLI_SOCKET };
	while ((c = getopt_long(argc, argv, "", options, &at)) != -1) {
		if (c != '?' && !long_option_is_whole(argv, options[at].name, optarg))
			return usage_error("console", "there is no such option; did you mean --%s?", options[at].name);
		switch (c) {
		case 'l':
			ret->listen = optarg;
			break;
		case 'u':
			ret->url = optarg;
			break;
		case 's':
			ret->socket = optarg;
			break;
		case 'o':
			ret->open = true;
			break;
		case 'r':
			ret->read_only = true;
			break;
		case 'a':
			ret->approver = true;
			break;
		case 'h':
			puts("netpawl-console is started by netpawl console, whose --help tells more");
			exit(output_finish(CLI_OK));
		default:
			return usage_error("console", "there is no such option");
		}
	}
	if (optind != argc)
		return usage_error("console", "it takes no word but its options");
	if (!strncmp(ret->listen, "unix:", 5) && !ret->url)
		return usage_error("console", "with a unix socket it has to be told what browsers call it: --url");
	return CLI_OK;
}

/* approve.sock is beside the control socket. */
static int socket_choose(const struct settings *settings, char path[static FS_PATH_SIZE])
{
	const char *slash = strrchr(settings->socket, '/');

	if (!settings->approver || (slash && !strcmp(slash, "/approve.sock")))
		return fs_path(path, "%s", settings->socket);
	return fs_path(path, "%.*sapprove.sock", slash ? (int)(slash - settings->socket) + 1 : 0, settings->socket);
}

/* A sandbox reaches the ports that the policy names in host_loopback: the console is at none of them. Whoever may not see the policy does
 * not learn it, and has the token between them still. */
static bool port_is_for_sandboxes(const char *socket, uint16_t port)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	const json_t *number;
	_json_ json_t *policy = NULL;
	size_t i;

	if (client_call(socket, "GET", "/v1/policy", NULL, &answer) < 0 || answer.status != 200)
		return false;
	policy = json_loadb(answer.body.data, answer.body.len, 0, NULL);
	json_array_foreach(json_object_get(policy, "host_loopback"), i, number)
	{
		if (json_integer_value(number) == port)
			return true;
	}
	return false;
}

static int daemon_look(const struct console *console)
{
	cleanup(client_answer_free) struct client_answer answer = { 0 };
	/* Any call: whoever has no role learns it here, and not in the browser. */
	int r = client_call(console->socket, "GET", console->rights.approver ? "/v1/questions" : "/v1/health", NULL,
			    &answer);

	if (r < 0)
		return api_unreachable(console->socket, "console", r);
	return answer.status == 200 ? CLI_OK : api_refused("console", answer.status, answer.body.data);
}

static int console_prepare(struct console *console, const struct settings *settings, struct listener *listener)
{
	const struct passwd *user = getpwuid(geteuid());
	int r = listener_open(settings->listen, listener, &console->guard);

	if (r < 0) {
		complain_text("console",
			      r == -EINVAL ? "it listens at ADDRESS:PORT or unix:PATH"
			      : r == -EADDRNOTAVAIL
				      ? "it listens on loopback only: use ssh -L, or a unix socket and a reverse proxy"
				      : "it cannot listen there",
			      "failed", r == -EINVAL || r == -EADDRNOTAVAIL ? settings->listen : strerror(-r));
		return r == -EINVAL || r == -EADDRNOTAVAIL ? CLI_USAGE : CLI_REFUSED;
	}
	if (settings->url && guard_add(&console->guard, settings->url) < 0)
		return usage_error("console",
				   "--url is http:// or https:// with a host, perhaps a port, and nothing else");
	console->secure = settings->url && !strncmp(settings->url, "https:", 6);
	snprintf(console->cookie, sizeof(console->cookie), "netpawl_%u", listener->port);
	snprintf(console->user, sizeof(console->user), "%s", user ? user->pw_name : "?");
	if (listener->port && !console->rights.approver && port_is_for_sandboxes(console->socket, listener->port)) {
		complain_text("console", "the policy lets sandboxes reach this port (host_loopback)", "failed",
			      "choose another one");
		return CLI_REFUSED;
	}
	r = logins_new(&console->logins);
	return r < 0 ? CLI_REFUSED : CLI_OK;
}

struct link_maker {
	struct console *console;
	const struct settings *settings;
};

static int link_make(struct console *console, const struct settings *settings, char url[static GUARD_ORIGIN + 64])
{
	char token[SECRET_SIZE];

	if (logins_invite(console->logins, now_s(), token) < 0)
		return -EIO;
	/* Behind the #: it is in no request, in no log and in no Referer. */
	snprintf(url, GUARD_ORIGIN + 64, "%s/#token=%s", settings->url ? settings->url : console->guard.origins[0],
		 token);
	return 0;
}

/* A file that leads to the link, for the link itself would be in the list of processes. */
static void browser_open(const char *url, char path[static FS_PATH_SIZE])
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	_close_ int fd = fs_path(path, "%s/netpawl-console-XXXXXX.html", dir && *dir ? dir : "/tmp") < 0
				 ? -1
				 : mkstemps(path, 5);
	pid_t child;

	if (fd < 0 || dprintf(fd, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\">\n", url) < 0) {
		fputs("netpawl: console: no file could be made that leads a browser to the link\n", stderr);
		path[0] = '\0';
		return;
	}
	child = fork();
	if (child == 0) {
		execlp("xdg-open", "xdg-open", path, (char *)NULL);
		fputs("netpawl: console: there is no xdg-open: open the link yourself\n", stderr);
		_exit(1);
	}
}

/* Each line that comes is answered with another link. */
static void *links_print(void *data)
{
	struct link_maker *maker = data;
	char line[256], url[GUARD_ORIGIN + 64];

	while (fgets(line, sizeof(line), stdin)) {
		if (link_make(maker->console, maker->settings, url) < 0)
			continue;
		printf("%s\n", url);
		fflush(stdout);
	}
	return NULL;
}

/* Until somebody ends it. Returns the exit code. */
static int console_wait(struct console *console, const struct settings *settings, const sigset_t *ends)
{
	struct link_maker maker = { console, settings };
	pthread_t reader;
	int signal_number;

	if (pthread_create(&reader, NULL, links_print, &maker) != 0)
		return CLI_REFUSED;
	return sigwait(ends, &signal_number) == 0 ? CLI_OK : CLI_REFUSED;
}

static int console_start(struct console *console, const struct listener *listener)
{
	/* clang-format off */
	const struct MHD_Daemon *server = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL, NULL,
		visit_on_request, console,
		MHD_OPTION_LISTEN_SOCKET, listener->fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)NP_CONSOLE_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)NP_CONSOLE_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)NP_CONSOLE_MEMORY,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)(1u << 20),
		MHD_OPTION_URI_LOG_CALLBACK, visit_on_begin, console,
		MHD_OPTION_NOTIFY_COMPLETED, visit_on_end, console,
		MHD_OPTION_UNESCAPE_CALLBACK, visit_on_unescape, console,
		MHD_OPTION_END);
	/* clang-format on */
	return server ? 0 : -EIO;
}

static int console_serve(struct console *console, const struct settings *settings, const struct listener *listener)
{
	char url[GUARD_ORIGIN + 64], opened[FS_PATH_SIZE] = "";
	sigset_t ends;
	int r = link_make(console, settings, url);

	if (r == 0 && settings->open)
		browser_open(url, opened);
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL); /* of all threads: this one asks for them */
	if (r == 0)
		r = jail_enter();
	if (r == 0)
		r = console_start(console, listener);
	if (r < 0) {
		complain_text("console", "it cannot start", "failed", strerror(-r));
		return CLI_REFUSED;
	}
	printf("The console is at\n%s\nThe link is good once, for ten minutes. Enter prints another one.\n", url);
	fflush(stdout);
	r = console_wait(console, settings, &ends);
	if (opened[0])
		unlink(opened);
	if (listener->path)
		listen_remove(listener->path, &listener->file);
	fflush(stdout);
	_exit(r); /* threads that wait for the daemon or for a browser have nothing to lose */
}

int main(int argc, char **argv)
{
	struct console console = { 0 };
	static char socket[FS_PATH_SIZE];
	struct settings settings;
	struct listener listener;
	int code;

	if (fs_stdio_fill() < 0)
		return CLI_REFUSED;
	signal(SIGPIPE, SIG_IGN);
	json_object_seed(0); /* while there are files: its random numbers */
	code = settings_read(argc, argv, &settings);
	if (code != CLI_OK)
		return code;
	if (socket_choose(&settings, socket) < 0)
		return usage_error("console", "the path of the socket is too long");
	console.socket = socket;
	console.rights = (struct console_rights){ .read_only = settings.read_only, .approver = settings.approver };
	code = daemon_look(&console);
	if (code == CLI_OK)
		code = console_prepare(&console, &settings, &listener);
	return code == CLI_OK ? console_serve(&console, &settings, &listener) : code;
}
