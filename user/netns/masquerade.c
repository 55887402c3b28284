/* SPDX-License-Identifier: MIT */
#include "netns/masquerade.h"

#include <errno.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "gate_limits.h"
#include "vocab/limits.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)
#define MARK	   "netpawl 3" /* of each rule: changes with the rules */
#define MARK_SHUT  "netpawl shut"
#define N_RULES	   11

/*
 * One transaction: there is no moment without it. "add" makes none anew that is there, "flush" empties chains of rules and leaves
 * the count of connections.
 *
 *   leaving  who has another source than the one that leads back there has made it up. A sandbox has no more than its share of the
 *            host's table of connections.
 *   opening  a new connection: from none of them, while it is shut.
 *   coming   answers, and nobody who calls.
 *   here     to the host itself: the gate judges that by its ports; the source is checked all the same.
 */
// clang-format off
#define CHAIN(name, more) "add chain inet netpawl " name " " more "\n"
#define BASE(what)	  "{ type " what "; policy accept; }"
#define RULE(chain, text) "add rule inet netpawl " chain " " text " comment \"" MARK "\"\n"
#define BUSY(set, type)	  "add set inet netpawl " set " { type " type "; size " STRING(NP_NAMESPACES_MAX) "; flags dynamic; }\n"
#define FEW(set, source)  "ct state new add @" set " { " source " ct count over " STRING(NP_NAT_CONNECTIONS) " } drop"
#define TABLE						\
	"add table inet netpawl\n"	\
	BUSY("busy4", "ipv4_addr") \
	BUSY("busy6", "ipv6_addr") \
	CHAIN("leaving", "") \
	CHAIN("opening", "") \
	CHAIN("coming", "") \
	CHAIN("forward", BASE("filter hook forward priority -10")) \
	CHAIN("here", BASE("filter hook input priority -10")) \
	CHAIN("leaves_as_host", BASE("nat hook postrouting priority srcnat")) \
	"flush table inet netpawl\n" \
	RULE("forward", "iifname \"npnat*\" jump leaving") \
	RULE("forward", "oifname \"npnat*\" jump coming") \
	RULE("leaving", "oifname \"npnat*\" drop") \
	RULE("leaving", "fib saddr . iif oif missing drop") \
	RULE("leaving", "ct state new jump opening") \
	RULE("leaving", FEW("busy4", "ip saddr")) \
	RULE("leaving", FEW("busy6", "ip6 saddr")) \
	RULE("coming", "ct direction reply ct state established,related accept") \
	RULE("coming", "drop") \
	RULE("here", "iifname \"npnat*\" fib saddr . iif oif missing drop") \
	RULE("leaves_as_host", "iifname \"npnat*\" masquerade")
static const char table[] = TABLE;
static const char table_shut[] = TABLE "add rule inet netpawl opening drop comment \"" MARK_SHUT "\"\n";
// clang-format on

/* Where there is none, or no descriptor left, libnftables ends the process. */
static bool netlink_is_there(void)
{
	_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	return fd >= 0;
}

/* Made once: that takes longer than what is asked of it. It stays with the namespace that it was made in, the daemon's. */
static struct nft_ctx *nft_open(void)
{
	static struct nft_ctx *ctx;

	if (!ctx) {
		ctx = netlink_is_there() ? nft_ctx_new(NFT_CTX_DEFAULT) : NULL;
		if (ctx)
			nft_ctx_output_set_flags(ctx, NFT_CTX_OUTPUT_TERSE); /* sets without what is in them */
		if (ctx && (nft_ctx_buffer_output(ctx) || nft_ctx_buffer_error(ctx))) {
			nft_ctx_free(ctx);
			ctx = NULL;
		}
	}
	return ctx;
}

/* What it prints, until the next call; NULL with errno: it failed. */
static const char *nft_run(const char *commands)
{
	struct nft_ctx *ctx = nft_open();

	if (!ctx) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (nft_run_cmd_from_buffer(ctx, commands) == 0)
		return nft_ctx_get_output_buffer(ctx);
	errno = EIO; /* it leaves any number there */
	return NULL;
}

/* All of the rules, whoever may have flushed some. */
static bool table_is_whole(const char *listed)
{
	unsigned n = 0;

	for (; listed && (listed = strstr(listed, "\"" MARK "\"")); listed++)
		n++;
	return n == N_RULES;
}

int masquerade_ensure(bool shut)
{
	const char *listed = nft_run("list table inet netpawl");
	const bool whole = table_is_whole(listed);

	if (whole && (strstr(listed, "\"" MARK_SHUT "\"") != NULL) == shut)
		return 0;
	if (nft_run(shut ? table_shut : table))
		return !whole;
	log_error("nftables does not take the rules for sandboxes' ways out: %.300s",
		  nft_open() ? nft_ctx_get_error_buffer(nft_open()) : "this kernel has no netfilter");
	return -EIO;
}

int masquerade_remove(void)
{
	if (!nft_run("list chain inet netpawl leaves_as_host"))
		return 0;
	return nft_run("delete table inet netpawl") ? 0 : -errno;
}

/* The words of nft are its interface: "table ip filter {", "chain FORWARD {", "type filter hook forward priority filter; policy
 * drop;". */
bool masquerade_is_barred(char ret_chain[static 96])
{
	const char *line = nft_run("list chains");
	char family[16] = "", name[32] = "", chain[40] = "";

	for (; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (sscanf(line, " table %15s %31s", family, name) == 2 || sscanf(line, " chain %39s", chain) == 1)
			continue;
		if (!strncmp(line + strspn(line, "\t "), "type filter hook forward", 24) &&
		    memmem(line, strcspn(line, "\n"), "policy drop", 11)) {
			snprintf(ret_chain, 96, "%s %s %s", family, name, chain);
			return true;
		}
	}
	return false;
}
