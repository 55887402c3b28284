/* SPDX-License-Identifier: MIT */
/* Calls of `netpawl ask`: how the question that is shown stands now, and the answer to it. The message says how it went. */
#pragma once

#include "cli/ask_model.h"

void ask_renew(struct ask_model *ask, const char *socket);
void ask_answer(struct ask_model *ask, const char *socket);
