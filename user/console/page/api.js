// SPDX-License-Identifier: MIT
// Calls of the console's server. The cookie goes with them by itself; the key is in the storage of this origin, port included.
import { clean } from "./dom.js";

const KEY = "netpawl.key";

export class Failure extends Error {
  constructor(status, body) {
    super(clean(body?.detail ? `${body.message}: ${body.detail}` : body?.message ?? `status ${status}`));
    this.status = status;
    this.error = body?.error ?? "";
  }
}

let lost = () => {};
export function onLoggedOut(fn) { lost = fn; }

async function send(method, path, body, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      method, signal, cache: "no-store", credentials: "same-origin", redirect: "error",
      headers: { "X-Netpawl-Key": localStorage.getItem(KEY) ?? "", ...(method === "GET" ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Failure(0, { message: "netpawl console does not answer" });
  }
  if (answer.ok) return answer;
  const failure = new Failure(answer.status, await answer.json().catch(() => null));
  if (answer.status === 401 && path !== "/console/login") lost();
  throw failure;
}

export async function call(method, path, body, signal) {
  return (await send(method, path, body, signal)).json();
}

export async function text(path) {
  return (await send("GET", path)).text();
}

export function lines(text) {
  const out = [];
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    try { out.push(JSON.parse(line)); } catch { /* a line that was cut off at the end of a stream */ }
  }
  return out;
}

// Hands on batches of objects until the stream ends; then it returns.
export async function stream(path, signal, take) {
  const answer = await send("GET", path, undefined, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  take([]);
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const end = rest.lastIndexOf("\n");
    if (end < 0) continue;
    take(lines(rest.slice(0, end)));
    rest = rest.slice(end + 1);
  }
}

// A link's token, once. True when this browser is logged in.
export async function login(token) {
  const { key } = await call("POST", "/console/login", { token });
  localStorage.setItem(KEY, key);
}
