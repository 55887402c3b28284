/* SPDX-License-Identifier: MIT */
#pragma once

#include "base/json.h"
#include "rung.h"

/* A rung as one object; NULL, or one that is nothing's: null. */
void json_put_rung(struct buf *out, const char *key, const struct np_rung *rung);
