/* SPDX-License-Identifier: MIT */
/*
 * A whole worker between clients and origins that are all hostile: what they do, and when, is the input. What reaches an
 * origin was allowed, whoever reads it (exchange_origin.h); after an escalation nothing does; the loop comes to rest; and
 * at the end nothing is left.
 *
 * A byte of flags, then pieces with "\xff\n" between them: a letter that says what is done, one of whom it is done by,
 * and bytes.
 */
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/log.h"
#include "exchange_stages.h"
#include "frames.h"
#include "policy/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* -- what is done ------------------------------------------------------------------------------- */

static void client_open(struct end *end, unsigned how)
{
	struct np_flow flow = { .cgroup_id = 1 + how % SANDBOXES,
				.addr = np_addr_v4(np_net32(0xc633640a)),
				.port = how & 4 ? 443 : 80,
				.generation = generation };
	int near;

	end_close(end);
	end_open(end, &near);
	nears[near].flow = flow;
	nears[near].h2 = how & 8;
	client_accept(worker, near);
	worker_flush(worker);
}

static void fill_send(struct end *end, size_t blocks)
{
	static const char block[4096];

	while (blocks--)
		end_send(end, block, sizeof(block));
}

static void frames_send(struct end *end, const uint8_t *data, size_t len)
{
	_buf_ struct buf out = BUF_INIT(1u << 20);

	frames_make(data, len, &out);
	end_send(end, out.data, out.len);
}

static void tick(unsigned how)
{
	static const unsigned ms[] = { 50, 500, 6000, 16000, 61000, 301000, 1, 10000 };

	now_ns += ms[how % ARRAY_SIZE(ms)] * 1000000ull;
	tick_fn(tick_data);
}

static bool client_do(uint8_t what, struct end *end, const uint8_t *data, size_t len)
{
	if (strchr("Cn2f", what) && end->fd < 0)
		client_open(end, 0);
	switch (what) {
	case 'o':
		client_open(end, len ? *data : 0);
		break;
	case 'C':
		end_send(end, data, len);
		break;
	case 'n':
		hello_send(end, data, len);
		break;
	case '2':
		frames_send(end, data, len);
		break;
	case 'f':
		fill_send(end, len ? *data : 16);
		break;
	case 'c':
		end_close(end);
		break;
	case 'h':
		end->shut = true;
		break;
	case 'r':
		end_reset(end);
		break;
	case 'd':
		end->deaf = !end->deaf;
		break;
	default:
		return false;
	}
	return true;
}

static bool far_do(uint8_t what, struct far *far, const uint8_t *data, size_t len)
{
	switch (what) {
	case 'O':
		far_send(far, data, len);
		break;
	case '3':
		frames_send(&far->end, data, len);
		break;
	case 'F':
		fill_send(&far->end, len ? *data : 16);
		break;
	case 'K':
		end_close(&far->end);
		break;
	case 'H':
		far->end.shut = true;
		break;
	case 'R':
		end_reset(&far->end);
		break;
	case 'D':
		far->end.deaf = !far->end.deaf;
		break;
	default:
		return false;
	}
	return true;
}

/* The latest that are open come first. */
static struct far *far_pick(unsigned which)
{
	unsigned open = 0;

	for (size_t i = 0; i < FARS; i++)
		open += fars[i].end.fd >= 0;
	which = open ? which % open : 0;
	for (size_t i = FARS; open && i-- > 0;)
		if (fars[i].end.fd >= 0 && !which--)
			return &fars[i];
	return NULL;
}

static void piece_do(const uint8_t *data, size_t len)
{
	uint8_t what = len ? data[0] : 0, who = len > 1 ? data[1] : 0;
	struct far *far = far_pick(who);

	data += len > 1 ? 2 : len;
	len -= len > 1 ? 2 : len;
	if (!what || client_do(what, &clients[who % CLIENTS], data, len) || (far && far_do(what, far, data, len)))
		return;
	switch (what) {
	case 'e':
		escalate(who % SESSIONS, who & 2 ? NP_PROXIED : NP_NONE);
		break;
	case 'g':
		send_sandbox(LINK_GONE, who % SANDBOXES, LEVEL_CONFIDENTIAL, NP_PROXIED);
		break;
	case 'l':
		reload();
		break;
	case 'a':
		message_send(LINK_CA, &cas[who % SESSIONS], sizeof(*cas), -1);
		break;
	case 'w':
		held = !held;
		break;
	case 'x':
		dial_fate = who % DIAL_FATES;
		break;
	case 't':
		tick(who);
		break;
	case 'q':
		hold_answer(who & 1);
		break;
	}
}

/* -- the end ------------------------------------------------------------------------------------- */

static void all_close(void)
{
	for (size_t i = 0; i < CLIENTS; i++)
		end_close(&clients[i]);
	for (size_t i = 0; i < FARS; i++)
		far_close(&fars[i]);
}

/* All have gone, and time has passed. */
static void check_quiet(void)
{
	struct session *session;
	struct sandbox *sandbox;

	check(!worker->n_clients && !worker->holds.n && LIST_EMPTY(&worker->dirty[LEG_CLIENT]) &&
	      LIST_EMPTY(&worker->dirty[LEG_ORIGIN]));
	for (sandbox = sandbox_next(worker, NULL); sandbox; sandbox = sandbox_next(worker, sandbox))
		check(!sandbox->n_clients && !sandbox->n_exchanges && LIST_EMPTY(&sandbox->clients));
	LIST_FOREACH(session, &worker->sessions, of_worker)
		check(!session->pool.n_idle && LIST_EMPTY(&session->pool.upstreams) &&
		      TAILQ_EMPTY(&session->pool.idle));
}

/* Step by step, the loop comes to rest between. */
static void world_end(void)
{
	switch (ending++) {
	case 0:
		held = false;
		dial_fate = DIAL_FAILS;
		for (size_t i = 0; i < CLIENTS; i++)
			clients[i].deaf = false;
		for (size_t i = 0; i < FARS; i++)
			fars[i].end.deaf = false;
		break;
	case 1:
		if (!(flags & FLAG_CUT))
			all_close();
		break;
	case 2:
	case 3:
	case 4:
		if (!(flags & FLAG_CUT))
			tick(5);
		break;
	case 5:
		if (!(flags & FLAG_CUT))
			check_quiet();
		for (unsigned i = 0; i < SANDBOXES; i++)
			send_sandbox(LINK_GONE, i, LEVEL_CONFIDENTIAL, NP_PROXIED);
		break;
	case 6:
		check_quiet();
		check(LIST_EMPTY(&worker->sessions));
		shutdown(link_fd, SHUT_RDWR);
		break;
	default:
		check(false); /* the worker did not notice */
	}
}

static void world_step(void)
{
	const uint8_t *end, *at = input;

	check(++steps < STEPS_MAX);
	receive();
	if ((!held && tls_bring_up()) || ends_move())
		return;
	if (at == input_end || ++pieces > PIECES_MAX) {
		world_end();
		return;
	}
	end = memmem(at, (size_t)(input_end - at), "\xff\n", 2);
	input = end ? end + 2 : input_end;
	piece_do(at, (size_t)((end ? end : input_end) - at));
}

/* -- the beginning --------------------------------------------------------------------------------- */

static struct worker_fds given;
static int dns_origins; /* an empty np_dns_origins: nobody asks for names here */

static void world_start(void)
{
	int fds[2];

	check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	link_fd = fds[0];
	now_ns = 1000000000000;
	generation = policy = pieces = steps = ending = rounds = 0;
	dial_fate = DIAL_WORKS;
	held = false;
	odd = flags;
	memset(closed, 0, sizeof(closed));
	for (size_t i = 0; i < CLIENTS; i++)
		clients[i] = (struct end){ .fd = -1, .near = -1 };
	for (size_t i = 0; i < FARS; i++) {
		fars[i].end = (struct end){ .fd = -1, .near = -1 };
		origin_init(&fars[i].origin);
	}
	given = (struct worker_fds){ .link = fds[1], .dns_origins = dns_origins };
	for (unsigned i = 0; i < 2; i++) {
		given.listeners[i] = eventfd(0, EFD_CLOEXEC);
		given.dns[i] = eventfd(0, EFD_CLOEXEC);
	}
	check(worker_new(&given, &worker) == 0);
	message_send(LINK_SETTINGS, NULL, 0, blob_settings);
	message_send(LINK_POLICY, NULL, 0, blob_policies[0]);
	message_send(LINK_ROOTS, NULL, 0, blob_batch);
	for (unsigned i = 0; i < SANDBOXES; i++)
		send_sandbox(LINK_SANDBOX, i, LEVEL_CONFIDENTIAL, NP_PROXIED);
	for (unsigned i = 0; i < SESSIONS && !(flags & FLAG_NO_CA); i++)
		message_send(LINK_CA, &cas[i], sizeof(*cas), -1);
	message_send(LINK_BATCH, NULL, 0, blob_batch);
}

static unsigned fds_open(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned before = fds_open();

	if (!size)
		return 0;
	flags = data[0];
	ends_small = flags & FLAG_SMALL;
	input = data + 1;
	input_end = data + size;
	world_start();
	check(worker_run(worker) == 0 && worker->ready);
	worker_free(worker);
	all_close();
	for (size_t i = 0; i < 2; i++) {
		close(given.listeners[i]);
		close(given.dns[i]);
	}
	close(given.link);
	close(link_fd);
	for (size_t i = 0; i < FARS; i++)
		origin_clear(&fars[i].origin);
	check(fds_open() == before);
	return 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	signal(SIGPIPE, SIG_IGN);
	dns_origins = memfd_create("asks", MFD_CLOEXEC);
	check(ftruncate(dns_origins, NP_DNS_ORIGINS * sizeof(struct np_dns_origin)) == 0);
	log_setup("fuzz", LOG_LEVEL_ERROR);
	for (size_t i = 0; i < SESSIONS; i++) {
		snprintf(cas[i].session, sizeof(cas[i].session), "%s", sessions[i]);
		cas[i].len = 1; /* what it is made of stays closed */
	}
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
		_buf_ struct buf record = BUF_INIT(1u << 20);

		snapshot_begin(&record, "", "fuzz.yaml");
		snapshot_add(&record, "fuzz.yaml", policies[i], strlen(policies[i]));
		check(link_blob(record.data, record.len, &blob_policies[i]) == 0);
	}
	check(link_blob("\0", 2, &blob_settings) == 0 && link_blob("", 0, &blob_batch) == 0);
	return 0;
}
