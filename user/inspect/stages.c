/* SPDX-License-Identifier: MIT */
/* The pipeline. */
#include "inspect/exchange.h"
#include "inspect/stage.h"

const struct stage *const stages[] = {
	&stage_place,	    &stage_leak,   &stage_judge, &stage_ask,	  &stage_capture, &stage_canonical,
	&stage_credentials, &stage_tokens, &stage_echo,	 &stage_upstream, &stage_report,  NULL,
};
_Static_assert(sizeof(stages) / sizeof(stages[0]) <= STAGES_MAX + 1, "a body has a bit for each");
