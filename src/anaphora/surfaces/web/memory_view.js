// One memory: its words, what replaced it and what it replaced, and where it came from.

import { api } from "./api.js";
import { add, firstWords, h, said, saidLong, to, when } from "./dom.js";
import { badge, empty, heading, into, meta, waiting } from "./parts.js";
import { buttonsOf, stateOf } from "./memory_deeds.js";
import { conversationTitle, fetchTitles, titleOf } from "./titles.js";
import { typeWord } from "./words.js";

/** Show the memory of this id in `main`. */
export function showMemory(main, id, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), place);
  const fetched = () => into(place, signal, async () => {
    const record = await api.memory(id, signal);
    const [values, others] = await Promise.all([record.path ? api.history(record.path, signal) : [], linked(record, signal), fetchTitles([record.conversation_id], signal)]);
    const whole = !record.path && firstWords(record.text).whole;
    return [heading(titleOf(record), buttonsOf(record)),
      h("div", { class: "card" }, replaced(record, others), whole ? meta(stateOf(record), when(record.created_at)) : saidLong(record.text, 10000), facts(record, others)),
      values.length > 1 ? [h("h2", null, `What ${record.path} was over time`), history(values, record.id)] : null];
  }, fetched);
  fetched();
}

/** The memories that it names, by id, as far as they are still there. */
async function linked(record, signal) {
  const ids = [...new Set([record.parent, record.supersedes, record.superseded_by].filter(Boolean))];
  const records = await Promise.all(ids.map((id) => api.memory(id, signal).catch((error) => {
    if (error?.name === "AbortError") throw error;
    return null;
  })));
  return new Map(ids.map((id, at) => [id, records[at]]));
}

function replaced(record, others) {
  if (!record.superseded_by) return null;
  return h("p", { class: "version gone" }, h("b", null, "Replaced"), " on ", when(record.valid_to ?? others.get(record.superseded_by)?.created_at, { day: true }), " by ", link(record.superseded_by, others));
}

function facts(record, others) {
  const turn = record.conversation_id
    ? h("a", { dir: "auto", href: to(["conversations", record.conversation_id], { turn: record.turn_index }) }, `${conversationTitle(record.conversation_id)}${record.turn_index === null ? "" : `, message ${record.turn_index + 1}`}`)
    : null;
  const former = others.get(record.supersedes);
  const rows = [
    ["Kind", typeWord(record.type)], ["Category", record.category], ["Tags", record.tags.length ? record.tags.map((tag) => badge(tag, "tag")) : null],
    ["Since", when(record.valid_from)], ["Until", record.valid_to ? when(record.valid_to) : null],
    ["Replaces", record.supersedes ? [link(record.supersedes, others), former ? [", of ", when(former.created_at, { day: true })] : null] : null],
    ["Expires", record.expires_at ? when(record.expires_at) : null],
    ["Said again", record.reinforce_count ? [record.reinforce_count === 1 ? "once, " : `${record.reinforce_count} times, lastly `, when(record.last_reinforced)] : null],
    ["Source", record.sources?.length ? record.sources.join(", ") : null], ["Said in", turn], ["Taken from", link(record.parent, others)],
    ["More data", record.payload ? said(JSON.stringify(record.payload, null, 2), "pre") : null],
  ];
  return [h("dl", { class: "facts" }, rows.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => [h("dt", null, name), h("dd", null, value)])),
    h("details", { class: "faint small" }, h("summary", null, "Id"), h("code", { class: "id" }, record.id))];
}

function link(id, others) {
  if (!id) return null;
  const record = others.get(id);
  return record ? h("a", { href: to(["memories", id]) }, h("q", { dir: "auto" }, firstWords(record.text).name)) : "a memory that is no longer stored";
}

function history(records, current) {
  if (!records.length) return empty("Nothing was stored here.");
  return h("ol", { class: "plain timeline" }, [...records].reverse().map((record) => h("li", { class: `card${record.valid_to ? " outdated" : ""}`, "aria-current": record.id === current ? "true" : null },
    meta(when(record.valid_from, { day: true }), record.valid_to ? ["until ", when(record.valid_to, { day: true })] : badge("holds now", "good"),
      record.id === current ? null : h("a", { href: to(["memories", record.id]) }, "Open it")), saidLong(record.text, 400))));
}
