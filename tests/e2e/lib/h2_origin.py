# SPDX-License-Identifier: MIT
"""An origin's side of HTTP/2 (python3-h2), for handlers of Rogues.origin(..., alpn=["h2"])."""
import select
import ssl

import h2.config
import h2.connection
import h2.events


def streams(c):
    """(event, connection) of a client's connection; (None, connection) now and then, while nothing comes."""
    http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding="latin-1"))
    http.initiate_connection()
    c.sendall(http.data_to_send())
    c.setblocking(False)
    while True:
        try:
            data = c.recv(65536)
            if not data:
                return
        except ssl.SSLWantReadError:  # nothing yet: the socket does not block
            select.select([c], [], [], 0.1)
            yield None, http
        else:
            for e in http.receive_data(data):
                if isinstance(e, h2.events.DataReceived):
                    http.acknowledge_received_data(e.flow_controlled_length, e.stream_id)
                yield e, http
        if out := http.data_to_send():
            c.setblocking(True)
            c.sendall(out)
            c.setblocking(False)


def requests(c):
    """(headers, body, stream, connection) of each request that has come whole."""
    heads, bodies = {}, {}
    for e, http in streams(c):
        if isinstance(e, h2.events.RequestReceived):
            heads[e.stream_id], bodies[e.stream_id] = dict(e.headers), b""
        elif isinstance(e, h2.events.DataReceived):
            bodies[e.stream_id] += e.data
        elif isinstance(e, h2.events.StreamEnded):
            yield heads.pop(e.stream_id), bodies.pop(e.stream_id), e.stream_id, http
