/* SPDX-License-Identifier: MIT */
/* netpawl policy save FILE */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api_client/api.h"
#include "base/fs.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/policy.h"
#include "reason.h"
#include "vocab/limits.h"

static const char save_help[] =
	"Usage: netpawl policy save FILE [OPTIONS]\n\n"
	"Has the daemon write FILE (-: the standard input) in the place of a file of its policy, and reload. It\n"
	"is read first, with the whole policy: with errors nothing is written. A file that is another by now\n"
	"than the live policy was read from is not written over. Needs the role operator or editor.\n\n"
	"Options:\n"
	"  --name NAME      the file of the policy, as netpawl policy save --list says it; FILE's name unless\n"
	"                   written, and the first one for -\n"
	"  --old SHA256     the text that was seen; that of the live policy unless written\n"
	"  --list           the files of the live policy with their hashes, and nothing is saved\n" OPTIONS_COMMON
	"\nExample:\n"
	"  netpawl policy save policy.yaml\n\n"
	"Exit codes: 0 it is live; 1 refused (errors, changed meanwhile, not for you) or failed; 2 wrong usage;\n"
	"3 no daemon.\n";

static const json_t *file_find(const json_t *source, const char *name)
{
	const json_t *file;
	size_t i;

	json_array_foreach(json_object_get(source, "files"), i,
			   file) if (!strcmp(member_text(file, "name") ?: "", name)) return file;
	return NULL;
}

static int list_print(const struct cli *cli, const json_t *source)
{
	_table_ struct table table = { .columns = 2 };
	json_t *list = json_array();
	const json_t *file;
	size_t i;

	json_array_foreach(json_object_get(source, "files"), i, file)
	{
		const char *name = member_text(file, "name") ?: "?", *hash = member_text(file, "sha256") ?: "?";

		table_add(&table, hash, name);
		json_array_append_new(list, json_pack("{s:s,s:s}", "name", name, "sha256", hash));
	}
	if (cli->json)
		return json_print(json_pack("{s:o}", "files", list), CLI_OK);
	json_decref(list);
	table_print(&table, stdout);
	return CLI_OK;
}

static int text_read(const char *path, struct buf *out)
{
	_close_ int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
	int r = fd < 0 ? -errno : fs_read_fd(fd, out);

	if (r == 0 && out->data && strlen(out->data) != out->len)
		r = -EILSEQ;
	if (r == 0)
		return CLI_OK;
	output_clean_line(stderr, "netpawl: %s: %s", path, r == -EILSEQ ? "it has a NUL" : strerror(-r));
	return CLI_REFUSED;
}

static int text_save(const struct cli *cli, const char *name, const char *old, const struct buf *text)
{
	_api_answer_ struct api_answer answer = { 0 };
	json_t *body;
	int code =
		api_body(name, json_pack("{s:s,s:s,s:s}", "file", name, "old", old, "text", text->data ?: ""), &body);

	if (code == CLI_OK)
		code = api_call(cli->socket, name, "PUT", "/v1/policy/file", body, &answer);
	if (code != CLI_OK)
		return code;
	if (cli->json)
		return json_print(json_incref(answer.json), CLI_OK);
	reload_print(answer.json);
	return CLI_OK;
}

int command_policy_save(struct cli *cli, int argc, char **argv)
{
	const char *name = NULL, *old = NULL, *slash;
	bool list = false;
	const struct option_spec specs[] = { { "name", .value = &name },
					     { "old", .value = &old },
					     { "list", .flag = &list } };
	const struct options options = { "policy save", save_help, specs, ARRAY_SIZE(specs),
					 .operands = { 0, 1, "one file", false } };
	_api_answer_ struct api_answer source = { 0 };
	_buf_ struct buf text = BUF_INIT(NP_POLICY_BYTES);
	const json_t *file;
	int next, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!list && next == argc)
		return usage_error("policy save", "it takes a file");
	code = api_call(cli->socket, "policy", "GET", "/v1/policy/source", NULL, &source);
	if (code != CLI_OK || list)
		return code != CLI_OK ? code : list_print(cli, source.json);
	code = text_read(argv[next], &text);
	if (code != CLI_OK)
		return code;
	slash = strrchr(argv[next], '/');
	if (!name)
		name = !strcmp(argv[next], "-") ? member_text(source.json, "first") ?: ""
		       : slash			? slash + 1
						: argv[next];
	file = file_find(source.json, name);
	if (!file && !old) {
		error_print(name, NP_R_NO_SUCH_FILE, "see netpawl policy save --list, and --name");
		return CLI_REFUSED;
	}
	return text_save(cli, name, old ?: member_text(file, "sha256") ?: "", &text);
}
