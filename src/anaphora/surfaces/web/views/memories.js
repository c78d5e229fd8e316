// Memories: list, filter, edit, forget; what a path held before.

import { api } from "../api.js";
import { add, announce, fill, firstWords, h, many, said, saidLong, to, when } from "../dom.js";
import { ask, badge, choice, empty, field, heading, into, meta, offerUndo, refresh, trouble, waiting } from "../parts.js";

const PAGE = 30;
const TYPES = [["", "Any type"], ["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"]];

/** The filter language's form of the simple controls; null without any. */
function filtersOf({ type, category, tag, path }) {
  const all = [];
  if (type) all.push({ type });
  if (category) all.push({ category });
  if (tag) all.push({ tags: { contains: tag } });
  if (path) all.push({ path: { startswith: path } });
  return all.length ? { AND: all } : null;
}

/** What a memory is called: its path, else its first words. */
function titleOf(record) {
  return record.path || firstWords(record.text).name;
}

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
  const form = h("form", { class: "search", role: "search" },
    h("div", { class: "ask" },
      h("label", { class: "grow" }, h("span", { class: "visually-hidden" }, "Text"),
        h("input", { type: "search", name: "q", placeholder: "Search the memories", autocomplete: "off", enterkeyhint: "search" })),
      h("button", { type: "submit" }, "Search")),
    h("details", { class: "more" }, h("summary", null, "Filters"),
      h("div", { class: "controls" },
        field("Type", choice({ name: "type" }, TYPES, "")),
        field("Category", h("input", { name: "category", autocomplete: "off" })),
        field("Tag", h("input", { name: "tag", autocomplete: "off" })),
        field("Path begins with", h("input", { name: "path", autocomplete: "off" })),
        field("As of", h("input", { type: "date", name: "asof" }), "With a search: what was held true then"))));
  add(main, heading("Memories", h("a", { class: "button quiet", href: "#/core" }, "Core block"), h("a", { class: "button quiet", href: "#/documents" }, "Documents"), h("a", { class: "button quiet", href: "#/contradictions" }, "Contradictions"), h("button", { type: "button", class: "primary", onclick: create }, "Remember something")), form, place);
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
    if (["type", "category", "tag", "path", "asof"].some((name) => next.parameters.get(name))) form.querySelector("details").open = true;
    if (!place.childElementCount) fill(place, waiting());
    fetched();
    return true;
  };
  update(route);
  return update;
}

async function page(form, signal) {
  const asked = Object.fromEntries(new FormData(form));
  const filters = filtersOf(asked);
  if (asked.q.trim()) return searched(asked, filters, signal);
  const total = filters ? null : (await api.stats(signal)).memories;
  const query = { limit: PAGE, filters: filters && JSON.stringify(filters) };
  const rows = h("ul", { class: "plain memories" });
  const bulk = bulkOf(rows);
  const told = h("p", { class: "summary" });
  const foot = h("div", null);
  let shown = 0;
  const more = async (cursor) => {
    const found = await api.memories({ ...query, cursor }, signal);
    add(rows, found.items.map((record) => h("li", null, card(record, bulk.changed))));
    bulk.changed();
    shown += found.items.length;
    const whole = many(total ?? shown, "memory", "memories");
    told.textContent = !found.cursor ? many(shown, "memory", "memories") : total === null ? `The first ${many(shown, "memory", "memories")}` : `${whole}, the last changed first; ${shown} shown`;
    announce(told.textContent);
    fill(foot, found.cursor ? h("button", { type: "button", onclick: (event) => {
      event.target.disabled = true;
      more(found.cursor).catch((error) => fill(foot, trouble(error)));
    } }, "Show more") : null);
  };
  await more(null);
  return shown ? [told, bulk.bar, rows, foot] : empty(filters ? "No memory fits these filters." : "Nothing is remembered here yet.",
    filters ? null : "Remember something here, or let an agent do it.");
}

/** What a search finds among the memories, best first. */
async function searched(asked, filters, signal) {
  const recall = await api.recall({
    query: asked.q, top_k: PAGE, filters, as_of: asked.asof ? `${asked.asof}T23:59:59Z` : null, min_confidence: 0,
  }, signal);
  const rows = h("ul", { class: "plain memories" });
  const bulk = bulkOf(rows);
  const records = await Promise.all(recall.hits.map((hit) => api.memory(hit.id, signal).catch(() => null)));
  add(rows, records.filter(Boolean).map((record) => h("li", null, card(record, bulk.changed))));
  const told = recall.hits.length ? `${many(recall.hits.length, "memory", "memories")}, the best first` : "";
  announce(told || "Nothing was found");
  return recall.hits.length ? [h("p", { class: "summary" }, told), bulk.bar, rows] : empty("No memory is about this.", "Other words or fewer filters may find some.");
}

/** The bar over a list in which several can be chosen. */
function bulkOf(rows) {
  const chosen = () => [...rows.querySelectorAll("input.pick:checked")];
  const all = h("input", { type: "checkbox", onchange: () => {
    for (const one of rows.querySelectorAll("input.pick")) one.checked = all.checked;
    changed();
  } });
  const go = h("button", { type: "button", class: "small danger quiet", onclick: () => forgetMany(chosen().map((one) => one.value)) });
  const bar = h("div", { class: "bulk" }, h("label", { class: "tick" }, all, h("span", null, "Choose all that are shown")), go);
  const changed = () => {
    const number = chosen().length;
    go.hidden = number === 0;
    go.textContent = `Forget ${many(number, "memory", "memories")}`;
    all.checked = number > 0 && number === rows.querySelectorAll("input.pick").length;
  };
  changed();
  return { bar, changed };
}

async function forgetMany(ids) {
  const gone = await ask({
    title: `Forget ${many(ids.length, "memory", "memories")}?`,
    body: [h("p", null, "They are found no more, and erased for good after a day. Until then it can be undone.")],
    confirm: "Forget them",
    danger: true,
    deed: async () => { for (const id of ids) await api.forget(id, { undoable: true }); },
  });
  if (!gone) return;
  offerUndo(`${many(ids.length, "memory", "memories")} forgotten; erased in a day.`, async () => { for (const id of ids) await api.undoForget(id); });
  refresh();
}

function state(record) {
  if (record.forgotten) return badge("out of recall", "bad");
  if (record.valid_to) return badge("was replaced", "warn");
  if (record.expires_at && new Date(record.expires_at) < new Date()) return badge("expired", "warn");
  return null;
}

function card(record, picked) {
  return h("article", { class: "card memory" },
    h("header", null, picked ? h("input", { type: "checkbox", class: "pick", value: record.id, "aria-label": `Choose: ${record.text.slice(0, 40)}`, onchange: picked }) : null,
      h("a", { class: "where", dir: "auto", href: to(["memories", record.id]) }, titleOf(record)),
      badge(record.type), state(record)),
    record.path || !firstWords(record.text).whole ? saidLong(record.text, 600) : null,
    meta(when(record.created_at), record.category ? badge(record.category) : null,
      record.tags.map((tag) => badge(tag, "tag")),
      record.reinforce_count ? badge(`said ${record.reinforce_count + 1} times`) : null,
      record.expires_at ? ["until ", when(record.expires_at)] : null),
    deeds(record));
}

function deeds(record) {
  const name = record.text.slice(0, 40);
  return h("div", { class: "actions" },
    h("button", { type: "button", class: "quiet small", "aria-label": `Edit: ${name}`, onclick: () => edit(record) }, "Edit"),
    pinning(record, name),
    record.path ? h("a", { class: "button quiet small", "aria-label": `History of ${record.path}`, href: to(["memories", record.id]) }, "History") : null,
    h("button", { type: "button", class: "quiet small danger", "aria-label": `Forget: ${name}`, onclick: () => forget(record) }, "Forget"));
}

function pinning(record, name) {
  if (record.valid_to || record.forgotten) return null;
  if (record.pin > 0) return h("a", { class: "button quiet small", "aria-label": `In the core block: ${name}`, href: "#/core" }, "Pinned");
  return h("button", { type: "button", class: "quiet small", "aria-label": `Pin: ${name}`, onclick: () => pin(record) }, "Pin");
}

async function pin(record) {
  try {
    await api.pin(record.id);
    location.hash = "#/core";
  } catch (error) {
    await ask({ title: "It was not pinned", body: trouble(error), confirm: "Close" });
  }
}

function one(main, id, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), place);
  const fetched = () => into(place, signal, async () => {
    const record = await api.memory(id, signal);
    const before = record.path ? await api.history(record.path, signal) : [];
    return [heading(titleOf(record)), h("div", { class: "card" }, saidLong(record.text, 10000), facts(record), deeds(record)),
      record.path ? [h("h2", null, "What this path held"), timeline(before, record.id)] : null];
  }, fetched);
  fetched();
}

function facts(record) {
  const turn = record.conversation_id
    ? h("a", { href: to(["conversations", record.conversation_id], { turn: record.turn_index }) }, `${record.conversation_id}${record.turn_index === null ? "" : ` #${record.turn_index}`}`)
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
    done.notices?.length ? h("div", { class: "note warn" }, done.notices.map((notice) => h("p", null, said(`Note: ${notice}.`, "span")))) : null,
    done.conflicts?.length ? h("div", { class: "note warn" }, h("p", null, "What is kept says otherwise:"),
      h("ul", null, done.conflicts.map((one) => h("li", null, when(one.created_at), " ", said(one.text, "span")))),
      h("p", null, h("a", { href: "#/contradictions", onclick: () => document.getElementById("dialog").close() }, "Say what holds"))) : null,
    done.related?.length ? h("p", { class: "faint" }, `${many(done.related.length, "memory", "memories")} close to it stay as they are.`) : null];
}

function way(value, name, what, checked = false) {
  return h("label", { class: "tick" }, h("input", { type: "radio", name: "how", value, checked }), h("span", null, h("b", null, name), what));
}

async function forget(record) {
  let how = "undoable";
  const gone = await ask({
    title: "Forget this memory?",
    body: [h("blockquote", null, saidLong(record.text, 300)),
      h("fieldset", { class: "ways" }, h("legend", null, "How"),
        way("undoable", "With a day to undo it. ", "It is found no more, and erased for good after a day.", true),
        way("now", "For good, now. ", "The words, their history, and whatever was made of them: vectors, answers, traces."),
        way("soft", "Out of recall only. ", "It is not found again, but its words and history stay."))],
    confirm: "Forget it",
    danger: true,
    deed: async (form) => {
      how = new FormData(form).get("how");
      return forgotten(await api.forget(record.id, { soft: how === "soft", undoable: how === "undoable" }), how);
    },
  });
  if (gone) {
    if (how !== "now") offerUndo("The memory is forgotten.", () => api.undoForget(record.id));
    if (location.hash.startsWith("#/memories/")) location.hash = "#/memories";
    else refresh();
  }
}

function forgotten(done, how) {
  const sources = done.surviving ?? [];
  return [h("p", null, h("b", null, many(done.count, "memory", "memories")), done.count === 1 ? " was forgotten." : " were forgotten, its versions counted.",
    how === "undoable" ? " Undo is at the bottom of the page." : ""),
    sources.length ? h("div", { class: "note warn" }, h("p", null, "The words still stand in:"),
      h("ul", null, sources.map((one) => h("li", null, survivor(one))), done.more ? h("li", null, `and in ${done.more} more`) : null)) : h("p", { class: "faint" }, "Nothing was found here that still holds its words.")];
}

function survivor(one) {
  if (one.kind === "turn" || one.index !== null) {
    return h("a", { href: to(["conversations", one.id], { turn: one.index }), onclick: () => document.getElementById("dialog").close() }, `${one.id} #${one.index}`);
  }
  if (one.kind === "tool_call") return h("a", { href: to(["conversations", one.id]), onclick: () => document.getElementById("dialog").close() }, `a tool call in ${one.id}`);
  return `${one.kind} ${one.id}`;
}
