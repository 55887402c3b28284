/* SPDX-License-Identifier: MIT */
/*
 * Hosts that a project's own files name: configurations of MCP servers and of language models, of package managers, git and
 * containers. Whoever wrote these files may mean no good: what comes out is a host, a port and a kind, never a word of theirs but
 * keys made plain. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vocab/limits.h"
#include "wire/hostname.h"

enum project_format {
	PROJECT_JSON,
	PROJECT_YAML,
	PROJECT_LINES, /* "key = value", whatever else is there */
};

enum project_kind {
	PROJECT_API,	  /* HTTP of all methods */
	PROJECT_PACKAGES, /* for reading */
	PROJECT_GIT,	  /* clone and fetch by HTTP */
	PROJECT_TCP,	  /* anything else: git by ssh, databases */
};

struct project_file {
	const char *path; /* below the project's directory */
	enum project_format format;
	enum project_kind kind; /* of the URLs in it */
};
extern const struct project_file project_files[];
extern const size_t n_project_files;

struct project_found {
	enum project_kind kind;
	struct host host;
	uint16_t port;
	bool websocket;
	char where[160]; /* ".mcp.json, mcpServers.tracker.url", ".npmrc:3": plain ASCII */
};

struct project {
	struct project_found found[NP_PROJECT_HOSTS];
	size_t n;
	size_t left_out; /* what is no host, is inside of the project, or is one too many */
};

/* Adds what the file says. 0; -EINVAL when it cannot be read, -ENOMEM. */
int project_read(const struct project_file *file, const char *text, size_t len, struct project *project);
