/* SPDX-License-Identifier: MIT */
/*
 * What netpawld and an inspector say to each other, over a SOCK_SEQPACKET pair: one message a packet, a struct link_message in
 * front. Both are of one build, so the structs are the format. The daemon believes nothing of what comes from there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sandbox.h"
#include "vocab/limits.h"

/* An inspector's descriptors, as it is started with them. Without IPv6 it has the sockets of IPv4 twice. */
enum link_fd {
	LINK_FD = 3, /* the pair's other end */
	LINK_FD_TCP4,
	LINK_FD_TCP6,
	LINK_FD_DNS4,
	LINK_FD_DNS6,
	LINK_FD_DNS_ORIGINS, /* the map np_dns_origins */
	LINK_FD_END,
};

enum link_type {
	/* to the inspector */
	LINK_SETTINGS = 1, /* fd: text of resolvers, NUL, text of /etc/hosts, NUL */
	LINK_POLICY,	   /* fd: a snapshot (policy/snapshot.h) */
	LINK_ROOTS,	   /* fd: PEM of the certificates that origins are trusted by */
	LINK_SANDBOX,	   /* struct link_sandbox: a sandbox is there, or was raised, or is about to end */
	LINK_GONE,	   /* struct link_sandbox: it is not, its connections end */
	LINK_CA,	   /* struct link_ca: the CA of a session */
	LINK_MAKE_CA, /* struct link_ca, with the one that was kept or without: take it or make one, answer LINK_CA */
	LINK_BATCH, /* fd: messages as they would come one by one, each with its header: all that is known at a start */
	LINK_SYNC,  /* a number: answer it when all before is done */
	LINK_SETTLE, /* a number: answer it when what sandboxes have sent by now is counted, too */
	LINK_LEDGER, /* fd: where to count and to report (link/ledger.h). The first message. */
	LINK_LISTEN, /* struct link_listen, fd: a socket in a sandbox's network namespace: connections or queries come there */
	LINK_UNLISTEN, /* struct link_listen: no more of that namespace */
	LINK_STOP,     /* take no more connections, finish what is open within NP_DRAIN_MS, end */
	LINK_NAME, /* struct link_name: a name of the session has this index; 0: it gets none. To the daemon, without an index:
		    * the name was queried or used, and wants one. */
	/* to the daemon */
	LINK_READY,    /* policy, roots and settings are there: connections may come */
	LINK_REQUESTS, /* there are new reports in the ledger */
	/* struct link_sandbox: its programs are gone; have they left anything that is not delivered? To the daemon: they have. */
	LINK_LEFT,
	/* struct link_proxy_logins: of the upstream proxies of the policy that comes next. Without it they have none. */
	LINK_PROXY_LOGINS,
	LINK_ASK,    /* struct link_ask (link/ask_message.h): a person is to be asked. To the daemon */
	LINK_ANSWER, /* struct link_answer: what came of it. To the inspector */
	/* Between the daemon and a netpawl-decide: link/decide_message.h */
	LINK_DECIDE,
	LINK_DECIDE_BODY,
	LINK_WITHDRAW,
	LINK_DECIDED,
	LINK_SECRET,	      /* struct link_secret (link/secret_message.h): the value of a credential */
	LINK_PLACEHOLDER_KEY, /* struct link_placeholder_key, likewise */
	LINK_LEAK,	      /* struct link_leak, likewise: a value was about to leave. To the daemon */
	/* Between the daemon and a netpawl-export: link/export_message.h */
	LINK_EXPORT_CALL,
	LINK_EXPORT_STATE,
	LINK_DEBUG, /* struct debug_ask: show what there is. To the daemon: struct debug_page (link/debug_page.h) */
};

struct link_message {
	uint32_t type;
	uint32_t len; /* of what follows */
};
#define LINK_BYTES_MAX (64u << 10)
#define LINK_BATCH_MAX (512u << 20) /* NP_SANDBOXES_MAX sandboxes and as many sessions */

struct link_sandbox {
	uint64_t cgroup_id;
	struct np_rung rung;
	uint32_t slot;	 /* in the ledger, from 1; 0: it has none, and is not counted */
	uint32_t ending; /* 1: its processes are being killed, and its connections end with them */
	char session[NP_LABEL_SIZE];
};

struct link_listen {
	uint64_t netns; /* the kernel's cookie of it */
	uint32_t dns;	/* 1: the DNS gate's */
	uint32_t v6;	/* 1: of IPv6 */
};

#define LINK_CA_BYTES 4096
struct link_ca {
	char session[NP_LABEL_SIZE];
	uint32_t len, pem_len;
	char data[LINK_CA_BYTES]; /* ca_export(), then the certificate as PEM */
};

/* user:password for each entry of upstream_proxy:, "" for none. Each holder wipes it after use. */
struct link_proxy_logins {
	char of[NP_PROXIES_MAX][NP_PROXY_LOGIN_SIZE];
};

struct link_name {
	char session[NP_LABEL_SIZE];
	uint32_t index;	  /* of its synthetic addresses */
	char name[256];	  /* canonical */
	uint32_t refused; /* to the daemon: no rule allows it, and it wants one of those for such names */
};

/* Texts of a request that are as long as they are; each ends with a NUL, which its length counts. */
enum link_tail {
	LINK_METHOD,
	LINK_URL,   /* without user, password and fragment */
	LINK_QUERY, /* the name, of a DNS query */
	LINK_PROXY, /* the upstream proxy's URL */
	/* What the rule wants captured. */
	LINK_REQUEST_HEADERS,
	LINK_RESPONSE_HEADERS,
	LINK_REQUEST_BODY,
	LINK_RESPONSE_BODY,
	LINK_TAILS,
};
#define LINK_TAIL_MAX (NP_CAPTURE_MAX / 3 * 4 + 8) /* in base64 */

/* Strings are cut to fit, and end with a NUL. */
struct link_request {
	uint64_t cgroup_id;
	struct np_rung rung;			 /* of the sandbox when the verdict fell */
	uint32_t reason;			 /* enum np_reason */
	uint32_t status;			 /* what the client was answered; 0: nothing */
	uint8_t request_base64, response_base64; /* the body is no text */
	uint8_t begun;				 /* the inspector's: it was counted when it began */
	uint8_t quiet;				 /* refused by what the policy calls quiet */
	uint16_t port;
	uint8_t http;		 /* version that the client spoke, times ten: 10, 11 or 20; 0: not known */
	uint32_t pid;		 /* of the process that connected; 0: not known */
	uint64_t time_ns;	 /* CLOCK_MONOTONIC when it ended */
	uint64_t sent, received; /* bytes of bodies: given to the origin's connection, come from there */
	uint64_t question;	 /* by whose answer, or for want of one; 0: none */
	uint32_t dns_us, connect_us, tls_us, wait_us, receive_us;
	uint32_t tails[LINK_TAILS]; /* lengths of what follows; 0: there is none */
	char policy[65];	    /* hash */
	char place[320];	    /* "coding-agent.yaml:14" */
	char list[NP_NAME_MAX + 2]; /* "@llm": the list that the rule has the destination from */
	char address[48];
	char credential[NP_NAME_MAX + 1]; /* that it carried, or that it was refused for */
	uint32_t tokens;		  /* that were captured from its response ... */
	char captured[NP_NAME_MAX + 1];	  /* ... for this credential, the last of them */
	char text[256];			  /* details of a failure */
};

/* Takes the next of the requests in data: ret is a copy, and the tails point into data. How many bytes it took, or
 * -EPROTO. */
ssize_t link_request_next(const char *data, size_t len, struct link_request *ret, const char *ret_tails[LINK_TAILS]);

/* Sends one message, perhaps with a descriptor (-1: none). 0; -EAGAIN when the other end does not keep up; -errno. */
int link_send(int fd, enum link_type type, const void *data, size_t len, int pass_fd);
/* Takes one message: its length behind the header, its descriptor in *ret_fd (-1: none; the caller's). -EAGAIN; -EPIPE
 * when the other end is gone; -EPROTO for nonsense. ret_fd NULL: descriptors are not taken at all. */
int link_receive(int fd, enum link_type *ret_type, char data[static LINK_BYTES_MAX], size_t *ret_len, int *ret_fd);
/* Waits for room, up to ms, and sends. */
int link_send_patiently(int fd, enum link_type type, const void *data, size_t len, int pass_fd, int ms);

/* A sealed file in memory with these bytes, for what is too long for a message. */
int link_blob(const void *data, size_t len, int *ret_fd);
/* Maps one; unmap with munmap(). An empty one gives NULL and 0. */
int link_blob_map(int fd, size_t max, const char **ret_data, size_t *ret_len);
