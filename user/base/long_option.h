/* SPDX-License-Identifier: MIT */
/* getopt_long() takes the beginning of an option's name for the option. What is written in a script today would then mean another option, or
 * two, when one more is added; and --unin takes a gate away. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <string.h>

/* The word of the option that getopt_long() has just returned, with its value as optarg. */
static inline const char *long_option_word(char *const *argv, const char *value)
{
	return argv[optind - (value && value == argv[optind - 1] ? 2 : 1)];
}

/* Is that word the option's whole name, with "=" and its value or without? */
static inline bool long_option_is_whole(char *const *argv, const char *name, const char *value)
{
	const char *word = long_option_word(argv, value);
	size_t len = name ? strlen(name) : 0;

	return name && !strncmp(word, "--", 2) && !strncmp(word + 2, name, len) &&
	       (word[2 + len] == '\0' || word[2 + len] == '=');
}
