// Memories: the list, its search and filters, and what can be done with one or several.

import { api } from "../api.js";
import { add, announce, fill, h, many, to, when } from "../dom.js";
import { ask, badge, choice, empty, field, heading, into, refresh, row, rowsList, trouble, waiting } from "../parts.js";
import { showOpenCount } from "../contradictions.js";
import { actionsOf, create, stateOf } from "../memory_deeds.js";
import { showMemory } from "../memory_view.js";
import { titleOf } from "../titles.js";
import { toast } from "../toast.js";
import { TYPE_CHOICES, typeWord } from "../words.js";

const PAGE = 50;
// Below this similarity of the best hit a search has found nothing; and the share of the question's
// words by which a memory is near, whatever its meaning.
const LEAST = 0.2;
const SHARED_WORDS = 0.2;

/** The filter language's form of the simple controls; null without any. */
function filtersOf({ type, category, tag, path }) {
  const all = [];
  if (type) all.push({ type });
  if (category) all.push({ category });
  if (tag) all.push({ tags: { contains: tag } });
  if (path) all.push({ path: { startswith: path } });
  return all.length ? { AND: all } : null;
}

export const view = {
  title: "Memories",
  show(main, route, signal) {
    if (route.rest[0]) {
      showMemory(main, route.rest[0], signal);
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
        field("Kind", choice({ name: "type" }, [["", "Any kind"], ...TYPE_CHOICES], "")),
        field("Category", h("input", { name: "category", autocomplete: "off" })),
        field("Tag", h("input", { name: "tag", autocomplete: "off" })),
        field("Name begins with", h("input", { name: "path", autocomplete: "off" })),
        field("As of", h("input", { type: "date", name: "asof" }), "With a search: what was true on that day"))));
  add(main, heading("Memories", h("a", { class: "button quiet", href: "#/core" }, "Always included"), h("a", { class: "button quiet", href: "#/contradictions" }, "Contradictions ", h("span", { class: "open-count number", hidden: true })),
    h("button", { type: "button", class: "primary", onclick: create }, "Remember something")), form, place);
  const fetched = () => into(place, signal, () => page(form, signal), fetched);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const address = to(["memories"], Object.fromEntries(new FormData(form)));
    if (address === location.hash) fetched();
    else location.hash = address;
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
  showOpenCount();
  update(route);
  return update;
}

async function page(form, signal) {
  const values = Object.fromEntries(new FormData(form));
  const filters = filtersOf(values);
  if (values.q.trim()) return searched(values, filters, signal);
  let total = filters ? null : (await api.stats(signal)).memories;
  const query = { limit: PAGE, filters: filters && JSON.stringify(filters) };
  const summary = h("span", { class: "summary" });
  const rows = rowsOf(summary);
  const foot = h("div", null);
  let shown = 0;
  let rest = null;
  const sum = () => {
    const all = many(total ?? shown, "memory", "memories");
    summary.textContent = !rest ? many(shown, "memory", "memories") : total === null ? `The first ${many(shown, "memory", "memories")}` : `${all}, the last changed first; ${shown} shown`;
  };
  addEventListener("anaphora:left", () => {
    shown -= 1;
    if (total !== null) total -= 1;
    sum();
  }, { signal });
  const more = async (cursor) => {
    const { items, cursor: next } = await api.memories({ ...query, cursor }, signal);
    rows.add(items);
    rest = next;
    shown += items.length;
    sum();
    announce(summary.textContent);
    fill(foot, next ? h("button", { type: "button", onclick: (event) => {
      event.target.disabled = true;
      more(next).catch((error) => fill(foot, trouble(error)));
    } }, "Show more") : null);
  };
  await more(null);
  return shown ? [rows.bar, rows.list, foot] : empty(filters ? "No memory fits these filters." : "Nothing is remembered here yet.",
    filters ? "Remove a filter, or choose another one." : "Write down a first one with “Remember something”, or let an agent do it.");
}

/** What a search finds among the memories, best first; what is far from it stays folded. */
async function searched(values, filters, signal) {
  const { hits } = await api.recall({
    question: values.q, top_k: PAGE, filters, as_of: values.asof ? `${values.asof}T23:59:59Z` : null, min_confidence: 0,
  }, signal);
  const best = Math.max(0, ...hits.map((hit) => hit.similarity));
  const isNear = (hit) => best >= LEAST && ((hit.factors.words ?? 0) > SHARED_WORDS || hit.similarity >= best / 2);
  const records = new Map((await Promise.all(hits.map((hit) => api.memory(hit.id, signal).catch(() => null)))).filter(Boolean).map((record) => [record.id, record]));
  const near = hits.filter(isNear).map((hit) => records.get(hit.id)).filter(Boolean);
  const far = hits.filter((hit) => !isNear(hit)).map((hit) => records.get(hit.id)).filter(Boolean);
  const summary = h("span", { class: "summary" }, `${many(near.length, "memory", "memories")}, the best first`);
  announce(near.length ? summary.textContent : "Nothing was found");
  const rows = rowsOf(summary);
  rows.add(near);
  const others = rowsOf(h("span", { class: "summary" }, many(far.length, "memory", "memories")));
  others.add(far);
  return [near.length ? [rows.bar, rows.list] : empty("No memory is about this.", "Other words or fewer filters may find some."),
    far.length ? h("details", { class: "rejected" }, h("summary", null, near.length ? `Show ${far.length} that are further away` : "Show what came nearest"), others.bar, others.list) : null];
}

/** A list of memories in which several can be chosen, and the bar over it. */
function rowsOf(summary) {
  const rows = rowsList([], "Memories");
  const picks = () => [...rows.querySelectorAll("input.pick")];
  const chosen = () => picks().filter((box) => box.checked);
  const all = h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: () => {
    for (const box of picks()) box.checked = all.checked;
    changed();
  } });
  const go = h("button", { type: "button", class: "small danger quiet", onclick: () => forgetMany(chosen().map((box) => box.value)) });
  const changed = () => {
    const number = chosen().length;
    go.hidden = number === 0;
    go.textContent = `Forget ${many(number, "memory", "memories")}`;
    all.checked = number > 0 && number === picks().length;
  };
  changed();
  rows.classList.add("memories");
  return {
    list: rows,
    bar: h("div", { class: "bulk" }, h("label", { class: "tick" }, all, summary), go),
    add(records) {
      add(rows, records.map((record) => rowOf(record, changed)));
      changed();
    },
  };
}

function rowOf(record, changed) {
  const named = Boolean(record.path);
  return row({
    href: to(["memories", record.id]),
    title: named ? titleOf(record) : line(record.text),
    text: named ? line(record.text) : null,
    marks: [stateOf(record), record.pin > 0 ? badge("pinned", "good") : null],
    facts: [record.type === "semantic" ? null : badge(typeWord(record.type)), record.category ? h("span", { class: "wide-only" }, record.category) : null,
      record.reinforce_count ? h("span", { title: "It was said again" }, `×${record.reinforce_count + 1}`) : null, when(record.reinforce_count ? record.last_reinforced : record.created_at, { day: true })],
    before: h("input", { type: "checkbox", class: "pick", value: record.id, "aria-label": `Choose: ${record.text.slice(0, 40)}`, onchange: changed }),
    actions: actionsOf(record),
  });
}

function line(text) {
  const whole = text.trim().replace(/\s+/g, " ");
  return whole.length > 300 ? `${whole.slice(0, 299)}…` : whole || "(empty)";
}

async function forgetMany(ids) {
  const gone = await ask({
    title: `Forget ${many(ids.length, "memory", "memories")}?`,
    body: [h("p", null, "They are no longer found, and are erased after a day. Until then it can be undone.")],
    confirm: "Forget them",
    danger: true,
    deed: async () => { for (const id of ids) await api.forget(id, { undoable: true }); },
  });
  if (!gone) return;
  toast(`${many(ids.length, "memory", "memories")} forgotten.`, { undo: async () => { for (const id of ids) await api.undoForget(id); } });
  refresh();
}
