// SPDX-License-Identifier: MIT
// probe.js CLIENT JSON: see probe.py. And grpc ORIGIN: calls over one HTTP/2 connection.
"use strict";
const http = require("http"), https = require("https"), http2 = require("http2"), tls = require("tls");

const say = (what) => console.log(JSON.stringify(what));
const told = (status, reason, body) =>
  say({ status, reason: reason || null, text: body.toString("latin1").slice(0, 4000), len: body.length });
const failed = (e) => say({ error: `${e.code || e.name}: ${e.message} ${e.cause ? e.cause.code || e.cause.message : ""}` });

function plain(r, agent, more) {
  return new Promise((resolve) => {
    const lib = r.u.startsWith("https") ? https : http;
    const headers = r.b !== undefined ? { "content-length": Buffer.byteLength(r.b) } : {};
    const req = lib.request(r.u, { method: r.m, headers, timeout: 15000, agent, ...more }, (res) => {
      const parts = [];
      res.on("data", (p) => parts.push(p));
      res.on("end", () => { told(res.statusCode, res.headers["x-netpawl-reason"], Buffer.concat(parts)); resolve(); });
      res.on("error", (e) => { failed(e); resolve(); });
    });
    req.on("timeout", () => req.destroy(new Error("timeout")));
    req.on("error", (e) => { failed(e); resolve(); });
    req.end(r.b);
  });
}

// What proxy agents do: CONNECT, then TLS inside.
function tunnel(r) {
  return new Promise((resolve) => {
    const proxy = new URL(process.env.HTTPS_PROXY), url = new URL(r.u);
    if (url.protocol === "http:")
      return plain(r, undefined, { host: proxy.hostname, port: proxy.port, path: r.u }).then(resolve);
    const req = http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: `${url.hostname}:443`,
      headers: { host: `${url.hostname}:443` } });
    req.on("error", (e) => { failed(e); resolve(); });
    req.on("connect", (res, socket) => {
      if (res.statusCode !== 200) {
        say({ error: `proxy ${res.statusCode}` });
        socket.destroy();
        return resolve();
      }
      const inner = tls.connect({ socket, servername: url.hostname });
      inner.on("error", (e) => { failed(e); resolve(); });
      return plain(r, undefined, { createConnection: () => inner, defaultPort: 443 }).then(() => { inner.destroy(); resolve(); });
    });
    return req.end();
  });
}

const clients = {
  async fetch(todo) {
    for (const r of todo) {
      try {
        const got = await fetch(r.u, { method: r.m, body: r.b, signal: AbortSignal.timeout(15000) });
        told(got.status, got.headers.get("x-netpawl-reason"), Buffer.from(await got.arrayBuffer()));
      } catch (e) { failed(e); }
    }
  },
  async https(todo) {
    const agents = { "http:": new http.Agent({ keepAlive: true }), "https:": new https.Agent({ keepAlive: true }) };
    for (const r of todo) await plain(r, agents[new URL(r.u).protocol]);
    Object.values(agents).forEach((a) => a.destroy());
  },
  async connect(todo) { for (const r of todo) await tunnel(r); },
};

// -- calls with trailers ------------------------------------------------------------------------

function call(session, path, { messages = [], pingpong = false, cancel = false, trailers = null } = {}) {
  return new Promise((resolve) => {
    const out = { path, got: [], trailers: null, headers: null, code: null };
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" },
      { waitForTrailers: !!trailers });
    const left = [...messages];
    stream.on("response", (h) => { out.headers = { ...h }; });
    stream.on("trailers", (h) => { out.trailers = { ...h }; });
    stream.on("wantTrailers", () => stream.sendTrailers(trailers));
    stream.on("data", (part) => {
      out.got.push(part.toString());
      if (cancel) return stream.close(http2.constants.NGHTTP2_CANCEL);
      if (!pingpong) return undefined;
      return left.length ? stream.write(left.shift()) : stream.end();
    });
    stream.on("error", (e) => { out.error = e.code; });
    stream.on("close", () => { out.code = stream.rstCode; resolve(out); });
    setTimeout(() => stream.close(http2.constants.NGHTTP2_CANCEL), 10000).unref();
    if (pingpong) stream.write(left.shift());
    else if (cancel) stream.write("x");
    else stream.end(messages.join(""));
  });
}

clients.grpc = async (origin) => {
  const session = http2.connect(origin);
  session.on("error", (e) => { failed(e); process.exit(1); });
  const out = {};
  out.unary = await call(session, "/grpc.Echo/Unary", { messages: ["hello"] });
  out.bidi = await call(session, "/grpc.Echo/Bidi", { messages: ["a", "b", "c", "d"], pingpong: true });
  out.fail = await call(session, "/grpc.Echo/Fail", { messages: ["x"] });
  out.reset = await call(session, "/grpc.Echo/Reset", { messages: ["x"] });
  out.watch = await call(session, "/grpc.Echo/Watch", { cancel: true });
  out.trailers = await call(session, "/grpc.Echo/Trailers", { messages: ["x"], trailers: { "x-request-sum": "17" } });
  // the connection has survived it all; and many at once
  out.many = (await Promise.all(Array.from({ length: 50 }, (_, i) =>
    call(session, "/grpc.Echo/Unary", { messages: [`m${i}`] })))).map(
    (o) => [o.got.join(""), o.trailers && o.trailers["grpc-status"]]);
  say(out);
  session.close();
};

clients[process.argv[2]](process.argv[2] === "grpc" ? process.argv[3] : JSON.parse(process.argv[3]));
