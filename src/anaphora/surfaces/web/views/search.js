// Search: lasting memories and turns of conversations side by side, each hit with why it came.

import { api } from "../api.js";
import { add, announce, duration, fill, h, many, saidLong, score, to, when } from "../dom.js";
import { badge, bars, choice, degraded, empty, field, heading, into, legend, meta, tick, waiting } from "../parts.js";

const LANES = [["both", "Memories and turns"], ["memories", "Memories"], ["turns", "Turns"]];
const MODES = [["hybrid", "Words and meaning"], ["words", "Words alone"], ["vector", "Meaning alone"]];
const ROLES = [["", "Any role"], ["user", "User"], ["assistant", "Assistant"], ["other", "Other"]];
const TYPES = [["", "Any type"], ["semantic", "Semantic"], ["episodic", "Episodic"], ["procedural", "Procedural"]];

export const view = {
  title: "Search",
  show(main, route, signal) {
    const form = formOf();
    const results = h("div", { class: "results", "aria-label": "Results", role: "region" });
    add(main, heading("Search"), form, results);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const asked = to(["search"], wanted(form));
      if (asked === location.hash) search(form, results, signal);
      else location.hash = asked;
    });
    const update = (next) => {
      read(form, next.parameters);
      search(form, results, signal);
      return true;
    };
    update(route);
    return update;
  },
};

function formOf() {
  return h("form", { class: "search", role: "search" },
    h("div", { class: "ask" },
      h("label", { class: "grow" }, h("span", { class: "visually-hidden" }, "What to look for"),
        h("input", { type: "search", name: "q", placeholder: "What do you want to know?", autocomplete: "off", enterkeyhint: "search" })),
      h("button", { type: "submit", class: "primary" }, "Search")),
    h("div", { class: "controls" },
      field("Look in", choice({ name: "lane" }, LANES, "both")),
      field("By", choice({ name: "mode" }, MODES, "hybrid")),
      field("Hits", h("input", { type: "number", name: "k", min: 1, max: 50, value: "6", class: "short" }))),
    h("details", { class: "more" }, h("summary", null, "Filters"),
      h("fieldset", null, h("legend", null, "Memories"),
        h("div", { class: "controls" },
          field("Type", choice({ name: "type" }, TYPES, "")),
          field("Category", h("input", { name: "category", autocomplete: "off" })),
          field("Tag", h("input", { name: "tag", autocomplete: "off" })),
          field("Path begins with", h("input", { name: "path", autocomplete: "off" })),
          field("Least score", h("input", { type: "number", name: "min", min: 0, max: 2, step: 0.05, class: "short" })),
          field("As of", h("input", { type: "date", name: "asof" }), "What was held true then")),
        tick("Also show what was rejected, and why", { name: "explain" })),
      h("fieldset", null, h("legend", null, "Turns"),
        h("div", { class: "controls" },
          field("Only in the thread", h("input", { name: "thread", autocomplete: "off", spellcheck: "false" }), "Its id; empty: all of them"),
          field("Since", h("input", { type: "date", name: "since" })),
          field("Before", h("input", { type: "date", name: "until" })),
          field("Speaker", h("input", { name: "speaker", autocomplete: "off" })),
          field("Role", choice({ name: "role" }, ROLES, ""))))));
}

function wanted(form) {
  const data = Object.fromEntries(new FormData(form));
  if (data.lane === "both") delete data.lane;
  if (data.mode === "hybrid") delete data.mode;
  if (data.k === "6") delete data.k;
  if (data.explain) data.explain = "1";
  return data;
}

function read(form, parameters) {
  for (const control of form.elements) {
    if (!control.name) continue;
    const given = parameters.get(control.name);
    if (control.type === "checkbox") control.checked = given === "1";
    else control.value = given ?? { lane: "both", mode: "hybrid", k: "6" }[control.name] ?? "";
  }
  const filters = ["type", "category", "tag", "path", "min", "asof", "thread", "since", "until", "speaker", "role", "explain"];
  if (filters.some((name) => parameters.get(name))) form.querySelector("details").open = true;
}

/** The filter language's form of the simple controls; null without any. */
export function filtersOf({ type, category, tag, path }) {
  const all = [];
  if (type) all.push({ type });
  if (category) all.push({ category });
  if (tag) all.push({ tags: { contains: tag } });
  if (path) all.push({ path: { startswith: path } });
  return all.length ? { AND: all } : null;
}

function search(form, results, signal) {
  const asked = Object.fromEntries(new FormData(form));
  if (!asked.q.trim()) {
    fill(results, empty("Ask for something that was said or remembered.",
      "Every hit shows the parts of its score, so that you see why it came."));
    return;
  }
  if (!results.childElementCount || results.querySelector(".empty")) fill(results, waiting());
  into(results, signal, () => found(asked, signal), () => search(form, results, signal));
}

async function found(asked, signal) {
  const began = performance.now();
  const both = asked.lane === "both";
  const [memories, turns] = await Promise.all([
    asked.lane !== "turns" ? api.recall(memoryQuestion(asked), signal) : null,
    asked.lane !== "memories" ? api.recallTurns(turnQuestion(asked), signal) : null,
  ]);
  const took = (performance.now() - began) / 1000;
  const told = [memories && many(memories.hits.length, "memory", "memories"), turns && many(turns.hits.length, "turn")];
  const summary = `${told.filter(Boolean).join(" and ")} in ${duration(took)}`;
  announce(summary);
  if (turns?.hits.length) titled(signal);
  return [
    h("p", { class: "summary" }, summary),
    h("div", { class: both ? "lanes two" : "lanes" },
      memories && lane("Memories", memories, memoryHit, rejectedOf(memories)),
      turns && lane("Turns", turns, (hit, at) => turnHit(hit, at, highest(turns.hits)), null)),
  ];
}

function memoryQuestion(asked) {
  return {
    query: asked.q, top_k: Number(asked.k) || 6, mode: asked.mode, filters: filtersOf(asked),
    min_score: asked.min === "" ? null : Number(asked.min),
    as_of: asked.asof ? `${asked.asof}T23:59:59Z` : null, explain: Boolean(asked.explain),
  };
}

function turnQuestion(asked) {
  return { query: asked.q, top_k: Number(asked.k) || 6, mode: asked.mode, conversation_id: asked.thread || null,
    since: asked.since ? `${asked.since}T00:00:00Z` : null, until: asked.until ? `${asked.until}T00:00:00Z` : null,
    speaker: asked.speaker || null, role: asked.role || null };
}

function lane(title, recall, shown, rejected) {
  const names = [...new Set(recall.hits.flatMap((hit) => [
    ...("similarity" in hit ? ["similarity", "decay", "reinforcement"] : []), ...Object.keys(hit.factors ?? {})]))];
  return h("section", { class: "lane", "aria-label": title },
    h("h2", null, title), degraded(recall.degraded),
    recall.notices?.length ? h("div", { class: "note" }, h("ul", null, recall.notices.map((one) => h("li", null, one)))) : null,
    recall.hits.length ? h("ol", { class: "hits" }, recall.hits.map((hit, at) => h("li", null, shown(hit, at)))) : nothing(title, recall, shown),
    legend(names), rejected);
}

/** That there is nothing; where what came nearest hardly answers, that too, for who asks. */
function nothing(title, recall, shown) {
  if (!recall.nearest?.length) {
    return empty(`No ${title.toLowerCase()} were found.`, "Other words, fewer filters or a lower least score may find some.");
  }
  const chance = recall.confidence ?? null;
  return [empty("Nothing here seems to answer this.", chance === null ? "Nothing was said at the time that is asked about." : `What came nearest answers it with a probability of ${score(chance)}.`),
    h("details", { class: "rejected" }, h("summary", null, "Show what came nearest"),
      h("ol", { class: "hits" }, recall.nearest.map((hit, at) => h("li", null, shown(hit, at)))))];
}

/** What replaced a hit, what it replaced, and where it was said again. */
function versions(hit) {
  const day = (one) => when(one.ts ?? one.created_at);
  const quoted = (one) => h("q", { dir: "auto" }, one.text.length > 160 ? `${one.text.slice(0, 159)}…` : one.text);
  const lines = [];
  if (hit.older_than) lines.push(h("p", { class: "faint small" }, badge("older", "warn"), " replaced by ", quoted(hit.older_than), " ", day(hit.older_than)));
  if (hit.previous?.length) lines.push(h("p", { class: "faint small" }, "Before it: ", quoted(hit.previous[0]), " ", day(hit.previous[0])));
  if (hit.occurrences?.length) lines.push(h("p", { class: "faint small" }, `Said ${hit.occurrences.length + 1} times, also `, hit.occurrences.slice(-5).map((one) => [day(one), " "])));
  return lines;
}

function memoryHit(hit) {
  return h("article", { class: "hit card" },
    h("header", null, h("a", { href: to(["memories", hit.id]), class: "where" }, hit.path || hit.category || "Memory"),
      badge(hit.type), h("span", { class: "score", title: "Score" }, score(hit.score))),
    saidLong(hit.text), versions(hit),
    meta(when(hit.created_at), hit.tags.map((tag) => badge(tag, "tag")),
      hit.category && hit.path ? badge(hit.category) : null,
      hit.related?.length ? badge(`${hit.related.length} related`) : null,
      hit.same_as?.length ? badge(`${hit.same_as.length} that say the same`) : null),
    why(`${score(hit.similarity)} similarity × ${score(hit.decay)} decay × ${score(hit.reinforcement)} reinforcement${hit.factors?.currency ? ` × ${score(hit.factors.currency)} currency` : ""}`, [
      bars({ similarity: hit.similarity, decay: hit.decay, reinforcement: hit.reinforcement },
        { scale: Math.max(1, hit.reinforcement), caption: "The score's parts" }),
      h("p", { class: "faint small" }, "How similarity came about"),
      bars(only(hit.factors, ["meaning", "words"]), { scale: 1, caption: "Parts of similarity" }),
    ]));
}

function turnHit(hit, _, full) {
  const place = to(["threads", hit.conversation_id], { turn: hit.index });
  return h("article", { class: "hit card" },
    h("header", null, h("a", { href: place, class: "where", dir: "auto", "data-thread": hit.conversation_id, "data-index": hit.index, title: hit.conversation_id }, name(hit.conversation_id, hit.index)),
      badge(hit.speaker || hit.role), h("span", { class: "score", title: "Score" }, score(hit.score))),
    saidLong(hit.text), versions(hit),
    meta(when(hit.ts)),
    why("the sum of these parts", [bars(hit.factors, { scale: full, caption: "Parts of the score" })]));
}

// Titles of threads as they were last seen; what none is known of shows its id.
const titles = new Map();

function name(id, index) {
  return `${titles.get(`${api.namespace}\n${id}`) || id}, turn ${index}`;
}

/** Let the links of turns that are shown say the titles of their threads. */
async function titled(signal) {
  try {
    const page = await api.threads({ limit: 1000 }, signal);
    for (const thread of page.items) titles.set(`${api.namespace}\n${thread.conversation_id}`, thread.title);
  } catch {
    // The ids that stand there say where to look, too.
    return;
  }
  for (const link of document.querySelectorAll("a[data-thread]")) {
    link.textContent = name(link.dataset.thread, link.dataset.index);
  }
}

function why(sum, children) {
  return h("div", { class: "why" }, h("p", { class: "faint small" }, sum), children);
}

function only(factors, names) {
  return Object.fromEntries(names.filter((name) => name in (factors ?? {})).map((name) => [name, factors[name]]));
}

function highest(hits) {
  return Math.max(1e-9, ...hits.flatMap((hit) => Object.values(hit.factors ?? {}).map(Math.abs)));
}

function rejectedOf(recall) {
  if (!recall.rejected) return null;
  return h("details", { class: "rejected", open: true },
    h("summary", null, `${many(recall.rejected.length, "candidate")} rejected`),
    recall.rejected.length ? h("ul", { class: "plain" }, recall.rejected.map(({ hit, reason }) => h("li", { class: "card" },
      meta(badge(reason.replaceAll("_", " "), "warn"), h("span", { class: "score" }, score(hit.score)),
        h("a", { href: to(["memories", hit.id]) }, hit.path || "open it")),
      saidLong(hit.text, 300)))) : h("p", { class: "faint" }, "Nothing was close and left out."));
}
