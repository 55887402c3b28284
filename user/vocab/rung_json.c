/* SPDX-License-Identifier: MIT */
#include "vocab/rung_json.h"

#include "vocab/words.h"

void json_put_rung(struct buf *out, const char *key, const struct np_rung *rung)
{
	if (!rung || !rung->mode) {
		json_put_text(out, key, NULL, 0);
		return;
	}
	json_open_object(out, key);
	json_put_text(out, "mode", mode_name(rung->mode), SIZE_MAX);
	json_put_text(out, "level", level_name(rung->level), SIZE_MAX);
	json_put_number(out, "generation", rung->generation);
	json_put_bool(out, "read_only", rung->flags & NP_READ_ONLY);
	json_close_object(out);
}
