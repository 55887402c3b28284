/* SPDX-License-Identifier: MIT */
/*
 * From trees of YAML to the rules of a policy. For load.c, which knows the files.
 *
 * Whoever finds something wrong says so in reader->problems and goes on, so that one run shows all of it. The
 * functions return 0 then too; -ENOMEM is their only failure.
 */
#pragma once

#include "policy/keys.h"
#include "policy/pattern.h"
#include "policy/policy.h"
#include "policy/yaml.h"
#include "vocab/limits.h"

struct file {
	const char *name;			    /* relative to the directory of the first file */
	const struct node *at;			    /* the entry of include: that names it; NULL: the first file */
	bool shipped;				    /* no file of the author's: shipped.h */
	const struct node *sections[SECTION_COUNT]; /* their keys; the value is ->next */
};

/* An entry of a list in lists:, a destination or another list. */
struct list_item {
	const struct node *node;
	struct pattern pattern; /* not settled */
	struct list *list;	/* the other list, once lists_link() has found it */
	bool is_list;
	bool reported_dns, reported_metadata,
		reported_udp; /* the warning was given: once, however many rules use the list */
};

struct list {
	const struct node *key;
	struct list_item *items;
	size_t n_items;
	const char *name; /* "@llm", in policy->arena */
	bool quiet;
	bool shipped; /* it came with netpawl */
	bool used;    /* by a rule, perhaps by way of other lists */
	/* For the walk that looks for cycles. */
	struct list *above;
	size_t turn;
	unsigned height;
	enum { LIST_NEW, LIST_OPEN, LIST_DONE } state;
};

struct reader {
	struct policy *policy; /* what has its final form is in policy->arena */
	struct arena *trees;   /* the rest, freed when all is read */
	struct problems *problems;
	struct file files[NP_POLICY_FILES];
	unsigned n_files;

	struct list *lists; /* of all files, in the order they are read */
	size_t n_lists, max_lists;
	struct list **by_name; /* sorted */
	bool lists_broken;     /* they lead in a circle, or too deep, and must not be walked */

	struct rule *rules, *full; /* heap, until reader_finish() */
	size_t n_rules, max_rules, n_full, max_full;
	struct pattern *patterns;
	size_t n_patterns, max_patterns;
	const struct node *read_only; /* the key, of sandbox:; NULL: it is not there */
	size_t n_unfolded;	      /* lists that were looked into, over all rules */
	bool patterns_full;	      /* more than NP_POLICY_PATTERNS, and that is told */
	struct grant *grants;
	size_t n_grants, max_grants;
	const struct node *grants_at; /* the value of approval: grants: */
	struct decider deciders[NP_POLICY_DECIDERS];
	size_t n_deciders;
	struct credential *credentials; /* NP_CREDENTIALS_MAX in policy->arena, once there is one */
	size_t n_credentials;
};

void reader_clear(struct reader *reader); /* frees the heap, not the arenas */

/* -- read.c: the verbs that all sections use ------------------------------------ */

/* The problem's place is that of node. */
struct problem *problem_at(struct reader *reader, bool warning, const struct node *node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define error_at(reader, node, ...) problem_at(reader, false, node, __VA_ARGS__)
#define warn_at(reader, node, ...)  problem_at(reader, true, node, __VA_ARGS__)
void problem_other(const struct reader *reader, struct problem *problem, const struct node *other); /* NULL is fine */
/* False when one more error would only be counted: then nobody needs to look for what was meant, which takes long. */
bool error_is_kept(const struct reader *reader);
const char *node_file(const struct reader *reader, const struct node *node);
struct place node_place(const struct node *node);

/* Finds the keys of a mapping: ret[i] is the node of the set's key i, whose value is ->next, or NULL. False when something
 * was wrong with a key and is told: it is unknown, or has no value, and is NULL in ret. */
bool map_fields(struct reader *reader, const struct node *map, const struct key_set *set, const struct node **ret);

/* The value of key. NULL when it is no scalar, and that is told. */
const struct node *field_scalar(struct reader *reader, const struct node *key);
/* The value of key as a list, in which a scalar is one entry: their number, and the first; go on by ->next. 0 when it is
 * a mapping or an empty list, and that is told. */
size_t field_entries(struct reader *reader, const struct node *key, const struct node **ret_first);
/* An entry of a list that must be a scalar. False when it is not, or is empty, and that is told. */
bool entry_is_text(struct reader *reader, const struct node *key, const struct node *entry);

/* [a-z0-9_-]{1,64} */
bool word_is_name(const char *text);
/* May one of `what` ("decider") have this key as its name? False: it is none, and that is told. */
bool key_is_name(struct reader *reader, const struct node *key, const char *what);
/* False when the one that stands at `at` has it already: that is told, unless both are in one file, which a repeated key was told for. */
bool key_is_new(struct reader *reader, const struct node *key, const char *what, const char *name,
		const struct place *at);
void field_flag(struct reader *reader, const struct node *key, bool *ret); /* untouched when it is neither */
/* "5s" in ms. False when it is none, and that is told. */
bool field_duration(struct reader *reader, const struct node *key, uint64_t *ret_ms);

/* -- the sections -------------------------------------------------------------- */

/* Finds the sections of the file and checks its version. False when the version is not ours: nothing else in the file
 * is known to mean what it seems to. */
bool file_open(struct reader *reader, struct file *file, const struct node *root);

int read_settings(struct reader *reader, const struct file *file); /* of the first file */
void read_sandbox(struct reader *reader, const struct node *key);
void read_lifetime(struct reader *reader, const struct node *sessions,
		   const struct node *workspaces);		  /* NULL: not there */
int read_proxies(struct reader *reader, const struct file *file); /* of the first file; needs the lists */
int read_access(struct reader *reader, const struct node *key);
/* The levels below key, as bits. 0: one was wrong, and that is told. */
uint8_t read_levels_of(struct reader *reader, const struct node *key);
/* A program and its arguments, as a NULL-terminated array; what is wrong is told, and *ret untouched. */
int read_command(struct reader *reader, const struct node *key, const char *const **ret);
int read_socket(struct reader *reader, const struct node *key, const char **ret);
/* http:// of a loopback address; example: what one looks like, for the message. */
int read_loopback_url(struct reader *reader, const struct node *key, const char *example, const char **ret);
int read_notify(struct reader *reader, const struct node *key, struct notify *ret);
int read_exports(struct reader *reader, const struct file *file); /* metrics:, events: */
int read_method_words(struct reader *reader, const struct node *key, const char *const **ret);
int read_path_globs(struct reader *reader, const struct node *key, const char *const **ret);
/* One name of a header, in lower case; NULL in *ret: it is none, and that is told. */
int read_header_name(struct reader *reader, const struct node *value, const char **ret);
bool session_glob_is_valid(const char *text, size_t len);
/* Globs of USER/SESSION below key, as a NULL-terminated array. */
int read_session_globs(struct reader *reader, const struct node *key, const char *const **ret);
/* The value of a section that must be a mapping. NULL when it is none, and that is told; of says what of. */
const struct node *section_map(struct reader *reader, const struct node *key, const char *of);
int read_deciders(struct reader *reader, const struct file *file);
int read_grants(struct reader *reader, const struct file *file);
int read_credentials(struct reader *reader, const struct file *file); /* needs the lists */
/* -- read_slots.c */
struct credential_slot;
int read_slots(struct reader *reader, const struct node *key, struct credential_slot *slots, size_t *n);
/* Which of the key's words it is; -1: none of them, and that is told. */
int field_word(struct reader *reader, const struct key *key, const struct node *value);
int field_text(struct reader *reader, const struct node *key, const char **ret); /* a copy; *ret stays if it is none */
int read_lists(struct reader *reader, const struct file *file);
/* Once all are read. */
int lists_link(struct reader *reader);
struct list *list_find(const struct reader *reader, const char *name); /* NULL: there is none */
void list_unknown(struct reader *reader, const struct node *entry);
void lists_warn(struct reader *reader); /* of lists that nobody uses */

/* Needs the settings, deciders and lists. */
int read_rules(struct reader *reader, const struct file *file);
int read_full(struct reader *reader, const struct file *file);
int read_read_only(struct reader *reader);
/* Adds the patterns of the destinations below key, with lists unfolded. ret_not_http is the first that is no HTTP: it
 * names a port that is not inspected, or udp; NULL when there is none. */
int read_destinations(struct reader *reader, const struct node *key, enum pattern_use use, struct rule *rule,
		      const struct node **ret_not_http);
/* What a rule says beside its destinations. complete: no key was left out of fields because something was wrong with it. */
int read_conditions(struct reader *reader, const struct node *const *fields, bool complete, struct rule *rule);

/* Moves everything to policy. */
int reader_finish(struct reader *reader);
