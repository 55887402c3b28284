# SPDX-License-Identifier: MIT
"""What is said is what is done: random policies and attempts, each judged three times. By `netpawl policy test` and `explain`,
by the manual as lib/diff_policy.py reads it, and by what a real client in a real sandbox meets.

`make differential` does many more: DIFF_POLICIES, DIFF_SEED. A seed gives the same policies and attempts each time."""
import hashlib
import json
import os
import ssl

import pytest

from lib import base, inspected
from lib.box import Box
from lib.daemon import Daemon
from lib.diff_policy import (A1, A2, HOST_PORTS, MD, NAMES, PLAIN_PORTS, SIX, TLS_PORTS, Policy, Reading, action_of, attempt,
                             case_line, label_match, random_attempt, random_policy, seeded, session_of, split_dest)
from lib.origins import Authority, Origins
from lib.world import GATE4, HOST4, Agent, World

POLICIES = int(os.environ.get("NETPAWL_DIFF_POLICIES", "24"))
SEED = int(os.environ.get("NETPAWL_DIFF_SEED", "1"))
ATTEMPTS = 20  # at each policy
EXPLAINED = 2  # of these also by `explain`
DNS_PORT = 5300
PERMITS = base.permits("shared")  # a network of its own has no route to what policies allow past the inspector


class ReadOnly(Box):
    """A run of class read_only."""

    def __init__(self, daemon):
        self.daemon, self.world = daemon, daemon.world
        self.session = session_of("CONFIDENTIAL", True)
        argv = [*self.world.enter(), str(base.NETPAWL), "run", "--session", self.session, "--level", "CONFIDENTIAL", "--class",
                "read_only", "--user", "root", *base.shown(), "--", *self.world.agent_argv()]
        self.agent = Agent(argv, daemon.dir / "boxes.log", env=base.env(NETPAWL_SOCKET=str(daemon.socket)))
        self.agent.call("hello")
        daemon.boxes.append(self)


def at_line(a):
    return f"at {a['level']}" + (" class read_only" if a["reads_only"] else "") + f" session {session_of(a['level'], a['reads_only'])}"


class Net:
    def __init__(self, stack):
        self.world = World(tcp_ports=(53,))
        stack.callback(self.world.close)
        self.dir = base.tempdir("differential")
        stack.callback(base.drop_tempdir, self.dir)
        authority = Authority(self.dir)
        names = [f"DNS:{n}" for n in NAMES] + [f"IP:{a}" for a in (A1, A2, SIX, MD)]
        cert, key = authority.leaf("differential.test", names=",".join(names))
        self.cert = hashlib.sha256(ssl.PEM_cert_to_DER_cert(cert.read_text())).hexdigest()
        origin = Origins.__new__(Origins)  # no origins of others: its start() is all that is wanted
        origin.world, origin.dir, origin.processes = self.world, self.dir, []
        stack.callback(lambda: [base.reap(p) for p in origin.processes])
        origin.start(base.PYTHON, base.TESTS / "e2e/lib/diff_origin.py", GATE4, DNS_PORT, json.dumps(NAMES), cert, key,
                     ",".join(map(str, PLAIN_PORTS)), ",".join(map(str, TLS_PORTS)))
        for port in HOST_PORTS:
            for kind in ("stream", "dgram"):
                self.world.outside.call("listen", keep=f"{port}{kind}", family=4, addr="0.0.0.0", port=port, kind=kind)
        self.policy = self.dir / "policy.yaml"
        self.policy.write_text(Policy([]).yaml(PERMITS))
        self.daemon = Daemon(self.world, policy=self.policy, inspectors=1,
                             more=["--resolvers", f"{GATE4}:{DNS_PORT}", "--roots", authority.pem])
        stack.callback(self.daemon.close)
        self.daemon.start()
        assert base.eventually(lambda: self.daemon.api.health()["inspectors"] == 1)
        self.boxes = {}
        stack.callback(lambda: [b.close() for b in self.boxes.values()])

    def box(self, level, reads_only):
        if (level, reads_only) not in self.boxes:
            self.boxes[level, reads_only] = ReadOnly(self.daemon) if reads_only else \
                Box(self.daemon, level=level, session=session_of(level, reads_only))
        return self.boxes[level, reads_only]

    def load(self, policy):
        self.policy.write_text(policy.yaml(PERMITS))
        self.daemon.cli("policy", "reload", check=0)

    def said(self, attempts):
        """What `policy test` says to each."""
        lines = []
        for a in attempts:
            lines += [at_line(a), f"{case_line(a)} -> allow"]
        cases = self.dir / "attempts.case"
        cases.write_text("\n".join(lines) + "\n")
        got = json.loads(self.daemon.cli("policy", "test", self.policy, cases, "--verbose", "--json").stdout)
        assert not got["broken"], got
        return got["files"][0]["results"]

    def explained(self, a):
        """The same by `explain`."""
        words = ["policy", "explain", self.policy, "--json", "--level", a["level"], "--session",
                 session_of(a["level"], a["reads_only"])]
        words += ["--class", "read_only"] if a["reads_only"] else []
        line = case_line(a).split(" ")
        if a["kind"] == "lookup":
            words += ["--lookup", a["name"], "--type", a["type"]]
        elif line[0] == "connect":
            words += ["--connect", line[1]]
        else:
            words += ["--url", line[1], "--method", a["method"]]
            words += ["--header", ",".join(a["headers"])] if a["headers"] else []
            words += ["--body", str(a["body"])] if a["body"] else []
            words += ["--websocket"] if a["websocket"] else []
        aliases, addr = NAMES.get(a.get("name"), ([], None)) if a["kind"] != "lookup" else ([], None)
        words += ["--alias", ",".join(aliases)] if aliases else []
        words += ["--resolving", addr] if addr else []
        return json.loads(self.daemon.cli(*words, check=0).stdout)

    def met(self, attempts):
        """What clients in sandboxes meet."""
        for a in attempts:
            a["mark"] = base.token()
        out = {}
        for key in {(a["level"], a["reads_only"]) for a in attempts}:
            mine = [i for i, a in enumerate(attempts) if (a["level"], a["reads_only"]) == key]
            status, got = self.box(*key).payload("attempts", "run", timeout=100, attempts=[attempts[i] for i in mine])
            assert status == 0 and isinstance(got, list), got
            out.update(zip(mine, got))
        return [out[i] for i in range(len(attempts))]

    def compare(self, policy, attempts, explain=EXPLAINED):
        """Loads the policy, and holds the three against each other."""
        self.load(policy)
        said, met, wrong = self.said([a for a in attempts if a["type"] != "A"]), self.met(attempts), []
        said = iter(said)
        for i, (a, real) in enumerate(zip(attempts, met)):
            if a["type"] == "A":
                problem = self.lookup_problem(policy, a, real)
                wrong += [(a, problem, real)] if problem else []
                continue
            words = next(said)
            reading = Reading(policy, a)
            says, reads, does = words["actual"].startswith("allow"), reading.allowed(), bool(real["reached"])
            if not says == reads == does:
                wrong.append((a, f"said {words['actual']} ({words['message']}), read {reads}, done {does}", real))
            elif does and a["tls"] and (real["cert"] != self.cert) != reading.looked_into():
                wrong.append((a, f"inspected: {real['cert'] != self.cert}, read {reading.looked_into()}", real))
            if i < explain:
                got = self.explained(a)
                # a case names the decider, too: "decide guard needs_decider"
                action, *_, reason = words["actual"].split(",")[0].split()
                if (action, reason) != (got["action"], got["reason"]):
                    wrong.append((a, f"test says {words['actual']}, explain {got['action']} {got['reason']}", None))
        return wrong, sum(bool(m["reached"]) for m in met)

    @staticmethod
    def lookup_problem(policy, a, real):
        """Addresses: a name that can be reached has one, one that no rule speaks of has none."""
        can = any(Reading(policy, attempt("tcp", a["name"], port, level=a["level"], reads_only=a["reads_only"])).allowed()
                  for port in (80, 443, 8080, 9000))
        if can and not real["reached"]:
            return "it can be reached, and has no address"
        spoken = policy.default != "deny" or any(
            label_match(split_dest(dest)[0], a["name"])
            for rule in policy.rules if "deny" not in rule for dest in rule[action_of(rule)])
        if not spoken and real["reached"]:
            return "no rule speaks of it, and it has an address"
        return None


@pytest.fixture(scope="module")
def net():
    with inspected.unharmed(Net) as n:
        yield n


def report(policy, wrong, where):
    text = [f"{len(wrong)} disagreements, {where}", policy.yaml("")]
    for a, problem, real in wrong[:6]:
        text.append(f"{at_line(a)}\n{case_line(a)}{' by proxy: ' + a['proxy'] if a['proxy'] else ''}\n    {problem}\n    {real}")
    return "\n".join(text)


def check(net, policy, attempts, where):
    wrong, reached = net.compare(policy, attempts)
    assert not wrong, report(policy, wrong, where)
    return reached


# -- what was said and not done once -------------------------------------------------------------------------------------

POST = dict(method="POST", body=5)


def test_a_deny_of_requests_where_nobody_sees_them(net):
    """The last of each row is the control: without the deny, or beside it, it gets through."""
    deny = {"deny": ["a.test", "198.51.100.0/24"], "methods": ["POST"]}
    grants = [{"allow": ["a.test:8080", "b.test:8080", "**.a.test:8080"]}, {"allow": [f"{A1}:9000", f"{A2}:9000"]},
              {"allow": [f"{A1}:443/udp", f"{A2}:443/udp"]}]
    attempts = [attempt("tcp", "a.test", 8080), attempt("tcp", "a.test", 8080, **POST), attempt("tcp", "x.a.test", 8080),
                attempt("tcp", A1, 9000), attempt("udp", A1, 443),
                attempt("tcp", "b.test", 8080, **POST), attempt("tcp", A2, 9000, **POST), attempt("udp", A2, 443)]
    assert check(net, Policy([deny, *grants]), attempts, "refused") == 3
    assert check(net, Policy(grants), attempts, "the control") == 8
    warned = net.daemon.cli("policy", "check", net.policy).stdout
    assert "warning" not in warned, warned
    net.load(Policy([deny, *grants]))
    warned = net.daemon.cli("policy", "check", net.policy)
    assert (warned.stdout + warned.stderr).count("nobody sees them on these ports") == 3, warned


@pytest.mark.parametrize("deny", ["a.test", A1, "b.test"])
def test_a_deny_of_requests_and_what_is_not_to_be_inspected(net, deny):
    """By name, by address and by alias it is one rule: it is looked at, and what is denied is refused."""
    policy = Policy([{"deny": [deny], "methods": ["POST"]}, {"allow": ["a.test", "al.test", "y.x.a.test"], "inspect": False}])
    hosts = {"a.test": ["a.test"], A1: ["a.test"], "b.test": ["al.test"]}[deny]
    attempts = [attempt("tcp", h, 443, **what) for h in hosts for what in ({}, POST)]
    attempts += [attempt("tcp", "y.x.a.test", 443, **POST)]  # nobody denies anything of it: untouched
    assert check(net, policy, attempts, deny) == 2


def test_a_deny_holds_for_aliases(net):
    attempts = [attempt("tcp", n, p) for n in ("al.test", "al.a.test", "b.test", "a.test") for p in (80, 443, 8080)]
    grants = [{"allow": ["**", "**:8080"]}]
    assert check(net, Policy([{"deny": ["b.test"]}, *grants]), attempts, "denied") == 3
    assert check(net, Policy(grants), attempts, "the control") == 12
    # its rule comes first
    assert check(net, Policy([{"allow": ["al.test"]}, {"deny": ["b.test"]}, *grants]), attempts, "in order") == 5


def test_a_run_that_only_reads_where_nobody_sees_it(net):
    policy = Policy([{"allow": ["a.test", "a.test:8080"]}])
    attempts = [attempt("tcp", "a.test", port, reads_only=r) for port in (80, 443, 8080) for r in (False, True)]
    assert check(net, policy, attempts, "read_only") == 5


def test_this_host_and_the_many(net):
    policy = Policy([{"allow": ["**:*", "0.0.0.0/0:*", "0.0.0.0/0:*/udp"]}], host_loopback=[HOST_PORTS[0]])
    attempts = [attempt(kind, host, port, connect=True, level=level) for kind in ("tcp", "udp") for port in HOST_PORTS
                for host in ("127.0.0.1", HOST4) for level in ("PUBLIC", "CONFIDENTIAL")]
    attempts += [attempt("tcp", n, p, connect=True) for n in ("localhost", "loop.test", "here.test") for p in HOST_PORTS]
    attempts += [attempt("udp", "224.0.0.251", 9000, level=level) for level in ("PUBLIC", "CONFIDENTIAL")]
    assert check(net, policy, attempts, "this host") == 9


def test_rules_for_some_sessions(net):
    """A grant for one session opens nothing to another, and a deny for one takes nothing from another."""
    attempts = [attempt("tcp", n, p, level=level) for n in ("a.test", "x.a.test") for p in (80, 443, 8080)
                for level in ("INTERNAL", "CONFIDENTIAL")]
    grant = {"allow": [".a.test", ".a.test:8080"], "sessions": ["internal/*"]}
    assert check(net, Policy([grant]), attempts, "a grant") == 6
    assert check(net, Policy([{**grant, "sessions": ["*/differential"]}]), attempts, "the control") == 12
    deny = {"deny": ["a.test"], "sessions": ["internal/differential"]}
    assert check(net, Policy([deny, {"allow": [".a.test", ".a.test:8080"]}]), attempts, "a deny") == 9


# -- chance --------------------------------------------------------------------------------------------------------------

def test_random_policies(net):
    reached = total = 0
    for i in range(POLICIES):
        r = seeded(f"{SEED}.{i}")
        policy = random_policy(r)
        attempts = [random_attempt(r, not policy.passes_addresses()) for _ in range(ATTEMPTS)]
        try:
            reached += check(net, policy, attempts, f"DIFF_SEED={SEED}, policy {i}")
        except AssertionError:
            raise
        except Exception as e:
            raise AssertionError(f"DIFF_SEED={SEED}, policy {i}: {e!r}\n{policy.yaml('')}") from e
        total += len(attempts)
    print(f"{POLICIES} policies, {total} attempts, {reached} got through")
    assert total * 0.1 < reached < total * 0.7, f"{reached} of {total} got through: this proves little"
