/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two ways to judge a unix socket share. */
#pragma once

#include "owner.bpf.h"

#define NP_UNIX_PATH_MAX 108
#define NP_SUN_PATH	 2 /* offset of sun_path in struct sockaddr_un */

/* reason: of a registered sandbox. name: len bytes of an address behind its family, in kernel memory. */
static __always_inline void np_report_unix(const struct np_owner *owner, enum np_reason reason, const void *name,
					   __u32 len, enum np_hook hook)
{
	struct np_refusal r = {
		.sandbox = owner->sandbox,
		.rung = owner->rung,
		.cgroup_id = owner->id,
		.hook = hook,
		.reason = owner->sandbox ? reason : NP_R_UNREGISTERED,
		.family = AF_UNIX,
	};
	struct np_event *e = np_refusal_open(&r);

	if (!e)
		return;
	np_event_add_task(e);
	if (len > sizeof(e->unix_path))
		len = sizeof(e->unix_path);
	if (!bpf_probe_read_kernel(e->unix_path, len, name))
		e->unix_len = len;
	bpf_ringbuf_submit(e, 0);
}
