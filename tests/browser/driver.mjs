// SPDX-License-Identifier: MIT
// A browser that is told what to do: one line of JSON {id, code} in, one line {id, value} or {id, error} out. code is the body of an async
// function of (browser, pages, seen): pages has those that were opened, by name; seen what their consoles said.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(process.env.NETPAWL_BUILD + "/browser/");
const { chromium } = require("playwright-core");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required", "--disable-background-networking"] });
const pages = {}, seen = [];
const open = async (name, link, options = {}) => {
  const context = await browser.newContext({ viewport: { width: 1360, height: 820 }, ...options });
  const page = (pages[name] = await context.newPage());
  page.setDefaultTimeout(20000);
  page.on("console", (m) => m.type() === "error" && seen.push(`${name}: ${m.text()}`));
  page.on("pageerror", (e) => seen.push(`${name}: ${e.message}`));
  page.on("dialog", (d) => { seen.push(`${name}: a dialog of the browser: ${d.message()}`); d.dismiss(); });
  await page.goto(link);
  return page;
};

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, code } = JSON.parse(line);
  try {
    const run = new (Object.getPrototypeOf(async () => {}).constructor)("browser", "pages", "seen", "open", code);
    console.log(JSON.stringify({ id, value: (await run(browser, pages, seen, open)) ?? null }));
  } catch (e) {
    console.log(JSON.stringify({ id, error: String(e.stack ?? e) }));
  }
}
await browser.close();
