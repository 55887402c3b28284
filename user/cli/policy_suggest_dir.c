/* SPDX-License-Identifier: MIT */
/* netpawl policy suggest DIR: rules for the hosts that a project's own files name. The files are a stranger's: no link of
 * theirs is followed, they are read up to a bound, and what is printed of them is what project_files.h says. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fs.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "cli/project_files.h"
#include "policy/pattern.h"
#include "reason.h"
#include "vocab/words.h"

#define DESTINATION_SIZE (NAME_SIZE + 8)

/* 0 with its text; -ENOENT: it is not there. */
static int file_take(int dir, const char *path, struct buf *text)
{
	_close_ int fd = fs_open_unlinked(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return fd == -ENOTDIR ? -ENOENT : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) ? fs_read_fd(fd, text) : -ENXIO;
}

static const char *problem_words(int e)
{
	switch (-e) {
	case ELOOP:
		return "a link leads there";
	case E2BIG:
		return "it is too large";
	case EINVAL:
		return "it is not plain JSON or YAML (no comments in JSON, no anchors in YAML)";
	default:
		return "it cannot be read";
	}
}

/* "api.example:443", which the reader of policies takes for this host and no other; "" when it does not. */
static void destination_text(const struct project_found *found, char text[static DESTINATION_SIZE])
{
	char name[NAME_SIZE], problem[PATTERN_PROBLEM_SIZE], addr[ADDR_TEXT_SIZE] = "";
	struct pattern pattern;

	if (found->host.is_addr)
		addr_format(&found->host.addr, addr);
	snprintf(text, DESTINATION_SIZE, strchr(addr, ':') ? "[%s]:%u" : "%s:%u",
		 found->host.is_addr ? addr : found->host.name, found->port);
	if (pattern_parse(text, strlen(text), name, &pattern, problem) < 0 ||
	    (pattern.kind == PATTERN_NAME ? pattern_is_wide(&pattern) : pattern.bits != 128))
		text[0] = '\0';
}

static void found_put(const struct project_found *found, const char *to, struct buf *out)
{
	bool http = found->port == 443 || found->port == 80;

	buf_printf(out, "  # %s\n", found->where);
	if (!found->host.is_addr && host_takes_uploads(found->host.name))
		buf_printf(out, "  # Careful: anybody can upload to %s and fetch it from elsewhere.\n",
			   found->host.name);
	if (found->kind == PROJECT_TCP || !http)
		buf_printf(out, "  # Nobody sees what is sent there%s.\n",
			   found->kind == PROJECT_TCP ? "" : ", unless inspect_ports has the port");
	buf_printf(out, "  - allow: \"%s\"\n", to);
	if (found->kind == PROJECT_TCP || !http)
		return;
	if (found->kind == PROJECT_PACKAGES)
		buf_puts(out, "    methods: [GET, HEAD]\n    max_body: 0\n");
	if (found->kind == PROJECT_GIT) /* clone and fetch: a push is POST .../git-receive-pack */
		buf_printf(out,
			   "    methods: [GET, HEAD]\n    paths: [\"/**/info/refs\"]\n"
			   "  - allow: \"%s\"\n    methods: POST\n    paths: [\"/**/git-upload-pack\"]\n    max_body: "
			   "1MiB\n",
			   to);
	if (found->websocket)
		buf_puts(out, "    websocket: true\n");
}

static int project_print(const struct cli *cli, struct project *project, struct buf *notes)
{
	_buf_ struct buf yaml = BUF_INIT(1u << 20);
	size_t n = 0;

	for (size_t i = 0; i < project->n; i++) {
		char to[DESTINATION_SIZE];

		destination_text(&project->found[i], to);
		if (!*to) {
			project->left_out++;
			continue;
		}
		buf_puts(&yaml, n++ ? "" : "rules:\n");
		found_put(&project->found[i], to, &yaml);
	}
	if (buf_error(&yaml) || buf_error(notes)) {
		error_print(NULL, NP_R_FAILED, strerror(ENOMEM));
		return CLI_REFUSED;
	}
	if (cli->json)
		return json_print(json_pack("{s:s,s:i,s:i,s:s}", "yaml", yaml.data ? yaml.data : "", "rules", (int)n,
					    "left_out", (int)project->left_out, "notes",
					    notes->data ? notes->data : ""),
				  CLI_OK);
	if (!n)
		puts("# No file here names a host.");
	fputs(yaml.data ? yaml.data : "", stdout);
	fputs(notes->data ? notes->data : "", stdout);
	if (project->left_out)
		printf("# %zu are left out: names without a dot, this host itself, or no host at all.\n",
		       project->left_out);
	return CLI_OK;
}

int policy_suggest_dir(const struct cli *cli, const char *path)
{
	_free_ struct project *project = calloc(1, sizeof(*project));
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_buf_ struct buf notes = BUF_INIT(1u << 16);

	if (dir < 0 || !project) {
		fprintf(stderr, "netpawl: %s: %s\n", path, strerror(errno));
		return CLI_REFUSED;
	}
	for (size_t i = 0; i < n_project_files; i++) {
		_buf_ struct buf text = BUF_INIT(NP_PROJECT_FILE);
		int e = file_take(dir, project_files[i].path, &text);

		if (e == 0 && text.len)
			e = project_read(&project_files[i], text.data, text.len, project);
		if (e < 0 && e != -ENOENT)
			buf_printf(&notes, "# %s is left out: %s.\n", project_files[i].path, problem_words(e));
	}
	return project_print(cli, project, &notes);
}
