/* SPDX-License-Identifier: GPL-2.0-only */
/* What the two ways to judge a unix socket share. */
#pragma once

#include "owner.bpf.h"

#define NP_UNIX_PATH_MAX 108
#define NP_SUN_PATH	 2 /* offset of sun_path in struct sockaddr_un */

/* reason: of a registered sandbox. name, len: as np_report_name() has them. */
static __always_inline void np_report_unix(const struct np_owner *owner, enum np_reason reason, __u64 name, __u32 len,
					   enum np_hook hook)
{
	struct np_refusal r = {
		.cgroup_id = owner->id,
		.rung = owner->rung,
		.hook = hook,
		.reason = owner->sandbox ? reason : NP_R_UNREGISTERED,
		.family = AF_UNIX,
	};

	np_report_name(owner->sandbox, &r, name, len);
}
