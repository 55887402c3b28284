/* SPDX-License-Identifier: MIT */
/* The receiver of OTLP logs, by HTTP. */
#pragma once

#include "base/sockaddr.h"
#include "exporter/pump.h"

struct otlp_target {
	union sockaddr_inet to;
	const char *host_port, *path; /* Host, and what is posted to */
	char host[65];		      /* the name of this one */
	unsigned ms;		      /* for a whole message and its answer */
};

struct receiver otlp_receiver(struct otlp_target *target);
