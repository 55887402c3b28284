/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one vocabulary of reasons. The gate, the event log, the CLI, the API and
 * every test use these tokens and no others.
 *
 * Codes are part of the kernel <-> user ABI and of stored events: append within
 * a group's range, never renumber.
 *
 *   0..31    ALLOW    the gate let it pass
 *   32..127  REFUSE   the gate, the DNS gate or the inspector refused it
 *   128..191 CHANGE   something happened to a session, a sandbox or the daemon
 *   192..255 ERROR    the control API or the CLI could not do what was asked
 */
#pragma once

/* X(NAME, code, token, sentence) */
#define NP_REASONS(X)                                                                              \
	X(OPEN_MODE, 0, "open_mode", "the sandbox's mode is FULL")                                 \
	X(OWN_LOOPBACK, 1, "own_loopback", "both ends belong to the same sandbox")                 \
	X(NO_LISTENER, 2, "no_listener", "nobody listens there; the kernel answers by itself")     \
	X(HOST_PORT, 3, "host_port", "the policy lists this port of the host (host_loopback)")     \
	X(OWN_UNIX, 4, "own_unix", "the unix socket was opened by the same sandbox")               \
	X(NOT_OURS, 5, "not_ours", "the socket belongs to no sandbox")                             \
	X(RULE_ALLOWS, 6, "rule_allows", "a rule of the policy allows it")                         \
	X(STEERED, 7, "steered", "it leads to the inspector or to the DNS gate, which judge each request") \
	X(NOTHING_SENT, 8, "nothing_sent", "connect() of a UDP socket sends nothing; what it sends is judged") \
	X(INBOUND_PORT, 12, "inbound_port", "the policy lets callers from beyond the host reach this port (inbound)") \
	X(FORWARDED, 13, "forwarded", "an operator reaches the sandbox's listener by netpawl forward") \
	X(APPROVED, 20, "approved", "a person was asked and approved it")                          \
	X(DEFAULT_ALLOWS, 21, "default_allows", "no rule of the policy speaks of it, and the default allows it") \
	X(DECIDER_ALLOWS, 22, "decider_allows", "the rule's decider was asked and allowed it")     \
                                                                                                   \
	X(MODE_NONE, 32, "mode_none", "the sandbox's mode is NONE: its network is closed")         \
	X(NOT_IN_POLICY, 33, "not_in_policy",                                                      \
	  "the sandbox's mode is PROXIED and no rule allows this destination")                     \
	X(NO_INSPECTOR, 34, "no_inspector",                                                        \
	  "the sandbox's mode is PROXIED and no inspector is running to judge this request")       \
	X(NO_DNS_GATE, 35, "no_dns_gate",                                                          \
	  "the sandbox's mode is PROXIED and no DNS gate is running to answer this query")         \
	X(METADATA, 36, "metadata", "cloud metadata and link-local addresses are refused in every mode") \
	X(HOST_LOOPBACK, 37, "host_loopback",                                                      \
	  "no listener of this sandbox is there, and those of the host or of another sandbox are not for it") \
	X(INBOUND, 38, "inbound", "only the sandbox itself reaches its listeners, and callers from beyond the host where the policy says so (inbound)")  \
	X(PROTOCOL, 39, "protocol", "sandboxes may use TCP and UDP, and in FULL ping, and nothing else") \
	X(UNREGISTERED, 40, "unregistered", "the cgroup is below netpawl's slice but is no sandbox") \
	X(FOREIGN_UNIX, 41, "foreign_unix",                                                        \
	  "the unix socket is not one that this sandbox opened")                                   \
	X(MALFORMED, 42, "malformed", "the packet's headers could not be read")                    \
	X(MULTICAST, 43, "multicast", "multicast and broadcast would reach listeners of this host")          \
	X(IP_OPTIONS, 44, "ip_options", "IP options and extension headers are refused in this mode") \
	X(PORT_TAKEN, 45, "port_taken", "the port is in use by the host or by another sandbox")    \
	X(SOCKET_OPTION, 47, "socket_option", "this socket option would get around the gate")      \
	X(INTERNAL, 46, "internal", "the gate could not decide, so it refused")                    \
	X(LEFT_NETNS, 119, "left_netns",                                                           \
	  "the socket would be in another network namespace than the container's")                 \
	X(RULE_DENIES, 48, "rule_denies", "a rule of the policy denies it")                        \
	X(NEEDS_APPROVAL, 49, "needs_approval",                                                    \
	  "a rule wants a person to approve this, and nobody has")                                 \
	X(NEEDS_DECIDER, 50, "needs_decider",                                                      \
	  "a rule wants a program to decide this, and it did not: it was not there, not in time, or not clear")                      \
	X(BAD_PATH, 51, "bad_path",                                                                \
	  "the path can be read in two ways, so no rule with paths can be trusted to judge it")    \
	X(BODY_TOO_LARGE, 52, "body_too_large", "the rule that allows this request bounds its body (max_body)") \
	X(NO_UPGRADE, 53, "no_upgrade",                                                            \
	  "the rule that allows this request does not allow a websocket (websocket: true)")        \
	X(HOST_MISMATCH, 54, "host_mismatch",                                                      \
	  "the request names another host or port than the connection was made for")               \
	X(BAD_HTTP, 55, "bad_http", "the request is not HTTP, or can be read in two ways")         \
	X(ORIGIN_UNREACHABLE, 56, "origin_unreachable", "the host could not be reached; the policy is not the reason") \
	X(ORIGIN_UNTRUSTED, 57, "origin_untrusted",                                                \
	  "the host did not prove who it is: its certificate was not accepted")                    \
	X(ORIGIN_TLS, 111, "origin_tls",                                                           \
	  "the host and the inspector found no TLS that both speak; its certificate is not the reason") \
	X(PROXY_FAILED, 115, "proxy_failed",                                                       \
	  "the upstream proxy could not be reached, or did not lead to the host; the policy is not the reason") \
	X(PROXY_TIMED_OUT, 116, "proxy_timed_out",                                                 \
	  "the upstream proxy did not answer in time; the policy is not the reason")               \
	X(CA_UNTRUSTED, 113, "ca_untrusted",                                                       \
	  "the program ended TLS at the inspector's certificate, as programs do that do not trust the session's CA") \
	X(CLIENT_TLS, 114, "client_tls",                                                           \
	  "the program and the inspector found no TLS that both speak; the certificate is not the reason") \
	X(NO_SERVER_NAME, 58, "no_server_name",                                                    \
	  "the TLS client did not say which host it wants, and no rule allows the address by itself") \
	X(ADDRESS_REFUSED, 59, "address_refused",                                                  \
	  "the name leads to an address that sandboxes may not reach")                             \
	X(TOO_MANY_REQUESTS, 61, "too_many_requests", "the sandbox has as many requests open, or bytes unread, as it may") \
	X(TOO_MUCH_UNREAD, 112, "too_much_unread",                                                 \
	  "the sandbox, or its origins, leave more unread than an inspector keeps for one sandbox") \
	X(TOO_MANY_QUERIES, 62, "too_many_queries", "the sandbox asks the DNS gate more often than it may") \
	X(TOO_MANY_NAMES, 63, "too_many_names", "the session has looked up as many names as it may") \
	X(BAD_DNS, 64, "bad_dns", "the DNS query cannot be understood, or is for what the DNS gate does not do") \
	X(NAME_FORGOTTEN, 65, "name_forgotten",                                                    \
	  "the address stands for no name that this session has looked up; look the name up again") \
	X(NO_TUNNEL, 60, "no_tunnel", "CONNECT leads only to where a rule allows a connection")    \
	X(CREDENTIAL_ELSEWHERE, 96, "credential_elsewhere",                                        \
	  "the request carries a placeholder of a credential that is not for it: another host, another place in the request, or no TLS") \
	X(CREDENTIAL_MISSING, 97, "credential_missing",                                            \
	  "the request needs a credential, and its source has given no value")                     \
	X(ENDED_BY_RAISE, 84, "ended_by_raise",                                                    \
	  "the session was raised while it was open, and it is not allowed any more")              \
	X(ENDED_BY_RELOAD, 85, "ended_by_reload",                                                  \
	  "the policy was reloaded while it was open, and does not allow it any more")             \
	X(ENDED_BY_REMOVAL, 86, "ended_by_removal", "its sandbox was removed while it was open")     \
	X(ENDED_BY_STOP, 89, "ended_by_stop", "netpawld stopped while it was open, and its inspector with it") \
	X(CONNECTION_CUT, 87, "connection_cut",                                                    \
	  "the connection is of before the network tightened, and is cut")                         \
	X(READ_ONLY, 70, "read_only", "the run may only read: GET, HEAD and OPTIONS through the inspector, and listed addresses") \
	X(CLIENT_GONE, 71, "client_gone", "the client reset the connection before its request was looked at; nothing of it was sent on") \
	X(ANSWER_DENIES, 75, "answer_denies", "a person was asked and denied it")                  \
	X(DECIDER_DENIES, 78, "decider_denies", "the rule's decider was asked and denied it")      \
	X(TOO_MANY_QUESTIONS, 76, "too_many_questions",                                            \
	  "a rule wants a person to approve this, and as many questions wait for people as may")   \
	X(ENDED_BY_EXPIRY, 77, "ended_by_expiry", "the approval that it was opened by is over")    \
	X(BAD_WEBSOCKET, 92, "bad_websocket",                                                      \
	  "the request asks for another protocol than websocket, or not in the way that websockets are asked for") \
	X(SECRET_LEAVING, 98, "secret_leaving", "the value of a credential is in it, which no sandbox should have") \
	X(SECRET_RETURNED, 99, "secret_returned", "the value of a credential came back in the response, and echo says refuse") \
	X(UNSEARCHABLE, 100, "unsearchable", "the response may have the value of a credential in it, and cannot be searched") \
	X(RESPONSE_BROKEN, 94, "response_broken",                                                  \
	  "the host's response broke off or could not be read to its end; the policy is not the reason") \
	X(TIMED_OUT, 95, "timed_out", "the host or the client was silent for longer than the rule waits (timeouts)") \
	X(WEBSOCKET_BROKEN, 93, "websocket_broken",                                                \
	  "one end of a websocket broke the protocol, so both were cut off")                       \
	X(UNIX_WOULD_WAIT, 104, "unix_would_wait",                                                 \
	  "the unix socket takes no more at this moment; a call that waits could be led elsewhere meanwhile")  \
	X(FOREIGN_SOURCE, 105, "foreign_source", "the socket has an address that is not the host's: answers to it would leave") \
	X(TOO_MANY_SOCKETS, 88, "too_many_sockets", "the sandbox has as many sockets open as it may: the host's ports are everybody's") \
                                                                                                   \
	X(RAISED, 128, "raised", "the session's level was raised")                                 \
	X(STANDS, 129, "stands", "the session's level already was as high; it stands")             \
	X(CUT, 130, "cut", "open connections that the new mode forbids were cut")                  \
	X(SESSION_CREATED, 131, "session_created", "a session was created")                        \
	X(SESSION_ENDED, 132, "session_ended", "a session was ended; its level is kept")           \
	X(SESSION_FORGOTTEN, 177, "session_forgotten", "an ended session was forgotten")           \
	X(WORKSPACE_ENDED, 178, "workspace_ended", "the workspace of an ended session was archived or removed") \
	X(SANDBOX_MADE, 133, "sandbox_made", "a sandbox was made")                                 \
	X(SANDBOX_ADOPTED, 134, "sandbox_adopted", "an existing cgroup was adopted as a sandbox")  \
	X(SANDBOX_REMOVED, 135, "sandbox_removed", "a sandbox was removed")                        \
	X(DAEMON_READY, 136, "daemon_ready", "netpawld is ready")                                  \
	X(DAEMON_STOPPED, 137, "daemon_stopped", "netpawld stopped; enforcement stays in the kernel") \
	X(TOOK_OVER, 138, "took_over", "netpawld took over the gate of a predecessor")             \
	X(UPGRADED, 176, "upgraded",                                                               \
	  "netpawld took over from an older version's gate, which is gone now; what could not be carried over was cut") \
	X(SUPPRESSED, 139, "suppressed", "events of this sandbox were counted but not sent: too many") \
	X(LOST, 140, "lost", "events were lost between the kernel and the daemon; they are counted") \
	X(REQUESTS_LOST, 164, "requests_lost",                                                     \
	  "an inspector ended while requests were open: what became of them is not known; they are counted") \
	X(RECONCILED, 141, "reconciled",                                                           \
	  "the kernel was stricter than the record, as after a crash; the record now says so")               \
	X(DEGRADED, 180, "degraded", "something that enforcement or the record needs is gone; raises may not be acknowledged") \
	X(MENDED, 181, "mended", "what was gone is in its place again")                            \
	X(POLICY_LOADED, 142, "policy_loaded", "a policy is live")                                 \
	X(POLICY_REFUSED, 143, "policy_refused", "a policy could not be loaded; the one before stays live") \
	X(POLICY_SAVED, 182, "policy_saved", "a file of the policy was written by the API, and is live") \
	X(SANDBOX_IDLE, 146, "sandbox_idle",                                                       \
	  "nobody used a kept sandbox for as long as the policy gives it: it is removed")          \
	X(RUN_ASKED, 150, "run_asked", "a run waits for approval")                                 \
	X(RUN_APPROVED, 151, "run_approved", "a run was approved")                                 \
	X(RUN_REJECTED, 152, "run_rejected", "a run was rejected")                                 \
	X(RUN_STARTED, 153, "run_started", "a run was started")                                    \
	X(RUN_ENDED, 154, "run_ended", "a run ended")                                              \
	X(QUESTION_ASKED, 184, "question_asked", "a request or a connection waits for a person's answer") \
	X(QUESTION_ANSWERED, 185, "question_answered", "a question was answered")                  \
	X(QUESTION_ENDED, 186, "question_ended", "a question, or an answer that held, is over")    \
	X(PLACED_SOCKETS, 155, "placed_sockets",                                                   \
	  "a process that was placed in the sandbox holds what the gate cannot govern; unless the mode is FULL, the sandbox ends") \
	X(CONTAINER_RESTARTED, 156, "container_restarted",                                         \
	  "a container that was attached was started again, and is a sandbox of its session again")          \
	X(CONTAINER_OUTSIDE, 157, "container_outside",                                             \
	  "a container that was attached was started again, and could not be made a sandbox")      \
	X(NOT_KEPT, 170, "not_kept", "older events were not kept: they are over a bound on size or age")     \
	X(FORWARD_OPENED, 174, "forward_opened", "an operator reaches a listener of the sandbox (netpawl forward)") \
	X(FORWARD_ENDED, 175, "forward_ended", "a forward to a listener of the sandbox is over")   \
                                                                                                   \
	X(BAD_REQUEST, 192, "bad_request", "the request is not understood")                        \
	X(BAD_JSON, 193, "bad_json", "the body is not valid JSON")                                 \
	X(UNKNOWN_FIELD, 194, "unknown_field", "the body has a field that this call does not know") \
	X(BAD_FIELD, 195, "bad_field", "a field is missing, has the wrong type or a wrong value")  \
	X(BAD_NAME, 196, "bad_name", "the name is not allowed")                                    \
	X(BAD_LEVEL, 197, "bad_level", "the level is none of PUBLIC, INTERNAL, CONFIDENTIAL, SECRET") \
	X(NO_SUCH_SESSION, 198, "no_such_session", "there is no session of that name")             \
	X(NO_SUCH_SANDBOX, 199, "no_such_sandbox", "there is no sandbox of that id")               \
	X(NO_SUCH_PATH, 200, "no_such_path", "the API has no such path")                           \
	X(BAD_METHOD, 201, "bad_method", "this path does not take that method")                    \
	X(TOO_LARGE, 202, "too_large", "the request is larger than the API takes")                 \
	X(TOO_MANY, 203, "too_many", "a bound was reached")                                        \
	X(FROM_SANDBOX, 204, "from_sandbox", "a process inside a sandbox may not use the control API") \
	X(BAD_CGROUP, 205, "bad_cgroup", "the cgroup cannot be adopted")                           \
	X(SANDBOX_BUSY, 206, "sandbox_busy",                                                       \
	  "processes still run in the adopted cgroup; removing the sandbox would give them the network back") \
	X(NOT_RECORDED, 207, "not_recorded",                                                       \
	  "the gate was tightened but the record could not be written; try again until it is acknowledged") \
	X(NOT_WHOLE, 240, "not_whole",                                                             \
	  "a part of the gate is gone and could not be put back: what stands may not be enforced") \
	X(NOT_APPLIED, 208, "not_applied", "the kernel refused the change; nothing was loosened")  \
	X(HELD_SOCKETS, 209, "held_sockets",                                                       \
	  "a process in the cgroup holds a socket that the gate cannot govern")                    \
	X(FOREIGN_NETNS, 210, "foreign_netns",                                                     \
	  "the processes in the cgroup live in different network namespaces")            \
	X(UNSUPPORTED, 211, "unsupported", "this kernel cannot keep that promise")                 \
	X(NO_DAEMON, 212, "no_daemon", "netpawld does not answer on its control socket")           \
	X(FAILED, 213, "failed", "an internal error")                                              \
	X(NOT_PERMITTED, 214, "not_permitted", "that needs root")                                  \
	X(BAD_POLICY, 215, "bad_policy", "the policy has errors; the one before stays live")        \
	X(OUTSIDE_WORKSPACE, 220, "outside_workspace", "the path lies outside of the session's workspace") \
	X(NO_SUCH_RUN, 221, "no_such_run", "there is no run of that id")                           \
	X(NOT_APPROVED, 222, "not_approved", "a run of class write needs an approval before it starts") \
	X(RUN_OVER, 223, "run_over", "the run has been decided, started or ended already")          \
	X(NO_FORWARD, 227, "no_forward", "the sandbox's listener cannot be forwarded to")          \
	X(NO_OUTPUT, 228, "no_output", "no output of that run is kept")                            \
	X(NOT_THE_LAUNCHER, 229, "not_the_launcher", "the daemon started a launcher for the run: nobody else starts or ends it") \
	X(NO_SUCH_CREDENTIAL, 253, "no_such_credential", "the policy has no credential of that name") \
	X(NO_SUCH_QUESTION, 250, "no_such_question", "there is no question of that id")            \
	X(QUESTION_OVER, 251, "question_over", "the question has been answered already, or is void") \
	X(QUESTION_CHANGED, 252, "question_changed",                                               \
	  "the level or the policy has changed since the question was shown; look at it again")    \
	X(NO_SUCH_FILE, 231, "no_such_file", "the live policy is not made of such a file")         \
	X(FILE_CHANGED, 232, "file_changed", "the file is not as it was shown; look at it again")  \
	X(SESSION_OPEN, 230, "session_open", "the session has not ended")                                     \
	X(NO_ROLE, 245, "no_role", "the caller has no role that may do this: see access: in the policy")

enum np_reason {
#define X(name, code, token, sentence) NP_R_##name = code,
	NP_REASONS(X)
#undef X
};

#define NP_REASON_COUNT 256 /* size of tables indexed by reason */

/* The one rule that turns a reason into "may it pass": see the ranges above. */
#define NP_REASON_ALLOWS(r) ((unsigned)(r) < 32u)
#define NP_REASON_REFUSES(r) ((unsigned)(r) >= 32u && (unsigned)(r) < 128u)
#define NP_REASON_CHANGES(r) ((unsigned)(r) >= 128u && (unsigned)(r) < 192u)
