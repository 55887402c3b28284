/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

struct exchange;

/* The response may have tokens that a credential of the policy captures: it has to be one that can be read. */
bool tokens_are_captured(const struct exchange *exchange);
