// The frame of the page: routes, themes, namespaces and tokens. Views are modules of their own,
// fetched when they are first looked at.

import { api, Problem } from "./api.js";
import { announce, fill, h } from "./dom.js";
import { showOpenCount } from "./contradictions.js";
import { listenForFiles } from "./intake.js";
import { listenForKeys } from "./keys.js";
import { ask, field, trouble, waiting } from "./parts.js";
import { spaceWord } from "./words.js";

const VIEWS = {
  search: () => import("./views/search.js"),
  timeline: () => import("./views/timeline.js"),
  conversations: () => import("./views/conversations.js"),
  memories: () => import("./views/memories.js"),
  core: () => import("./views/core.js"),
  contradictions: () => import("./views/contradictions.js"),
  documents: () => import("./views/documents.js"),
  notes: () => import("./views/notes.js"),
  project: () => import("./views/project.js"),
  ask: () => import("./views/ask.js"),
  questions: () => import("./views/questions.js"),
  status: () => import("./views/status.js"),
  devices: () => import("./views/devices.js"),
};

// Views that stand behind another one in the list.
const BEHIND = { core: "memories", questions: "ask", devices: "status" };

const main = document.getElementById("main");
let current = { name: "", key: "", update: null, control: new AbortController() };

/** What the address says: the view, the rest of its path, its parameters. */
function route() {
  const [, path, query = ""] = /^#?\/?([^?]*)\??(.*)$/s.exec(location.hash);
  const parts = path.split("/").map(decoded);
  const name = Object.hasOwn(VIEWS, parts[0]) ? parts[0] : "search";
  return { name, rest: parts.slice(1), parameters: new URLSearchParams(query) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function show({ again = false } = {}) {
  if (location.hash && !location.hash.startsWith("#/")) return;
  const wanted = route();
  for (const link of document.querySelectorAll("#views a")) {
    if (link.getAttribute("href") === `#/${BEHIND[wanted.name] ?? wanted.name}`) {
      link.setAttribute("aria-current", "page");
      // On a narrow screen the list scrolls sideways.
      const list = link.closest("ul");
      list.scrollLeft = link.offsetLeft - list.offsetLeft - 40;
    }
    else link.removeAttribute("aria-current");
  }
  showOpenCount();
  if (!again && current.name === wanted.name && current.update?.(wanted)) return;
  current.control.abort();
  const first = current.name === "" && !again;
  const control = new AbortController();
  current = { name: wanted.name, update: null, control };
  fill(main, waiting("Opening …"));
  try {
    const { view } = await VIEWS[wanted.name]();
    if (control.signal.aborted) return;
    document.title = `${view.title} – Anaphora`;
    current.update = view.show(fill(main), wanted, control.signal) ?? null;
    if (!first) {
      if (!again) scrollTo(0, 0);
      (main.querySelector("h1") ?? main).focus({ preventScroll: true });
    }
    dispatchEvent(new CustomEvent("anaphora:shown"));
  } catch (error) {
    if (!control.signal.aborted) fill(main, trouble(error, () => show({ again: true })));
  }
}

// Themes: the system's, light, dark, in turn.
const THEMES = ["system", "light", "dark"];
const switcher = document.getElementById("theme");

function theme() {
  return document.documentElement.dataset.theme ?? "system";
}

function showTheme() {
  const now = theme();
  fill(switcher, "Theme", h("span", { class: "wide-only" }, `: ${now}`));
  switcher.setAttribute("aria-label", `Theme: ${now}. Change it`);
  switcher.title = "Light or dark, or as this computer has it";
}

switcher.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("anaphora.theme", next);
  } catch {
    // Without a place to keep it, the choice holds until the page is left.
  }
  showTheme();
  announce(`Theme: ${next}`);
});

// Namespaces and tokens.
const spaces = document.getElementById("namespace");
const tokens = document.getElementById("token");

async function begin() {
  showTheme();
  try {
    showSpaces(await api.session());
  } catch (error) {
    if (!(error instanceof Problem)) {
      fill(main, trouble(error, begin));
      return;
    }
    // Which namespaces there are is not everybody's to know; the view says what is wrong, if it is.
    showSpaces({ namespaces: [] });
    if (error.status === 401) {
      askToken(error);
      return;
    }
  }
  await show();
}

function showSpaces(session) {
  const known = [...new Set([...session.namespaces, api.namespace])].sort();
  fill(spaces, known.map((name) => h("option", { value: name, selected: name === api.namespace }, spaceWord(name))),
    h("option", { value: "" }, "New or other …"));
  tokens.hidden = !(session.tokens || api.token);
}

spaces.addEventListener("change", async () => {
  if (spaces.value !== "") {
    api.namespace = spaces.value;
    show({ again: true });
    announce(`${spaceWord(api.namespace)} is shown`);
    return;
  }
  const input = h("input", { name: "name", required: true, maxlength: 200, autocomplete: "off", spellcheck: "false" });
  const chosen = await ask({
    title: "Another memory",
    body: [field("Its name", input, "A name such as work or private. It has its own conversations, memories, notes and documents, and nothing of the others.")],
    confirm: "Go there",
    deed: () => { api.namespace = input.value.trim(); },
  });
  await begin();
  if (chosen) show({ again: true });
});

async function askToken(error) {
  const input = h("input", { name: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  fill(main, h("div", { class: "note" }, h("h1", null, "A token is needed"),
    h("p", null, error?.detail || "This server answers requests with a token only."),
    h("p", { class: "next" }, "On your own computer: start Anaphora again (anaphora start) and open the link it shows. On a team's server: ask its administrator for a token."),
    h("button", { type: "button", class: "primary", onclick: () => askToken(error) }, "Enter a token")));
  tokens.hidden = false;
  const given = await ask({
    title: "Token",
    body: [field("Token of this server", input, "It is kept in this tab until it is closed, and sent to this server alone.")],
    confirm: "Use it",
    deed: () => { api.token = input.value.trim(); },
  });
  if (given) {
    await begin();
  }
}

tokens.addEventListener("click", async () => {
  const input = h("input", { name: "token", type: "password", autocomplete: "off", spellcheck: "false" });
  const given = await ask({
    title: "Token",
    body: [field("Token of this server", input, "Empty: use none. It is kept in this tab until it is closed.")],
    confirm: "Use it",
    deed: () => { api.token = input.value.trim(); },
  });
  if (given) {
    current.name = "";
    await begin();
  }
});

listenForFiles();
listenForKeys();
addEventListener("anaphora:unauthorised", (event) => askToken(event.detail));
addEventListener("anaphora:again", () => show({ again: true }));
addEventListener("hashchange", () => show());
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

begin();
