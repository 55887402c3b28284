/* SPDX-License-Identifier: MIT */
/* What a rule says beyond its destinations, in the words of the policy language. */
#pragma once

#include "base/buf.h"
#include "policy/rule.h"

/* "methods: GET, HEAD; paths: /v1/x; inspect: false"; nothing for a rule without conditions. */
void rule_describe(const struct rule *rule, struct buf *out);
