// How something gets in: a file that is dropped or chosen, and what a first visitor is told.

import { api, Problem } from "./api.js";
import { announce, fill, h, many } from "./dom.js";
import { ask, field, trouble, waiting } from "./parts.js";
import { toast } from "./toast.js";
import { finishVectors } from "./vectors.js";

const SHOWN = 50;
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
    // Entries are gone once the event is over; files are asked for later.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
    take(entries);
  });
  document.getElementById("intake").addEventListener("click", choose);
}

/** Let files or a folder be chosen. */
export function choose() {
  const input = h("input", { type: "file", multiple: true, required: true });
  const folder = h("input", { type: "file", webkitdirectory: true, onchange: () => { input.required = !folder.files.length; } });
  ask({
    title: "Import",
    body: [field("Files", input, "Of any kind. What is known already adds nothing, so a newer export can be imported again."),
      field("Or a folder, with all that is in it", folder),
      h("details", null, h("summary", null, "What can be read"), h("ul", null, READ.map((line) => h("li", null, line)))),
      h("details", null, h("summary", null, "Where do I get my chats?"), exports())],
    confirm: "Import",
    deed: () => imported([...input.files, ...folder.files].map((file) => ({ name: file.webkitRelativePath || file.name, file })).filter(wanted)),
  }).then((done) => { if (done) again(); });
}

const READ = [
  "An export of ChatGPT, Claude.ai, Gemini, DeepSeek or Telegram: the zip as it came",
  "A transcript or chat of a coding agent",
  "What mem0, claude-mem, basic-memory, Zep, Letta or the MCP memory server store",
  "Documents: PDF, Word, HTML, mails, calendars, Markdown, text, CSV, JSON, notebooks",
  "Notes of Obsidian: the vault as a zip",
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

async function take(entries) {
  const place = h("div", null, waiting("Importing …"));
  const done = ask({ title: "Import", body: [place], confirm: "Close", cancel: null, deed: () => null });
  const files = [];
  for (const entry of entries) await collect(entry, files);
  fill(place, await imported(files.filter(wanted)));
  await done;
  again();
}

/** All files of what was dropped, with their paths. */
async function collect(entry, files) {
  if (entry instanceof File) files.push({ name: entry.name, file: entry });
  else if (entry.isFile) files.push({ name: entry.fullPath.slice(1), file: await new Promise((give, fail) => { entry.file(give, fail); }) });
  else if (wanted({ name: entry.fullPath.slice(1) })) {
    const reader = entry.createReader();
    const next = () => new Promise((give, fail) => { reader.readEntries(give, fail); });
    // A reader gives a hundred at a time.
    for (let part = await next(); part.length; part = await next()) for (const inner of part) await collect(inner, files);
  }
}

/** Whether a file is no hidden one and none of a program: such are many, and would be left out. */
function wanted({ name }) {
  return !/(^|\/)(\.[^/]+|node_modules|__pycache__)(\/|$)/.test(name);
}

/** Import each file; what came of all. */
async function imported(files) {
  const reports = [];
  const refused = [];
  const place = document.querySelector("#dialog .outcome, #dialog .waiting");
  for (const [number, { name, file }] of files.entries()) {
    if (place && files.length > 1) fill(place, waiting(`Importing ${number + 1} of ${files.length}: ${name}`));
    else if (place) fill(place, waiting(`Importing ${name} …`));
    try {
      reports.push({ name, ...await api.importFile(file, name) });
    } catch (error) {
      if (!(error instanceof Problem) || error.status === 0) throw error;
      refused.push([name, error.fields[0]?.replace(/^\w+: /, "") ?? (error.detail || error.title)]);
    }
  }
  // What came in is found by its words from here on, by its meaning once this is done.
  finishVectors();
  return told(files, reports, refused);
}

function told(files, reports, refused) {
  const sum = (of) => reports.reduce((total, report) => total + of(report), 0);
  const messages = sum((one) => one.added);
  const memories = sum((one) => one.memories_added + one.memories_changed + one.notes_added);
  const documents = sum((one) => one.documents_added);
  const calls = sum((one) => one.tool_calls);
  const came = [messages ? `${many(messages, "message")} in ${many(sum((one) => (one.added ? one.conversations : 0)), "conversation")}` : null,
    memories ? many(memories, "memory", "memories") : null, documents ? many(documents, "document") : null, calls ? many(calls, "tool call") : null].filter(Boolean).join(", ");
  const inside = reports.filter((one) => one.files).length;
  const nothing = inside ? "nothing new in it" : "nothing of it was stored";
  const head = files.length === 1 ? `${files[0].name}: ${came || nothing}.`
    : `${inside} of ${many(files.length, "file")} ${came || !inside ? "are in" : "were there already: nothing is new"}.`;
  announce(`${head} ${came}`);
  const left = reports.flatMap((one) => Object.entries(one.left_out_files).flatMap(([kind, names]) => names.map((name) => [name, kind])));
  const broken = [...refused, ...reports.flatMap((one) => one.problems.map((problem) => [one.name, place(problem)]))];
  const remarks = reports.flatMap((one) => one.remarks.map((remark) => [one.name, place(remark)]));
  const parts = {};
  for (const one of reports) for (const [kind, count] of Object.entries(one.left_out)) if (!one.left_out_files[kind]) parts[kind] = (parts[kind] ?? 0) + count;
  return h("div", { class: "came" }, h("p", null, h("strong", { dir: "auto" }, head)),
    files.length > 1 && came ? h("p", null, `${came}.`) : null,
    lines("Could not be read", broken, true), lines("Left out", left, true), lines("Remarks", remarks, false),
    lines("Left out within files", Object.entries(parts).map(([kind, count]) => [kind, String(count)]), false));
}

function place({ place: where, reason }) {
  return where && where !== "file" ? `${where}: ${reason}` : reason;
}

/** Names with a reason each, a line each. */
function lines(title, rows, open) {
  return rows.length ? h("details", { open }, h("summary", null, `${title}: ${rows.length}`),
    h("ul", { class: "plain tight" }, rows.slice(0, SHOWN).map(([name, reason]) => h("li", { dir: "auto" }, h("b", null, name), ": ", h("span", { class: "faint" }, reason))),
      rows.length > SHOWN ? h("li", null, `and ${rows.length - SHOWN} more`) : null)) : null;
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
      h("li", null, h("h3", null, "Bring your chats and files"), h("p", null, "Drop an export of ChatGPT, Claude.ai or another program anywhere on this page, as it came, or choose it. Documents and folders, too:"),
        h("p", null, h("button", { type: "button", class: "primary", onclick: choose }, "Choose files")),
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
