# SPDX-License-Identifier: MIT
"""A name server that answers for every name, and writes down each: over UDP and TCP (53), TLS (853) and HTTPS (443). At 80
and 443 it is a web server as well. Arguments: address, certificate, key, file for one JSON object a line."""
import base64
import json
import socketserver
import ssl
import struct
import sys
import threading
import time
import urllib.parse

import dns.flags
import dns.message
import dns.rdatatype
import dns.rrset

from http.server import BaseHTTPRequestHandler
from origin_server import Server

ADDRESS, LOG = None, None
TTL = 5
lock = threading.Lock()


def note(by, **what):
    with lock:
        LOG.write(json.dumps({"by": by, **what}) + "\n")
        LOG.flush()


def answer(wire, by):
    try:
        query = dns.message.from_wire(wire)
        question = query.question[0]
    except Exception as e:  # what arrives counts, whatever it is
        note(by, name=None, error=repr(e), bytes=len(wire))
        return None
    spelled = question.name.to_text(omit_final_dot=True)
    note(by, name=spelled.lower(), type=dns.rdatatype.to_text(question.rdtype), spelled=spelled, options=len(query.options))
    response = dns.message.make_response(query, recursion_available=True)
    response.flags |= dns.flags.AA
    if question.rdtype in (dns.rdatatype.A, dns.rdatatype.TXT):
        data = ADDRESS if question.rdtype == dns.rdatatype.A else '"from the rogue server"'
        response.answer.append(dns.rrset.from_text(question.name, TTL, "IN", question.rdtype, data))
    return response.to_wire()


class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        wire, sock = self.request
        reply = answer(wire, "udp")
        if reply:
            sock.sendto(reply, self.client_address)


class Stream(socketserver.StreamRequestHandler):
    def handle(self):
        by = self.server.by
        note(by, connected=True)
        while len(head := self.rfile.read(2)) == 2:
            reply = answer(self.rfile.read(struct.unpack("!H", head)[0]), by)
            if reply:
                self.wfile.write(struct.pack("!H", len(reply)) + reply)


class Tcp(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query).get("dns")
        if url.path == "/dns-query" and query:
            self.reply("application/dns-message", answer(base64.urlsafe_b64decode(query[0] + "=="), "doh") or b"")
            return
        note("http", host=self.headers.get("host"), path=self.path)
        self.reply("text/plain", b"reached")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.reply("application/dns-message", answer(body, "doh") or b"")

    def log_message(self, *args):
        pass


def main():
    global ADDRESS, LOG
    ADDRESS, cert, key, log = sys.argv[1:]
    LOG = open(log, "a")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    socketserver.ThreadingUDPServer.max_packet_size = 65535
    servers = [socketserver.ThreadingUDPServer((ADDRESS, 53), Udp), Tcp((ADDRESS, 53), Stream), Tcp((ADDRESS, 853), Stream),
               Server((ADDRESS, 80), Web), Server((ADDRESS, 443), Web)]
    servers[1].by, servers[2].by = "tcp", "dot"
    for server in (servers[2], servers[4]):
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
