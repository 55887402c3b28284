/* SPDX-License-Identifier: MIT */
/* The shared enums of include/ in words, and back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"

const char *reason_token(unsigned reason);    /* "unknown" for a code that has none */
const char *reason_sentence(unsigned reason); /* likewise a sentence that says so */
int reason_parse(const char *token);	      /* its code; -EINVAL when there is none */
/* What whoever was refused may do now: read by people and by language models that act on it. */
const char *reason_hint(unsigned reason);
const char *hook_token(unsigned hook);
const char *level_name(unsigned level);	      /* "PUBLIC", ...; "?" otherwise */
const char *mode_name(unsigned mode);	      /* "FULL", "PROXIED", "NONE"; "?" otherwise */
unsigned mode_parse(const char *name);	      /* enum np_mode; 0 when it is none; case does not matter */
const char *protocol_name(unsigned protocol); /* "tcp", "udp", ...; NULL when it has no name here */

/* "192.0.2.1" or "2001:db8::1"; a v4-mapped address is written as IPv4. */
#define ADDR_TEXT_SIZE 48
void addr_format(const struct np_addr *addr, char text[static ADDR_TEXT_SIZE]);

/* A number of bytes: "1234", "500kB", "10MiB"; k, M, G are thousands, Ki, Mi, Gi are 1024s, the B may be left out.
 * False for anything else, and for UINT64_MAX and above. */
bool size_parse(const char *text, uint64_t *ret);

/* "5s" in ms: a number and ms, s, m or h. False for anything else, and for 0. */
bool duration_parse(const char *text, uint64_t *ret_ms);
/* A whole number from 1 to max. False for anything else. */
bool count_parse(const char *text, uint64_t max, uint64_t *ret);
/* "1.5" in thousandths, up to max. False for anything else, and for 0. */
bool milli_parse(const char *text, uint64_t max, uint64_t *ret_milli);

/* RFC 3339 in UTC with microseconds: "2026-01-01T00:00:00.000000Z". Beyond the year 9999: its last microsecond. */
#define TIME_TEXT_SIZE 28
void time_format(uint64_t wall_us, char text[static TIME_TEXT_SIZE]);
/* The same back; the fraction may be left out, and of a date all else. False, and *ret_us untouched, for anything else. */
bool time_parse(const char *text, uint64_t *ret_us);
