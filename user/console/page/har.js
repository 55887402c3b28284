// SPDX-License-Identifier: MIT
// What the filter shows, as an HTTP archive (HAR 1.2). Events come page by page, with the entries that netpawl-console makes of them, and go
// into a file of the browser's: the page holds one page of them at a time.
import { lines, text } from "./api.js";
import { describe } from "./words.js";

// From the oldest event that is shown to the newest. Resolves to {blob, entries}.
export async function harOf({ first, last, match, version, progress = () => {}, get = text }) {
  let blob = new Blob([`{"log":{"version":"1.2","creator":{"name":"netpawl","version":${JSON.stringify(version)}},"entries":[`]), entries = 0, after = Math.max(0, first - 1);
  while (after < last) {
    const parts = [], before = after;
    for (const { event, entry } of lines(await get(`/console/har?after=${after}`))) {
      if (typeof event?.seq !== "number" || event.seq > last) continue;
      after = Math.max(after, event.seq);
      if (entry && match(describe(event))) parts.push((entries++ ? ",\n" : "\n") + JSON.stringify(entry));
    }
    blob = new Blob([blob, ...parts]);
    progress((after - first) / Math.max(1, last - first));
    if (after === before) break; // there are no more
  }
  return { blob: new Blob([blob, `\n],"comment":"${entries} requests"}}\n`], { type: "application/json" }), entries };
}

export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
