/* SPDX-License-Identifier: MIT */
#include "cli/trust_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "api_client/message.h"
#include "base/cleanup.h"
#include "base/fs.h"
#include "reason.h"
#include "vocab/words.h"

/* Never through a link that somebody put there; and never into a file that a container has mounted: that one stays as it is. */
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

int trust_files_write(const char *path, const struct trust *trust)
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
