/* SPDX-License-Identifier: MIT */
/* The gate's decisions, natively: the same text that the kernel runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <string.h>

#include "gate.bpf.h"

static struct np_addr addr(const char *text)
{
	struct np_addr a;
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		return np_addr_v4(v4.s_addr);
	assert_int_equal(inet_pton(AF_INET6, text, &a), 1);
	return a;
}

static struct np_facts to(enum np_mode mode, int protocol, const char *address, int port)
{
	return (struct np_facts){ .mode = mode,
				  .protocol = (uint16_t)protocol,
				  .port = (uint16_t)port,
				  .addr = addr(address),
				  .opening = true };
}

static void metadata_is_refused_in_every_mode_and_disguise(void **state)
{
	static const char *const bad[] = {
		"169.254.169.254",
		"169.254.0.1",
		"::ffff:169.254.169.254",
		"64:ff9b::a9fe:a9fe",
		"2002:a9fe:a9fe::1",
		"100.100.100.200",
		"168.63.129.16",
		"192.0.0.192",
		"fd00:ec2::254",
		"fe80::1",
		"febf::1",
		"fd20:ce::254",
		"fd00:42::42",
	};
	static const char *const good[] = {
		"169.253.255.255", "169.255.0.0", "100.100.100.201",   "168.63.129.17",
		"192.0.0.193",	   "fd00:ec3::1", "fec0::1",	       "fd20:ce::255",
		"fd00:42::43",	   "2001:db8::1", "64:ff9b::c000:201",
	};

	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++)
		for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			struct np_facts f = to(mode, 6, bad[i], 80);

			assert_int_equal(np_judge_out(&f), NP_R_METADATA);
			f.local = true; /* even when the host itself has the address */
			assert_int_equal(np_judge_out(&f), NP_R_METADATA);
			assert_true(np_judge_cut(&f, true));
		}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		struct np_facts f = to(NP_FULL, 6, good[i], 80);

		assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	}
}

static void modes_decide_what_leaves(void **state)
{
	struct np_facts f = to(NP_FULL, 6, "192.0.2.1", 443);

	(void)state;
	assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	f.mode = NP_NONE;
	assert_int_equal(np_judge_out(&f), NP_R_MODE_NONE);
	f.mode = NP_PROXIED;
	assert_int_equal(np_judge_out(&f), NP_R_NOT_IN_POLICY);
	f.inspected = true;
	assert_int_equal(np_judge_out(&f), NP_R_NO_INSPECTOR);
	f.inspected = false;
	f.port = 53;
	assert_int_equal(np_judge_out(&f), NP_R_NO_DNS_GATE);
	f.protocol = 17;
	assert_int_equal(np_judge_out(&f), NP_R_NO_DNS_GATE);
	f.port = 443;
	assert_int_equal(np_judge_out(&f), NP_R_NOT_IN_POLICY);
	f.mode = 0;
	assert_int_equal(np_judge_out(&f), NP_R_UNREGISTERED);
	f.mode = 77; /* a mode from the future is the strictest */
	assert_int_equal(np_judge_out(&f), NP_R_MODE_NONE);
}

static void rules_decide_in_proxied(void **state)
{
	static const struct {
		enum np_action action;
		enum np_reason reason;
	} cases[] = {
		{ 0, NP_R_NOT_IN_POLICY },	 { NP_ALLOW, NP_R_RULE_ALLOWS },    { NP_DENY, NP_R_RULE_DENIES },
		{ NP_ASK, NP_R_NEEDS_APPROVAL }, { NP_DECIDE, NP_R_NEEDS_DECIDER }, { 77, NP_R_NOT_IN_POLICY },
		{ NP_READ, NP_R_READ_ONLY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct np_facts f = to(NP_PROXIED, 6, "192.0.2.1", 8443);

		f.action = cases[i].action;
		assert_int_equal(np_judge_out(&f), cases[i].reason);
		assert_int_equal(np_judge_cut(&f, false), f.action != NP_ALLOW);
		/* answers come in, calls do not */
		f.opening = false;
		assert_int_equal(np_judge_in(&f), f.action == NP_ALLOW ? NP_R_RULE_ALLOWS : NP_R_INBOUND);
		f.opening = true;
		assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
		/* an option may name another next hop, and hides the ports */
		f.options = true;
		assert_int_equal(np_judge_out(&f), NP_R_IP_OPTIONS);
		f.options = false;
		/* NONE knows no rules, and this host is reached by host_loopback only */
		f.mode = NP_NONE;
		assert_int_equal(np_judge_out(&f), NP_R_MODE_NONE);
		assert_true(np_judge_cut(&f, false));
		f.opening = false;
		assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
		f.mode = NP_PROXIED;
		f.opening = f.local = true;
		f.peer = NP_PEER_HOST;
		assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
		assert_true(np_judge_cut(&f, false));
	}
}

/* Addresses of sandboxes with a way out of their own: nobody's to call, whatever a rule says, but by who has it. */
static void others_with_a_way_out_are_closed(void **state)
{
	static const char *const addrs[] = { "100.127.240.0", "100.127.255.255", "fd6e:6574:7061:7768::fff",
					     "64:ff9b::647f:f001" };

	(void)state;
	for (size_t i = 0; i < sizeof(addrs) / sizeof(*addrs); i++) {
		struct np_facts f = to(NP_FULL, 6, addrs[i], 80);

		for (f.action = 0; f.action <= NP_ALLOW; f.action += NP_ALLOW) {
			f.mode = NP_FULL;
			assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
			f.mode = NP_PROXIED;
			assert_false(NP_REASON_ALLOWS(np_judge_out(&f)));
			f.mode = NP_NONE;
			assert_int_equal(np_judge_out(&f), NP_R_MODE_NONE);
		}
		f = to(NP_FULL, 6, addrs[i], 80);
		f.local = true;
		f.peer = NP_PEER_SELF;
		assert_int_equal(np_judge_out(&f), NP_R_OWN_LOOPBACK);
	}
	{
		struct np_facts f = to(NP_FULL, 6, "100.127.239.255", 80);

		assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	}
}

static void rules_refuse_in_full(void **state)
{
	struct np_facts f = to(NP_FULL, 6, "192.0.2.1", 8443), meta = to(NP_FULL, 6, "169.254.169.254", 80);

	(void)state;
	f.action = NP_DENY;
	assert_int_equal(np_judge_out(&f), NP_R_RULE_DENIES);
	assert_true(np_judge_cut(&f, false));
	f.action = NP_ALLOW;
	assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	assert_false(np_judge_cut(&f, false));
	meta.action = NP_ALLOW;
	assert_int_equal(np_judge_out(&meta), NP_R_OPEN_MODE);
	assert_false(np_judge_cut(&meta, false));
	meta.mode = NP_PROXIED;
	assert_int_equal(np_judge_out(&meta), NP_R_RULE_ALLOWS);
	/* a grant that the inspector has to look at: there, and nowhere else */
	meta.action = NP_LOOK;
	meta.inspected = meta.inspector = true;
	assert_int_equal(np_judge_out(&meta), NP_R_STEERED);
	assert_true(np_wants_inspector(&meta));
	meta.inspector = false;
	assert_int_equal(np_judge_out(&meta), NP_R_NO_INSPECTOR);
	meta.inspected = false;
	assert_int_equal(np_judge_out(&meta), NP_R_NOT_IN_POLICY);
	meta.mode = NP_FULL;
	assert_int_equal(np_judge_out(&meta), NP_R_METADATA);
	meta.action = NP_ALLOW;
	meta.mode = NP_NONE;
	assert_int_equal(np_judge_out(&meta), NP_R_MODE_NONE);
}

static void loopback_is_private_in_every_mode(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++)
		for (int protocol = 6; protocol <= 17; protocol += 11) {
			struct np_facts f = to(mode, protocol, "127.0.0.1", 5432);

			f.local = true;
			f.peer = NP_PEER_SELF;
			assert_int_equal(np_judge_out(&f), NP_R_OWN_LOOPBACK);
			f.peer = NP_PEER_NOBODY;
			assert_int_equal(np_judge_out(&f), NP_R_NO_LISTENER);
			f.peer = NP_PEER_HOST;
			assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
			f.host_port = true;
			assert_int_equal(np_judge_out(&f), NP_R_HOST_PORT);
			f.peer = NP_PEER_NOBODY; /* the host's, if anybody's */
			assert_int_equal(np_judge_out(&f), NP_R_HOST_PORT);
			f.peer = NP_PEER_OTHER; /* a listed port is the host's, never another sandbox's */
			assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
		}
}

/* Somebody may be there whom the look-up does not find. */
static void nothing_is_sent_to_nobody(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++) {
		struct np_facts tcp = to(mode, 6, "192.0.2.2", 5432), udp = to(mode, 17, "192.0.2.2", 5432);

		tcp.local = udp.local = true; /* an address of the host, off loopback */
		assert_int_equal(np_judge_out(&tcp), NP_R_HOST_LOOPBACK);
		assert_int_equal(np_judge_out(&udp), NP_R_HOST_LOOPBACK);
		udp.connecting = true;
		assert_int_equal(np_judge_out(&udp), NP_R_NOTHING_SENT);
		tcp.opening = false; /* the kernel answers with a RST */
		assert_int_equal(np_judge_out(&tcp), mode == NP_FULL ? NP_R_OPEN_MODE : NP_R_NO_LISTENER);
		tcp = to(mode, 6, "::1", 5432);
		tcp.local = true;
		assert_int_equal(np_judge_out(&tcp), NP_R_NO_LISTENER);
		tcp.payload = true; /* with the SYN */
		assert_int_equal(np_judge_out(&tcp), NP_R_HOST_LOOPBACK);
	}
}

static void full_answers_its_callers_but_closed_modes_do_not(void **state)
{
	struct np_facts f = to(NP_FULL, 6, "127.0.0.1", 40000);

	(void)state;
	f.local = true;
	f.peer = NP_PEER_HOST;
	f.opening = false; /* an answer on a connection that the host opened */
	assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	f.mode = NP_PROXIED;
	assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
	f.mode = NP_NONE;
	assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
}

static void closed_modes_speak_only_plain_tcp_and_udp_to_themselves(void **state)
{
	struct np_facts f = to(NP_NONE, 1, "127.0.0.1", 0);

	(void)state;
	f.local = true;
	f.peer = NP_PEER_SELF;
	assert_int_equal(np_judge_out(&f), NP_R_PROTOCOL);
	f.protocol = 17;
	f.options = true;
	assert_int_equal(np_judge_out(&f), NP_R_IP_OPTIONS);
	f.mode = NP_FULL;
	assert_int_equal(np_judge_out(&f), NP_R_IP_OPTIONS);
}

static void multicast_and_broadcast_are_refused_in_every_mode(void **state)
{
	static const char *const many[] = { "224.0.0.251", "239.255.255.250", "255.255.255.255", "127.255.255.255",
					    "ff02::fb" };
	static const char *const one[] = { "223.255.255.255", "240.0.0.1", "127.0.0.1", "127.255.255.254", "fe00::1" };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		struct np_addr a = addr(many[i]), b = addr(one[i]);

		assert_true(np_addr_is_many(&a));
		assert_false(np_addr_is_many(&b));
	}
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++) {
		struct np_facts f = to(mode, 17, "192.0.2.255", 9);

		f.many = true;
		assert_int_equal(np_judge_out(&f), NP_R_MULTICAST);
	}
}

static void inbound_is_for_the_sandbox_itself(void **state)
{
	struct np_facts f = to(NP_NONE, 6, "127.0.0.1", 40000);

	(void)state;
	f.local = true;
	f.peer = NP_PEER_SELF;
	assert_int_equal(np_judge_in(&f), NP_R_OWN_LOOPBACK);
	f.peer = NP_PEER_HOST;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	f.host_port = true;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND); /* a listed host port may answer, not call */
	f.opening = false;
	assert_int_equal(np_judge_in(&f), NP_R_HOST_PORT);
	f.peer = NP_PEER_NOBODY; /* not found, as it is bound to a device */
	assert_int_equal(np_judge_in(&f), NP_R_HOST_PORT);
	f.peer = NP_PEER_OTHER;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	f.peer = NP_PEER_NOBODY;
	f.host_port = false;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	f.bare = true; /* RST for a closed port, ACK out of TIME_WAIT */
	assert_int_equal(np_judge_in(&f), NP_R_NO_LISTENER);
	f.protocol = 17;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	f.local = false;
	f.peer = NP_PEER_SELF;
	assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	f.mode = 0;
	assert_int_equal(np_judge_in(&f), NP_R_UNREGISTERED);
}

/* From beyond the host: answers where the sandbox may ask; callers in FULL, where the policy says so. */
static void callers_from_outside(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++)
		for (unsigned udp = 0; udp < 2; udp++)
			for (unsigned answer = 0; answer < 2; answer++)
				for (unsigned inbound = 0; inbound < 2; inbound++)
					for (unsigned allow = 0; allow < 2; allow++) {
						struct np_facts f = to(mode, udp ? 17 : 6, "192.0.2.7", 40000);
						enum np_reason expected = NP_R_INBOUND;

						f.opening = !udp && !answer;
						f.answer = udp && answer;
						f.inbound = inbound;
						f.action = allow ? NP_ALLOW : 0;
						if (mode == NP_FULL && (inbound || answer))
							expected = inbound ? NP_R_INBOUND_PORT : NP_R_OPEN_MODE;
						else if (mode == NP_PROXIED && answer && allow)
							expected = NP_R_RULE_ALLOWS;
						assert_int_equal(np_judge_in(&f), expected);
					}
}

/* netpawl forward: in every mode but NONE, and only when it is the host that calls. */
static void forwards_end_with_none(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++) {
		struct np_facts f = to(mode, 6, "127.0.0.1", 40000);

		f.local = f.opening = true;
		f.peer = NP_PEER_HOST;
		assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
		f.forward = true;
		assert_int_equal(np_judge_in(&f), mode == NP_NONE ? NP_R_INBOUND : NP_R_FORWARDED);
		assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK); /* it may answer, not call */
		f.opening = false;
		if (mode != NP_FULL)
			assert_int_equal(np_judge_out(&f), mode == NP_NONE ? NP_R_HOST_LOOPBACK : NP_R_FORWARDED);
		f.peer = NP_PEER_OTHER;
		f.opening = true;
		assert_int_equal(np_judge_in(&f), NP_R_INBOUND);
	}
}

static void only_tcp_and_udp_sockets_are_made(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++) {
		assert_int_equal(np_judge_create(mode, 1, 6), NP_R_OPEN_MODE);
		assert_int_equal(np_judge_create(mode, 2, 17), NP_R_OPEN_MODE);
		assert_int_equal(np_judge_create(mode, 2, 1), mode == NP_FULL ? NP_R_OPEN_MODE : NP_R_PROTOCOL);
		assert_int_equal(np_judge_create(mode, 2, 58), mode == NP_FULL ? NP_R_OPEN_MODE : NP_R_PROTOCOL);
		for (unsigned protocol = 0; protocol <= 262; protocol++) {
			assert_int_equal(np_judge_create(mode, 3, protocol), NP_R_PROTOCOL);
			if (protocol != 6)
				assert_int_equal(np_judge_create(mode, 1, protocol), NP_R_PROTOCOL);
		}
	}
	assert_int_equal(np_judge_create(0, 1, 6), NP_R_UNREGISTERED);
}

static void cut_spares_what_stays_inside(void **state)
{
	struct np_facts f = to(NP_NONE, 6, "192.0.2.1", 443);

	(void)state;
	assert_true(np_judge_cut(&f, false));
	f.mode = NP_FULL;
	assert_false(np_judge_cut(&f, false));
	f = to(NP_PROXIED, 6, "127.0.0.1", 8080);
	f.local = true;
	assert_false(np_judge_cut(&f, true));
	assert_true(np_judge_cut(&f, false));
	f.host_port = true;
	assert_false(np_judge_cut(&f, false));
	f.local = false; /* the port number of a listed service, elsewhere */
	assert_true(np_judge_cut(&f, false));
	f = to(NP_FULL, 6, "127.0.0.1", 8080); /* FULL: a port of the host that is no longer listed */
	f.local = true;
	f.opening = false;
	assert_true(np_judge_cut(&f, false));
	assert_false(np_judge_cut(&f, true));
	f.host_port = true;
	assert_false(np_judge_cut(&f, false));
	f.host_port = false;
	f.opening = true; /* on its way: its packets are judged */
	assert_false(np_judge_cut(&f, false));
	f = to(NP_FULL, 6, "192.0.2.1", 40000);
	f.withdrawn = true; /* a caller at a port that is no longer listed */
	assert_true(np_judge_cut(&f, false));
}

static void a_port_of_an_outsider_is_not_shared(void **state)
{
	struct np_addr any = addr("::"), link = addr("fe80::1"), group = addr("ff02::1"), v4 = addr("169.254.0.1");

	(void)state;
	assert_int_equal(np_judge_bind(NP_FULL, &any, true, NP_PEER_HOST), NP_R_PORT_TAKEN);
	assert_int_equal(np_judge_bind(NP_FULL, &any, true, NP_PEER_OTHER), NP_R_PORT_TAKEN);
	assert_int_equal(np_judge_bind(NP_FULL, &any, true, NP_PEER_SELF), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_bind(NP_NONE, &v4, true, NP_PEER_NOBODY), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_bind(NP_FULL, &v4, false, NP_PEER_NOBODY), NP_R_FOREIGN_SOURCE);
	assert_int_equal(np_judge_bind(0, &any, true, NP_PEER_NOBODY), NP_R_UNREGISTERED);
	/* these bind the socket to a device */
	assert_int_equal(np_judge_bind(NP_FULL, &link, true, NP_PEER_NOBODY), NP_R_METADATA);
	assert_int_equal(np_judge_bind(NP_FULL, &group, true, NP_PEER_NOBODY), NP_R_MULTICAST);
}

static void options_around_the_gate_are_refused(void **state)
{
	(void)state;
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_MAX_PACING_RATE), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_TXTIME), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_BINDTODEVICE), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(IPPROTO_TCP, 37 /* TCP_TX_DELAY */), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(IPPROTO_TCP, 19 /* TCP_REPAIR */), NP_R_SOCKET_OPTION);
	assert_int_equal(np_judge_option(IPPROTO_TCP, 1 /* TCP_NODELAY */), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_option(SOL_SOCKET, SO_REUSEPORT), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_option(IPPROTO_IP, IP_ADD_MEMBERSHIP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, IP_MSFILTER), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, MCAST_JOIN_GROUP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, MCAST_MSFILTER), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IP, IP_TOS), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_option(IPPROTO_IPV6, IPV6_JOIN_GROUP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IPV6, IPV6_JOIN_ANYCAST), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IPV6, MCAST_JOIN_GROUP), NP_R_MULTICAST);
	assert_int_equal(np_judge_option(IPPROTO_IPV6, IPV6_V6ONLY), NP_R_OPEN_MODE);
	assert_int_equal(np_judge_option(IPPROTO_TCP, 20), NP_R_OPEN_MODE);
}

static void lookups_go_to_the_dns_gate_whatever_server_they_name(void **state)
{
	static const struct {
		const char *server;
		bool local;
		enum np_peer peer;
	} cases[] = {
		{ "192.0.2.1", false, NP_PEER_NOBODY },
		{ "2001:db8::1", false, NP_PEER_NOBODY },
		{ "169.254.169.253", false, NP_PEER_NOBODY },
		{ "fe80::1", false, NP_PEER_NOBODY },
		{ "127.0.0.53", true, NP_PEER_HOST },
		{ "127.0.0.53", true, NP_PEER_NOBODY },
		{ "::1", true, NP_PEER_OTHER },
		{ "198.18.0.1", false, NP_PEER_NOBODY },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct np_facts udp = to(NP_PROXIED, 17, cases[i].server, 53),
				tcp = to(NP_PROXIED, 6, cases[i].server, 53);

		udp.local = tcp.local = cases[i].local;
		udp.peer = tcp.peer = cases[i].peer;
		udp.host_port = tcp.host_port = true; /* the host's own resolver is no way around it, listed or not */
		assert_true(np_is_query(&udp) && np_is_query(&tcp));
		assert_true(np_wants_inspector(&tcp) && !np_wants_inspector(&udp));
		assert_int_equal(np_judge_out(&udp), NP_R_NO_DNS_GATE);
		assert_int_equal(np_judge_out(&tcp), NP_R_NO_DNS_GATE);
		tcp.inspector = udp.dns_gate = true;
		assert_int_equal(np_judge_out(&udp), NP_R_STEERED);
		assert_int_equal(np_judge_out(&tcp), NP_R_STEERED);
		udp.options = true;
		assert_int_equal(np_judge_out(&udp), NP_R_IP_OPTIONS);
		udp.options = false;
		udp.mode = tcp.mode = NP_NONE;
		udp.host_port = udp.dns_gate = false;
		assert_false(np_is_query(&udp) || np_is_query(&tcp));
		assert_true(!NP_REASON_ALLOWS(np_judge_out(&udp)) || (udp.local && udp.peer == NP_PEER_NOBODY));
		udp.mode = tcp.mode = NP_FULL;
		assert_false(np_is_query(&udp) || np_is_query(&tcp) || np_wants_inspector(&tcp));
	}
}

static void a_server_of_the_sandbox_itself_is_its_own(void **state)
{
	struct np_facts f = to(NP_PROXIED, 17, "127.0.0.1", 53);

	(void)state;
	f.local = true;
	f.peer = NP_PEER_SELF;
	assert_int_equal(np_judge_out(&f), NP_R_OWN_LOOPBACK);
	f.protocol = 6;
	assert_int_equal(np_judge_out(&f), NP_R_OWN_LOOPBACK);
	/* The last ACK to one that is gone; a call to it is a lookup again. */
	f.peer = NP_PEER_NOBODY;
	f.opening = false;
	assert_int_equal(np_judge_out(&f), NP_R_NO_LISTENER);
	f.opening = true;
	assert_int_equal(np_judge_out(&f), NP_R_NO_DNS_GATE);
	f = to(NP_PROXIED, 17, "224.0.0.1", 53);
	f.many = true;
	assert_int_equal(np_judge_out(&f), NP_R_MULTICAST);
}

static void the_dns_gate_is_for_those_who_were_led_there(void **state)
{
	struct np_facts f;

	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++)
		for (unsigned steered = 0; steered < 2; steered++) {
			bool may = mode == NP_PROXIED && steered;

			f = to(mode, 17, "127.0.0.1", 40000);
			f.local = f.dns_gate = f.host_port = true; /* the policy may list the port by chance */
			f.peer = NP_PEER_HOST;
			f.steered = steered;
			assert_int_equal(np_judge_out(&f), may ? NP_R_STEERED : NP_R_HOST_LOOPBACK);
			f.host_port = f.opening = false;
			assert_int_equal(np_judge_in(&f), may ? NP_R_STEERED : NP_R_INBOUND);
			assert_int_equal(np_judge_cut(&f, false), mode == NP_NONE);
			f.peer = NP_PEER_OTHER;
			assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
		}
	/* on its way to a device, where a rule allows everything */
	f = to(NP_PROXIED, 17, "127.0.0.1", 40000);
	f.action = NP_ALLOW;
	f.steered = true;
	assert_int_equal(np_judge_out(&f), NP_R_HOST_LOOPBACK);
}

static void synthetic_addresses_lead_to_the_inspector_and_nowhere_else(void **state)
{
	static const char *const yes[] = {
		"198.18.0.0",	   "198.18.0.1",     "198.19.255.255",	      "::ffff:198.18.7.7",
		"64:ff9b::c612:1", "2002:c612:1::1", "fd6e:6574:7061:776c::", "fd6e:6574:7061:776c::ffff:ffff"
	};
	static const char *const no[] = { "198.17.255.255",	     "198.20.0.0",
					  "fd6e:6574:7061:776b::1",  "fd6e:6574:7061:776c:0:1::",
					  "fd6e:6574:7061:776c:1::", "::1" };

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++) {
		struct np_facts f = to(NP_PROXIED, 6, yes[i], 5432);

		assert_true(np_addr_is_synthetic(&f.addr));
		f.action = NP_ALLOW; /* of a rule for 0.0.0.0/0, say */
		assert_true(np_wants_inspector(&f));
		assert_true(np_judge_cut(&f, false));
		assert_int_equal(np_judge_out(&f), NP_R_NO_INSPECTOR);
		f.inspector = true;
		assert_int_equal(np_judge_out(&f), NP_R_STEERED);
		f.protocol = 17;
		assert_int_equal(np_judge_out(&f), NP_R_NOT_IN_POLICY);
		f.connecting = true;
		assert_int_equal(np_judge_out(&f), NP_R_NOTHING_SENT);
		f.mode = NP_NONE;
		assert_int_equal(np_judge_out(&f), NP_R_MODE_NONE);
		f.mode = NP_FULL;
		assert_int_equal(np_judge_out(&f), NP_R_OPEN_MODE);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++) {
		struct np_addr a = addr(no[i]);

		assert_false(np_addr_is_synthetic(&a));
	}
}

static void synthetic_addresses_and_numbers_are_one(void **state)
{
	static const uint32_t numbers[] = { 0,	       1, 255, 256, 65535, 65536, NP_SYNTH4_COUNT - 1, NP_SYNTH4_COUNT,
					    0xffffffff };
	struct np_addr a = addr("198.19.1.2"), b = addr("fd6e:6574:7061:776c::1:102"), c;

	(void)state;
	assert_int_equal(np_synth_number(&a), 0x10102);
	assert_int_equal(np_synth_number(&b), 0x10102);
	c = np_synth_v4(0x10102);
	assert_memory_equal(&a, &c, sizeof(a));
	c = np_synth_v6(0x10102);
	assert_memory_equal(&b, &c, sizeof(b));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct np_addr v4 = np_synth_v4(numbers[i]), v6 = np_synth_v6(numbers[i]);

		assert_true(np_addr_is_v4(&v4) && np_addr_is_synthetic(&v4) && np_addr_is_synthetic(&v6));
		assert_int_equal(np_synth_number(&v6), numbers[i]);
		assert_int_equal(np_synth_number(&v4), numbers[i] % NP_SYNTH4_COUNT);
	}
}

static void reasons_are_in_their_ranges(void **state)
{
	(void)state;
	assert_true(NP_REASON_ALLOWS(NP_R_OPEN_MODE));
	assert_true(NP_REASON_ALLOWS(NP_R_NOT_OURS));
	assert_false(NP_REASON_ALLOWS(NP_R_MODE_NONE));
	assert_false(NP_REASON_ALLOWS(NP_R_INTERNAL));
}

/* From a container the host lies beyond a device: it is as closed as where it is local. */
static void the_host_is_closed_from_afar(void **state)
{
	(void)state;
	for (unsigned mode = NP_FULL; mode <= NP_NONE; mode++) {
		struct np_facts f = to((enum np_mode)mode, IPPROTO_TCP, "192.0.2.1", 8080), in;

		f.host = true;
		f.action = NP_ALLOW; /* a rule does not open it */
		assert_int_equal(np_judge_out(&f), mode == NP_NONE ? NP_R_MODE_NONE : NP_R_HOST_LOOPBACK);
		assert_int_equal(np_judge_cut(&f, false), mode != NP_FULL);
		f.protocol = IPPROTO_UDP;
		assert_false(NP_REASON_ALLOWS(np_judge_out(&f)));
		f.host_port = mode != NP_NONE;
		assert_int_equal(np_judge_out(&f), mode == NP_NONE ? NP_R_MODE_NONE : NP_R_HOST_PORT);
		assert_int_equal(np_judge_cut(&f, false), mode == NP_NONE);
		in = f;
		in.action = 0;
		in.answer = true;
		assert_int_equal(NP_REASON_ALLOWS(np_judge_in(&in)), mode != NP_NONE);
		in.answer = false;
		assert_int_equal(np_judge_in(&in), NP_R_INBOUND);
		/* answers to callers from there, who came by a port that the policy names */
		f = to((enum np_mode)mode, IPPROTO_TCP, "192.0.2.1", 50000);
		f.host = true;
		f.opening = false;
		assert_int_equal(NP_REASON_ALLOWS(np_judge_out(&f)), mode == NP_FULL);
	}
}

static void localhost_is_one_address_of_each_family(void **state)
{
	static const char *const are[] = { "127.0.0.1", "::1" };
	static const char *const are_not[] = { "127.0.0.2", "127.255.255.255", "0.0.0.0",     "::",
					       "::2",	    "192.0.2.1",       "2001:db8::1", "::127.0.0.1" };

	(void)state;
	for (size_t i = 0; i < sizeof(are) / sizeof(*are); i++) {
		struct np_addr a = addr(are[i]);

		assert_true(np_addr_is_localhost(&a) && np_addr_is_loopback(&a) && !np_addr_is_many(&a));
	}
	for (size_t i = 0; i < sizeof(are_not) / sizeof(*are_not); i++) {
		struct np_addr a = addr(are_not[i]);

		assert_false(np_addr_is_localhost(&a));
	}
}

/* What the shorter way lets pass, the longer one does as well, wherever it leads. */
static void the_shorter_way_lets_nothing_else_pass(void **state)
{
	static const char *const addresses[] = { "127.0.0.1",
						 "127.8.8.8",
						 "127.255.255.255",
						 "0.0.0.0",
						 "192.0.2.1",
						 "169.254.169.254",
						 "100.100.100.200",
						 "224.0.0.1",
						 "255.255.255.255",
						 "198.18.0.1",
						 "::1",
						 "::",
						 "2001:db8::1",
						 "fe80::1",
						 "fd00:ec2::254",
						 "ff02::1",
						 "64:ff9b::a9fe:a9fe",
						 "2002:a9fe:a9fe::1" };
	const size_t n = sizeof(addresses) / sizeof(*addresses);
	unsigned plain[2] = { 0 }, far = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			for (int local = 0; local < 2; local++) {
				struct np_addr src = addr(addresses[j]);
				struct np_facts f = to(NP_FULL, NP_IPPROTO_TCP, addresses[i], 443);

				f.local = local;
				f.opening = false;
				f.many = np_addr_is_many(&f.addr);
				if (!np_judge_plain(&src, &f.addr, local))
					continue;
				plain[local]++;
				assert_true(NP_REASON_ALLOWS(np_judge_out(&f)));
				assert_true(!local || np_addr_is_loopback(&src));
			}
		}
	}
	assert_true(plain[0] && plain[1]);
	for (size_t i = 0; i < n; i++) {
		for (int udp = 0; udp < 2; udp++) {
			struct np_facts f = to(NP_FULL, udp ? NP_IPPROTO_UDP : NP_IPPROTO_TCP, addresses[i], 443);

			f.opening = true;
			f.many = np_addr_is_many(&f.addr);
			if (!np_judge_plain_far(&f.addr))
				continue;
			assert_true(NP_REASON_ALLOWS(np_judge_out(&f)));
			far++;
		}
	}
	assert_int_equal(far % 2, 0);
	assert_true(far && far < 2 * n);
}

/* To the sandbox itself, in whatever mode, a lookup among it. Who is there is looked up, by which no broadcast address is found. */
static void the_shorter_way_to_itself_lets_nothing_else_pass(void **state)
{
	static const char *const addresses[] = {
		"127.0.0.1", "127.8.8.8", "127.255.255.255", "0.0.0.0", "192.0.2.1",
		"::1",	     "::",	  "ff02::1",	     "fe80::1", "2001:db8::1"
	};
	const size_t n = sizeof(addresses) / sizeof(*addresses);
	unsigned own = 0;

	(void)state;
	for (size_t i = 0; i < n * n; i++) {
		struct np_addr src = addr(addresses[i / n]), dst = addr(addresses[i % n]);

		if (!np_judge_plain_own(&src, &dst))
			continue;
		own++;
		assert_true(np_addr_is_loopback(&src));
		for (unsigned how = 0; how < 12; how++) {
			struct np_facts f = to(NP_FULL + how % 3, how / 3 % 2 ? NP_IPPROTO_UDP : NP_IPPROTO_TCP,
					       addresses[i % n], how / 6 ? NP_DNS_PORT : 443);

			f.local = true;
			f.opening = true;
			f.peer = NP_PEER_SELF;
			f.many = np_addr_is_many(&f.addr);
			assert_int_equal(np_judge_out(&f), NP_R_OWN_LOOPBACK);
		}
	}
	assert_int_equal(own, 8); /* four sources, two destinations */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(localhost_is_one_address_of_each_family),
		cmocka_unit_test(the_shorter_way_lets_nothing_else_pass),
		cmocka_unit_test(the_shorter_way_to_itself_lets_nothing_else_pass),
		cmocka_unit_test(the_host_is_closed_from_afar),
		cmocka_unit_test(metadata_is_refused_in_every_mode_and_disguise),
		cmocka_unit_test(modes_decide_what_leaves),
		cmocka_unit_test(rules_decide_in_proxied),
		cmocka_unit_test(others_with_a_way_out_are_closed),
		cmocka_unit_test(rules_refuse_in_full),
		cmocka_unit_test(loopback_is_private_in_every_mode),
		cmocka_unit_test(nothing_is_sent_to_nobody),
		cmocka_unit_test(full_answers_its_callers_but_closed_modes_do_not),
		cmocka_unit_test(closed_modes_speak_only_plain_tcp_and_udp_to_themselves),
		cmocka_unit_test(multicast_and_broadcast_are_refused_in_every_mode),
		cmocka_unit_test(inbound_is_for_the_sandbox_itself),
		cmocka_unit_test(callers_from_outside),
		cmocka_unit_test(forwards_end_with_none),
		cmocka_unit_test(only_tcp_and_udp_sockets_are_made),
		cmocka_unit_test(cut_spares_what_stays_inside),
		cmocka_unit_test(a_port_of_an_outsider_is_not_shared),
		cmocka_unit_test(options_around_the_gate_are_refused),
		cmocka_unit_test(lookups_go_to_the_dns_gate_whatever_server_they_name),
		cmocka_unit_test(a_server_of_the_sandbox_itself_is_its_own),
		cmocka_unit_test(the_dns_gate_is_for_those_who_were_led_there),
		cmocka_unit_test(synthetic_addresses_lead_to_the_inspector_and_nowhere_else),
		cmocka_unit_test(synthetic_addresses_and_numbers_are_one),
		cmocka_unit_test(reasons_are_in_their_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
