// What can be done with a memory: edit, pin, forget, each with its way back.

import { api } from "./api.js";
import { h, many, said, saidLong, to, when } from "./dom.js";
import { ask, badge, choice, field, refresh, trouble } from "./parts.js";
import { menu } from "./menu.js";
import { conversationTitle, fetchTitles } from "./titles.js";
import { toast } from "./toast.js";
import { TYPE_CHOICES } from "./words.js";

/** The mark of a memory that is not simply there; null for one that is. */
export function stateOf(record) {
  if (record.forgotten) return badge("not searched", "bad");
  if (record.valid_to) return badge("was replaced", "warn");
  if (record.expires_at && new Date(record.expires_at) < new Date()) return badge("expired", "warn");
  return null;
}

function deedsOf(record) {
  return [
    { text: "Edit", does: () => edit(record) },
    pinning(record),
    { text: "Forget", does: () => forget(record), danger: true },
    { text: "Delete for good …", does: () => remove(record), danger: true },
  ].filter(Boolean);
}

/** All of it behind one button, for a row. */
export function actionsOf(record) {
  const opening = { text: record.path ? "Open, with its history" : "Open", href: to(["memories", record.id]) };
  return menu(`Actions: ${record.text.slice(0, 40)}`, [opening, ...deedsOf(record)]);
}

/** The same as buttons, for the memory's own page. */
export function buttonsOf(record) {
  return deedsOf(record).map(({ text, does, href, danger }) => href ? h("a", { class: "button quiet", href }, text)
    : h("button", { type: "button", class: danger ? "quiet danger" : "quiet", onclick: does }, text));
}

function pinning(record) {
  if (record.valid_to || record.forgotten) return null;
  if (record.pin > 0) return { text: "Pinned: see its place", href: "#/core" };
  return { text: "Always include", does: () => pin(record) };
}

async function pin(record) {
  try {
    const { id } = await api.pin(record.id);
    toast("It is included in every session now.", { undo: () => api.unpin(id), more: h("a", { href: "#/core" }, "Its place") });
    refresh();
  } catch (error) {
    await ask({ title: "It was not included", body: trouble(error), confirm: "Close" });
  }
}

function editor(record) {
  const until = record?.expires_at ? new Date(record.expires_at) : null;
  const local = until ? new Date(until.getTime() - until.getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "";
  const more = [
    record ? null : field("Kind", choice({ name: "type" }, TYPE_CHOICES, "semantic")),
    record ? null : field("Name", h("input", { name: "path", autocomplete: "off", spellcheck: "false" }), "Such as user.editor: a new value of a name replaces the old one, which stays in its history"),
    field("Category", h("input", { name: "category", autocomplete: "off", value: record?.category ?? "" })),
    field("Tags", h("input", { name: "tags", autocomplete: "off", value: record?.tags.join(", ") ?? "" }), "Separated by commas"),
    field("Expires", h("input", { name: "expires", type: "datetime-local", value: local }), "Empty: never"),
  ];
  return [field("Text", h("textarea", { name: "text", rows: 5, required: true, dir: "auto", value: record?.text ?? "" })),
    record ? more : h("details", null, h("summary", null, "Name, kind, tags, expiry"), more)];
}

function written(form) {
  const data = Object.fromEntries(new FormData(form));
  const tags = data.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  return {
    ...data, tags, category: data.category.trim() || null,
    expires_at: data.expires ? new Date(data.expires).toISOString() : null, expires: undefined,
  };
}

/** Ask for something to remember. */
export async function create() {
  const stored = await ask({
    title: "Remember something",
    body: editor(null),
    confirm: "Remember it",
    deed: async (form) => {
      const data = written(form);
      return outcome(await api.remember({ ...data, path: data.path.trim() || null }));
    },
  });
  if (stored) refresh();
}

async function edit(record) {
  const stored = await ask({
    title: "Edit the memory",
    body: editor(record),
    confirm: "Save",
    deed: async (form) => {
      const data = written(form);
      const changes = {};
      if (data.text !== record.text.replaceAll("\r\n", "\n").replaceAll("\r", "\n")) changes.text = data.text;
      if (data.category !== record.category) changes.category = data.category;
      if (data.tags.join() !== record.tags.join()) changes.tags = data.tags;
      const before = record.expires_at ? new Date(record.expires_at).toISOString().slice(0, 16) : null;
      if ((data.expires_at?.slice(0, 16) ?? null) !== before) changes.expires_at = data.expires_at;
      if (!Object.keys(changes).length) return h("p", null, "Nothing was changed.");
      return outcome(await api.update(record.id, changes));
    },
  });
  if (stored) refresh();
}

/** What came of it: in the dialog where there is something to read, else in the toast. */
function outcome(done) {
  const words = { added: "It is remembered.", reinforced: "It was known already, and counts for more now.",
    superseded: "It is the value now; the one before is in the history.", updated: "It was changed." };
  const notes = [done.redacted?.length ? h("div", { class: "note warn" }, `Taken out before it was stored: ${done.redacted.join(", ")}.`) : null,
    done.notices?.length ? h("div", { class: "note warn" }, done.notices.map((notice) => h("p", null, said(`Note: ${notice}.`, "span")))) : null,
    done.conflicts?.length ? h("div", { class: "note warn" }, h("p", null, "A memory says otherwise:"),
      h("ul", null, done.conflicts.map((memory) => h("li", null, when(memory.created_at), " ", said(memory.text, "span")))),
      h("p", null, h("a", { href: "#/contradictions", onclick: () => document.getElementById("dialog").close() }, "Decide what holds"))) : null].filter(Boolean);
  const text = words[done.action] ?? done.action;
  if (notes.length) return [h("p", null, text), notes];
  toast(text);
  return null;
}

/** Forget at once; the toast takes it back, and names what else holds the words. */
async function forget(record, how = { undoable: true }) {
  let done;
  try {
    done = await api.forget(record.id, how);
  } catch (error) {
    await ask({ title: "It was not forgotten", body: trouble(error), confirm: "Close" });
    return;
  }
  await showForgotten(record, done, !how.undoable && !how.soft ? "Deleted" : how.soft ? "No longer searched" : "Forgotten", how.undoable || how.soft ? () => api.undoForget(record.id) : null);
  if (location.hash.startsWith("#/memories/")) location.hash = "#/memories";
  else leaveRow(record);
}

async function showForgotten(record, done, word, undo) {
  const sources = done.surviving ?? [];
  await fetchTitles(sources.map((source) => source.id));
  const name = record.text.trim().replace(/\s+/g, " ");
  const versions = done.count > 1 ? ` with its history, ${many(done.count, "memory", "memories")}` : "";
  toast(`${word}${versions}: “${name.length > 60 ? `${name.slice(0, 59)}…` : name}”.`, {
    undo,
    more: sources.length ? h("span", null, "The words are also in ", sources.slice(0, 3).map((source, at) => [at ? ", " : "", survivor(source)]),
      sources.length + done.more > 3 ? ` and ${sources.length + done.more - 3} more places` : null, ".") : null,
  });
}

/** Take the row of a memory that is gone out of its list; the focus goes to the next one. */
function leaveRow(record) {
  const pick = [...document.querySelectorAll(".memories .pick")].find((box) => box.value === record.id);
  const gone = pick?.closest("li");
  const next = gone && (gone.nextElementSibling ?? gone.previousElementSibling);
  if (!next) {
    refresh();
    return;
  }
  gone.remove();
  dispatchEvent(new CustomEvent("anaphora:left"));
  next.querySelector("a.where").focus();
}

function survivor(source) {
  if (source.kind === "turn" || source.index !== null) {
    return h("a", { dir: "auto", href: to(["conversations", source.id], { turn: source.index }) }, `${conversationTitle(source.id)}, message ${source.index + 1}`);
  }
  if (source.kind === "tool_call") return h("a", { dir: "auto", href: to(["conversations", source.id]) }, `a tool call in ${conversationTitle(source.id)}`);
  return `${source.kind.replaceAll("_", " ")} ${source.id}`;
}

function way(value, name, what, checked = false) {
  return h("label", { class: "tick" }, h("input", { type: "radio", name: "how", value, checked }), h("span", null, h("b", null, name), what));
}

async function remove(record) {
  let how = "now";
  const sure = await ask({
    title: "Delete this memory?",
    body: [h("blockquote", null, saidLong(record.text, 300)),
      h("fieldset", { class: "ways" }, h("legend", null, "How"),
        way("now", "For good, now. ", "Its words, its history and what was made of them are erased. This cannot be undone.", true),
        way("soft", "Only from search. ", "It is no longer found; its words and history stay."))],
    confirm: "Delete it",
    danger: true,
    deed: (form) => { how = new FormData(form).get("how"); },
  });
  if (sure) await forget(record, { soft: how === "soft" });
}
