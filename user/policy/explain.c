/* SPDX-License-Identifier: MIT */
/* Why a rule was passed over: the trace of a decision in words. */
#include "policy/decide.h"

enum misfit trace_misfit(const uint8_t *trace, const struct rule *rule, const struct facts *facts)
{
	if (facts->rung.mode != NP_FULL && !(rule->levels & 1u << facts->rung.level))
		return MISFIT_LEVEL;
	return (enum misfit)trace[rule->number];
}

const char *misfit_sentence(enum misfit misfit)
{
	switch (misfit) {
	case MISFIT_NONE:
		return "";
	case MISFIT_LEVEL:
		return "it is for other levels";
	case MISFIT_SESSION:
		return "it is for other sessions";
	case MISFIT_DESTINATION:
		return "it is for other destinations";
	case MISFIT_PORT:
		return "it is for other ports or another protocol";
	case MISFIT_REQUEST:
		return "it looks at requests, and none is known yet";
	case MISFIT_METHOD:
		return "it is for other methods";
	case MISFIT_PATH:
		return "it is for other paths";
	case MISFIT_HEADER:
		return "a header that it asks for is missing";
	case MISFIT_QUERY:
		return "it does not allow such lookups";
	case MISFIT_METADATA:
		return "it matches, but a metadata address is opened only by a rule inside of its range";
	}
	return "?";
}
