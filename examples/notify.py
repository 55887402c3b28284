#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sends a question on to a chat: a command for the policy's approval: notify:.

    approval:
      notify:
        command: [/usr/local/lib/netpawl/notify.py, "http://127.0.0.1:8065/hooks/abc"]
        network: true      # a command has none unless this says so

netpawld adds two arguments, the id of the question and a line about it. The webhook gets {"text": ...}, which Mattermost, Slack and
others take. Point it to a gateway on this host that knows the chat's secret: then nothing here has to. No dependencies."""
import json
import sys
import urllib.request


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: notify.py WEBHOOK ID SUMMARY")
    webhook, ident, summary = sys.argv[1:]
    body = json.dumps({"text": f"netpawl: {summary}\nAnswer with: netpawl answer {ident} deny|once, or netpawl ask"}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # what the environment says of proxies is not for this
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})
    try:
        with opener.open(request, timeout=5) as answer:
            answer.read(1024)
    except OSError as e:
        sys.exit(f"{webhook}: {e}")


if __name__ == "__main__":
    main()
