/* SPDX-License-Identifier: MIT */
/* What the parts of the console share. */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "console/calls.h"
#include "console/guard.h"
#include "console/logins.h"

struct console {
	const char *socket; /* the daemon's: control.sock, or approve.sock */
	struct console_rights rights;
	struct guard guard;
	struct logins *logins;
	char cookie[32];     /* its name: with the port, for browsers have one jar for all ports of a host */
	bool secure;	     /* browsers come by https */
	char user[64];	     /* who has started it, and so whom the daemon sees */
	atomic_uint streams; /* that are open */
};

/* One request of a browser, from its first header to the end of its answer. */
struct visit {
	struct console *console;
	struct MHD_Connection *connection;
	const char *method;
	char *path;  /* without the query, as it was sent */
	char *query; /* behind the question mark; NULL: none */
	struct buf body;
	size_t body_seen;
	bool refused; /* it was answered before its body was read */
};

uint64_t now_s(void);

/* visit.c: answers. Each has every header that an answer of ours has. */
enum MHD_Result visit_send(struct visit *visit, unsigned status, const char *type, struct MHD_Response *response);
/* Takes the text over; NULL: out of memory. */
enum MHD_Result visit_text(struct visit *visit, unsigned status, const char *type, char *text, size_t len);
/* An error as the daemon writes them. reason: enum np_reason. */
enum MHD_Result visit_fail(struct visit *visit, unsigned status, unsigned reason, const char *detail);

/* pass_on.c: asks the daemon, and passes on what it says. */
enum MHD_Result visit_pass_on(struct visit *visit);

/* own.c: what the console answers itself. */
bool own_is(const char *path);
enum MHD_Result own_call(struct visit *visit, bool logged_in);

/* The libmicrohttpd handlers. */
void *visit_on_begin(void *console, const char *uri, struct MHD_Connection *connection);
enum MHD_Result visit_on_request(void *console, struct MHD_Connection *connection, const char *url, const char *method,
				 const char *version, const char *data, size_t *len, void **context);
void visit_on_end(void *console, struct MHD_Connection *connection, void **context,
		  enum MHD_RequestTerminationCode why);
size_t visit_on_unescape(void *data, struct MHD_Connection *connection, char *text);
