// SPDX-License-Identifier: MIT
// The page: logs in, keeps the feed, shows one panel at a time.
import { call, login, onLoggedOut, Failure } from "./api.js";
import { $, copy, fill, h, kept, toast } from "./dom.js";
import { Feed } from "./feed.js";
import { Rows } from "./rows.js";
import { traffic } from "./traffic.js";
import { sessions } from "./sessions.js";
import { Questions, questionsPanel } from "./questions.js";
import { settings } from "./settings.js";
import { node } from "./node.js";

export const app = { info: {}, rows: new Rows(), listeners: new Set(), state: "connecting", rates: [] };

const PANELS = [
  ["traffic", "Live traffic", traffic], ["sessions", "Sessions", sessions], ["questions", "Questions", questionsPanel],
  ["settings", "Settings", settings], ["node", "Node", node],
];

const panels = () => (app.info.approver ? PANELS.filter((p) => p[0] === "questions") : PANELS);

function theme() {
  const chosen = kept.get("theme", "system");
  const dark = chosen === "dark" || (chosen === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

// -- panels ----------------------------------------------------------------------

let current;
function route() {
  const [name, ...rest] = location.hash.slice(1).split("/");
  const found = panels().find((p) => p[0] === name) ?? panels()[0];
  const argument = rest.map(decodeURIComponent).join("/");
  for (const link of $("#tabs").children) {
    if (link.dataset.panel === found[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = found[1] + " · netpawl";
  if (current?.name === found[0] && current.panel.show) return current.panel.show(argument);
  current?.panel.leave?.();
  const box = $("#panel");
  box.replaceChildren();
  current = { name: found[0], panel: found[2](app, box, argument) };
}

function tabs() {
  fill($("#tabs"), panels().map(([name, title]) => h("a", { href: "#" + name, data: { panel: name } }, title)));
}

// -- the feed ------------------------------------------------------------------------

function changed(what) {
  for (const listener of app.listeners) listener(what);
}

// Events of each of the last minutes, for the charts of the node's panel.
function rate(events) {
  for (const event of events) {
    const minute = Math.floor(new Date(event.time) / 60000);
    let last = app.rates[app.rates.length - 1];
    if (!last || last.minute < minute) app.rates.push(last = { minute, allowed: 0, refused: 0, rises: 0, us: [], waits: [] });
    else if (last.minute > minute) continue;
    if (event.kind === "allow" && event.url) last.allowed++;
    if (event.kind === "refuse") last.refused++;
    if (event.reason === "raised") last.rises++;
    if (event.reason === "question_answered" && event.waited_us !== undefined && last.waits.length < 500) last.waits.push(event.waited_us);
    if (event.wait_us !== undefined && last.us.length < 500) last.us.push(event.wait_us);
  }
  if (app.rates.length > 120) app.rates.splice(0, app.rates.length - 120);
}

function startFeed() {
  app.feed = new Feed({
    take(events, where) {
      if (where === "old") {
        app.rows.addOld(events);
        return changed({ all: true });
      }
      rate(events);
      changed({ ...app.rows.add(events), events });
      if (events.some((e) => /^(question|run)_/.test(e.reason))) app.questions.refresh();
    },
    gap(first, last, why) { changed({ fresh: [app.rows.gap(first, last, why)], events: [] }); },
    state(word, why) {
      if (app.state !== word && word === "live") app.questions.refresh();
      app.state = word;
      $("#state").dataset.state = word === "connecting" && app.rows.all.length ? "lost" : word;
      $("#state").textContent = { live: "live", lost: "reconnecting", connecting: "connecting", out: "logged out", forbidden: "no events for you" }[word];
      $("#state").title = why ?? "";
    },
  });
  app.feed.run();
}

// -- preferences -----------------------------------------------------------------------

function choice(name, text, otherwise, then) {
  const box = h("input", { type: "checkbox", id: "pref-" + name });
  box.checked = kept.get(name, otherwise);
  box.addEventListener("change", () => { kept.set(name, box.checked); then?.(box); });
  return h("p", null, h("label", null, box, " ", text));
}

function preferences() {
  const themes = h("select", { id: "pref-theme", onchange: () => { kept.set("theme", themes.value); theme(); } },
    ["system", "light", "dark"].map((word) => h("option", { value: word }, word)));
  themes.value = kept.get("theme", "system");
  const dialog = h("dialog", { class: "confirm", "aria-label": "Preferences" },
    h("h2", null, "Preferences"),
    h("p", null, h("label", null, "Colours ", themes)),
    choice("sound", "A sound when a question comes", true),
    choice("notify", "A notification of the browser, too", false, async (box) => {
      if (box.checked && (!("Notification" in window) || (await Notification.requestPermission()) !== "granted")) {
        box.checked = false;
        kept.set("notify", false);
        toast("The browser does not permit it", true);
      }
    }),
    h("p", { class: "soft" }, `netpawl ${app.info.version}, as ${app.info.user}`, app.info.read_only ? ", read only" : "", app.info.approver ? ", for answers alone" : ""),
    h("div", { class: "buttons" },
      h("button", { type: "button", onclick: async () => {
        const { token } = await call("POST", "/console/link", {});
        copy(`${location.origin}/#token=${token}`);
        toast("A link for another browser was copied. It is good once, for ten minutes.");
      } }, "Copy a link"),
      h("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Done")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// -- start -------------------------------------------------------------------------------

function loggedOut(why) {
  app.feed?.stop();
  app.questions?.stop();
  current?.panel.leave?.();
  current = null;
  fill($("#panel"), h("div", { class: "empty", id: "logged-out" }, h("h2", null, "Open the link that netpawl console has printed"),
    h("p", null, why ?? "This browser is not logged in. A link is good once; press Enter where netpawl console runs for another one.")));
}

async function start() {
  theme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", theme);
  onLoggedOut(() => loggedOut());
  const token = /^#token=([0-9a-f]{32})$/.exec(location.hash)?.[1];
  try {
    if (token) {
      history.replaceState(null, "", "/");
      await login(token).catch((e) => { if (!(e instanceof Failure)) throw e; }); // it may have been used by this very browser
    }
    app.info = await call("GET", "/console/info");
  } catch (e) {
    if (e.status !== 401) loggedOut(e.message);
    return;
  }
  tabs();
  app.questions = new Questions(app);
  $("#bell").addEventListener("click", () => app.questions.open());
  $("#menu").addEventListener("click", preferences);
  addEventListener("hashchange", route);
  route();
  if (app.info.approver) $("#state").hidden = true;
  else startFeed();
  app.questions.run();
}

start();
