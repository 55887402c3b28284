/* SPDX-License-Identifier: MIT */
#include "policy/shipped.h"

#include <errno.h>
#include <string.h>

#include "policy/include.h"

/* The APIs of language models, and nothing that serves files or pages of strangers. */
const char shipped_lists[] = "version: 1\n"
			     "lists:\n"
			     "  llm:\n"
			     "    - api.anthropic.com\n"
			     "    - api.openai.com\n"
			     "    - generativelanguage.googleapis.com\n"
			     "    - .aiplatform.googleapis.com\n"
			     "    - .githubcopilot.com\n"
			     "    - api.cohere.com\n"
			     "    - api.deepseek.com\n"
			     "    - api.fireworks.ai\n"
			     "    - api.groq.com\n"
			     "    - api.mistral.ai\n"
			     "    - api.together.xyz\n"
			     "    - api.x.ai\n"
			     "    - integrate.api.nvidia.com\n"
			     "    - openrouter.ai\n";
#define SHIPPED_NAME "llm"

/* Trees are no deeper than yaml.c lets them be. */
static bool node_names_it(const struct node *node)
{
	if (node->kind == NODE_SCALAR)
		return !strcmp(node->text, "@" SHIPPED_NAME);
	for (const struct node *below = node->first; below; below = below->next)
		if (node_names_it(below))
			return true;
	return false;
}

static bool is_wanted(const struct reader *reader)
{
	for (size_t i = 0; i < reader->n_lists; i++)
		if (!strcmp(reader->lists[i].key->text, SHIPPED_NAME))
			return false;
	for (unsigned i = 0; i < reader->n_files; i++)
		for (unsigned k = 0; k < SECTION_COUNT; k++)
			if (reader->files[i].sections[k] && node_names_it(reader->files[i].sections[k]->next))
				return true;
	return false;
}

int shipped_read(struct loading *l)
{
	struct reader *reader = &l->reader;
	const size_t len = strlen(shipped_lists);
	const struct node *root = NULL;
	struct file *file;
	int e;

	/* Of a policy with as many files as may be, the list is unknown. */
	if (!is_wanted(reader) || reader->n_files == NP_POLICY_FILES)
		return 0;
	e = file_count(l, SHIPPED_FILE, NULL, shipped_lists, len);
	if (e < 0)
		return e;
	file = &reader->files[reader->n_files++];
	*file = (struct file){ .name = SHIPPED_FILE, .shipped = true };
	reader->policy->files[reader->policy->n_files++] = SHIPPED_FILE;
	e = yaml_read(reader->trees, shipped_lists, len, SHIPPED_FILE, (uint16_t)(reader->n_files - 1), &l->nodes,
		      reader->problems, &root);
	if (e < 0)
		return e;
	return file_open(reader, file, root) ? read_lists(reader, file) : -EINVAL;
}
