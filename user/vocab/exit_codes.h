/* SPDX-License-Identifier: MIT */
/* Exit codes of a run that are netpawl's own, as env(1), nohup(1) and timeout(1) have them. */
#pragma once

#define LAUNCH_TIMED_OUT      124
#define LAUNCH_FAILED	      125
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_NOT_FOUND      127
