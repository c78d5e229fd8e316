// Memories: list, filter, edit, forget; what a path held before.

import { api } from "../api.js";
import { add, announce, fill, h, many, said, saidLong, to, when } from "../dom.js";
import { ask, badge, choice, empty, field, heading, into, meta, trouble, waiting } from "../parts.js";
import { filtersOf } from "./search.js";

const PAGE = 30;
const TYPES = [["", "Any type"], ["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"]];

export const view = {
  title: "Memories",
  show(main, route, signal) {
    if (route.rest[0]) {
      one(main, route.rest[0], signal);
      return null;
    }
    return list(main, route, signal);
  },
};

function list(main, route, signal) {
  const place = h("div", null);
  const form = h("form", { class: "controls" },
    field("Type", choice({ name: "type" }, TYPES, "")),
    field("Category", h("input", { name: "category", autocomplete: "off" })),
    field("Tag", h("input", { name: "tag", autocomplete: "off" })),
    field("Path begins with", h("input", { name: "path", autocomplete: "off" })),
    h("button", { type: "submit" }, "Filter"));
  add(main, heading("Memories", h("a", { class: "button quiet", href: "#/contradictions" }, "Contradictions"), h("button", { type: "button", class: "primary", onclick: create }, "Remember something")), form, place);
  const fetched = () => into(place, signal, () => page(form, signal), fetched);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = to(["memories"], Object.fromEntries(new FormData(form)));
    if (asked === location.hash) fetched();
    else location.hash = asked;
  });
  const update = (next) => {
    if (next.rest[0]) return false;
    for (const control of form.elements) {
      if (control.name) control.value = next.parameters.get(control.name) ?? "";
    }
    if (!place.childElementCount) fill(place, waiting());
    fetched();
    return true;
  };
  update(route);
  return update;
}

async function page(form, signal) {
  const filters = filtersOf(Object.fromEntries(new FormData(form)));
  const query = { limit: PAGE, filters: filters && JSON.stringify(filters) };
  const rows = h("ul", { class: "plain memories" });
  const told = h("p", { class: "summary" });
  const foot = h("div", null);
  let shown = 0;
  const more = async (cursor) => {
    const found = await api.memories({ ...query, cursor }, signal);
    add(rows, found.items.map((record) => h("li", null, card(record))));
    shown += found.items.length;
    told.textContent = found.cursor ? `The first ${many(shown, "memory", "memories")}` : many(shown, "memory", "memories");
    announce(told.textContent);
    fill(foot, found.cursor ? h("button", { type: "button", onclick: (event) => {
      event.target.disabled = true;
      more(found.cursor).catch((error) => fill(foot, trouble(error)));
    } }, "Show more") : null);
  };
  await more(null);
  return shown ? [told, rows, foot] : empty(filters ? "No memory fits these filters." : "Nothing is remembered here yet.",
    filters ? null : "Remember something here, or let an agent do it.");
}

function state(record) {
  if (record.forgotten) return badge("out of recall", "bad");
  if (record.valid_to) return badge("was replaced", "warn");
  if (record.expires_at && new Date(record.expires_at) < new Date()) return badge("expired", "warn");
  return null;
}

function card(record) {
  return h("article", { class: "card memory" },
    h("header", null, h("a", { class: "where", href: to(["memories", record.id]) }, record.path || record.category || "Memory"),
      badge(record.type), state(record)),
    saidLong(record.text, 600),
    meta(when(record.created_at), record.category && record.path ? badge(record.category) : null,
      record.tags.map((tag) => badge(tag, "tag")),
      record.reinforce_count ? badge(`said ${record.reinforce_count + 1} times`) : null,
      record.expires_at ? ["until ", when(record.expires_at)] : null),
    deeds(record));
}

function deeds(record) {
  const name = record.text.slice(0, 40);
  return h("div", { class: "actions" },
    h("button", { type: "button", class: "quiet small", "aria-label": `Edit: ${name}`, onclick: () => edit(record) }, "Edit"),
    record.path ? h("a", { class: "button quiet small", "aria-label": `History of ${record.path}`, href: to(["memories", record.id]) }, "History") : null,
    h("button", { type: "button", class: "quiet small danger", "aria-label": `Forget: ${name}`, onclick: () => forget(record) }, "Forget"));
}

function one(main, id, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), place);
  const fetched = () => into(place, signal, async () => {
    const record = await api.memory(id, signal);
    const before = record.path ? await api.history(record.path, signal) : [];
    return [heading(record.path || "Memory"), h("div", { class: "card" }, saidLong(record.text, 10000), facts(record), deeds(record)),
      record.path ? [h("h2", null, "What this path held"), timeline(before, record.id)] : null];
  }, fetched);
  fetched();
}

function facts(record) {
  const turn = record.conversation_id
    ? h("a", { href: to(["threads", record.conversation_id], { turn: record.turn_index }) }, `${record.conversation_id}${record.turn_index === null ? "" : ` #${record.turn_index}`}`)
    : null;
  const rows = [
    ["Type", record.type], ["Category", record.category], ["Tags", record.tags.length ? record.tags.map((tag) => badge(tag, "tag")) : null],
    ["Since", when(record.valid_from)], ["Until", record.valid_to ? when(record.valid_to) : null],
    ["Expires", record.expires_at ? when(record.expires_at) : null],
    ["Said again", record.reinforce_count ? [`${record.reinforce_count} times, lastly `, when(record.last_reinforced)] : null],
    ["Sources", record.sources?.length ? record.sources.join(", ") : null], ["From the turn", turn],
    ["From the memory", link(record.parent)], ["Replaces", link(record.supersedes)], ["Replaced by", link(record.superseded_by)],
    ["Payload", record.payload ? said(JSON.stringify(record.payload, null, 2), "pre") : null], ["Id", h("code", { class: "id" }, record.id)],
  ];
  return h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function link(id) {
  return id ? h("a", { href: to(["memories", id]) }, h("code", { class: "id" }, id)) : null;
}


function timeline(records, current = null) {
  if (!records.length) return empty("Nothing was held here.");
  return h("ol", { class: "plain timeline" }, records.map((record) => h("li", { class: "card", "aria-current": record.id === current ? "true" : null },
    meta(when(record.valid_from), record.valid_to ? ["until ", when(record.valid_to)] : badge("holds now", "good"),
      state(record)), saidLong(record.text, 400))));
}

function editor(record) {
  const until = record?.expires_at ? new Date(record.expires_at) : null;
  const local = until ? new Date(until.getTime() - until.getTimezoneOffset() * 60000).toISOString().slice(0, 16) : "";
  return [
    field("Text", h("textarea", { name: "text", rows: 5, required: true, dir: "auto", value: record?.text ?? "" })),
    record ? null : field("Type", choice({ name: "type" }, TYPES.slice(1), "semantic")),
    record ? null : field("Path", h("input", { name: "path", autocomplete: "off", spellcheck: "false" }), "What it is the value of, as user.editor; a new value takes the old one's place"),
    field("Category", h("input", { name: "category", autocomplete: "off", value: record?.category ?? "" })),
    field("Tags", h("input", { name: "tags", autocomplete: "off", value: record?.tags.join(", ") ?? "" }), "With commas between them"),
    field("Expires", h("input", { name: "expires", type: "datetime-local", value: local }), "Empty: never"),
  ];
}

function written(form) {
  const data = Object.fromEntries(new FormData(form));
  const tags = data.tags.split(",").map((tag) => tag.trim()).filter(Boolean);
  return {
    ...data, tags, category: data.category.trim() || null,
    expires_at: data.expires ? new Date(data.expires).toISOString() : null, expires: undefined,
  };
}

async function create() {
  const kept = await ask({
    title: "Remember something",
    body: editor(null),
    confirm: "Remember it",
    deed: async (form) => {
      const data = written(form);
      return outcome(await api.remember({ ...data, path: data.path.trim() || null }));
    },
  });
  if (kept) refresh();
}

async function edit(record) {
  const kept = await ask({
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
  if (kept) refresh();
}

function outcome(done) {
  const words = { added: "It is remembered.", reinforced: "It was known already, and counts for more now.",
    superseded: "It is the value now; the one before is in the history.", updated: "It was changed." };
  return [h("p", null, words[done.action] ?? done.action),
    done.redacted?.length ? h("div", { class: "note warn" }, `Taken out before it was stored: ${done.redacted.join(", ")}.`) : null,
    done.conflicts?.length ? h("div", { class: "note warn" }, h("p", null, "What is kept says otherwise:"),
      h("ul", null, done.conflicts.map((one) => h("li", null, when(one.created_at), " ", said(one.text, "span")))),
      h("p", null, h("a", { href: "#/contradictions", onclick: () => document.getElementById("dialog").close() }, "Say what holds"))) : null,
    done.related?.length ? h("p", { class: "faint" }, `${many(done.related.length, "memory", "memories")} close to it stay as they are.`) : null];
}

async function forget(record) {
  const gone = await ask({
    title: "Forget this memory?",
    body: [h("blockquote", null, saidLong(record.text, 300)),
      h("fieldset", { class: "ways" }, h("legend", null, "How"),
        h("label", { class: "tick" }, h("input", { type: "radio", name: "how", value: "hard", checked: true }),
          h("span", null, h("b", null, "For good. "), "The words, their history, and whatever was made of them: vectors, answers, traces.")),
        h("label", { class: "tick" }, h("input", { type: "radio", name: "how", value: "soft" }),
          h("span", null, h("b", null, "Out of recall. "), "It is not found again, but its history stays.")))],
    confirm: "Forget it",
    danger: true,
    deed: async (form) => forgotten(await api.forget(record.id, new FormData(form).get("how") === "soft")),
  });
  if (gone) {
    if (location.hash.startsWith("#/memories/")) location.hash = "#/memories";
    else refresh();
  }
}

function forgotten(done) {
  const sources = done.surviving ?? [];
  return [h("p", null, h("b", null, many(done.count, "memory", "memories")), done.count === 1 ? " was forgotten." : " were forgotten, its versions counted."),
    sources.length ? h("div", { class: "note warn" }, h("p", null, "The words still stand in:"),
      h("ul", null, sources.map((one) => h("li", null, survivor(one))), done.more ? h("li", null, `and in ${done.more} more`) : null)) : h("p", { class: "faint" }, "Nothing was found here that still holds its words.")];
}

function survivor(one) {
  if (one.kind === "turn" || one.index !== null) {
    return h("a", { href: to(["threads", one.id], { turn: one.index }), onclick: () => document.getElementById("dialog").close() }, `${one.id} #${one.index}`);
  }
  return `${one.kind} ${one.id}`;
}

function refresh() {
  dispatchEvent(new CustomEvent("anaphora:again"));
}
