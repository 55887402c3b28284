# SPDX-License-Identifier: MIT
"""An agent's loop around netpawl, with the model left out: where a model would answer, SCRIPT does.

    PYTHONPATH=clients/python python3 examples/agent_loop.py

Each step of the agent is a command, which runs in a sandbox of the session. The platform, not the agent, says when private
data comes into play; from then on the network is as tight as the data asks, for what runs already and for all that follows.
A step that would write to the outside waits for a person; here a thread plays the person.
"""
import sys
import threading
import time

import netpawl

# A request, and not a connection alone: the inspector takes that, and answers 403 to what the policy does not allow.
REACH = ("import urllib.request\ntry:\n    print('the outside answers', urllib.request.urlopen('http://198.51.100.10/', timeout=5).status)\n"
         "except OSError as e:\n    print('could not reach the outside:', getattr(e, 'reason', e))")

# what the model says: (class of egress, command), or the data that it asked for
SCRIPT = [
    ("none", ["sh", "-c", "seq 1 10 > numbers.txt; echo made numbers.txt"]),
    ("none", ["python3", "-c", "print(sum(int(line) for line in open('numbers.txt')))"]),
    ("read_only", ["python3", "-c", REACH]),
    ("write", ["sh", "-c", "echo published"]),
    ("write", ["sh", "-c", "echo deleted everything"]),
    ("data", ("customers.csv", "SECRET", "the agent asked for the customer list")),
    (None, ["python3", "-c", REACH]),
]


def person(client, session, done):
    """Looks at what waits, and decides."""
    while not done.is_set():
        for run in client.runs(session, "pending"):
            if run["class"] != "write" or run["approved"] is not None:
                continue
            if "deleted" in " ".join(run["command"]):
                client.reject(run["run"], "we keep our things")
            else:
                client.approve(run["run"], "looks fine")
        time.sleep(0.2)


def step(session, sandbox, kind, what):
    if kind == "data":
        stands = session.add_private_dataset(*what)
        return f"{what[0]} is in play: level {stands['level']}, mode {stands['mode']}, {stands['cut']} connections cut"
    try:
        result = sandbox.run(what, egress=kind)
    except netpawl.Rejected as e:
        return str(e)  # the model reads why, and tries something else
    return (result.stdout + result.stderr).strip() + ("" if result.ok else f" [exit code {result.exit_code}]")


def main(user="alice", name="loop"):
    session = netpawl.Session(user, name)
    sandbox = session.sandbox(timeout="1m", output_limit="64KiB", chdir="/workspace")
    done = threading.Event()
    watch = threading.Thread(target=person, args=(session.client, session.name, done))
    watch.start()
    try:
        for kind, what in SCRIPT:
            print(f"{kind or 'mode':>10}: {step(session, sandbox, kind, what)}", flush=True)
    finally:
        done.set()
        watch.join()
        session.end()


if __name__ == "__main__":
    main(*sys.argv[1:3])
