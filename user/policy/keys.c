/* SPDX-License-Identifier: MIT */
#include "policy/keys.h"

#include "base/cleanup.h"
#include "policy/policy.h"
#include "vocab/level.h"

#define KEY(key_name, key_shape, key_about, ...)                                      \
	{                                                                             \
		.name = key_name, .shape = key_shape, .about = key_about, __VA_ARGS__ \
	}
#define KEY_SET(set_where, set_keys, set_one)                                                               \
	{                                                                                                   \
		.where = set_where, .keys = set_keys, .count = ARRAY_SIZE(set_keys), .exactly_one = set_one \
	}

static const char *const words_level[] = { "PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET", NULL };
static const char *const words_mode[] = { "full", "proxied", "none", NULL };
static const char *const words_default[] = { "deny", "ask", "allow", NULL };
static const char *const words_remember[] = { "once", "session", NULL };
static const char *const words_kind[] = { "read", "write", NULL };
static const char *const words_refused[] = { "nxdomain", "synthetic", NULL };
static const char *const words_at_end[] = { "keep", "archive", "remove", NULL };
static const char *const words_slot[] = { "bearer", "path", "form", "json", "websocket", NULL };
static const char *const words_inject[] = { "placeholder", "always", NULL };
static const char *const words_echo[] = { "scrub", "refuse", "pass", NULL };
static const char *const words_leak[] = { "refuse", "raise INTERNAL", "raise CONFIDENTIAL", "raise SECRET", NULL };
static const char *const words_file[] = { "netrc", "npmrc", "pip", "git", "aws", "docker", NULL };
const char *const keys_networks[] = {
	[NETWORK_SHARED] = "shared", [NETWORK_PRIVATE] = "private", [NETWORK_NAT] = "nat", NULL
};
static const char *const words_dns[] = { "MX", "SRV", "TXT", NULL };

static const struct key level_keys[] = {
	KEY("PUBLIC", KEY_MODE, "the mode of PUBLIC sessions: full unless written", .words = words_mode),
	KEY("INTERNAL", KEY_MODE, "the mode of INTERNAL sessions: full unless written", .words = words_mode),
	KEY("CONFIDENTIAL", KEY_MODE, "the mode of CONFIDENTIAL sessions: proxied unless written", .words = words_mode),
	KEY("SECRET", KEY_MODE, "the mode of SECRET sessions: none unless written", .words = words_mode),
};
_Static_assert(ARRAY_SIZE(level_keys) == LEVEL_COUNT, "every level, in order");
const struct key_set keys_levels = KEY_SET("levels", level_keys, 0);

#define DEFAULT_OF(level) \
	KEY(level, KEY_WORD, "what happens at that level when no rule matches", .words = words_default)
static const struct key default_keys[] = {
	DEFAULT_OF("PUBLIC"),
	DEFAULT_OF("INTERNAL"),
	DEFAULT_OF("CONFIDENTIAL"),
	DEFAULT_OF("SECRET"),
};
_Static_assert(ARRAY_SIZE(default_keys) == LEVEL_COUNT, "every level, in order");
const struct key_set keys_defaults = KEY_SET("default", default_keys, 0);

static const struct key timeout_keys[TIMEOUT_KEYS] = {
	[TIMEOUT_IDLE] = KEY("idle", KEY_TIME, "no byte moves either way: 1s to 24h, 300s unless written"),
	[TIMEOUT_FIRST_BYTE] =
		KEY("first_byte", KEY_TIME, "from the end of the request to the beginning of its response: 1s to 24h"),
	[TIMEOUT_CONNECT] = KEY("connect", KEY_TIME, "a connection to the host: 1s to 60s, 5s unless written"),
};
const struct key_set keys_timeouts = KEY_SET("timeouts", timeout_keys, 0);

static const struct key rule_keys[RULE_KEYS] = {
	[RULE_ALLOW] = KEY("allow", KEY_TEXTS, "destinations that may be reached"),
	[RULE_DENY] = KEY("deny", KEY_TEXTS, "destinations that are refused"),
	[RULE_ASK] = KEY("ask", KEY_TEXTS, "destinations that a person decides about"),
	[RULE_DECIDE] = KEY("decide", KEY_TEXTS, "destinations that a program decides about, see \"by\""),
	[RULE_METHODS] = KEY("methods", KEY_TEXTS, "methods of requests, in upper case"),
	[RULE_PATHS] = KEY("paths", KEY_TEXTS, "globs of paths: * stays within a segment, ** does not"),
	[RULE_HEADERS] = KEY("headers", KEY_TEXTS, "names of headers that must all be there"),
	[RULE_INSPECT] = KEY("inspect", KEY_FLAG, "false: the name is judged and the bytes pass unseen"),
	[RULE_WEBSOCKET] = KEY("websocket", KEY_FLAG, "true: requests may become websockets"),
	[RULE_MAX_BODY] = KEY("max_body", KEY_SIZE, "the longest body of a request"),
	[RULE_TIMEOUTS] = KEY("timeouts", KEY_MAP, "how long a request waits", .below = &keys_timeouts),
	[RULE_CAPTURE] =
		KEY("capture", KEY_SIZE, "bytes of each body that its event has, with the headers: up to 4096"),
	[RULE_CREDENTIAL] =
		KEY("credential", KEY_TEXT, "a credential that these requests may carry, wherever it is for"),
	[RULE_DNS] =
		KEY("dns", KEY_WORDS, "types of records that may be looked up for these names", .words = words_dns),
	[RULE_BY] = KEY("by", KEY_TEXT, "the decider of a decide rule"),
	[RULE_FOR] =
		KEY("for", KEY_WORDS, "levels at which the rule is there; all unless written", .words = words_level),
	[RULE_SESSIONS] = KEY("sessions", KEY_TEXTS, "sessions that the rule is for: USER/SESSION, * for any part"),
	[RULE_QUIET] = KEY("quiet", KEY_FLAG, "true: refusals of this deny are on record, and nobody is told of them"),
};
const struct key_set keys_rule = KEY_SET("a rule", rule_keys, RULE_DECIDE + 1);
/* The reader knows a rule's other keys here, too, and says why they cannot be in full:. */
static const struct key_set keys_full = { "a rule of full", rule_keys, RULE_DENY + 1, RULE_DENY + 1 };

static const struct key list_keys[LIST_KEYS] = {
	[LIST_HOSTS] = KEY("hosts", KEY_TEXT_LIST, "its destinations"),
	[LIST_QUIET] = KEY("quiet", KEY_FLAG, "true: for deny; nobody is told of what is refused by it"),
};
const struct key_set keys_list = KEY_SET("a list", list_keys, LIST_HOSTS + 1);

static const struct key decider_keys[DECIDER_KEYS] = {
	[DECIDER_COMMAND] = KEY("command", KEY_TEXT_LIST, "a program, with its whole path, and its arguments"),
	[DECIDER_SOCKET] = KEY("socket", KEY_TEXT, "the whole path of a unix socket"),
	[DECIDER_TIMEOUT] = KEY("timeout", KEY_TIME, "how long it has for an answer: 5s unless written, 5m at most"),
	[DECIDER_NETWORK] = KEY("network", KEY_FLAG,
				"a command has the network of the host: false unless written, then it has none"),
};
const struct key_set keys_decider = KEY_SET("a decider", decider_keys, DECIDER_SOCKET + 1);

static const struct key notify_keys[NOTIFY_KEYS] = {
	[NOTIFY_COMMAND] = KEY("command", KEY_TEXT_LIST, "a program, with its whole path, and its arguments"),
	[NOTIFY_SOCKET] = KEY("socket", KEY_TEXT, "the whole path of a unix socket"),
	[NOTIFY_URL] = KEY("url", KEY_TEXT, "an http:// URL of a loopback address, which is posted to"),
	[NOTIFY_NETWORK] = KEY("network", KEY_FLAG,
			       "a command has the network of the host: false unless written, then it has none"),
};
const struct key_set keys_notify = KEY_SET("notify", notify_keys, NOTIFY_URL + 1);

static const struct key approval_keys[APPROVAL_KEYS] = {
	[APPROVAL_TIMEOUT] = KEY("timeout", KEY_TIME, "how long people have: 10m unless written"),
	[APPROVAL_HOLD] = KEY("hold", KEY_TIME, "how long a client waits for the answer: 12s unless written"),
	[APPROVAL_REMEMBER] = KEY("remember", KEY_WORD,
				  "may an answer hold for the session (unless written), or for one request only",
				  .words = words_remember),
	[APPROVAL_GROUP] = KEY("group", KEY_TEXT, "the group that approve.sock is for; root's alone unless written"),
	[APPROVAL_FOUR_EYES] = KEY("four_eyes", KEY_FLAG,
				   "who starts something in a session does not answer for it: false unless written"),
	[APPROVAL_NOTIFY] = KEY("notify", KEY_MAP, "who is told that a question waits", .below = &keys_notify),
	[APPROVAL_GRANTS] = KEY("grants", KEY_TEXT,
				"the file beside this one that answers \"always\" are written to, and read from"),
};
const struct key_set keys_approval = KEY_SET("approval", approval_keys, 0);

static const struct key grant_keys[GRANT_KEYS] = {
	[GRANT_ALLOW] =
		KEY("allow", KEY_TEXT, "https://HOST:PORT, http://HOST:PORT, or tcp://HOST:PORT for connections"),
	[GRANT_KIND] = KEY("kind", KEY_WORD, "of requests: those that read, or those that write", .words = words_kind),
	[GRANT_FOR] = KEY("for", KEY_WORDS, "levels that it is for; all unless written", .words = words_level),
	[GRANT_SESSIONS] = KEY("sessions", KEY_TEXTS, "globs of USER/SESSION that it is for; all unless written"),
};
const struct key_set keys_grant = KEY_SET("a grant", grant_keys, 1);

static const struct key notice_keys[NOTICE_KEYS] = {
	[NOTICE_PROXIED] = KEY("proxied", KEY_TEXT, "what the agent is told when its mode becomes PROXIED"),
	[NOTICE_NONE] = KEY("none", KEY_TEXT, "what the agent is told when its mode becomes NONE"),
};
const struct key_set keys_notices = KEY_SET("notices", notice_keys, 0);

#define LIMIT_KEY(name, kind, least, most, whole, value, about, ...) KEY(#name, KEY_##kind, about),
static const struct key sandbox_keys[SANDBOX_KEYS] = {
	[SANDBOX_BINDS] =
		KEY("binds", KEY_TEXTS, "places of the host that --bind may show; :ro behind one: for reading"),
	RUN_LIMITS(LIMIT_KEY) /* from SANDBOX_LIMITS on: that is behind SANDBOX_BINDS */
		[SANDBOX_IDLE] = KEY("idle", KEY_TIME, "how long a kept sandbox stays unused: 1h unless written"),
	[SANDBOX_READ_ONLY] = KEY("read_only", KEY_TEXTS, "addresses that read_only runs reach past the inspector"),
	[SANDBOX_DEVICES] = KEY("devices", KEY_TEXTS, "graphics cards and the like that sandboxes have: /dev/nvidia*"),
	[SANDBOX_NETWORK] = KEY(
		"network", KEY_WORD,
		"private: sandboxes that start in PROXIED or NONE have a network of their own with nothing but "
		"loopback; nat: all have one, with a way out that the host forwards and masquerades where they start "
		"in FULL; shared: the host's. private unless written",
		.words = keys_networks),
};
const struct key_set keys_sandbox = KEY_SET("sandbox", sandbox_keys, 0);

static const struct key dns_keys[DNS_KEYS] = {
	[DNS_REFUSED] = KEY("refused", KEY_WORD,
			    "a name that no rule allows: nxdomain unless written, or an address that explains itself",
			    .words = words_refused),
};
const struct key_set keys_dns = KEY_SET("dns", dns_keys, 0);
static const struct key sessions_keys[SESSIONS_KEYS] = {
	[SESSIONS_KEEP] =
		KEY("keep", KEY_AGE,
		    "an unused session ends after that, and is forgotten so long after its end: 90d unless written"),
	[SESSIONS_COUNT] = KEY("count", KEY_COUNT, "ended sessions that are kept: 50000 unless written"),
	[SESSIONS_REMEMBER] =
		KEY("remember", KEY_AGE, "how long the level of a forgotten session is: forever unless written"),
};
const struct key_set keys_sessions = KEY_SET("sessions", sessions_keys, 0);

static const struct key workspaces_keys[WORKSPACES_KEYS] = {
	[WORKSPACES_AT_END] =
		KEY("at_end", KEY_WORD, "what becomes of a workspace when its session ends: keep unless written",
		    .words = words_at_end),
	[WORKSPACES_ARCHIVE_MAX] =
		KEY("archive_max", KEY_SIZE, "the largest archive of one workspace: 4G unless written"),
};
const struct key_set keys_workspaces = KEY_SET("workspaces", workspaces_keys, 0);

static const struct key proxy_login_keys[PROXY_LOGIN_KEYS] = {
	[PROXY_LOGIN_FILE] =
		KEY("file", KEY_TEXT, "the whole path of a file with user:password, which only root may read"),
};
const struct key_set keys_proxy_login = KEY_SET("credentials", proxy_login_keys, PROXY_LOGIN_FILE + 1);

static const struct key proxy_keys[PROXY_KEYS] = {
	[PROXY_URL] = KEY("url", KEY_TEXT, "http://HOST:PORT, or direct"),
	[PROXY_HOSTS] = KEY("hosts", KEY_TEXTS, "destinations that go by it: all unless written"),
	[PROXY_EXCEPT] = KEY("except", KEY_TEXTS, "destinations that do not: further entries are for them"),
	[PROXY_CREDENTIALS] =
		KEY("credentials", KEY_MAP, "who the inspector is to the proxy", .below = &keys_proxy_login),
};
const struct key_set keys_proxy = KEY_SET("an upstream proxy", proxy_keys, PROXY_URL + 1);

static const struct key source_keys[SOURCE_KEYS] = {
	[SOURCE_KEY_SYSTEMD] =
		KEY("systemd", KEY_TEXT, "the name of a credential of netpawld's unit (LoadCredential=)"),
	[SOURCE_KEY_FILE] = KEY("file", KEY_TEXT, "the whole path of a file that only root may read"),
	[SOURCE_KEY_COMMAND] =
		KEY("command", KEY_TEXT_LIST, "a program that prints it, with its whole path, and its arguments"),
	[SOURCE_KEY_ENV] = KEY("env", KEY_TEXT, "a variable of netpawld's environment"),
	[SOURCE_KEY_TTL] = KEY("ttl", KEY_TIME, "how long a value is good for: as long as it lasts unless written"),
};
const struct key_set keys_source = KEY_SET("source", source_keys, SOURCE_KEY_ENV + 1);

static const struct key sigv4_keys[SIGV4_KEYS] = {
	[SIGV4_SERVICE] = KEY("service", KEY_TEXT, "as in s3"),
	[SIGV4_REGION] = KEY("region", KEY_TEXT, "as in eu-central-1"),
};
const struct key_set keys_sigv4 = KEY_SET("sigv4", sigv4_keys, 0);

static const struct key as_keys[AS_KEYS] = {
	[AS_BASIC] = KEY("basic", KEY_TEXT, "Authorization: Basic, with this user"),
	[AS_HEADER] = KEY("header", KEY_TEXT, "the header of this name"),
	[AS_QUERY] = KEY("query", KEY_TEXT, "the parameter of this name"),
	[AS_SIGV4] = KEY("sigv4", KEY_MAP, "it signs requests as AWS wants them", .below = &keys_sigv4),
};
const struct key_set keys_as = KEY_SET("as", as_keys, AS_SIGV4 + 1);

static const struct key placeholder_keys[PLACEHOLDER_KEYS] = {
	[PLACEHOLDER_ENV] = KEY("env", KEY_TEXT, "the variable of sandboxes that holds the placeholder"),
	[PLACEHOLDER_LIKE] =
		KEY("like", KEY_TEXT, "its shape: {N} is N random letters and digits, as in \"ghp_{36}\"; or jwt"),
	[PLACEHOLDER_FILE] =
		KEY("file", KEY_WORD, "a file in the home of sandboxes that holds it as that tool wants it",
		    .words = words_file),
};
const struct key_set keys_placeholder = KEY_SET("placeholder", placeholder_keys, 0);

static const struct key capture_keys[CAPTURE_KEYS] = {
	[CAPTURE_JSON] = KEY("json", KEY_TEXTS, "members of JSON that are tokens, at any depth"),
	[CAPTURE_COOKIES] = KEY("cookies", KEY_TEXTS, "cookies that are"),
	[CAPTURE_PATHS] =
		KEY("paths", KEY_TEXTS,
		    "globs of paths whose responses have them: all that the credential is for unless written"),
	[CAPTURE_FOR] = KEY("for", KEY_TEXTS, "hosts that get the tokens, beside those that get the credential"),
	[CAPTURE_AS] = KEY("as", KEY_WORDS_OR_MAPS,
			   "the places of a request that tokens may stand in, beside those of the credential",
			   .words = words_slot, .below = &keys_as),
};
const struct key_set keys_capture = KEY_SET("capture", capture_keys, 0);

static const struct key credential_keys[CREDENTIAL_KEYS] = {
	[CREDENTIAL_SOURCE] = KEY("source", KEY_MAP, "where its value comes from", .below = &keys_source),
	[CREDENTIAL_FOR] = KEY("for", KEY_TEXTS, "hosts that get it, over TLS; port 443 unless written"),
	[CREDENTIAL_PATHS] = KEY("paths", KEY_TEXTS, "globs of paths that get it: all unless written"),
	[CREDENTIAL_METHODS] = KEY("methods", KEY_TEXTS, "methods of requests that get it: all unless written"),
	[CREDENTIAL_AS] =
		KEY("as", KEY_WORDS_OR_MAPS, "the places of a request that it may stand in: bearer unless written",
		    .words = words_slot, .below = &keys_as),
	[CREDENTIAL_PLACEHOLDER] =
		KEY("placeholder", KEY_MAP, "what sandboxes hold in its place", .below = &keys_placeholder),
	[CREDENTIAL_INJECT] = KEY("inject", KEY_WORD, "always: every request gets it; else those with the placeholder",
				  .words = words_inject),
	[CREDENTIAL_LEVELS] =
		KEY("levels", KEY_WORDS, "levels at which it may be used; all unless written", .words = words_level),
	[CREDENTIAL_SCOPE] =
		KEY("scope", KEY_TEXTS,
		    "sessions (USER/SESSION, * for any part) and classes of runs (read_only, write) that may use it"),
	[CREDENTIAL_ECHO] = KEY("echo", KEY_WORD, "what becomes of the value in responses: scrub unless written",
				.words = words_echo),
	[CREDENTIAL_ON_LEAK] =
		KEY("on_leak", KEY_WORD,
		    "a session that sends the value itself: refuse unless written, or the level it is raised to",
		    .words = words_leak),
	[CREDENTIAL_CAPTURE] =
		KEY("capture", KEY_MAP, "tokens that its hosts issue: sandboxes get placeholders of them",
		    .below = &keys_capture),
};
const struct key_set keys_credential = KEY_SET("a credential", credential_keys, CREDENTIAL_SOURCE + 1);

static const struct key platform_keys[PLATFORM_KEYS] = {
	[PLATFORM_CALLERS] = KEY("callers", KEY_TEXTS, "who: user:NAME or group:NAME"),
	[PLATFORM_SESSIONS] = KEY("sessions", KEY_TEXTS, "for which sessions: USER/SESSION, * for any part"),
};
const struct key_set keys_platform = KEY_SET("platform", platform_keys, 0);

static const struct key access_keys[ACCESS_KEYS] = {
	[ACCESS_OPERATOR] = KEY("operator", KEY_TEXTS, "who may do everything, as root may: user:NAME or group:NAME"),
	[ACCESS_PLATFORM] = KEY("platform", KEY_MAP_LIST, "who may have which sessions, and run commands there",
				.below = &keys_platform),
	[ACCESS_APPROVER] = KEY("approver", KEY_TEXTS, "who decides on runs that wait"),
	[ACCESS_EDITOR] =
		KEY("editor", KEY_TEXTS, "who may save files of the policy: rules, lists, defaults, limits and times"),
	[ACCESS_READER] = KEY("reader", KEY_TEXTS, "who may see sessions, runs and events, and change nothing"),
};
const struct key_set keys_access = KEY_SET("access", access_keys, 0);

static const struct key containers_keys[CONTAINERS_KEYS] = {
	[CONTAINERS_UNKNOWN] = KEY(
		"unknown", KEY_TEXT,
		"a container that names no session: ignore unless written, refuse, or the USER/SESSION it is given"),
};
const struct key_set keys_containers = KEY_SET("containers", containers_keys, 0);

static const struct key metrics_keys[METRICS_KEYS] = {
	[METRICS_LISTEN] = KEY("listen", KEY_TEXT, "a loopback address and port that metrics are served at"),
};
const struct key_set keys_metrics = KEY_SET("metrics", metrics_keys, 0);

static const struct key events_keys[EVENTS_KEYS] = {
	[EVENTS_OTLP] = KEY("otlp", KEY_TEXT, "an http:// URL of a loopback address that takes OTLP logs as JSON"),
	[EVENTS_JOURNALD] = KEY("journald", KEY_TEXT,
				"journald's socket, to which events go as fields; under systemd it is "
				"/run/systemd/journal/socket by itself, unless this is none"),
};
const struct key_set keys_events = KEY_SET("events", events_keys, 0);

static const struct key file_keys[SECTION_COUNT] = {
	[SECTION_VERSION] = KEY("version", KEY_VERSION, "the version of the language"),
	[SECTION_INCLUDE] = KEY("include", KEY_TEXTS, "files whose rules come first, relative to this one"),
	[SECTION_LISTS] =
		KEY("lists", KEY_NAMED_LISTS, "named lists of destinations, used as \"@name\"", .below = &keys_list),
	[SECTION_RULES] =
		KEY("rules", KEY_MAP_LIST, "rules for PROXIED; the first that matches decides", .below = &keys_rule),
	[SECTION_FULL] =
		KEY("full", KEY_MAP_LIST, "rules for FULL: addresses that are allowed or denied", .below = &keys_full),
	[SECTION_DECIDERS] =
		KEY("deciders", KEY_NAMED_MAPS, "programs that answer decide rules", .below = &keys_decider),
	[SECTION_GRANTS] = KEY("grants", KEY_MAP_LIST, "what a person has allowed for good, where a rule asks",
			       .below = &keys_grant),
	[SECTION_CREDENTIALS] = KEY("credentials", KEY_NAMED_MAPS, "secrets that the inspector puts into requests",
				    .below = &keys_credential),
	[SECTION_LEVELS] = KEY("levels", KEY_MAP, "the mode of each level", .below = &keys_levels),
	[SECTION_DEFAULT] = KEY("default", KEY_WORD_OR_MAP,
				"what happens when no rule matches, perhaps by level: deny unless written",
				.words = words_default, .below = &keys_defaults),
	[SECTION_INSPECT_PORTS] = KEY("inspect_ports", KEY_PORTS, "TCP ports with HTTP: 80 and 443 unless written"),
	[SECTION_HOST_LOOPBACK] = KEY("host_loopback", KEY_PORTS, "ports of the host that sandboxes may use"),
	[SECTION_INBOUND] =
		KEY("inbound", KEY_PORTS, "ports of sandboxes in FULL that may be called from beyond the host"),
	[SECTION_APPROVAL] = KEY("approval", KEY_MAP, "how people answer", .below = &keys_approval),
	[SECTION_EXTRA_ROOTS] =
		KEY("extra_roots", KEY_TEXTS, "files with certificates that origins are trusted by, too"),
	[SECTION_UPSTREAM_PROXY] =
		KEY("upstream_proxy", KEY_TEXT_OR_MAPS,
		    "the HTTP proxy that connections to origins go by; the first entry for a host counts",
		    .below = &keys_proxy),
	[SECTION_NOTICES] =
		KEY("notices", KEY_MAP, "what agents are told when their mode changes", .below = &keys_notices),
	[SECTION_SANDBOX] = KEY("sandbox", KEY_MAP, "what netpawl run may give to a command", .below = &keys_sandbox),
	[SECTION_DNS] = KEY("dns", KEY_MAP, "what queries of sandboxes are answered", .below = &keys_dns),
	[SECTION_SESSIONS] = KEY("sessions", KEY_MAP, "how long sessions last", .below = &keys_sessions),
	[SECTION_WORKSPACES] =
		KEY("workspaces", KEY_MAP, "what becomes of the files of sessions", .below = &keys_workspaces),
	[SECTION_CONTAINERS] =
		KEY("containers", KEY_MAP, "containers that the OCI hook meets", .below = &keys_containers),
	[SECTION_METRICS] = KEY("metrics", KEY_MAP, "who serves metrics to monitoring", .below = &keys_metrics),
	[SECTION_EVENTS] = KEY("events", KEY_MAP, "where events are sent on to", .below = &keys_events),
	[SECTION_ACCESS] = KEY("access", KEY_MAP, "who may call the control API, beside root", .below = &keys_access),
};
const struct key_set keys_file = KEY_SET("a policy file", file_keys, SECTION_VERSION + 1);

_Static_assert(SECTION_COUNT <= KEY_SET_MAX && RULE_KEYS <= KEY_SET_MAX && SANDBOX_KEYS <= KEY_SET_MAX,
	       "the largest sets of keys");
