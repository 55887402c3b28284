/* SPDX-License-Identifier: MIT */
#include "launch/trust_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api_client/api.h"
#include "api_client/container.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "launch/run.h"
#include "reason.h"
#include "vocab/words.h"

/* What a root file system does not have the engine makes, in the container's own layer. */
const struct trust_place trust_places[] = {
	{ "/etc/ssl/certs/ca-certificates.crt", TRUST_BUNDLE },		       /* Debian, Alpine, distroless */
	{ "/etc/ssl/cert.pem", TRUST_BUNDLE },				       /* Alpine, LibreSSL */
	{ "/etc/pki/tls/certs/ca-bundle.crt", TRUST_BUNDLE },		       /* RHEL and its kin */
	{ "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", TRUST_BUNDLE }, /* the same, where the one above leads */
	{ "/etc/ssl/ca-bundle.pem", TRUST_BUNDLE },			       /* SUSE */
	{ "/etc/ssl/certs/java/cacerts", TRUST_STORE },			       /* Java of Debian */
	{ "/etc/pki/ca-trust/extracted/java/cacerts", TRUST_STORE },	       /* Java of RHEL */
	{ "/usr/local/share/ca-certificates/netpawl.crt", TRUST_CA }, /* update-ca-certificates: Debian, Alpine */
	{ "/etc/pki/ca-trust/source/anchors/netpawl.pem", TRUST_CA }, /* update-ca-trust, and p11-kit by itself: RHEL */
};
const size_t trust_places_n = ARRAY_SIZE(trust_places);

/* Never through a link that somebody put there; never into a file that a container has mounted: that one stays as it is; and never a
 * moment without it: an engine that is about to mount it makes a directory of what it does not find. */
static int file_write(int dir, const char *name, const struct buf *data)
{
	_close_ int fd = -1;
	char new[NAME_MAX];
	int r;

	snprintf(new, sizeof(new), ".%s.%d", name, (int)getpid());
	unlinkat(dir, new, 0);
	fd = openat(dir, new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = fs_write_all(fd, data->data, data->len);
	if (r == 0 && (fchmod(fd, 0644) < 0 || renameat(dir, new, dir, name) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(dir, new, 0);
	return r;
}

/* For what knows the certificate by its older name. Replaced as files are. */
static int link_write(int dir)
{
	char new[NAME_MAX];

	snprintf(new, sizeof(new), ".%s.%d", TRUST_CA_LINK, (int)getpid());
	unlinkat(dir, new, 0);
	if (symlinkat(TRUST_CA, dir, new) == 0 && renameat(dir, new, dir, TRUST_CA_LINK) == 0)
		return 0;
	return -errno;
}

int trust_files_write(const char *path, const struct trust *trust)
{
	_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = dir < 0 ? -errno : file_write(dir, TRUST_CA, &trust->ca);

	if (r == 0)
		r = link_write(dir);
	if (r == 0)
		r = file_write(dir, TRUST_BUNDLE, &trust->bundle);
	if (r == 0)
		r = file_write(dir, TRUST_STORE, &trust->store);
	if (r < 0)
		complain_text(path, "it cannot be written", reason_token(NP_R_FAILED), strerror(-r));
	return r;
}

int trust_variables_each(const char *dir, int (*fn)(void *data, const char *name, const char *value), void *data)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i <= trust_variables(); i++) {
		_buf_ struct buf value = BUF_INIT(3 * FS_PATH_SIZE);
		const char *name = "JAVA_TOOL_OPTIONS";

		if (i < trust_variables())
			trust_variable(i, dir, &name, &value);
		else
			trust_java(dir, &value);
		r = buf_error(&value) ? buf_error(&value) : fn(data, name, value.data);
	}
	return r;
}

/* Where the daemon looks for it, to remove it with the parent. */
static int container_dir(const char *socket, const char *sandbox, char path[static FS_PATH_SIZE])
{
	_api_answer_ struct api_answer answer = { 0 };
	int r, code = api_call(socket, sandbox, "GET", "/v1/launch", NULL, &answer);

	if (code != CLI_OK)
		return code;
	r = fs_path(path, "%s/" NP_CONTAINERS_DIR "/%s", member_text(answer.json, "run_dir") ?: "", sandbox);
	if (r == 0)
		r = fs_mkdir_all(path, 0755);
	if (r < 0)
		error_print(sandbox, NP_R_FAILED, strerror(-r));
	return r < 0 ? CLI_REFUSED : CLI_OK;
}

int container_trust(const char *socket, const char *session, bool systemd, struct api_answer *ret_parent,
		    char ret_dir[static FS_PATH_SIZE], bool *ret_has)
{
	cleanup(host_free) struct host host = { 0 };
	cleanup(trust_free) struct trust trust = { 0 };
	int r, code = container_parent(socket, session, systemd, ret_parent);

	*ret_has = false;
	if (code != CLI_OK)
		return code;
	r = host_look(NULL, &host);
	if (r < 0) {
		error_print(session, NP_R_FAILED, strerror(-r));
		return CLI_REFUSED;
	}
	r = session_trust(socket, session, &host, true, &trust);
	if (r <= 0)
		return r < 0 ? CLI_REFUSED : CLI_OK;
	*ret_has = true;
	code = container_dir(socket, member_text(ret_parent->json, "sandbox") ?: "", ret_dir);
	return code == CLI_OK && trust_files_write(ret_dir, &trust) < 0 ? CLI_REFUSED : code;
}
