/* SPDX-License-Identifier: MIT */
/* netpawl env USER/SESSION */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "vocab/words.h"
#include "api_client/api.h"
#include "cli/options.h"
#include "cli/output.h"
#include "launch/run.h"
#include "reason.h"

static const char env_help[] =
	"Usage: netpawl env USER/SESSION --dir DIR [OPTIONS]\n\n"
	"For cgroups that were adopted: writes what programs have to trust for TLS through the inspector into\n"
	"DIR, and prints the variables that lead them there, for a shell to read. netpawl run does the same by\n"
	"itself. The session needs a sandbox: its CA lives as long.\n\n"
	"Options:\n"
	"  --dir DIR        an existing directory for authority.pem, bundle.pem and bundle.jks\n"
	"  --at PATH        where programs see DIR, when it is mounted elsewhere for them\n" OPTIONS_COMMON
	"\nExample:\n"
	"  eval \"$(netpawl env alice/demo --dir /srv/trust)\"\n\n"
	"Exit codes: 0 done; 1 refused or failed (no inspector); 2 wrong usage; 3 no daemon.\n";

/* Never through a link that somebody put there. */
static int file_write(int dir, const char *name, const struct buf *data)
{
	_close_ int fd = -1;
	int r;

	if (unlinkat(dir, name, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = fs_write_all(fd, data->data, data->len);
	return r < 0 ? r : fchmod(fd, 0644) < 0 ? -errno : 0;
}

static int files_write(const char *path, const struct trust *trust)
{
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : file_write(dir, TRUST_CA, &trust->ca);

	if (r == 0)
		r = file_write(dir, TRUST_BUNDLE, &trust->bundle);
	if (r == 0)
		r = file_write(dir, TRUST_STORE, &trust->store);
	if (r < 0)
		complain_text(path, "it cannot be written", reason_token(NP_R_FAILED), strerror(-r));
	return r;
}

/* Quoted for a shell. */
static void variable_print(const char *name, const char *value)
{
	printf("export %s='", name);
	for (; *value; value++)
		if (*value == '\'')
			fputs("'\\''", stdout);
		else
			fputc(*value, stdout);
	fputs("'\n", stdout);
}

static int variables_print(const struct cli *cli, const char *dir)
{
	_json_ json_t *json = json_object();

	for (size_t i = 0; i <= trust_variables(); i++) {
		_buf_ struct buf value = BUF_INIT(3 * FS_PATH_SIZE);
		const char *name = "JAVA_TOOL_OPTIONS";

		if (i < trust_variables())
			trust_variable(i, dir, &name, &value);
		else
			trust_java(dir, &value);
		if (buf_error(&value))
			return CLI_REFUSED;
		if (cli->json)
			json_object_set_new(json, name, json_string(value.data));
		else
			variable_print(name, value.data);
	}
	return cli->json ? json_print(take_ptr(json), CLI_OK) : CLI_OK;
}

int command_env(struct cli *cli, int argc, char **argv)
{
	const char *dir = NULL, *at = NULL;
	const struct option_spec specs[] = { { "dir", .value = &dir }, { "at", .value = &at } };
	const struct options options = { argv[0], env_help, specs, ARRAY_SIZE(specs), .operands = ONE_SESSION };
	cleanup(host_free) struct host host = { 0 };
	cleanup(trust_free) struct trust trust = { 0 };
	int next, r, code = command_parse(&options, cli, argc, argv, &next);

	if (code != OPTIONS_GO_ON)
		return code;
	if (!dir || dir[0] != '/' || (at && at[0] != '/'))
		return usage_error(argv[0], "--dir, and --at, take an absolute path");
	r = host_look(NULL, &host);
	if (r < 0) {
		error_print(argv[next], NP_R_FAILED, strerror(-r));
		return CLI_REFUSED;
	}
	r = session_trust(cli->socket, argv[next], &host, true, &trust);
	if (r == 0)
		error_print(argv[next], NP_R_NO_INSPECTOR, "the session has no sandbox, or no inspector is ready");
	if (r <= 0 || files_write(dir, &trust) < 0)
		return CLI_REFUSED;
	return variables_print(cli, at ? at : dir);
}
