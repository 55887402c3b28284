/* SPDX-License-Identifier: MIT */
#include "daemon/settings.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/chars.h"
#include "base/cleanup.h"
#include "vocab/words.h"
#include "vocab/limits.h"

static const char help[] =
	"Usage: netpawld [OPTION]...\n"
	"Hold the network of sandboxes in the kernel: raise it, never lower it.\n"
	"\n"
	"  --policy FILE     policy file (default: none, and PROXIED reaches nothing; policies/ has some)\n"
	"  --run-dir DIR     control.sock and approve.sock live here (default: /run/netpawl)\n"
	"  --state-dir DIR   sessions and events, kept for ever (default: /var/lib/netpawl)\n"
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

enum event_option { EVENTS_SESSION = 512, EVENTS_TOTAL, EVENTS_DAYS, CHANGES_TOTAL, CHANGES_DAYS, JOURNAL_SIZE };

static bool event_option_parse(int option, const char *name, const char *text, struct keep_limits *limits)
{
	const uint64_t day_us = 86400 * 1000000ull;
	uint64_t *const value = option == EVENTS_SESSION  ? &limits->session_bytes
				: option == EVENTS_TOTAL  ? &limits->total_bytes
				: option == EVENTS_DAYS	  ? &limits->total_age_us
				: option == CHANGES_TOTAL ? &limits->change_bytes
				: option == CHANGES_DAYS  ? &limits->change_age_us
							  : &limits->journal_bytes;
	uint64_t days;

	if (option == EVENTS_DAYS || option == CHANGES_DAYS) {
		if (number_parse(text, strlen(text), NP_EVENTS_DAYS, &days) < 0) {
			fprintf(stderr, "netpawld: --%s takes a number of days up to %d; 0 for no bound\n", name,
				NP_EVENTS_DAYS);
			return false;
		}
		*value = days * day_us;
		return true;
	}
	if (!size_parse(text, value) || *value < NP_EVENTS_MIN || *value > NP_EVENTS_MAX) {
		fprintf(stderr, "netpawld: --%s takes a size from 256KiB to 1024GiB\n", name);
		return false;
	}
	return true;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	enum {
		POLICY = 256,
		RUN_DIR,
		STATE_DIR,
		DATA_DIR,
		PIN_DIR,
		CGROUP,
		INSPECTORS,
		INSPECTOR_UID,
		DECIDER_UID,
		EXPORTER_UID,
		ROOTS,
		RESOLVERS,
		UNINSTALL,
		FORCE,
		PROBE,
		VERBOSE,
		HELP,
		VERSION
	};
	static const struct option table[] = {
		{ "policy", required_argument, NULL, POLICY },
		{ "run-dir", required_argument, NULL, RUN_DIR },
		{ "state-dir", required_argument, NULL, STATE_DIR },
		{ "data-dir", required_argument, NULL, DATA_DIR },
		{ "pin-dir", required_argument, NULL, PIN_DIR },
		{ "cgroup", required_argument, NULL, CGROUP },
		{ "inspectors", required_argument, NULL, INSPECTORS },
		{ "inspector-uid", required_argument, NULL, INSPECTOR_UID },
		{ "decider-uid", required_argument, NULL, DECIDER_UID },
		{ "exporter-uid", required_argument, NULL, EXPORTER_UID },
		{ "roots", required_argument, NULL, ROOTS },
		{ "resolvers", required_argument, NULL, RESOLVERS },
		{ "events-session", required_argument, NULL, EVENTS_SESSION },
		{ "events-total", required_argument, NULL, EVENTS_TOTAL },
		{ "events-days", required_argument, NULL, EVENTS_DAYS },
		{ "changes-total", required_argument, NULL, CHANGES_TOTAL },
		{ "changes-days", required_argument, NULL, CHANGES_DAYS },
		{ "journal-size", required_argument, NULL, JOURNAL_SIZE },
		{ "uninstall", no_argument, NULL, UNINSTALL },
		{ "force", no_argument, NULL, FORCE },
		{ "probe", no_argument, NULL, PROBE },
		{ "verbose", no_argument, NULL, VERBOSE },
		{ "help", no_argument, NULL, HELP },
		{ "version", no_argument, NULL, VERSION },
		{ 0 },
	};
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

	uint64_t number;

	for (int c, at = 0; (c = getopt_long(argc, argv, "", table, &at)) != -1;) {
		switch (c) {
		case POLICY:
			o.policy = optarg;
			break;
		case RUN_DIR:
			o.run_dir = optarg;
			break;
		case STATE_DIR:
			o.state_dir = optarg;
			break;
		case DATA_DIR:
			o.data_dir = optarg;
			break;
		case PIN_DIR:
			o.pin_dir = optarg;
			break;
		case CGROUP:
			o.cgroup = optarg;
			break;
		case INSPECTORS:
			if (number_parse(optarg, strlen(optarg), NP_WORKERS_MAX, &number) < 0) {
				fprintf(stderr, "netpawld: --inspectors takes a number up to %d\n", NP_WORKERS_MAX);
				return 3;
			}
			o.inspectors = (int)number;
			break;
		case INSPECTOR_UID:
		case DECIDER_UID:
		case EXPORTER_UID:
			if (number_parse(optarg, strlen(optarg), UINT32_MAX - 1, &number) < 0 || !number) {
				fprintf(stderr, "netpawld: --%s takes a user's number, not root's\n", table[at].name);
				return 3;
			}
			*(c == DECIDER_UID    ? &o.decider_uid
			  : c == EXPORTER_UID ? &o.exporter_uid
					      : &o.inspector_uid) = (unsigned)number;
			break;
		case ROOTS:
			o.roots = optarg;
			break;
		case RESOLVERS:
			o.resolvers = optarg;
			break;
		case EVENTS_SESSION ... JOURNAL_SIZE:
			if (!event_option_parse(c, table[at].name, optarg, &o.events))
				return 3;
			break;
		case UNINSTALL:
			o.task = TASK_UNINSTALL;
			break;
		case FORCE:
			o.force = true;
			break;
		case PROBE:
			o.task = TASK_PROBE;
			break;
		case VERBOSE:
			o.verbose = true;
			break;
		case HELP:
			fputs(help, stdout);
			return 1;
		case VERSION:
			puts("netpawld " NETPAWL_VERSION);
			return 1;
		default:
			fputs("Try netpawld --help.\n", stderr);
			return 3;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "netpawld: unexpected argument: %s\nTry netpawld --help.\n", argv[optind]);
		return 3;
	}
	if (!cgroup_name_ok(o.cgroup)) {
		fprintf(stderr, "netpawld: --cgroup: not a name below the cgroup mount: %s\n", o.cgroup);
		return 3;
	}
	if (!directories_ok(&o))
		return 3;
	*ret = o;
	return 0;
}
