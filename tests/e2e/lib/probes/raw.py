# SPDX-License-Identifier: MIT
"""Bytes to and from a socket: raw.py JSON. {host, port, tls, steps}; a step sends text, reads responses, or waits for
the other end. What came is printed as JSON."""
import json
import socket
import ssl
import sys


class Wire:
    def __init__(self, host, port, tls, alpn=("http/1.1",), small=0):
        self.s = socket.socket()
        if small:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, small)
        self.s.settimeout(15)
        self.s.connect((host, port))
        if tls:
            context = ssl.create_default_context()
            context.set_alpn_protocols(list(alpn))
            self.s = context.wrap_socket(self.s, server_hostname=host)
        self.buffer = b""

    def more(self):
        block = self.s.recv(65536)
        self.buffer += block
        return bool(block)

    def until(self, mark):
        while mark not in self.buffer:
            if not self.more():
                raise EOFError(f"the end, before {mark!r}, after {self.buffer[:300]!r}")
        at = self.buffer.index(mark) + len(mark)
        part, self.buffer = self.buffer[:at], self.buffer[at:]
        return part

    def exactly(self, n):
        while len(self.buffer) < n:
            if not self.more():
                raise EOFError(f"the end, {n - len(self.buffer)} bytes early")
        part, self.buffer = self.buffer[:n], self.buffer[n:]
        return part

    def rest(self):
        while self.more():
            pass
        part, self.buffer = self.buffer, b""
        return part

    def response(self, head_only=False):
        """One response, an informational one included."""
        head = self.until(b"\r\n\r\n").decode("latin-1")
        lines = head.split("\r\n")
        fields = [(l.split(":", 1)[0].lower(), l.split(":", 1)[1].strip()) for l in lines[1:] if ":" in l]
        status, get = int(lines[0].split()[1]), dict(fields).get
        out = {"status": status, "headers": fields, "body": "", "trailers": []}
        if status < 200 or status in (204, 304) or head_only:
            return out
        if get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.until(b"\r\n").split(b";")[0], 16):
                body += self.exactly(size)
                assert self.exactly(2) == b"\r\n"
            while (line := self.until(b"\r\n")) != b"\r\n":
                name, _, value = line.decode("latin-1").partition(":")
                out["trailers"].append((name.lower(), value.strip()))
        elif get("content-length") is not None:
            body = self.exactly(int(get("content-length")))
        else:
            body = self.rest()
        out["body"] = body[:100000].decode("latin-1")
        out["len"] = len(body)
        return out


def main():
    job = json.loads(sys.argv[1])
    wires, got = {}, []
    wires[""] = Wire(job["host"], job["port"], job.get("tls"), job.get("alpn", ["http/1.1"]), job.get("small", 0))
    for step in job["steps"]:
        wire = wires[""]
        try:
            if "send" in step:
                wire.s.sendall(step["send"].encode("latin-1") * step.get("times", 1))
            elif "read" in step:
                got += [wire.response(step.get("head_only")) for _ in range(step["read"])]
            elif "bytes" in step:
                got.append(wire.exactly(step["bytes"]).decode("latin-1"))
            elif "rest" in step:
                got.append(wire.rest().decode("latin-1"))
            elif "shut" in step:
                wire.s.shutdown(socket.SHUT_WR)
            elif "other" in step:  # a whole request on a connection of its own, in between
                o = step["other"]
                w = Wire(o["host"], o["port"], o.get("tls"))
                w.s.sendall(o["send"].encode("latin-1"))
                got.append(w.response())
                w.s.close()
            elif "pause" in step:
                import time
                time.sleep(step["pause"])
        except (OSError, EOFError, ValueError) as e:
            got.append({"error": f"{type(e).__name__}: {e}"})
            break
    print(json.dumps(got))


if __name__ == "__main__":
    main()
