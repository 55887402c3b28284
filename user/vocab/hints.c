/* SPDX-License-Identifier: MIT */
/* What an agent should do about a refusal: a sentence or two for each reason. */
#include "base/cleanup.h"
#include "vocab/words.h"

#define NOBODY_JUDGES "Nothing is there to judge it at the moment. You may try again later."
#define OWN_SERVICES_ONLY                                                                                         \
	"Trying again will not help. Only what was started in this sandbox can be reached: start the service in " \
	"here, or go on without it."
#define PLAIN_TCP_OR_UDP "Trying again will not help. Use plain TCP or UDP to one address, or go on without it."
#define ORIGIN_AWAY                                                                                                 \
	"The policy allows this host, but it cannot be reached from here at the moment. Check the host's name and " \
	"the port; if they are right, try again later, or go on without it."
#define PROXY_AWAY                                                                                                   \
	"The policy allows this host, but the proxy that leads out of this network did not lead there. You may try " \
	"again later; if it stays so, tell the user."
#define PLAIN_REQUEST "Send a plain, well-formed request whose Host is the host that you connect to."
#define ANSWER_WITHHELD                                                                                              \
	"The host was asked, and what it answered is withheld because a secret may be in it. Trying the same again " \
	"will not help; another call of the host's API may."

static const char *const hints[NP_REASON_COUNT] = {
	[NP_R_MODE_NONE] =
		"Trying again will not help: the network of this session stays closed. Go on with what is here "
		"already, or tell the user that the rest needs a network.",
	[NP_R_ENDED_BY_STOP] = "The policy allowed it. You may try again when netpawld runs again.",
	[NP_R_NO_INSPECTOR] = NOBODY_JUDGES,
	[NP_R_NO_DNS_GATE] = NOBODY_JUDGES,
	[NP_R_METADATA] = "Trying again will not help. Sandboxes get no credentials of the host; go on without them.",
	[NP_R_CREDENTIAL_ELSEWHERE] =
		"Trying again will not help. Send the placeholder only to the hosts it is for, over https, and where "
		"the policy says; it is worth nothing elsewhere.",
	[NP_R_CREDENTIAL_MISSING] =
		"The policy allows it, but an operator has to look after the credential: netpawl credentials. You may "
		"try again later.",
	[NP_R_HOST_LOOPBACK] = OWN_SERVICES_ONLY,
	[NP_R_FOREIGN_UNIX] = OWN_SERVICES_ONLY,
	[NP_R_UNIX_WOULD_WAIT] =
		"Let the service accept or read what is there, and try again then; a longer backlog of its listen() "
		"helps, too.",
	[NP_R_INBOUND] =
		"Trying again will not help. Clients in the same sandbox can reach this listener, others cannot; but "
		"an operator can lead a port of the host there with netpawl forward, in every mode but NONE.",
	[NP_R_LEFT_NETNS] = "Trying again will not help. Sockets are made in the container's own network namespace.",
	[NP_R_PORT_TAKEN] = "Choose another port.",
	[NP_R_PROTOCOL] = PLAIN_TCP_OR_UDP,
	[NP_R_IP_OPTIONS] = PLAIN_TCP_OR_UDP,
	[NP_R_MULTICAST] = PLAIN_TCP_OR_UDP,
	[NP_R_SOCKET_OPTION] = PLAIN_TCP_OR_UDP,
	[NP_R_TOO_MANY_QUERIES] = "Look names up less often, and keep the answers.",
	[NP_R_TOO_MANY_NAMES] = "Trying again will not help for an hour. Use names that were looked up before.",
	[NP_R_NAME_FORGOTTEN] = "Look the name up again and connect to the address that you get then.",
	[NP_R_BAD_DNS] = "Send a plain query of class IN with one question.",
	[NP_R_CLIENT_GONE] = "Wait for the answer before the connection is closed, and close it without a reset.",
	[NP_R_TOO_MUCH_UNREAD] = "Read the responses that are open, or close them, before you ask for more.",
	[NP_R_TOO_MANY_REQUESTS] = "Wait for some of the open requests to end, and try again then.",
	[NP_R_ORIGIN_UNREACHABLE] = ORIGIN_AWAY,
	[NP_R_RESPONSE_BROKEN] = ORIGIN_AWAY,
	[NP_R_TIMED_OUT] =
		"The policy allows this host, but it did not answer in time. You may try again; if it always takes so "
		"long, the user can let the rule wait longer.",
	[NP_R_PROXY_FAILED] = PROXY_AWAY,
	[NP_R_PROXY_TIMED_OUT] = PROXY_AWAY,
	[NP_R_ORIGIN_UNTRUSTED] =
		"The policy allows this host, but its certificate was not accepted. Do not work around certificate "
		"checks; tell the user.",
	[NP_R_ORIGIN_TLS] =
		"The policy allows this host, but it does not speak TLS 1.2 or 1.3 at this port. Check the scheme and "
		"the port; else tell the user.",
	[NP_R_CA_UNTRUSTED] =
		"Point the program at the file that $SSL_CERT_FILE names: it holds the session's CA. Most programs "
		"have a variable or an option for that. Do not switch certificate checks off.",
	[NP_R_CLIENT_TLS] = "Use a program that speaks TLS 1.2 or 1.3.",
	[NP_R_BAD_HTTP] = PLAIN_REQUEST,
	[NP_R_HOST_MISMATCH] = PLAIN_REQUEST,
	[NP_R_BAD_WEBSOCKET] =
		"Ask for a websocket as RFC 6455 has it, with a client that does, or leave the upgrade out.",
	[NP_R_WEBSOCKET_BROKEN] =
		"The policy allows this websocket, but one end does not keep to RFC 6455. Use another client, or go on "
		"without it.",
	[NP_R_BODY_TOO_LARGE] = "A smaller body may pass. Sending the same one again will not.",
	[NP_R_BAD_PATH] = "Write the path without double slashes, dot segments and escaped slashes.",
	[NP_R_NEEDS_APPROVAL] =
		"A person has to answer first. Go on with something else, and try the same request again later: it "
		"meets the answer, or waits for it again.",
	[NP_R_SECRET_RETURNED] = ANSWER_WITHHELD,
	[NP_R_UNSEARCHABLE] = ANSWER_WITHHELD,
	[NP_R_SECRET_LEAVING] =
		"Trying again will not help. Use the placeholder of the credential, which netpawl replaces where the "
		"credential belongs, and tell your operator where the value came from.",
	[NP_R_ANSWER_DENIES] = "Trying again will not help: a person has seen it and said no. Go on without it.",
	[NP_R_TOO_MANY_QUESTIONS] =
		"People have to answer earlier questions of this session first. Go on without it, and ask for less at "
		"a time.",
	[NP_R_ENDED_BY_EXPIRY] = "It was approved for a time that is over. Try again: a person may be asked once more.",
	[NP_R_NEEDS_DECIDER] =
		"The program that decides about it gave no answer. Go on with something else, and try the same request "
		"again later.",
	[NP_R_DECIDER_DENIES] =
		"Trying again will not help: the program that decides about it has seen it and said no. Go on without "
		"it.",
	[NP_R_READ_ONLY] =
		"Trying again will not help: this run may only read. Use GET, HEAD or OPTIONS, or ask for a run of "
		"class write, which somebody has to approve.",
};

const char *reason_hint(unsigned reason)
{
	if (reason < ARRAY_SIZE(hints) && hints[reason])
		return hints[reason];
	return "Trying again, another client or another address will not help. Go on without it, or tell the user "
	       "that the platform's policy would have to allow it.";
}
