// Notes about projects, and the diary: what was decided, and what was done in the last sessions.

import { api } from "../api.js";
import { add, fill, firstWords, h, many, saidLong, to, when } from "../dom.js";
import { ask, badge, choice, empty, field, heading, into, meta, paged, refresh, row, trouble, waiting } from "../parts.js";
import { menu } from "../menu.js";
import { toast } from "../toast.js";
import { typeWord } from "../words.js";

const LOOKED_AT = 500;
const TABS = [["", "Notes"], ["diary", "Diary"]];
const KINDS = [["note", "Note"], ["decision", "Decision"], ["constraint", "Constraint"], ["preference", "Preference"], ["fact", "Fact"], ["blocker", "Blocker"], ["code_insight", "About the code"]];

export const view = {
  title: "Notes",
  show(main, route, signal) {
    if (route.rest[0]) {
      one(main, route.rest[0], signal);
      return null;
    }
    const tabs = h("nav", { "aria-label": "Notes or diary", class: "tabs" });
    const place = h("div", null);
    const words = h("input", { type: "search", placeholder: "Words that stand in it", autocomplete: "off" });
    const begin = h("button", { type: "button", class: "primary" });
    add(main, heading("Notes", begin),
      h("p", { class: "lead" }, "What holds for a project, and what was done in its sessions. Agents get them by themselves where they matter."),
      tabs, h("div", { class: "controls" }, field("Narrow the list", words)), place);
    let shown = "";
    let all = [];
    let projects = new Map();
    const draw = () => {
      const wanted = words.value.toLowerCase();
      const fits = all.filter((entry) => `${entry.text ?? entry.summary} ${entry.kind ?? ""} ${entry.subject ?? ""} ${entry.tags.join(" ")}`.toLowerCase().includes(wanted));
      const name = shown === "diary" ? ["entry", "entries"] : ["note", "notes"];
      fill(place, fits.length ? [h("p", { class: "summary" }, many(fits.length, ...name)), paged(fits, (entries) => entries.map((entry) => rowOf(entry, projects)))]
        : empty(all.length ? "No entry has these words." : shown === "diary" ? "The diary is empty." : "There are no notes yet.", all.length ? "Try fewer or other words." : shown === "diary" ? "Agents write it at the end of a session." : "Take one here, or let an agent do it."));
    };
    const fetched = () => into(place, signal, async () => {
      const listed = (shown === "diary" ? api.diary : api.notes).call(api, { limit: LOOKED_AT }, signal);
      const [entries, known] = await Promise.all([listed, api.projects(signal)]);
      projects = new Map(known.map((one) => [one.id, one.name]));
      all = entries;
      draw();
      return [...place.childNodes];
    }, fetched);
    words.oninput = draw;
    const update = (next) => {
      if (next.rest[0]) return false;
      shown = next.parameters.get("show") === "diary" ? "diary" : "";
      begin.textContent = shown === "diary" ? "Write an entry" : "Take a note";
      begin.onclick = shown === "diary" ? write : note;
      fill(tabs, TABS.map(([value, text]) => h("a", { href: to(["notes"], { show: value }), "aria-current": value === shown ? "page" : null }, text)));
      if (!place.childElementCount) fill(place, waiting());
      fetched();
      return true;
    };
    update(route);
    return update;
  },
};

function rowOf(entry, projects) {
  const text = (entry.text ?? entry.summary).trim().replace(/\s+/g, " ");
  return row({
    href: to(["notes", entry.id]), title: entry.subject || text, text: entry.subject ? text : null,
    marks: entry.importance > 3 ? [badge(entry.importance === 5 ? "very important" : "important", "warn")] : [],
    facts: [entry.kind ? badge(typeWord(entry.kind), "kind") : null, entry.project ? projects.get(entry.project) ?? null : null, when(entry.created_at, { day: true })],
    actions: menu(`Actions: ${text.slice(0, 40)}`, [{ text: "Open", href: to(["notes", entry.id]) }, { text: "Forget", does: () => forget(entry), danger: true }]),
  });
}

function one(main, id, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/notes" }, "All notes")), place);
  const fetched = () => into(place, signal, async () => {
    const entry = await api.memory(id, signal);
    const title = firstWords(entry.text);
    const forgetting = h("button", { type: "button", class: "quiet danger", onclick: () => forget(entry) }, "Forget");
    return [heading(title.name, forgetting), h("div", { class: "card" }, title.whole ? null : saidLong(entry.text, 10000),
      meta(badge(typeWord(entry.type), "kind"), when(entry.created_at), entry.tags.map((tag) => badge(tag, "tag"))))];
  }, fetched);
  fetched();
}

async function note() {
  const done = await ask({
    title: "Take a note",
    body: [field("Text", h("textarea", { name: "text", rows: 4, required: true, dir: "auto" }), "Name the files and symbols that it is about: it is linked to them"),
      field("Kind", choice({ name: "kind" }, KINDS, "note")),
      field("Project", h("input", { name: "project", autocomplete: "off", spellcheck: "false" }), "Name (blank for all)")],
    confirm: "Save it",
    deed: async (form) => {
      const data = Object.fromEntries(new FormData(form));
      await api.observe({ ...data, project: data.project.trim() || null });
    },
  });
  if (done) refresh();
}

async function write() {
  const done = await ask({
    title: "Write an entry of the diary",
    body: [field("What was done", h("textarea", { name: "summary", rows: 4, required: true, dir: "auto" })),
      field("What it is about", h("input", { name: "subject", autocomplete: "off" }))],
    confirm: "Save it",
    deed: async (form) => {
      const data = Object.fromEntries(new FormData(form));
      await api.writeDiary({ ...data, subject: data.subject.trim() || null });
    },
  });
  if (done) refresh();
}

/** Forget at once; the toast takes it back. */
async function forget(entry) {
  try {
    await api.forget(entry.id, { soft: true });
  } catch (error) {
    await ask({ title: "It was not forgotten", body: trouble(error), confirm: "Close" });
    return;
  }
  toast(`Forgotten: “${firstWords(entry.text ?? entry.summary).name}”.`, { undo: () => api.undoForget(entry.id) });
  if (location.hash.startsWith("#/notes/")) location.hash = "#/notes";
  else refresh();
}
