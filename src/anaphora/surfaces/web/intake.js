// How something gets in: a file that is dropped or chosen, and what a first visitor is told.

import { api } from "./api.js";
import { announce, fill, h, many } from "./dom.js";
import { ask, field, trouble, waiting } from "./parts.js";
import { toast } from "./toast.js";
import { finishVectors } from "./vectors.js";

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
    title: "Import",
    body: [field("Files", input, "What is known already adds nothing, so a newer export can be imported again."),
      h("details", null, h("summary", null, "What can be read"), h("ul", null, READ.map((line) => h("li", null, line)))),
      h("details", null, h("summary", null, "Where do I get my chats?"), exports())],
    confirm: "Import",
    deed: () => imported([...input.files]),
  }).then((done) => { if (done) again(); });
}

const READ = [
  "An export of ChatGPT, Claude.ai, Gemini, DeepSeek or Telegram: the zip as it came",
  "A transcript or chat of a coding agent",
  "What mem0, claude-mem, basic-memory, Zep, Letta or the MCP memory server store",
  "Notes in Markdown (a vault as a zip), PDF, Word and mail files",
  "An export of another Anaphora, or plain JSONL",
];

/** How to get an export, by program. */
function exports() {
  return h("ul", null,
    h("li", null, h("b", null, "ChatGPT: "), "Settings, Data controls, Export data. A mail brings a link to a zip."),
    h("li", null, h("b", null, "Claude.ai: "), "Settings, Privacy, Export data. A mail brings a link to a zip."),
    h("li", null, h("b", null, "Gemini: "), "takeout.google.com, choose My Activity and in it Gemini Apps."),
    h("li", null, h("b", null, "Telegram: "), "in the desktop program: Settings, Advanced, Export Telegram data, as JSON."));
}

async function take(files) {
  const place = h("div", null, waiting("Importing …"));
  const done = ask({ title: "Import", body: [place], confirm: "Close", cancel: null, deed: () => null });
  fill(place, await imported(files));
  await done;
  again();
}

/** Import each file; what came of each. */
async function imported(files) {
  const rows = [];
  const place = document.querySelector("#dialog .outcome, #dialog .waiting");
  for (const [number, file] of files.entries()) {
    if (place && files.length > 1) fill(place, waiting(`Importing ${number + 1} of ${files.length}: ${file.name}`));
    else if (place) fill(place, waiting(`Importing ${file.name} …`));
    try {
      rows.push(DOCUMENT.test(file.name) ? kept(file.name, await api.addDocument(file)) : told(file.name, await api.importFile(file)));
    } catch (error) {
      rows.push(h("li", null, h("b", { dir: "auto" }, file.name), trouble(error)));
    }
  }
  // What came in is found by its words from here on, by its meaning once this is done.
  finishVectors();
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
  const said = report.added ? `${many(report.added, "message")} in ${many(report.conversations, "conversation")}` : null;
  const what = [said, report.tool_calls ? many(report.tool_calls, "tool call") : null, memories ? many(memories, "memory", "memories") : null].filter(Boolean);
  const known = report.known + report.forgotten + report.memories_known + report.memories_forgotten + report.notes_known + report.documents_known;
  const words = what.length ? what.join(", ") : known ? "nothing new in it" : "nothing in it could be stored";
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

/** What an empty memory shows: how something gets in, the easiest way first. */
export function firstRun() {
  return h("section", { class: "card first-run start", "aria-label": "First steps" },
    h("h2", null, "Nothing is stored here yet"),
    h("p", null, "Choose one of these to begin. All of it stays on this computer."),
    h("ol", { class: "ways-in" },
      h("li", null, h("h3", null, "Bring your chats"), h("p", null, "Drop an export of ChatGPT, Claude.ai or another program anywhere on this page, as it came, or choose it:"),
        h("p", null, h("button", { type: "button", class: "primary", onclick: choose }, "Choose a file")),
        h("details", null, h("summary", null, "Where do I get my chats?"), exports())),
      h("li", null, h("h3", null, "Write down a fact"), factForm()),
      h("li", null, h("h3", null, "Let your coding agent remember"), h("p", null, "Enter the line of your agent in a terminal, once:"),
        h("pre", { tabindex: "0" }, AGENTS.map((name) => `anaphora setup ${name}`).join("\n")))));
}

/** One line to remember something, without a dialog. */
function factForm() {
  const input = h("input", { name: "fact", required: true, dir: "auto", autocomplete: "off", "aria-label": "A fact to remember", placeholder: "Ines is allergic to hazelnuts." });
  const report = h("div", { "aria-live": "polite" });
  return h("form", { class: "search", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await api.remember({ text: input.value });
      toast("It is remembered. Search for it in your own words.");
      again();
    } catch (error) {
      fill(report, trouble(error));
    }
  } }, h("div", { class: "ask" }, h("label", { class: "grow" }, input), h("button", { type: "submit" }, "Remember it")), report);
}
