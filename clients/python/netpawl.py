# SPDX-License-Identifier: MIT
"""netpawl from Python: sessions, private data, sandboxes, approvals, questions. One file, no dependencies, Python 3.9 or later.

    from netpawl import Client, Session

    session = Session("alice", "demo")
    sandbox = session.sandbox(memory="2GiB", timeout="10m")
    print(sandbox.run(["python3", "-c", "print(6 * 7)"]).stdout)
    for stream, text in session.launch(["make", "test"], timeout="10m").output():
        print(stream, text)
    session.add_private_dataset("customers.csv", "SECRET", "ticket 4711")      # from here on nothing leaves

    for question in Client().questions(follow=True):                           # requests that a rule asks a person about
        question.answer("deny", reason=f"not {question['url']}")               # or once, host, domain, always

Calls go to the daemon's control socket ($NETPAWL_SOCKET, else /run/netpawl/control.sock). Session.launch() lets the daemon
start the command. Sandbox.run() starts the program `netpawl` instead, which passes input on and can do all that its options
say; it needs what that needs: root and the daemon's network namespace, or the role of a platform. Of your own environment a command gets PATH, LANG,
TERM and TZ, and no other variable, unless you name it.
"""
import base64
import dataclasses
import http.client
import json
import os
import socket
import subprocess
import time
import urllib.parse
import warnings

SOCKET = "/run/netpawl/control.sock"
LEVELS = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "SECRET")


class Error(Exception):
    """The daemon refused, or could not. error is a token (include/reason.h), status that of HTTP; 0: netpawl run failed."""

    def __init__(self, status, error, message, detail=None):
        super().__init__(f"{message} ({error})" + (f": {detail}" if detail else ""))
        self.status, self.error, self.message, self.detail = status, error, message, detail


class Rejected(Error):
    """A run of class write that nobody approved. run is what is on record of it."""

    def __init__(self, run):
        super().__init__(0, "run_rejected", f"run {run['run']} was not started, says {run['decided_by']}", run["reason"])
        self.run = run


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("netpawl", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        end = time.monotonic() + (self.timeout or 60)
        while True:
            try:
                return self.sock.connect(self._path)
            except BlockingIOError:  # more callers wait for the daemon than Linux lets wait
                if time.monotonic() > end:
                    raise Error(0, "too_many", "the daemon does not come round to taking calls") from None
                time.sleep(0.02)


class Client:
    """The control API. Every method raises Error, or ConnectionError and FileNotFoundError when there is no daemon."""

    def __init__(self, path=None, timeout=60):
        self.path = str(path or os.environ.get("NETPAWL_SOCKET") or SOCKET)
        self.timeout = timeout

    def call(self, method, path, body=None, text=False, **query):
        """One call; its answer as Python objects, or (text) as it is."""
        query = {k: v for k, v in query.items() if v is not None}
        if query:
            path += "?" + urllib.parse.urlencode(query, safe="/")
        connection = _Connection(self.path, self.timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode())
            response = connection.getresponse()
            data = response.read()
            return data.decode() if text and response.status == 200 else self._answer(response.status, data)
        except (http.client.HTTPException, ConnectionResetError, BrokenPipeError) as e:
            raise self._broken(e) from None
        except TimeoutError:
            raise Error(0, "failed", f"the daemon has not answered within {self.timeout} s") from None
        finally:
            connection.close()

    @staticmethod
    def _broken(why):
        return Error(0, "failed", "the daemon's answer was cut off", repr(why))

    @staticmethod
    def _answer(status, text):
        try:
            answer = json.loads(text)
        except ValueError:
            raise Error(status, "failed", "the daemon's answer is not JSON") from None
        if not isinstance(answer, dict):
            raise Error(status, "failed", "the daemon's answer is no object")
        if status >= 300:
            raise Error(status, answer.get("error"), answer.get("message"), answer.get("detail"))
        return answer

    def lines(self, path, follow=False, **query):
        """One call that answers NDJSON, as its lines come."""
        query = {k: v for k, v in {**query, "follow": int(follow)}.items() if v is not None}
        connection = _Connection(self.path, None if follow else self.timeout)
        try:
            connection.request("GET", path + "?" + urllib.parse.urlencode(query, safe="/"))
            response = connection.getresponse()
            if response.status != 200:
                self._answer(response.status, response.read())
            for line in response:
                if line.strip():  # blank ones keep the connection alive
                    yield self._answer(200, line)
        except (http.client.HTTPException, ConnectionResetError, BrokenPipeError) as e:
            raise self._broken(e) from None
        finally:
            connection.close()

    def events(self, follow=False, **query):
        """Events, oldest first: session=, reason=, limit= (the newest), after= (the oldest behind that seq: a page), since= (a time, as events have it: the oldest from then on).
        follow: also those to come, for as long as you iterate."""
        return self.lines("/v1/events", follow, **query)

    def metrics(self):
        """Counters, gauges and histograms, as text for Prometheus."""
        return self.call("GET", "/v1/metrics", text=True)

    def debug(self, session=None, after=None):
        """What the daemon and the inspectors hold, for whoever looks for a fault; after: entries of earlier pages."""
        return self.call("GET", "/v1/debug", session=session, after=after)

    def sessions(self, ended=False):
        """All of them, by name; ended: those that have ended, too."""
        found, after = [], None
        while True:
            page = self.call("GET", "/v1/sessions", ended=int(ended), after=after, limit=1000)
            found += page["sessions"]
            after = page.get("next")
            if not after:
                return found

    def runs(self, session=None, state=None):
        """Runs on record (those with a class, and those that the API was asked for), the newest first; state="pending" for those that wait."""
        return self.call("GET", "/v1/runs", session=session, state=state)["runs"]

    def run(self, ident, wait=False):
        """One run. wait: when it has changed, or after 25 seconds."""
        return self.call("GET", f"/v1/runs/{int(ident)}", wait=int(wait))

    def approve(self, ident, reason=None):
        return self.call("POST", f"/v1/runs/{int(ident)}/approve", {"reason": reason} if reason else {})

    def reject(self, ident, reason):
        return self.call("POST", f"/v1/runs/{int(ident)}/reject", {"reason": reason})

    def cancel(self, ident, reason=None):
        """Kills all that the run has started, and nothing else; one that waits is rejected. What is on record of it then."""
        return self.call("POST", f"/v1/runs/{int(ident)}/cancel", {"reason": reason} if reason else {})

    def questions(self, session=None, state="pending", follow=False):
        """What people are asked, the oldest first, each a Question: requests that a rule asks about, and runs of class write
        (kind "run"). state: None has all of them, pending or not. follow: goes on with those that come, without an
        end."""
        if not follow:
            for record in reversed(self.call("GET", "/v1/questions", session=session, state=state)["questions"]):
                yield Question(self, record)
            return
        for record in self.lines("/v1/questions", True, session=session, state=state):
            yield Question(self, record)

    def inbox(self, session=None):
        """Follows all that waits for a person: what waits now, then each change, as a Question with its state: pending, allowed,
        denied, expired or void. One that changes while it is not looked at is told as it stands then."""
        return self.questions(session, state=None, follow=True)

    def save_policy(self, file, text, old=None):
        """Writes a file of the live policy, and reloads. old: the sha256 of the text that was seen; the live one's unless given."""
        if old is None:
            files = self.call("GET", "/v1/policy/source")["files"]
            old = next((f["sha256"] for f in files if f["name"] == file), "")
        return self.call("PUT", "/v1/policy/file", {"file": file, "old": old, "text": text})

    def answer(self, ident, answer, reason=None, policy=None, generation=None, **more):
        """deny, once, host, domain or always. for_="30m": how long it holds. policy, generation: as the question showed them; it is refused
        (question_changed) when either is another by now."""
        body = {"answer": answer, "reason": reason, "for": more.pop("for_", None), "policy": policy, "generation": generation}
        if more:
            raise TypeError(f"answer() takes no {', '.join(more)}")
        return self.call("POST", f"/v1/questions/{ident}/answer", {k: v for k, v in body.items() if v is not None})

    def revoke(self, ident, reason=None):
        """Takes back an answer that holds: what it opened is cut."""
        return self.call("POST", f"/v1/questions/{int(ident)}/revoke", {"reason": reason} if reason else {})


class Question(dict):
    """What a person is asked, as it was shown: see GET /v1/questions."""

    def __init__(self, client, record):
        super().__init__(record)
        self.client = client

    def answer(self, answer, reason=None, for_=None):
        """deny, once, host, domain or always, of a run once or deny; refused (question_changed) when the level or the policy has changed
        since it was shown, and (question_over, run_over) when it was answered meanwhile."""
        return self.client.answer(self["id"], answer, reason, self["policy"], self["generation"], for_=for_)


def _words(command):
    if isinstance(command, (str, bytes)):
        raise TypeError("a command is a list of words; for a shell's: ['sh', '-c', text]")
    return [str(word) for word in command]


class Session:
    """USER/SESSION: made when missing, and its level only ever rises. path: the control socket."""

    def __init__(self, user, session, level=None, path=None, program="netpawl"):
        self.name, self.client, self.program = f"{user}/{session}", Client(path), program
        self.client.call("POST", "/v1/sessions", {"session": self.name, **({"level": level} if level else {})})

    def _call(self, method, suffix="", body=None, **query):
        name = urllib.parse.quote(self.name)
        return self.client.call(method, f"/v1/sessions/{name}{suffix}", body, **query)

    def show(self):
        """Level, mode, datasets, sandboxes, workspace."""
        return self._call("GET")

    @property
    def level(self):
        return self.show()["level"]

    @property
    def mode(self):
        return self.show()["mode"]

    def add_private_dataset(self, name, level, reason=None):
        """The escalation. A session that was forgotten meanwhile is made again, as high as it was. When this returns, no byte leaves by a way that the new mode forbids, and it is on disk."""
        body = {"dataset": name, "level": level, **({"reason": reason} if reason else {})}
        return self._call("POST", "/datasets", body)

    def context(self, purpose=None, context=None):
        """Says what the session is for, in words and as an object or list of yours: deciders are told. What is left out stays."""
        body = {k: v for k, v in (("purpose", purpose), ("context", context)) if v is not None}
        return self._call("PUT", "/context", body) if body else self._call("GET", "/context")

    def notices(self, reader=None, after=None):
        """What the session's agent is told when its network tightens. With a reader: what that has not acknowledged."""
        return self._call("GET", "/notices", reader=reader, after=after)["notices"]

    def acknowledge(self, reader, number):
        """The reader has read up to that notice."""
        return self._call("POST", "/notices/ack", {"reader": reader, "upto": number})

    def credential(self, name):
        """What its sandboxes hold in the place of this credential: a placeholder, which the inspector makes the value of."""
        for one in self._call("GET", "/placeholders")["placeholders"]:
            if one["name"] == name:
                return one["placeholder"]
        raise Error(404, "no_such_credential", f"the session may use no credential {name}")

    def credentials(self):
        """The policy's credentials as an operator may see them, never their values: uses, and how many tokens were captured for each."""
        return self.client.call("GET", "/v1/credentials")["credentials"]

    def why(self, last=None):
        """What was refused lately, why, and what the session may do instead; "text" is for the agent to read."""
        return self._call("GET", "/why", last=last)

    def explain(self, url=None, method="GET", body=0, connect=None):
        """What such a request (or connection, HOST:PORT) would meet now: the rule, who is asked, and what was answered before."""
        return self._call("POST", "/explain", {"connect": connect} if connect else {"method": method, "url": url, "body": body})

    def events(self, **query):
        return self.client.events(session=self.name, **query)

    def runs(self, state=None):
        return self.client.runs(self.name, state)

    def launch(self, command, egress=None, env=None, input=None, **options):
        """Has the daemon start a list of words; returns a Run at once. egress: as in Sandbox.run().

        memory, cpus, pids, timeout, output_limit, disk, chdir, purpose, keep=True, bind=[...]: as the options of netpawl run. env={"NAME": "value"}
        adds variables to the few that a command gets; they are on record. input: a str that it reads; or True, and Run.write()
        sends it; without one it has none. terminal="80x24": a terminal is its input and output. attach=True: its output is for
        one reader, whole and as bytes, waits for that reader, and ends with it."""
        launch = {name: value if value is True or isinstance(value, list) else str(value) for name, value in options.items() if value not in (None, False)}
        if isinstance(input, str):
            input.encode()  # what JSON cannot carry fails here, before anything runs
        elif input is not None and input is not True:
            raise TypeError("input is a str, or True")
        if input is not None:
            launch["input"] = True
        if env:
            launch["env"] = [f"{name}={value}" for name, value in env.items()]
        body = {"session": self.name, "command": _words(command), "launch": launch}
        run = Run(self.client, self.client.call("POST", "/v1/runs", {**body, **({"class": egress} if egress else {})}))
        if isinstance(input, str):
            run.write(input, end=True)
        return run

    def sandbox(self, **options):
        return Sandbox(self, **options)

    def end(self):
        """Kills what runs in its sandboxes. The level is kept."""
        return self._call("DELETE")

    def forget(self, level_too=False):
        """Of a session that has ended: its record and its workspace go. "remembered" is what one of that name starts from;
        level_too: that goes as well."""
        return self._call("POST", "/forget", {"level_too": level_too})


class Run:
    """A run that the daemon started, or will when it is approved."""

    def __init__(self, client, record):
        self.client, self.id = client, record["run"]
        self.truncated = False  # output() has come to where the daemon had no room for more

    def show(self, wait=False):
        return self.client.run(self.id, wait)

    @property
    def state(self):
        return self.show()["state"]

    def write(self, text="", end=False, size=None):
        """Sends input to a run that was launched with input or with a terminal. end: there is no more. size: (columns, rows) of
        its terminal from now on. Waits until the command has read what came before."""
        chunks = [text[i:i + 8192] for i in range(0, len(text), 8192)] or [""]  # a request has 64 KiB, and JSON may need six for one
        for i, chunk in enumerate(chunks):
            body = {"data": chunk, **({"end": True} if end and i == len(chunks) - 1 else {}),
                    **({"columns": size[0], "rows": size[1]} if size and not i else {})}
            while True:
                try:
                    self.client.call("POST", f"/v1/runs/{self.id}/input", body)
                    break
                except Error as e:
                    if e.error != "too_many":
                        raise
                    time.sleep(0.05)

    def cancel(self, reason=None):
        return self.client.cancel(self.id, reason)

    def output(self, follow=True):
        """(stream, text) as it comes, stream being "stdout" or "stderr"; of a run with attach, (stream, bytes). follow: to the
        end.

        The daemon keeps the first 2 MiB, and as long as it runs: an Error ("no_output") when it has none any more. Where there was
        more than it kept, a warning says so (on standard error, unless warnings are off), and truncated is True."""
        for line in self.client.lines(f"/v1/runs/{self.id}/output", follow):
            if line.get("truncated"):
                self.truncated = True
                warnings.warn(f"run {self.id}: netpawld had no room for more output: the rest of it is lost", RuntimeWarning, stacklevel=2)
            if "stream" in line:
                yield line["stream"], base64.b64decode(line["base64"]) if "base64" in line else line["data"]

    def _text(self):
        """What is there of its output, and whether there was more."""
        text, cut = {"stdout": "", "stderr": ""}, False
        try:
            for line in self.client.lines(f"/v1/runs/{self.id}/output", True):
                if "data" in line:
                    text[line["stream"]] += line["data"]
                cut = cut or bool(line.get("truncated"))
        except Error as e:
            if e.error != "no_output":
                raise
            cut = True
        return text, cut

    def wait(self):
        """The Result, when it has ended. Raises Rejected when it was not approved."""
        record = self.show()
        while record["state"] in ("pending", "running"):
            record = self.show(wait=True)
        if record["state"] == "rejected":
            raise Rejected(record)
        raw = record["result"]
        if record["state"] == "failed":
            raise Error(0, "failed", "the command was not run to its end", raw.get("problem"))
        text, cut = self._text()
        return Result._of(raw, text["stdout"], text["stderr"], cut)


@dataclasses.dataclass(frozen=True)
class Result:
    """What became of a command. raw is all that netpawl said: also requests (HTTP requests and tunnels that the inspector
    judged, those that are open included, and connections that it refused before they had one), queries (that came to the DNS
    gate), sent and received."""

    exit_code: int
    stdout: str
    stderr: str
    timed_out: bool
    killed_by: str
    refused: int  # requests, queries, and what the gate in the kernel refused
    truncated: bool  # there was more output than this, or the daemon that kept it was restarted
    raw: dict = dataclasses.field(repr=False)

    @property
    def ok(self):
        return self.exit_code == 0

    @classmethod
    def _of(cls, raw, stdout, stderr, cut=False):
        cut = cut or raw["stdout_truncated"] or raw["stderr_truncated"]
        return cls(raw["exit_code"], stdout, stderr, raw["timed_out"], raw["killed_by"], raw["refused"], cut, raw)


class Sandbox:
    """How commands of a session are run; each gets a sandbox of its own, and all share the session's /workspace. With
    keep=True they run in the session's kept sandbox, with one /tmp and the processes that earlier ones left; remove() ends it.

    memory="2GiB", cpus=2, pids=256, timeout="10m", output_limit="1MiB", disk="1GiB", best_effort=True, chdir="/workspace",
    purpose="fix the build", user="nobody", bind=["/srv/models:/models:ro"], env_file="/etc/agent.env": as the options of netpawl run.
    env={"NAME": "value"} adds variables to the few that a command gets; env_all=True hands it your whole environment.
    """

    OPTIONS = ("memory", "cpus", "pids", "timeout", "output_limit", "disk", "best_effort", "chdir", "purpose", "user", "bind", "keep",
               "env", "env_file", "env_all")

    def __init__(self, session, **options):
        self.session = session
        self.options = self._check(options)

    def _check(self, options):
        for name in options:
            if name not in self.OPTIONS:
                raise TypeError(f"a sandbox has no option {name!r}; there are {', '.join(self.OPTIONS)}")
        return options

    def _argv(self, command, egress, options):
        argv = [self.session.program, "--socket", self.session.client.path, "run", "--json",
                f"--session={self.session.name}"]
        if egress:
            argv.append(f"--class={egress}")
        for name, value in options.items():
            option = "--" + name.replace("_", "-")
            if value is True:
                argv.append(option)
            elif isinstance(value, (list, tuple)):
                argv += [f"{option}={item}" for item in value]
            elif value not in (None, False):
                argv.append(f"{option}={value}")
        return [*argv, "--", *command]

    @staticmethod
    def _env_file(variables):
        """The descriptor of a file in memory. Not by --env, for anybody may read a command line, nor in the environment of
        netpawl, where an LD_PRELOAD would be root's."""
        text = "".join(f"{name}={value}\0" for name, value in variables.items())
        if any("=" in name or "\0" in name + str(value) for name, value in variables.items()):
            raise ValueError("a variable's name has no '=', and neither it nor its value has a NUL")
        fd = os.memfd_create("environment")
        os.write(fd, text.encode("utf-8", "surrogateescape"))
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def run(self, command, egress=None, input=None, env=None, **options):
        """Runs a list of words and returns its Result; the command's own failure is no exception.

        env: variables for this command, beside the sandbox's; your own environment stays yours (env_all).

        egress: what it may do on the network whatever the session may: "none", "read_only", or "write", which waits until
        somebody approves it (Client.approve) and raises Rejected when nobody does. Text only: input is a str.
        """
        options = {**self.options, **self._check(options)}
        variables = {**(self.options.get("env") or {}), **(env or {})}
        options["env"], fds = None, []
        if variables:
            if options.get("env_file"):
                raise TypeError("either env or env_file")
            fds = [self._env_file(variables)]
            options["env_file"] = f"/proc/self/fd/{fds[0]}"
        argv = self._argv(_words(command), egress, options)
        try:
            got = subprocess.run(argv, capture_output=True, encoding="utf-8", errors="replace",
                                 input="" if input is None else input, pass_fds=fds)
        except OSError as e:
            raise Error(0, "failed", "netpawl could not be started", f"{argv[0]}: {e.strerror}") from None
        finally:
            for fd in fds:
                os.close(fd)
        try:
            raw = json.loads(got.stdout)
        except ValueError:
            raise Error(0, "failed", "netpawl run failed", got.stderr.strip()) from None
        if raw.get("state") == "rejected":
            raise Rejected(raw)
        if raw.get("problem"):
            raise Error(0, "failed", "the command was not started", raw["problem"])
        return Result._of(raw, raw["stdout"], raw["stderr"])

    def remove(self):
        """Ends the session's kept sandbox, if it has one, with all that runs in it."""
        for box in self.session.show()["sandboxes"]:
            if box["kept"]:
                self.session.client.call("DELETE", "/v1/sandboxes/" + urllib.parse.quote(box["sandbox"]))
