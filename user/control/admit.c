/* SPDX-License-Identifier: MIT */
#include "control/admit.h"

#include <errno.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "control/access.h"
#include "control/reply.h"

#define ANSWER_MAX 2048

void admit_init(struct admit *admit, int fd)
{
	*admit = (struct admit){ .fd = fd };
	for (size_t i = 0; i < ADMIT_FAREWELLS; i++)
		admit->farewells[i].fd = -1;
}

void admit_free(struct admit *admit)
{
	for (size_t i = 0; i < ADMIT_FAREWELLS; i++)
		cleanup_close(&admit->farewells[i].fd);
	cleanup_close(&admit->fd);
}

void admit_answer(int fd, const struct failure *failure)
{
	struct buf text = BUF_INIT(ANSWER_MAX);
	struct answer answer = { 0 };

	answer_failure(&answer, failure);
	buf_printf(
		&text,
		"HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
		"Content-Length: %zu\r\n\r\n",
		answer.status, MHD_get_reason_phrase_for(answer.status), answer.len);
	buf_append(&text, answer.body, answer.len);
	if (!buf_error(&text))
		(void)!send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	free(answer.body);
	buf_free(&text);
}

void admit_refuse(struct admit *admit, int fd, const struct failure *failure)
{
	int *place = &admit->farewells[admit->next].fd;

	admit_answer(fd, failure);
	shutdown(fd, SHUT_WR);
	if (*place >= 0)
		close(*place);
	*place = fd;
	admit->farewells[admit->next].aged = false;
	admit->next = (admit->next + 1) % ADMIT_FAREWELLS;
}

void admit_tick(struct admit *admit)
{
	for (size_t i = 0; i < ADMIT_FAREWELLS; i++) {
		if (admit->farewells[i].fd >= 0 && admit->farewells[i].aged) {
			close(admit->farewells[i].fd);
			admit->farewells[i].fd = -1;
		}
		admit->farewells[i].aged = true;
	}
}

int admit_accept(struct admit *admit, const struct server_config *config, struct peer *ret)
{
	_close_ int fd = accept4(admit->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct failure failure;

	if (fd < 0)
		return errno == ECONNABORTED || errno == EINTR ? -EACCES : -errno;
	*ret = (struct peer){ .who = "nobody knows" };
	if (peer_read(fd, ret) < 0 || !peer_is_outside(ret, config)) {
		failure_put(&failure, -EACCES, NP_R_FROM_SANDBOX, "%s", ret->who);
	} else {
		access_find(config->access, config, ret);
		if (ret->roles)
			return take_fd(fd);
		failure_put(&failure, -EACCES, NP_R_NO_ROLE, "%s", ret->who);
	}
	admit_refuse(admit, take_fd(fd), &failure);
	return -EACCES;
}
