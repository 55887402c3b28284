// SPDX-License-Identifier: MIT
// The far side of test_clients.py, as far as it is Node: HTTP/2 (and HTTP/1.1 for who does not speak it), things that
// look like gRPC, and an npm registry. Arguments: address, certificate, key, tarball.
"use strict";
const fs = require("fs"), http = require("http"), http2 = require("http2"), crypto = require("crypto");
const [address, cert, key, tarball] = process.argv.slice(2);

function collect(stream) {
  return new Promise((resolve) => {
    const parts = [];
    stream.on("data", (part) => parts.push(part));
    stream.on("end", () => resolve(Buffer.concat(parts)));
    stream.on("error", () => resolve(Buffer.concat(parts)));
  });
}

// -- gRPC-like: plain streams, with trailers -------------------------------------------------
const grpc = {
  Unary(stream) {
    const parts = [];
    stream.on("data", (part) => parts.push(part));
    stream.on("end", () => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "fine" }));
      stream.end(Buffer.concat(parts));
    });
  },
  Bidi(stream) { // each message is answered before the next one is there
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.on("data", (part) => stream.write("re:" + part));
    stream.on("end", () => stream.end());
  },
  Fail(stream) { // trailers only
    stream.resume();
    stream.respond({ ":status": 200, "content-type": "application/grpc", "grpc-status": "7", "grpc-message": "no" },
      { endStream: true });
  },
  Reset(stream) {
    stream.resume();
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.write("some");
    setTimeout(() => stream.destroy(new Error("cut")), 50);
  },
  Watch(stream) { // never ends by itself; says whether the client's cancel came through
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.write("watching");
    stream.on("close", () => { cancelled++; });
  },
  Trailers(stream, headers) { // the request's own
    stream.on("trailers", (t) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc", "x-got": t["x-request-sum"] || "none" });
      stream.end("ok");
    });
    stream.resume();
    stream.on("end", () => setTimeout(() => {
      if (!stream.headersSent) {
        stream.respond({ ":status": 200, "content-type": "application/grpc", "x-got": "none" });
        stream.end("ok");
      }
    }, 200));
  },
};
let cancelled = 0;

// -- an npm registry of one package -----------------------------------------------------------
const tar = fs.readFileSync(tarball);
const integrity = "sha512-" + crypto.createHash("sha512").update(tar).digest("base64");

function registry(req, res) {
  if (req.url === "/np-left-pad") {
    const text = JSON.stringify({
      name: "np-left-pad", "dist-tags": { latest: "1.0.0" },
      versions: { "1.0.0": { name: "np-left-pad", version: "1.0.0", main: "index.js",
        dist: { tarball: "https://npm.test/np-left-pad/-/np-left-pad-1.0.0.tgz", integrity } } },
    });
    res.writeHead(200, { "content-type": "application/json" });
    return res.end(text);
  }
  if (req.url.endsWith(".tgz")) {
    res.writeHead(200, { "content-type": "application/octet-stream", "content-length": tar.length });
    return res.end(tar);
  }
  res.writeHead(404, { "content-type": "application/json" });
  return res.end("{}");
}

async function answer(req, res) {
  const host = req.headers[":authority"] || req.headers.host || "", path = req.url.split("?")[0];
  process.stderr.write(`node ${req.httpVersion} ${req.method} ${host} ${req.url}\n`);
  if (host === "npm.test") return registry(req, res);
  if (path === "/sha") {
    const hash = crypto.createHash("sha256");
    let len = 0;
    req.on("data", (part) => { hash.update(part); len += part.length; });
    return req.on("end", () => res.end(JSON.stringify({ sha: hash.digest("hex"), len })));
  }
  if (path === "/cancelled") return res.end(String(cancelled));
  if (path === "/hints") {
    res.writeEarlyHints({ link: "</style.css>; rel=preload" });
    return setTimeout(() => res.end("after the hints"), 20);
  }
  if (path === "/trailers") {
    res.writeHead(200, { trailer: "x-checksum" });
    res.write("hello");
    res.addTrailers({ "x-checksum": "abc" });
    return res.end();
  }
  if (path === "/dribble") { // many small writes
    let n = 0;
    const next = () => { if (n === 200) return res.end(); res.write(`line ${n++}\n`); setImmediate(next); };
    return next();
  }
  if (path.startsWith("/status/")) { res.writeHead(Number(path.split("/")[2])); return res.end(); }
  const body = await collect(req);
  const headers = {};
  for (const [k, v] of Object.entries(req.headers)) headers[k] = v;
  const text = JSON.stringify({ method: req.method, path: req.url, host, version: req.httpVersion, headers,
    body: body.length, text: body.subarray(0, 200).toString("latin1") });
  res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  return res.end(req.method === "HEAD" ? undefined : text);
}

const secure = http2.createSecureServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key), allowHTTP1: true });
const told = (req, res) => answer(req, res).catch((e) => process.stderr.write(`node ${e}\n`));
secure.on("request", told); // HTTP/1.1; streams have their own
secure.removeAllListeners("stream");
secure.on("stream", (stream, headers, flags, raw) => {
  stream.on("error", () => {});
  const name = headers[":path"].split("/");
  if (headers.expect === "100-continue") stream.additionalHeaders({ ":status": 100 });
  if (name[1] !== "grpc.Echo")
    return told(new http2.Http2ServerRequest(stream, headers, {}, raw), new http2.Http2ServerResponse(stream));
  process.stderr.write(`node grpc ${headers[":path"]}\n`);
  return grpc[name[2].split("?")[0]](stream, headers);
});
secure.on("sessionError", () => {});
const plain = http.createServer(told);
secure.listen(443, address, () => plain.listen(80, address, () => console.log("ready")));
