/* SPDX-License-Identifier: MIT */
#include "daemon/settings.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "base/long_option.h"
#include "vocab/words.h"
#include "vocab/limits.h"
#include "wire/resolver_list.h"

static const char help[] =
	"Usage: netpawld [OPTION]...\n"
	"Hold the network of sandboxes in the kernel: raise it, never lower it.\n"
	"\n"
	"  --policy FILE     policy file (default: none, and PROXIED reaches nothing; policies/ has some)\n"
	"  --run-dir DIR     control.sock and approve.sock live here (default: /run/netpawl)\n"
	"  --state-dir DIR   the record: sessions, events, workspaces (default: /var/lib/netpawl)\n"
	"  --data-dir DIR    workspaces of sessions (default: data in the state directory)\n"
	"  --pin-dir DIR     the gate's maps, programs and links, on a bpf file system\n"
	"                    (default: /sys/fs/bpf/netpawl)\n"
	"  --cgroup NAME     netpawl's slice below the cgroup v2 mount (default: netpawl.slice)\n"
	"  --inspectors N    processes that inspect requests (default: one for each CPU; 0: none,\n"
	"                    and what they should see is refused)\n"
	"  --inspector-uid N user that they run as (default: 65533); nothing else should\n"
	"  --decider-uid N   user that commands of the policy's deciders run as (default: 65532); likewise\n"
	"  --exporter-uid N  user that hands metrics and events on (default: 65531); likewise\n"
	"  --roots FILE      certificates that origins are trusted by\n"
	"                    (default: /etc/ssl/certs/ca-certificates.crt)\n"
	"  --resolvers LIST  name servers that the inspector asks, as ADDRESS[:PORT],...\n"
	"                    (default: those of /etc/resolv.conf)\n"
	"  --events-session SIZE, --events-total SIZE, --events-days N\n"
	"                    refusals, and requests, that are kept of one session (each, default: 16MiB), of all\n"
	"                    sessions (256MiB), and for how long at the most (default: 0, no bound)\n"
	"  --changes-total SIZE, --changes-days N\n"
	"                    the same for changes: rises, runs, sandboxes, policies (64MiB; 0), which no number of\n"
	"                    refusals pushes out\n"
	"  --journal-size SIZE\n"
	"                    events.ndjson with its older files (64MiB); changes.ndjson has --changes-total\n"
	"  --uninstall       end the sandboxes of the slice, take the gate away and exit;\n"
	"                    the record of sessions stays\n"
	"  --force           with --uninstall: also while processes run in adopted cgroups,\n"
	"                    which get their network back\n"
	"  --probe           print what this kernel can do, as JSON, and exit\n"
	"  --verbose         log changes as they happen (raises, adoptions, reloads, with their times), inspectors'\n"
	"                    starts and ends, and refused API clients\n"
	"  --help, --version\n"
	"\n"
	"Runs in the foreground, as root. SIGTERM ends it cleanly; the gate goes on enforcing without it,\n"
	"and the next netpawld with the same directories takes it over. Daemons with different\n"
	"directories and cgroups run side by side.\n"
	"\n"
	"Exit codes: 0 ended by a signal or done; 1 could not start or failed; 2 wrong usage.\n"
	"\n"
	"Example: netpawld --run-dir /tmp/np --state-dir /tmp/np/state --pin-dir /sys/fs/bpf/np --cgroup np.slice\n";

/* A name below the mount: no way up, no absolute path. */
static bool cgroup_name_ok(const char *name)
{
	return *name && *name != '/' && !strstr(name, "..") && !strstr(name, "//") && strlen(name) < 256 &&
	       name[strlen(name) - 1] != '/';
}

/* Absolute, for the daemon may be asked where they are; and fit to be written between quotes. */
static bool directory_ok(const char *path)
{
	if (*path != '/' || strlen(path) >= 3500)
		return false;
	for (; *path; path++)
		if ((unsigned char)*path < ' ' || *path == '"' || *path == '\\' || *path == 0x7f)
			return false;
	return true;
}

static bool directories_ok(const struct options *o)
{
	const struct {
		const char *option, *path;
	} all[] = { { "run-dir", o->run_dir },
		    { "state-dir", o->state_dir },
		    { "pin-dir", o->pin_dir },
		    { "data-dir", o->data_dir ? o->data_dir : "/" } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!directory_ok(all[i].path)) {
			fprintf(stderr, "netpawld: --%s needs an absolute path%s, and got '%s'\n", all[i].option,
				*all[i].path == '/' ? " without quotes, backslashes and control characters" : "",
				all[i].path);
			return false;
		}
	return true;
}

/* -- the table ------------------------------------------------------------------------ */

enum kind { TEXT, PATH, FLAG, TASK, INSPECTORS, USER, SIZE, DAYS, HELP, VERSION };

struct setting {
	const char *name;
	size_t at; /* in struct options */
	enum kind kind;
	enum task task; /* TASK */
};

#define AT(member)	    offsetof(struct options, member)
#define TEXT_OF(number)	    #number
#define NUMBER_TEXT(number) TEXT_OF(number)

static const struct setting settings[] = {
	{ "policy", AT(policy), PATH, 0 },
	{ "run-dir", AT(run_dir), TEXT, 0 },
	{ "state-dir", AT(state_dir), TEXT, 0 },
	{ "data-dir", AT(data_dir), TEXT, 0 },
	{ "pin-dir", AT(pin_dir), TEXT, 0 },
	{ "cgroup", AT(cgroup), TEXT, 0 },
	{ "inspectors", AT(inspectors), INSPECTORS, 0 },
	{ "inspector-uid", AT(inspector_uid), USER, 0 },
	{ "decider-uid", AT(decider_uid), USER, 0 },
	{ "exporter-uid", AT(exporter_uid), USER, 0 },
	{ "roots", AT(roots), PATH, 0 },
	{ "resolvers", AT(resolvers), TEXT, 0 },
	{ "events-session", AT(events.session_bytes), SIZE, 0 },
	{ "events-total", AT(events.total_bytes), SIZE, 0 },
	{ "events-days", AT(events.total_age_us), DAYS, 0 },
	{ "changes-total", AT(events.change_bytes), SIZE, 0 },
	{ "changes-days", AT(events.change_age_us), DAYS, 0 },
	{ "journal-size", AT(events.journal_bytes), SIZE, 0 },
	{ "uninstall", AT(task), TASK, TASK_UNINSTALL },
	{ "force", AT(force), FLAG, 0 },
	{ "probe", AT(task), TASK, TASK_PROBE },
	{ "verbose", AT(verbose), FLAG, 0 },
	{ "help", 0, HELP, 0 },
	{ "version", 0, VERSION, 0 },
};

/* NULL, or what it takes. */
static const char *number_take(const struct setting *setting, const char *text, void *value)
{
	const uint64_t day_us = 86400 * 1000000ull;
	uint64_t number;

	if (setting->kind == SIZE) {
		if (!size_parse(text, &number) || number < NP_EVENTS_MIN || number > NP_EVENTS_MAX)
			return "a size from 256KiB to 1024GiB";
		*(uint64_t *)value = number;
	} else if (setting->kind == DAYS) {
		if (number_parse(text, strlen(text), NP_EVENTS_DAYS, &number) < 0)
			return "a number of days up to " NUMBER_TEXT(NP_EVENTS_DAYS) "; 0 for no bound";
		*(uint64_t *)value = number * day_us;
	} else if (setting->kind == USER) {
		if (number_parse(text, strlen(text), UINT32_MAX - 1, &number) < 0 || !number)
			return "a user's number, not root's";
		*(uint32_t *)value = (uint32_t)number;
	} else {
		if (number_parse(text, strlen(text), NP_WORKERS_MAX, &number) < 0)
			return "a number up to " NUMBER_TEXT(NP_WORKERS_MAX);
		*(int *)value = (int)number;
	}
	return NULL;
}

/* 0, or as options_parse() returns it. */
static int setting_take(const struct setting *setting, const char *text, struct options *o)
{
	void *value = (char *)o + setting->at;
	const char *problem = NULL;

	switch (setting->kind) {
	case PATH:
		problem = *text ? NULL : "the path of a file, and got none";
		/* fall through */
	case TEXT:
		*(const char **)value = text;
		break;
	case FLAG:
		*(bool *)value = true;
		break;
	case TASK:
		if (o->task != TASK_RUN && o->task != setting->task) {
			fputs("netpawld: --probe and --uninstall do not go together\n", stderr);
			return 3;
		}
		*(enum task *)value = setting->task;
		break;
	case HELP:
		fputs(help, stdout);
		return 1;
	case VERSION:
		puts("netpawld " NETPAWL_VERSION);
		return 1;
	default:
		problem = number_take(setting, text, value);
	}
	if (problem)
		fprintf(stderr, "netpawld: --%s takes %s\n", setting->name, problem);
	return problem ? 3 : 0;
}

static bool resolvers_ok(const char *list)
{
	size_t len = 0;
	const char *wrong = list ? resolver_list_wrong(list, &len) : NULL;

	if (wrong)
		fprintf(stderr, "netpawld: --resolvers takes ADDRESS[:PORT],... and got '%.*s'\n", (int)len, wrong);
	return !wrong;
}

/* netpawl-decide runs as the inspector's user on purpose; what the policy's commands or an exporter run as could read and write the memory of
 * whoever has the same one. */
static bool users_ok(const struct options *o)
{
	const struct {
		const char *option;
		unsigned uid;
	} all[] = { { "inspector-uid", o->inspector_uid },
		    { "decider-uid", o->decider_uid },
		    { "exporter-uid", o->exporter_uid } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (size_t k = 0; k < i; k++)
			if (all[i].uid == all[k].uid) {
				fprintf(stderr,
					"netpawld: --%s and --%s are both %u: each needs a user of its own, or one "
					"could read and change the other\n",
					all[k].option, all[i].option, all[i].uid);
				return false;
			}
	return true;
}

static bool settings_fit(const struct options *o)
{
	if (o->force && o->task != TASK_UNINSTALL) {
		fputs("netpawld: --force goes with --uninstall only\n", stderr);
		return false;
	}
	if (!cgroup_name_ok(o->cgroup)) {
		fprintf(stderr, "netpawld: --cgroup: not a name below the cgroup mount: %s\n", o->cgroup);
		return false;
	}
	return resolvers_ok(o->resolvers) && users_ok(o) && directories_ok(o);
}

static int option_unknown(const char *word, const char *meant)
{
	fprintf(stderr, "netpawld: unknown option '%s'; did you mean --%s?\nTry netpawld --help.\n", word, meant);
	return 3;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct option table[ARRAY_SIZE(settings) + 1] = { 0 };
	struct options o = {
		.run_dir = "/run/netpawl",
		.state_dir = "/var/lib/netpawl",
		.pin_dir = "/sys/fs/bpf/netpawl",
		.cgroup = "netpawl.slice",
		.roots = "/etc/ssl/certs/ca-certificates.crt",
		.inspectors = -1,
		.inspector_uid = 65533,
		.decider_uid = 65532,
		.exporter_uid = 65531,
		.events = KEEP_DEFAULTS,
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const enum kind kind = settings[i].kind;

		table[i].name = settings[i].name;
		table[i].has_arg = kind == FLAG || kind == TASK || kind == HELP || kind == VERSION ? no_argument
												   : required_argument;
	}
	for (int c, at = 0; r == 0 && (c = getopt_long(argc, argv, "", table, &at)) != -1;) {
		if (c == '?') {
			fputs("Try netpawld --help.\n", stderr);
			return 3;
		}
		if (!long_option_is_whole(argv, settings[at].name, optarg))
			return option_unknown(long_option_word(argv, optarg), settings[at].name);
		r = setting_take(&settings[at], optarg, &o);
	}
	if (r)
		return r;
	if (optind < argc) {
		fprintf(stderr, "netpawld: unexpected argument: %s\nTry netpawld --help.\n", argv[optind]);
		return 3;
	}
	if (!settings_fit(&o))
		return 3;
	*ret = o;
	return 0;
}
