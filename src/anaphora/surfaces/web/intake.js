// How something gets in: a file that is dropped or chosen, and what a first visitor is told.

import { api } from "./api.js";
import { announce, fill, h, many } from "./dom.js";
import { ask, trouble, waiting } from "./parts.js";

const DOCUMENT = /\.(pdf|docx|eml)$/i;
const AGENTS = ["claude-code", "codex", "gemini", "cursor", "vscode"];

/** Listen for files that are dropped anywhere, and for the button that chooses some. */
export function listenForFiles() {
  const cover = document.getElementById("drop");
  let within = 0;
  const holds = (event) => event.dataTransfer?.types.includes("Files");
  addEventListener("dragenter", (event) => {
    if (!holds(event)) return;
    within += 1;
    cover.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (!holds(event)) return;
    within = Math.max(0, within - 1);
    cover.hidden = within === 0;
  });
  addEventListener("dragover", (event) => { if (holds(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    within = 0;
    cover.hidden = true;
    take([...event.dataTransfer.files]);
  });
  document.getElementById("intake").addEventListener("click", choose);
}

/** Let files be chosen. */
export function choose() {
  const input = h("input", { type: "file", multiple: true, required: true });
  ask({
    title: "Import conversations",
    body: [h("p", { class: "faint" }, "An export of ChatGPT, Claude.ai, Gemini, DeepSeek or Telegram (the zip as it came), a transcript or chat of a coding agent, what mem0, claude-mem, basic-memory, Zep, Letta or the MCP memory server keep, notes in Markdown (a vault as a zip), PDF, Word and mail files, an export of another Anaphora, or plain JSONL. What is known already adds nothing."),
      h("label", { class: "field" }, h("span", null, "Files"), input)],
    confirm: "Import",
    deed: () => imported([...input.files]),
  }).then(again);
}

async function take(files) {
  const place = h("div", null, waiting("Importing …"));
  const done = ask({ title: "Import", body: [place], confirm: "Close", deed: () => null });
  fill(place, await imported(files));
  await done;
  again();
}

/** Import each file; what came of each. */
async function imported(files) {
  const rows = [];
  for (const file of files) {
    try {
      rows.push(DOCUMENT.test(file.name) ? kept(file.name, await api.addDocument(file)) : told(file.name, await api.importFile(file)));
    } catch (error) {
      rows.push(h("li", null, h("b", { dir: "auto" }, file.name), trouble(error)));
    }
  }
  return h("ul", { class: "plain" }, rows);
}

function kept(name, done) {
  const words = { added: "a new document", replaced: "a new version of a document", known: "nothing new in it" }[done.action];
  announce(`${name}: ${words}`);
  return h("li", null, h("b", { dir: "auto" }, name), `: ${words}.`, unread(done.problems));
}

function unread(problems) {
  return problems.length ? h("details", null, h("summary", null, `${many(problems.length, "part")} could not be read`),
    h("ul", null, problems.slice(0, 20).map((one) => h("li", { dir: "auto" }, `${one.place ?? one.path ?? ""} ${one.reason}`)))) : null;
}

function told(name, report) {
  const memories = report.memories_added + report.memories_changed;
  const said = report.added ? `${many(report.added, "turn")} in ${many(report.conversations, "conversation")}` : null;
  const what = [said, report.tool_calls ? many(report.tool_calls, "tool call") : null, memories ? many(memories, "memory", "memories") : null].filter(Boolean);
  const known = report.known + report.forgotten + report.memories_known + report.memories_forgotten + report.notes_known + report.documents_known;
  const words = what.length ? what.join(", ") : known ? "nothing new in it" : "nothing in it could be kept";
  announce(`${name}: ${words}`);
  return h("li", null, h("b", { dir: "auto" }, name), `: ${words}.`,
    unread(report.problems), leftOut(report.left_out));
}

function leftOut(kinds) {
  const rows = Object.entries(kinds);
  return rows.length ? h("details", null, h("summary", null, "What was left out"),
    h("ul", null, rows.map(([kind, count]) => h("li", { dir: "auto" }, `${count} ${kind}`)))) : null;
}

function again() {
  dispatchEvent(new CustomEvent("anaphora:again"));
}

/** What is shown where nothing is kept yet: how something gets in. */
export function firstRun() {
  return h("section", { class: "card first-run", "aria-label": "First steps" },
    h("h2", null, "Nothing is kept here yet"),
    h("p", null, "Three ways to begin:"),
    h("ol", { class: "ways-in" },
      h("li", null, h("b", null, "Bring your chats. "), "Drop an export of ChatGPT or Claude.ai on this page, as it came, or ",
        h("button", { type: "button", class: "small", onclick: choose }, "choose a file"), "."),
      h("li", null, h("b", null, "Let your coding agent remember. "), "In a terminal:",
        h("pre", { tabindex: "0" }, AGENTS.map((name) => `anaphora setup ${name}`).join("\n"))),
      h("li", null, h("b", null, "Keep a fact yourself. "), h("a", { href: "#/memories" }, "Remember something"), ".")));
}
