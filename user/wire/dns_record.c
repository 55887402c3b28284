/* SPDX-License-Identifier: MIT */
#include <arpa/nameser.h>
#include <string.h>

#include "wire/dns.h"

static const struct {
	uint16_t type;
	const char *name;
} types[] = { { ns_t_mx, "MX" }, { ns_t_srv, "SRV" }, { ns_t_txt, "TXT" } };
#define N_TYPES (sizeof(types) / sizeof(types[0]))

unsigned dns_record_bit(uint16_t type)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		if (types[i].type == type)
			return 1u << i;
	return 0;
}

uint16_t dns_record_parse(const char *word)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		if (strcmp(types[i].name, word) == 0)
			return types[i].type;
	return 0;
}

uint16_t dns_record_next(unsigned *bits)
{
	for (unsigned i = 0; i < N_TYPES; i++)
		if (*bits & 1u << i) {
			*bits &= ~(1u << i);
			return types[i].type;
		}
	return 0;
}
