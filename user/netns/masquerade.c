/* SPDX-License-Identifier: MIT */
#include "netns/masquerade.h"

#include <errno.h>
#include <linux/netlink.h>
#include <nftables/libnftables.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "gate_limits.h"
#include "vocab/limits.h"

#define STRING_(x) #x
#define STRING(x)  STRING_(x)
#define MARK	   "netpawl 1" /* of the rule that is added last: changes with the rules */

/*
 * One transaction: there is no moment without it. "add" makes none anew that is there, "flush" empties chains of rules and leaves
 * the count of connections.
 *
 *   leaving  who has another source than the one that leads back there has made it up. A sandbox has no more than its share of the
 *            host's table of connections.
 *   coming   answers, and nobody who calls.
 *   here     to the host itself: the gate judges that by its ports; the source is checked all the same.
 */
static const char table[] =
	"add table inet netpawl\n"
	"add set inet netpawl busy4 { type ipv4_addr; size " STRING(
		NP_NAMESPACES_MAX) "; flags dynamic; }\n"
				   "add set inet netpawl busy6 { type ipv6_addr; size " STRING(
					   NP_NAMESPACES_MAX) "; flags dynamic; }\n"
							      "add chain inet netpawl leaving\n"
							      "add chain inet netpawl coming\n"
							      "add chain inet netpawl forward { type filter hook "
							      "forward priority -10; policy accept; }\n"
							      "add chain inet netpawl here { type filter hook input "
							      "priority -10; policy accept; }\n"
							      "add chain inet netpawl leaves_as_host { type nat hook "
							      "postrouting priority srcnat; policy accept; }\n"
							      "flush table inet netpawl\n"
							      "add rule inet netpawl forward iifname \"npnat*\" jump "
							      "leaving\n"
							      "add rule inet netpawl forward oifname \"npnat*\" jump "
							      "coming\n"
							      "add rule inet netpawl leaving oifname \"npnat*\" drop\n"
							      "add rule inet netpawl leaving fib saddr . iif oif "
							      "missing drop\n"
							      "add rule inet netpawl leaving ct state new add @busy4 { "
							      "ip saddr ct count over " STRING(
								      NP_NAT_CONNECTIONS) " } drop\n"
											  "add rule inet netpawl "
											  "leaving ct state new add "
											  "@busy6 { ip6 saddr ct count "
											  "over " STRING(
												  NP_NAT_CONNECTIONS) " } drop\n"
														      "add rule inet netpawl coming ct direction reply ct state established,related accept\n"
														      "add rule inet netpawl coming drop\n"
														      "add rule inet netpawl here iifname \"npnat*\" fib saddr . iif oif missing drop\n"
														      "add rule inet netpawl leaves_as_host iifname \"npnat*\" masquerade comment \"" MARK
														      "\"\n";

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

int masquerade_ensure(void)
{
	const char *there = nft_run("list chain inet netpawl leaves_as_host");

	if (there && strstr(there, "\"" MARK "\""))
		return 0;
	if (nft_run(table))
		return 0;
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
