# SPDX-License-Identifier: MIT
"""Random policies and attempts of one little world, and netpawl-policy(5) read slowly: what a sandbox must meet.

Nothing here is shared with the program: the reading goes by the manual's words, rule by rule.
"""
import ipaddress
import json
import random
import re

from lib.world import FAR, FAR_OTHER, HOST4, META

A1, A2, SIX, MD = FAR[4], FAR_OTHER, FAR[6], META[4]
# name: (what it is an alias of, its address)
NAMES = {
    "a.test": ([], A1), "b.test": ([], A2), "x.a.test": ([], A1), "y.x.a.test": ([], A2), "six.test": ([], SIX),
    "al.test": (["b.test"], A2), "al.a.test": (["al.test", "b.test"], A2),
    "meta.test": ([], MD), "loop.test": ([], "127.0.0.1"), "here.test": ([], HOST4),
}
PATTERNS = ["a.test", "b.test", "x.a.test", "*.a.test", "**.a.test", "**.test", "**", "x.*.test", "al.test", "six.test",
            "meta.test", "loop.test", "here.test", "*.test", ".a.test", ".x.a.test", ".b.test", ".test"]
NETS = [A1, "198.51.100.0/24", A2, "203.0.113.0/24", "0.0.0.0/0", "2001:db8:2::/48", "::/0", MD, "169.254.0.0/16",
        "192.0.2.0/24"]
METADATA = [ipaddress.ip_network(n) for n in (
    "169.254.0.0/16", "fe80::/10", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::/32", "fd20:ce::254",
    "fd00:42::42")]
HOST_PORTS = [7070, 7071]  # where the host itself listens
PLAIN_PORTS, TLS_PORTS, UDP_PORTS = [80, 8443, 8080, 9000], [443], [443, 8080, 9000, 53]
# as sent, as matched; None: it can be read in two ways
PATHS = {"/": "/", "/a": "/a", "/a/b": "/a/b", "/a/b/c?q=/x": "/a/b/c", "/%61/b": "/a/b", "/a/../b": None, "//a": None,
         "/c;x": None, "/a%2fb": None}
GLOBS = ["/a", "/a/*", "/a/**", "/**", "/*/b", "/*"]
LEVELS = {"PUBLIC": "full", "INTERNAL": "proxied", "CONFIDENTIAL": "proxied", "SECRET": "none"}
READS = ("GET", "HEAD", "OPTIONS")
SESSIONS = ["confidential/*", "internal/*", "reads/*", "*/differential", "nobody/*", "confidential/other"]


def session_of(level, reads_only):
    """Whose sandbox such an attempt is made in."""
    return f"{'reads' if reads_only else level.lower()}/differential"


# -- policies ----------------------------------------------------------------------------------------------------------

class Policy:
    def __init__(self, rules, inspect_ports=(80, 443), host_loopback=(), default="deny", full=(), read_only=()):
        self.rules, self.full, self.read_only = list(rules), list(full), list(read_only)
        self.inspect_ports, self.host_loopback, self.default = list(inspect_ports), list(host_loopback), default

    def yaml(self, permits):
        """A rule a line, so that a line tells the rule."""
        lines = ["version: 1", "approval: {hold: 20ms}", "deciders: {guard: {command: [/bin/true]}}", f"levels: {json.dumps(LEVELS)}",
                 f"default: {self.default}", f"inspect_ports: {self.inspect_ports}", f"host_loopback: {self.host_loopback}"]
        for key, rules in (("rules", self.rules), ("full", self.full)):
            lines += [f"{key}:"] * bool(rules) + [f"  - {json.dumps(r)}" for r in rules]
        text = "\n".join(lines) + "\n" + permits
        return text + (f"  read_only: {json.dumps(self.read_only)}\n" if self.read_only else "")


    def passes_addresses(self):
        """Some inspected port of an address may be passed untouched, and then nobody is a proxy there."""
        return any(rule.get("inspect") is False and any(network(split_dest(d)[0]) for d in rule["allow"]) for rule in self.rules)


def action_of(rule):
    return next(k for k in ("allow", "deny", "ask", "decide") if k in rule)


def random_dest(r, ports, nets=0.4):
    dest = r.choice(NETS) if r.random() < nets else r.choice(PATTERNS)
    port = r.choice(ports)
    if port and ":" in dest:
        dest = f"[{dest}]"
    return dest + port


def random_rule(r, inspect_ports):
    web = ["", "", "", *(f":{p}" for p in inspect_ports)]
    action = r.choices(("allow", "deny", "ask", "decide"), (10, 8, 1, 0.5))[0]
    rule, count = {}, r.choice((1, 1, 2))
    conditions = r.random() < 0.4
    plain = action == "allow" and not conditions and r.random() < 0.5
    any_port = ["", ":8080", ":9000", ":8000-9100", ":443", ":80", ":*", ":*/tcp", ":*/udp", ":9000/udp", ":443/udp"]
    rule[action] = [random_dest(r, web if conditions or plain else any_port) for _ in range(count)]
    if action == "decide":
        rule["by"] = "guard"
    if conditions:
        kinds = r.sample(("methods", "paths", "headers"), r.choice((1, 1, 2)))
        if "methods" in kinds:
            rule["methods"] = r.sample(["GET", "POST", "HEAD", "PUT"], r.choice((1, 2)))
        if "paths" in kinds:
            rule["paths"] = r.sample(GLOBS, r.choice((1, 2)))
        if "headers" in kinds:
            rule["headers"] = r.sample(["x-a", "x-b"], 1)
    if plain and r.random() < 0.6:
        rule["inspect"] = False
    elif action == "allow" and (plain or conditions):
        if r.random() < 0.3:
            rule["max_body"] = 10
        if r.random() < 0.4:
            rule["websocket"] = True
    if r.random() < 0.2:
        rule["for"] = r.sample(["INTERNAL", "CONFIDENTIAL"], 1)
    if r.random() < 0.2 and not any(network(split_dest(d)[0]) for d in rule[action]):
        rule["sessions"] = r.sample(SESSIONS, r.choice((1, 1, 2)))
    if action == "allow" and not conditions and r.random() < 0.1:
        rule = {"allow": r.sample(["a.test", "b.test", "al.test"], 1), "dns": ["MX"]}
    return rule


def random_policy(r):
    inspect_ports = r.choice(([80, 443], [80, 443], [80, 443, 8443], [443]))
    rules = [random_rule(r, inspect_ports) for _ in range(r.randint(1, 7))]
    if r.random() < 0.5:  # a grant of everything, so that denies show
        rules.append({"allow": ["**", "**:*", "0.0.0.0/0", "0.0.0.0/0:*", "0.0.0.0/0:*/udp"]})
    full = [{r.choice(("allow", "deny")): [random_dest(r, ["", ":80", ":9000", ":8080/udp"], 1)]}
            for _ in range(r.randint(0, 3))]
    return Policy(rules, inspect_ports, r.sample(HOST_PORTS, r.choice((0, 1, 1))), r.choices(("deny", "ask", "allow"), (70, 15, 15))[0],
                  full, r.sample(["198.51.100.0/24", A2, f"{A1}:9000/tcp", "0.0.0.0/0:443"], r.choice((0, 1, 2))))


# -- attempts ----------------------------------------------------------------------------------------------------------

def attempt(kind, host, port=0, level="CONFIDENTIAL", reads_only=False, method="GET", path="/", headers=(), body=0,
            websocket=False, connect=False, type=None, proxy=None):
    """connect: explained as a connection of which no request is known. proxy: "connect" or "absolute", the inspector is asked
    as a proxy is."""
    a = dict(kind=kind, port=port, level=level, reads_only=reads_only, method=method, path=path, headers=list(headers),
             body=body, websocket=websocket, tls=kind == "tcp" and port in TLS_PORTS, connect=connect, type=type, proxy=proxy)
    a["name" if re.search("[a-z]", host) and ":" not in host else "addr"] = host
    return a


def random_attempt(r, proxies):
    level, reads_only = r.choices((("CONFIDENTIAL", False), ("INTERNAL", False), ("CONFIDENTIAL", True), ("PUBLIC", False),
                                   ("SECRET", False)), (10, 4, 4, 2, 0.3))[0]
    named = level not in ("PUBLIC", "SECRET") and r.random() < 0.7
    host = r.choice([*NAMES, "a.test", "b.test", "x.a.test", "al.test"]) if named else \
        r.choices((A1, A2, SIX, MD, "127.0.0.1", HOST4, "224.0.0.251"), (6, 5, 2, 1, 1, 1, 0.5))[0]
    where = dict(level=level, reads_only=reads_only)
    if named and r.random() < 0.08:
        return attempt("lookup", r.choice(("a.test", "b.test", "al.test")), type=r.choice(("MX", "A")), **where)
    if host in ("127.0.0.1", HOST4) or (named and r.random() < 0.03):
        kind, port = r.choice(("tcp", "udp")), r.choice(HOST_PORTS)
        host = "localhost" if named else host
        return attempt(kind, host, port, connect=True, **where)
    if host == "224.0.0.251" or r.random() < 0.12:
        return attempt("udp", host, r.choice(UDP_PORTS), **where)
    method = r.choice(("GET", "GET", "POST", "POST", "HEAD", "PUT", "OPTIONS"))
    port = r.choice((80, 80, 443, 443, 443, 8443, 8080, 9000))
    proxy = r.choice(("connect", "connect" if port in TLS_PORTS else "absolute"))
    return attempt("tcp", host, port, method=method, path=r.choice(list(PATHS)),
                   headers=r.sample(["x-a", "x-b"], r.choice((0, 1, 1, 2))),
                   proxy=proxy if proxies and level not in ("PUBLIC", "SECRET") and r.random() < 0.2 else None,
                   body=r.choice((5, 20)) if method in ("POST", "PUT") else 0,
                   websocket=method == "GET" and r.random() < 0.1, **where)


def case_line(a):
    """The attempt as a .case file has it, without a verdict."""
    host = a.get("name") or (f"[{a['addr']}]" if ":" in a["addr"] else a["addr"])
    if a["kind"] == "lookup":
        return f"lookup {a['type']} {host}"
    if a["kind"] == "udp" or a["connect"]:
        line = f"connect {host}:{a['port']}" + ("/udp" if a["kind"] == "udp" else "")
    else:
        line = f"{a['method']} {'https' if a['tls'] else 'http'}://{host}:{a['port']}{a['path']}"
        line += f" with header {', '.join(a['headers'])}" if a["headers"] else ""
        line += f" body {a['body']}" if a["body"] else ""
        line += " websocket" if a["websocket"] else ""
    aliases, addr = NAMES.get(a.get("name"), ([], None))
    line += f" alias of {', '.join(aliases)}" if aliases else ""
    line += f" resolving to {addr}" if addr else ""
    return line + (" on this host" if HOST4 in (addr, a.get("addr")) else "")


# -- the manual, read slowly ---------------------------------------------------------------------------------------------

def label_match(pattern, name):
    """DESTINATIONS: * is one label, ** (leftmost) one or more; a dot in front: the domain itself, too."""
    if pattern.startswith("."):
        return name == pattern[1:] or name.endswith(pattern)
    words = {"*": "[^.]+", "**": ".+"}
    return re.fullmatch(r"\.".join(words.get(w, re.escape(w)) for w in pattern.split(".")), name) is not None


def glob_match(glob, path):
    """PATHS"""
    parts = re.split(r"(\*\*|\*)", glob)
    return re.fullmatch("".join({"*": "[^/]*", "**": ".*"}.get(p, re.escape(p)) for p in parts), path) is not None


def split_dest(text):
    """(host, first port, last port, protocol); None where nothing is written."""
    m = re.fullmatch(r"\[(.*)\](?::(.*))?", text) or re.fullmatch(r"([0-9a-f:]*:[0-9a-f:]*:[0-9a-f:/]*)()", text) or \
        re.fullmatch(r"([^:]*)(?::(.*))?", text)
    host, port = m.group(1), m.group(2) or None
    protocol = None
    if port and "/" in port:
        port, protocol = port.split("/")
    if not port:
        return host, None, None, protocol
    first, _, last = ("1-65535" if port == "*" else port).partition("-")
    return host, int(first), int(last or first), protocol


def network(text):
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def in_metadata(what):
    """An address, or the whole of a range."""
    net = ipaddress.ip_network(what)
    return any(m.version == net.version and net.subnet_of(m) for m in METADATA)


class Reading:
    """One attempt against one policy."""

    def __init__(self, policy, a):
        self.policy, self.a = policy, a
        self.name = a.get("name")
        self.aliases, self.addr = NAMES.get(self.name, ([], a.get("addr")))
        if self.name == "localhost":
            self.name, self.addr = None, "127.0.0.1"
        self.udp = a["kind"] == "udp"
        self.seen = not self.udp and a["port"] in policy.inspect_ports  # "Requests are seen on inspect_ports over TCP"
        self.by_address = self.name is None

    def port_fits(self, rule, dest):
        host, first, last, protocol = dest
        deny, port = action_of(rule) == "deny", self.a["port"]
        if port == 53 and not deny:
            return False
        if first is None:
            return deny or self.seen
        if not first <= port <= last:
            return False
        return protocol == ("udp" if self.udp else "tcp") if protocol else deny or not self.udp

    def dest_fits(self, rule, dest):
        deny, net = action_of(rule) == "deny", network(dest[0])
        if not self.port_fits(rule, dest):
            return False
        if net is None:
            return not self.by_address and any(label_match(dest[0], n) for n in
                                               [self.name] + (self.aliases if deny else []))
        if not self.by_address and not deny:
            return False
        if not self.addr or ipaddress.ip_address(self.addr) not in net:
            return False
        return deny or not in_metadata(self.addr) or in_metadata(dest[0])

    def for_us(self, rule):
        """Level and session."""
        session = session_of(self.a["level"], self.a["reads_only"])
        return self.a["level"] in rule.get("for", LEVELS) and any(
            re.fullmatch(re.escape(s).replace(r"\*", "[^/]*"), session) for s in rule.get("sessions", ["*/*"]))

    def concerns(self, rule):
        """Level, session, destination, port and protocol."""
        return self.for_us(rule) and any(
            self.dest_fits(rule, split_dest(d)) for d in rule[action_of(rule)])

    @staticmethod
    def conditional(rule):
        return any(k in rule for k in ("methods", "paths", "headers"))

    def matches(self, rule):
        """True, False, or "bad path"."""
        if not self.concerns(rule):
            return False
        if not self.conditional(rule):
            return True
        if not self.seen:
            return action_of(rule) == "deny"
        if "methods" in rule and self.a["method"] not in rule["methods"]:
            return False
        if "headers" in rule and not set(rule["headers"]) <= set(self.a["headers"]):
            return False
        if "paths" not in rule:
            return True
        path = PATHS[self.a["path"]]
        return "bad path" if path is None else any(glob_match(g, path) for g in rule["paths"])

    def rules_allow(self):
        """The rule that allows it, or None."""
        for rule in self.policy.rules:
            fit = self.matches(rule)
            if fit is False:
                continue
            if fit == "bad path" or action_of(rule) != "allow":
                return None
            if self.seen and rule.get("inspect", True):
                if self.a["websocket"] and not rule.get("websocket"):
                    return None
                if self.a["body"] > rule.get("max_body", self.a["body"]):
                    return None
            return rule
        # "names, at any TCP port, and addresses at inspect_ports"
        by_name = not self.by_address and not self.udp and self.a["port"] != 53
        if self.policy.default == "allow" and (self.seen or by_name) and not (self.by_address and in_metadata(self.addr)):
            return {"allow": []}
        return None

    def inspected(self):
        """Is a connection to an inspected port looked into? By its first rule that is no deny of some requests."""
        for rule in self.policy.rules:
            if not self.concerns(rule):
                continue
            if self.conditional(rule):
                return True  # a deny has to look, a grant judges each request
            return action_of(rule) != "allow" or rule.get("inspect", True)
        return True

    def here(self):
        return self.addr == HOST4 or self.addr.startswith("127.")

    def lookup(self):
        """The MX records of a name: by a rule with dns, or not because of a deny of all of it above."""
        for rule in self.policy.rules:
            if not self.for_us(rule):
                continue
            for dest in map(split_dest, rule[action_of(rule)]):
                if network(dest[0]) is not None or not label_match(dest[0], self.name):
                    continue
                if action_of(rule) == "deny" and not self.conditional(rule) and dest[1:] in ((None,) * 3, (1, 65535, None)):
                    return False
                if action_of(rule) == "allow" and "MX" in rule.get("dns", []):
                    return True
        return False

    def full(self):
        if in_metadata(self.addr):
            pass  # a rule inside of the range decides, or it is refused
        elif ipaddress.ip_address(self.addr).is_multicast:
            return False
        elif self.here():
            return self.a["port"] in self.policy.host_loopback
        for rule in self.policy.full:
            for dest in rule[action_of(rule)]:
                host, first, last, protocol = split_dest(dest)
                if ipaddress.ip_address(self.addr) not in network(host):
                    continue
                if first is not None and not first <= self.a["port"] <= last:
                    continue
                if protocol and protocol != ("udp" if self.udp else "tcp"):
                    continue
                if action_of(rule) == "allow" and in_metadata(self.addr) and not in_metadata(host):
                    continue
                return action_of(rule) == "allow"
        return not in_metadata(self.addr)

    def listed(self):
        """sandbox: read_only, of addresses."""
        for dest in self.policy.read_only:
            host, first, last, protocol = split_dest(dest)
            if ipaddress.ip_address(self.addr) in network(host) and (first is None or first <= self.a["port"] <= last) and \
                    protocol in (None, "udp" if self.udp else "tcp"):
                return not in_metadata(self.addr) or in_metadata(host)
        return False

    def proxied(self):
        a = self.a
        if a["kind"] == "lookup":
            return self.lookup()
        if ipaddress.ip_address(self.addr).is_multicast or a["port"] == 53:
            return False
        if self.here():
            return self.by_address and a["port"] in self.policy.host_loopback and not a["reads_only"]
        if self.udp and not self.by_address:
            return False
        if not self.by_address and in_metadata(self.addr):  # "needs both"
            alone = Reading(self.policy, {**a, "name": None, "addr": self.addr})
            alone.addr, alone.by_address, alone.aliases = self.addr, True, []
            if not alone.rules_allow():
                return False
        rule = self.rules_allow()
        if rule is None:
            return False
        if not a["reads_only"]:
            return True
        past = not self.seen or (rule.get("inspect", True) is False and not self.inspected())
        if past and self.by_address and self.listed():
            return True
        return self.seen and a["method"] in READS and not a["websocket"]

    def allowed(self):
        mode = LEVELS[self.a["level"]]
        if self.a["reads_only"] and mode == "full":
            mode = "proxied"
        return {"full": self.full, "proxied": self.proxied, "none": lambda: False}[mode]()

    def looked_into(self):
        """Of TLS that is allowed: does the inspector end it?"""
        if LEVELS[self.a["level"]] == "full":
            return False
        if self.a["reads_only"]:
            return not (self.by_address and self.listed() and not self.inspected())
        return self.inspected()


def seeded(seed):
    return random.Random(seed)
