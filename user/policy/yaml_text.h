/* SPDX-License-Identifier: MIT */
/* What is wrong with a policy file as text, or as YAML, in words that help. For yaml.c. */
#pragma once

#include <stddef.h>
#include <yaml.h>

#include "policy/problem.h"

/* 0, or -EINVAL with an error: not UTF-8; a control; what a person would not see, or would see elsewhere. */
int yaml_text_check(struct problems *problems, const char *shown, const char *text, size_t len);
/* Why the parser stopped. -EINVAL with an error, or -ENOMEM. */
int yaml_syntax_problem(struct problems *problems, const char *shown, const yaml_parser_t *parser, const char *text,
			size_t len);
/* "*name" without quotes. -EINVAL with an error. */
int yaml_unquoted_star(struct problems *problems, const char *shown, const yaml_mark_t *mark, const char *name);
