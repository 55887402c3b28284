/* SPDX-License-Identifier: MIT */
#include "supervisor/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/log.h"
#include "base/sockaddr.h"
#include "supervisor/spawn.h"
#include "vocab/limits.h"
#include "vocab/session_name.h"
#include "wire/url.h"

#define TICK_MS	     100
#define ID_SIZE	     32
#define SUMMARY_SIZE 256
#define ANSWER_HEAD  12 /* "HTTP/1.1 200" */

struct news {
	struct session_name session;
	char id[ID_SIZE], summary[SUMMARY_SIZE];
};

/* One that is being told: a process, or a connection. */
struct telling {
	struct notifier *notifier;
	bool used;
	uint64_t start_ns;
	struct news news;
	pid_t pid;
	int watched; /* the process, as a descriptor, or the connection */
	int errors;  /* what the process writes to its stderr */
	struct buf out;
	char head[ANSWER_HEAD + 1]; /* of the answer */
	size_t head_len;
};

struct notifier {
	struct notifier_config config;
	char **words; /* a command, or NULL */
	bool network;
	char *socket, *url; /* each NULL, unless the policy names one */
	struct news queue[NP_NOTIFY_QUEUE];
	size_t n;
	struct session_name last; /* whose news went out last: sessions take turns */
	struct telling telling[NP_NOTIFY_AT_ONCE];
	uint64_t started_ns;
	uint64_t sent, failed, dropped;
	uint64_t logged_ns;
};

static void clean_copy(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; from[i] && i + 1 < size; i++)
		to[i] = from[i];
	to[i] = '\0';
	for (char *at = to; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

static bool has_target(const struct notifier *notifier)
{
	return notifier->words || notifier->socket || notifier->url;
}

/* Once a second at most: a flood of questions is no flood of the log. */
static void failure_log(struct notifier *notifier, const char *id, const char *why)
{
	const uint64_t now = loop_now_ns();

	notifier->failed++;
	if (notifier->logged_ns && now - notifier->logged_ns < 1000000000)
		return;
	notifier->logged_ns = now;
	log_warning("approval: notify: question %s: %s (%llu failures)", id, why, (unsigned long long)notifier->failed);
}

/* -- one of them --------------------------------------------------------------------------------- */

/* why: NULL when it was told. */
static void telling_end(struct telling *telling, const char *why)
{
	struct notifier *notifier = telling->notifier;

	if (telling->watched >= 0) {
		loop_unwatch(notifier->config.loop, telling->watched);
		close(telling->watched);
	}
	if (telling->errors >= 0)
		close(telling->errors);
	if (telling->pid)
		spawn_end(telling->pid); /* it is dead, or first of a namespace that dies with it */
	buf_free(&telling->out);
	if (why)
		failure_log(notifier, telling->news.id, why);
	else
		notifier->sent++;
	*telling = (struct telling){ .notifier = notifier, .watched = -1, .errors = -1 };
}

static void on_exit_of(void *data, uint32_t events)
{
	struct telling *telling = data;
	char words[160], why[256];
	siginfo_t info = { 0 };
	ssize_t n;

	(void)events;
	if (waitid(P_PID, (id_t)telling->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return;
	n = read(telling->errors, words, sizeof(words) - 1);
	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	clean_copy(why, sizeof(why), words);
	if (info.si_code == CLD_EXITED && info.si_status == 0) {
		telling_end(telling, NULL);
		return;
	}
	snprintf(words, sizeof(words), "%s %d%s%.100s", info.si_code == CLD_EXITED ? "exit code" : "killed by signal",
		 info.si_status, *why ? ": " : "", why);
	telling_end(telling, words);
}

static int command_start(struct telling *telling)
{
	struct notifier *notifier = telling->notifier;
	const struct spawn_user user = { .uid = notifier->config.uid, .network = notifier->network };
	const char *argv[NP_RULE_WORDS + 3];
	_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC), write_end = -1;
	size_t n = 0;
	int pipe[2], r;

	for (; notifier->words[n]; n++)
		argv[n] = notifier->words[n];
	argv[n] = telling->news.id;
	argv[n + 1] = telling->news.summary;
	argv[n + 2] = NULL;
	if (null < 0 || pipe2(pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	telling->errors = pipe[0];
	write_end = pipe[1];
	r = spawn_apart(&user, argv, null, write_end, &telling->pid);
	if (r < 0) {
		telling->pid = 0;
		return r;
	}
	telling->watched = (int)syscall(SYS_pidfd_open, telling->pid, 0);
	if (telling->watched < 0)
		return -errno;
	r = loop_watch(notifier->config.loop, telling->watched, EPOLLIN, on_exit_of, telling);
	if (r < 0) {
		close(telling->watched);
		telling->watched = -1;
	}
	return r;
}

static void json_write(const struct telling *telling, struct buf *out)
{
	json_open_object(out, NULL);
	json_put_text(out, "id", telling->news.id, SIZE_MAX);
	json_put_text(out, "summary", telling->news.summary, SIZE_MAX);
	json_close_object(out);
	buf_puts(out, "\n");
}

/* A unix socket is connected and takes these few bytes at once, or it fails. */
static int socket_send(struct telling *telling)
{
	struct notifier *notifier = telling->notifier;
	_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(struct ucred);
	struct ucred peer;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", notifier->socket);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (kernel_is_sandboxed(notifier->config.kernel, peer.pid)) /* it would read of others' sessions */
		return -EPERM;
	json_write(telling, &telling->out);
	if (buf_error(&telling->out))
		return -ENOMEM;
	return send(fd, telling->out.data, telling->out.len, MSG_NOSIGNAL) == (ssize_t)telling->out.len ? 0 : -EIO;
}

static void on_connection(void *data, uint32_t events)
{
	struct telling *telling = data;
	struct loop *loop = telling->notifier->config.loop;
	ssize_t n;

	(void)events;
	if (telling->out.len) { /* it is connected, or will never be */
		n = send(telling->watched, telling->out.data, telling->out.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			telling_end(telling, strerror(errno));
			return;
		}
		buf_drop(&telling->out, (size_t)n);
		if (telling->out.len)
			return;
		loop_unwatch(loop, telling->watched);
		if (loop_watch(loop, telling->watched, EPOLLIN, on_connection, telling) < 0)
			telling_end(telling, "out of memory");
		return;
	}
	n = recv(telling->watched, telling->head + telling->head_len, ANSWER_HEAD - telling->head_len, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		telling->head_len += (size_t)n;
	if (n > 0 && telling->head_len < ANSWER_HEAD)
		return;
	/* All that is wanted of it is that it says 2xx. */
	telling_end(telling, telling->head_len == ANSWER_HEAD && !strncmp(telling->head, "HTTP/1.", 7) &&
					     telling->head[8] == ' ' && telling->head[9] == '2'
				     ? NULL
				     : "it was not answered with a status of 2xx");
}

static int url_start(struct telling *telling)
{
	struct notifier *notifier = telling->notifier;
	_buf_ struct buf body = BUF_INIT(4096);
	union sockaddr_inet to;
	struct url url;
	int r;

	if (url_parse(notifier->url, &url) < 0 || !url.host.is_addr)
		return -EINVAL;
	to = sockaddr_of(&url.host.addr, url.port);
	json_write(telling, &body);
	buf_printf(&telling->out,
		   "POST %s HTTP/1.1\r\nHost: localhost:%u\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n",
		   url.target, url.port, body.len);
	buf_append(&telling->out, body.data, body.len);
	if (buf_error(&body) || buf_error(&telling->out))
		return -ENOMEM;
	telling->watched = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (telling->watched < 0)
		return -errno;
	r = connect(telling->watched, &to.sa, sockaddr_len(&to)) < 0 && errno != EINPROGRESS ? -errno : 0;
	if (r == 0)
		r = loop_watch(notifier->config.loop, telling->watched, EPOLLOUT, on_connection, telling);
	if (r < 0) {
		close(telling->watched);
		telling->watched = -1;
	}
	return r;
}

static void telling_start(struct telling *telling, const struct news *news)
{
	const struct notifier *notifier = telling->notifier;
	int r;

	telling->used = true;
	telling->news = *news;
	telling->start_ns = loop_now_ns();
	telling->out = BUF_INIT(8192);
	r = notifier->words ? command_start(telling) : notifier->url ? url_start(telling) : socket_send(telling);
	if (r < 0 || notifier->socket)
		telling_end(telling, r < 0 ? strerror(-r) : NULL);
}

/* -- all of them ---------------------------------------------------------------------------------- */

/* The first of a session that was not told of last, if there is one. */
static struct news queue_take(struct notifier *notifier)
{
	struct news news;
	size_t at = 0;

	while (at < notifier->n && !strcmp(notifier->queue[at].session.text, notifier->last.text))
		at++;
	if (at == notifier->n)
		at = 0;
	news = notifier->queue[at];
	memmove(notifier->queue + at, notifier->queue + at + 1, (--notifier->n - at) * sizeof(news));
	notifier->last = news.session;
	return news;
}

static void queue_look(struct notifier *notifier)
{
	for (size_t i = 0; i < NP_NOTIFY_AT_ONCE && notifier->n; i++) {
		const uint64_t now = loop_now_ns();
		struct news news;

		if (notifier->telling[i].used)
			continue;
		if (notifier->started_ns && now - notifier->started_ns < NP_NOTIFY_GAP_MS * UINT64_C(1000000))
			return;
		notifier->started_ns = now;
		news = queue_take(notifier);
		telling_start(&notifier->telling[i], &news);
	}
}

static void on_tick(void *data)
{
	struct notifier *notifier = data;

	for (size_t i = 0; i < NP_NOTIFY_AT_ONCE; i++) {
		struct telling *telling = &notifier->telling[i];

		if (telling->used && loop_now_ns() - telling->start_ns > NP_NOTIFY_MS * UINT64_C(1000000))
			telling_end(telling, "it took too long, and was ended");
	}
	queue_look(notifier);
}

static unsigned queue_share(const struct notifier *notifier, const char *session)
{
	unsigned n = 0;

	for (size_t i = 0; i < notifier->n; i++)
		n += !strcmp(notifier->queue[i].session.text, session);
	return n;
}

void notifier_put(struct notifier *notifier, const char *session, const char *id, const char *summary)
{
	struct news *news = &notifier->queue[notifier->n];

	if (!has_target(notifier))
		return;
	if (notifier->n == NP_NOTIFY_QUEUE || queue_share(notifier, session) >= NP_NOTIFY_PER_SESSION) {
		notifier->dropped++;
		return;
	}
	snprintf(news->session.text, sizeof(news->session.text), "%s", session);
	clean_copy(news->id, sizeof(news->id), id);
	clean_copy(news->summary, sizeof(news->summary), summary);
	notifier->n++;
	/* Not from in here: whoever asks is answered first. The next tick is a moment away. */
}

static void target_free(struct notifier *notifier)
{
	for (char **word = notifier->words; word && *word; word++)
		free(*word);
	free(take_ptr(notifier->words));
	free(take_ptr(notifier->socket));
	free(take_ptr(notifier->url));
}

void notifier_policy(struct notifier *notifier, const struct policy *policy)
{
	const struct notify *notify = &policy->approval.notify;
	size_t n = 0;
	bool good = true;

	target_free(notifier);
	notifier->network = notify->network;
	while (notify->command && notify->command[n])
		n++;
	notifier->words = n ? calloc(n + 1, sizeof(*notifier->words)) : NULL;
	for (size_t i = 0; notifier->words && i < n && good; i++)
		good = (notifier->words[i] = strdup(notify->command[i]));
	notifier->socket = notify->socket ? strdup(notify->socket) : NULL;
	notifier->url = notify->url ? strdup(notify->url) : NULL;
	if (!good || (n && !notifier->words) || (notify->socket && !notifier->socket) ||
	    (notify->url && !notifier->url)) {
		log_warning("approval: notify: out of memory: nobody is notified");
		target_free(notifier);
	}
	if (!has_target(notifier))
		notifier->n = 0;
}

void notifier_describe(const struct notifier *notifier, struct buf *out)
{
	json_open_object(out, "notify");
	json_put_number(out, "sent", notifier->sent);
	json_put_number(out, "failed", notifier->failed);
	json_put_number(out, "dropped", notifier->dropped);
	json_put_number(out, "waiting", notifier->n);
	json_close_object(out);
}

int notifier_new(const struct notifier_config *config, struct notifier **ret)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	int r;

	if (!notifier)
		return -ENOMEM;
	notifier->config = *config;
	for (size_t i = 0; i < NP_NOTIFY_AT_ONCE; i++)
		notifier->telling[i] = (struct telling){ .notifier = notifier, .watched = -1, .errors = -1 };
	r = loop_every(config->loop, TICK_MS, on_tick, notifier);
	if (r < 0) {
		free(notifier);
		return r;
	}
	*ret = notifier;
	return 0;
}

void notifier_free(struct notifier *notifier)
{
	if (!notifier)
		return;
	for (size_t i = 0; i < NP_NOTIFY_AT_ONCE; i++)
		if (notifier->telling[i].used)
			telling_end(&notifier->telling[i], "the daemon ends");
	target_free(notifier);
	free(notifier);
}
