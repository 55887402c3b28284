/* SPDX-License-Identifier: MIT */
#ifndef NP_VOCAB_RUNG_JSON_H
#define NP_VOCAB_RUNG_JSON_H

#include "base/json.h"
#include "rung.h"

/* A rung as one object; NULL, or one that is nothing's: null. */
void json_put_rung(struct buf *out, const char *key, const struct np_rung *rung);

#endif
