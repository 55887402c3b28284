/* SPDX-License-Identifier: MIT */
/* Questions as people see them. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* All that is known of it, in lines of any length, without anything that a terminal would act upon. */
void question_write(FILE *to, const json_t *question);
