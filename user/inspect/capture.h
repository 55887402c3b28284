/* SPDX-License-Identifier: MIT */
/* What a rule wants of its requests in events: headers without their secrets, and the first bytes of bodies. */
#pragma once

#include "base/buf.h"
#include "http/head.h"
#include "link/link.h"

/* Appends headers, "name: value" a line; values of those that may be secrets are "(redacted)". No more than max bytes in all. */
void fields_shown(const struct fields *fields, size_t max, struct buf *to);

/* All take NULL: then nothing is wanted. */
struct capture;
struct capture *capture_new(uint32_t max); /* bytes of a body; 0 gives NULL */
void capture_free(struct capture *capture);
void capture_head(struct capture *capture, enum link_tail tail, const struct fields *fields);
void capture_body(struct capture *capture, enum link_tail tail, const char *data, size_t len);
void capture_finish(struct capture *capture, struct link_request *report);    /* no more comes */
const char *capture_part(const struct capture *capture, enum link_tail tail); /* NULL: there is none */
