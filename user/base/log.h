/* SPDX-License-Identifier: MIT */
/* Messages for the operator, on stderr, one line each. Libraries do not log; their callers do, once. */
#pragma once

#include <stdbool.h>

#define LOG_DEBUG_RATE 100

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_setup(const char *program, enum log_level most); /* program must outlive the log */
bool log_is_verbose(void);				  /* log_debug() is heard */
/* Of debug messages at most LOG_DEBUG_RATE a second: what causes them may be a stranger's. The rest is counted. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	 log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
