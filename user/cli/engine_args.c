/* SPDX-License-Identifier: MIT */
#include "cli/engine_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "launch/trust_files.h"

struct args {
	char **words;
	size_t n, size;
	bool failed;
};

/* Two words, or one; the second is made of format and what follows. */
static void args_add(struct args *args, const char *word, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void args_add(struct args *args, const char *word, const char *format, ...)
{
	char *value = NULL;
	va_list ap;

	if (args->n + 3 > args->size) {
		args->failed = true;
		return;
	}
	args->words[args->n] = strdup(word);
	args->failed = args->failed || !args->words[args->n++];
	if (!format)
		return;
	va_start(ap, format);
	if (vasprintf(&value, format, ap) < 0)
		args->failed = true;
	else
		args->words[args->n++] = value;
	va_end(ap);
}

static int variable_add(void *data, const char *name, const char *value)
{
	args_add(data, "--env", "%s=%s", name, value);
	return 0;
}

int engine_verb(int argc, char *const *argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "run") || !strcmp(argv[i], "create"))
			return i;
	return -1;
}

/* Names of capabilities, with commas between them, as engines take them: in either case, with and without CAP_. */
static bool capabilities_lead_out(const char *names)
{
	static const char *const capabilities[] = {
		"ALL",	     "BPF", "SYS_ADMIN", "SYS_MODULE", /* on the host: they can remove the gate */
		"NET_ADMIN", /* it has the kernel send: by a tunnel, a tap, a copy of each packet */
		"NET_RAW",   /* to Docker it is stronger than our --cap-drop */
	};

	for (const char *name = names; *name;
	     name += name[strcspn(name, ",")] ? strcspn(name, ",") + 1 : strlen(name)) {
		const char *bare = strncasecmp(name, "CAP_", 4) ? name : name + 4;
		size_t len = strcspn(bare, ",");

		for (size_t k = 0; k < ARRAY_SIZE(capabilities); k++)
			if (strlen(capabilities[k]) == len && !strncasecmp(bare, capabilities[k], len))
				return true;
	}
	return false;
}

const char *engine_leads_out(int argc, char *const *argv, int verb)
{
	static const char *const options[] = {
		"--cgroup-parent",		   /* another place than the sandbox */
		"--cgroups",			   /* none at all; or conmon in it */
		"--pod",			   /* that of the pod */
		"--pod-id-file",   "--privileged", /* root on the host in all but name: it can remove the gate */
	};

	for (int i = verb + 1; i < argc; i++) {
		if (!strncmp(argv[i], "--cap-add=", 10) && capabilities_lead_out(argv[i] + 10))
			return argv[i];
		if (!strcmp(argv[i], "--cap-add") && i + 1 < argc && capabilities_lead_out(argv[i + 1]))
			return argv[i];
		for (size_t k = 0; k < ARRAY_SIZE(options); k++) {
			size_t len = strlen(options[k]);

			if (!strncmp(argv[i], options[k], len) && (!argv[i][len] || argv[i][len] == '=') &&
			    strcmp(argv[i], "--privileged=false") != 0)
				return options[k];
		}
	}
	return NULL;
}

static void trust_add(struct args *args, const char *dir, bool keep_bundles)
{
	args_add(args, "--volume", "%s:%s:ro", dir, TRUST_DIR);
	for (size_t i = 0; i < trust_places_n; i++)
		if (!keep_bundles || !strcmp(trust_places[i].file, TRUST_CA))
			args_add(args, "--volume", "%s/%s:%s:ro", dir, trust_places[i].file, trust_places[i].path);
	if (trust_variables_each(TRUST_DIR, variable_add, args) < 0)
		args->failed = true;
}

char **engine_args(int argc, char *const *argv, int verb, const struct engine_order *order)
{
	/* Two words for each mount and variable, and some more. */
	size_t size = (size_t)argc + 2 * (trust_places_n + trust_variables()) + 32;
	struct args args = { .words = calloc(size + 1, sizeof(char *)), .size = size };

	if (!args.words)
		return NULL;
	for (int i = 0; i <= verb; i++)
		args_add(&args, argv[i], NULL);
	args_add(&args, "--cgroup-parent", "%s", order->parent);
	/* AF_PACKET goes past all that sees IP sockets. Raw IP sockets are refused in any case. */
	args_add(&args, "--cap-drop", "NET_RAW");
	args_add(&args, "--label", "netpawl.dev/session=%s", order->session);
	if (order->podman) {
		/* For netpawl-oci-hook, where it is installed. */
		args_add(&args, "--annotation", "netpawl.dev/session=%s", order->session);
		args_add(&args, "--cgroups", "no-conmon");
	}
	if (order->trust)
		trust_add(&args, order->trust, order->keep_bundles);
	for (int i = verb + 1; i < argc; i++)
		args_add(&args, argv[i], NULL);
	if (args.failed)
		engine_args_free(&args.words);
	return args.words;
}

void engine_args_free(char ***args)
{
	for (char **word = *args; word && *word; word++)
		free(*word);
	free(*args);
	*args = NULL;
}
