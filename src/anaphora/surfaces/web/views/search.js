// Search: one box over everything that is kept, in one list, best first.

import { api } from "../api.js";
import { add, announce, count, duration, fill, firstWords, h, many, marked, saidLong, to, when } from "../dom.js";
import { badge, bars, degraded, empty, field, heading, into, meta, waiting } from "../parts.js";
import { firstRun } from "../intake.js";

const KINDS = [["memory", "Memories"], ["note", "Notes"], ["turn", "Conversations"], ["file", "Project files"], ["document", "Documents"], ["tool_call", "Tool calls"]];
const USUAL = ["memory", "note", "turn", "file", "document"];
const NAMES = { memory: "memory", note: "note", turn: "said", file: "file", document: "document", tool_call: "tool call" };
const TYPES = ["semantic", "episodic", "procedural"];
const MOST = "10";

export const view = {
  title: "Search",
  show(main, route, signal) {
    const form = formOf();
    const results = h("div", { class: "results", "aria-label": "Results", role: "region" });
    const title = heading("Search");
    title.classList.add("visually-hidden");
    add(main, title, form, results);
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
    h("details", { class: "more" }, h("summary", null, "Filters"),
      h("fieldset", { class: "kinds" }, h("legend", null, "Look among"),
        KINDS.map(([value, text]) => h("label", { class: "tick" }, h("input", { type: "checkbox", name: "kind", value }), h("span", null, text)))),
      h("div", { class: "controls" },
        field("Since", h("input", { type: "date", name: "since" })),
        field("Before", h("input", { type: "date", name: "until" })),
        field("Speaker", h("input", { name: "speaker", autocomplete: "off" })),
        field("Project", h("input", { name: "project", autocomplete: "off", spellcheck: "false" })),
        field("Tag", h("input", { name: "tag", autocomplete: "off" })),
        field("At most", h("input", { type: "number", name: "k", min: 1, max: 100, class: "short" })))));
}

function wanted(form) {
  const data = new FormData(form);
  const kinds = data.getAll("kind");
  const asked = Object.fromEntries(data);
  asked.kind = kinds.join() === USUAL.join() || !kinds.length ? "" : kinds.join();
  if (asked.k === MOST) asked.k = "";
  return asked;
}

function read(form, parameters) {
  const kinds = parameters.get("kind")?.split(",") ?? USUAL;
  for (const control of form.elements) {
    if (!control.name) continue;
    if (control.name === "kind") control.checked = kinds.includes(control.value);
    else control.value = parameters.get(control.name) ?? (control.name === "k" ? MOST : "");
  }
  const filters = ["kind", "since", "until", "speaker", "project", "tag"];
  if (filters.some((name) => parameters.get(name))) form.querySelector("details").open = true;
}

function search(form, results, signal) {
  const data = new FormData(form);
  const asked = { ...Object.fromEntries(data), kinds: data.getAll("kind") };
  if (!asked.q.trim()) {
    into(results, signal, () => begin(signal));
    return;
  }
  if (!results.childElementCount || results.querySelector(".empty")) fill(results, waiting());
  into(results, signal, () => found(asked, signal), () => search(form, results, signal));
}

/** What stands there before anything was asked: what is kept, or how something gets in. */
async function begin(signal) {
  const stats = await api.stats(signal);
  if (!stats.turns && !stats.memories && !stats.notes && !stats.sections) return firstRun();
  const kept = [[stats.turns, "turn", "conversations"], [stats.memories, "memory", "memories", "memories"], [stats.notes, "note", "notes"], [stats.files, "project file", "project"]];
  return empty("Ask for something that was said, remembered, noted or written.",
    h("span", null, "Kept here: ", kept.filter(([number]) => number).map(([number, word, view, plural], at) =>
      [at ? ", " : "", h("a", { href: to([view]) }, plural ? many(number, word, plural) : many(number, word))]), "."));
}

async function found(asked, signal) {
  const began = performance.now();
  const known = titles.size ? null : titled(signal);
  const recall = await api.search({
    query: asked.q, top_k: Number(asked.k) || Number(MOST), budget: 20000, kinds: asked.kinds.length ? asked.kinds : USUAL,
    since: asked.since ? `${asked.since}T00:00:00Z` : null, until: asked.until ? `${asked.until}T00:00:00Z` : null,
    speaker: asked.speaker || null, project: asked.project || null, tags: asked.tag ? [asked.tag] : [],
  }, signal);
  await known;
  const took = duration((performance.now() - began) / 1000);
  const summary = recall.hits.length ? `${many(recall.hits.length, "hit")} in ${took}` : `Nothing fits, in ${took}`;
  announce(summary);
  return [
    h("p", { class: "summary" }, summary), degraded(recall.degraded),
    recall.notices?.length ? h("div", { class: "note" }, h("ul", null, recall.notices.map((one) => h("li", null, one)))) : null,
    recall.hits.length ? listed(recall.hits, asked.q) : nothing(recall, asked.q),
  ];
}

function listed(hits, query) {
  return h("ol", { class: "hits" }, hits.map((hit) => h("li", null, card(hit, query))));
}

/** That there is nothing; what came nearest is shown to who asks for it. */
function nothing(recall, query) {
  if (!recall.nearest?.length) return empty("Nothing that is kept fits this.", "Other words or fewer filters may find something.");
  return [empty("Nothing that is kept seems to answer this."),
    h("details", { class: "rejected" }, h("summary", null, "Show what came nearest"), listed(recall.nearest, query))];
}

function card(hit, query) {
  const [where, href] = place(hit, query);
  return h("article", { class: `hit card kind-${hit.kind}` },
    h("header", null, badge(NAMES[hit.kind], "kind"),
      h("a", { href, class: "where", dir: "auto", "data-thread": hit.kind === "turn" ? hit.conversation_id : null, "data-index": hit.kind === "turn" ? hit.index : null }, where),
      hit.speaker ? h("span", { class: "faint", dir: "auto" }, hit.speaker) : null,
      h("span", { class: "faint day" }, when(hit.ts, { day: true }))),
    marked(hit.snippet, hit.matches),
    hit.current ? null : meta(badge("no longer holds", "warn")),
    (hit.versions ?? []).map((line) => h("p", { class: "faint small", dir: "auto" }, line)),
    hit.tags?.length || hit.project ? meta((hit.tags ?? []).map((tag) => badge(tag, "tag")), hit.project ? h("span", { class: "faint" }, hit.project.split(/[\\/]/).pop()) : null) : null,
    why(hit));
}

/** What a hit is called, and where its link leads. */
function place(hit, query) {
  if (hit.kind === "turn") return [nameOf(hit.conversation_id, hit.index), to(["conversations", hit.conversation_id], { turn: hit.index })];
  if (hit.kind === "tool_call") return [titles.get(`${api.namespace}\n${hit.conversation_id}`) || hit.conversation_id, to(["conversations", hit.conversation_id])];
  if (hit.kind === "file") return [hit.id, to(["project"], { focus: query })];
  if (hit.kind === "document") return [hit.title, to(["documents", hit.id])];
  const named = hit.title && !TYPES.includes(hit.title);
  return [named ? hit.title : hit.kind === "memory" ? "Memory" : firstWords(hit.text).name, to([hit.kind === "note" ? "notes" : "memories", hit.id])];
}

function why(hit) {
  return h("details", { class: "why" }, h("summary", null, "Why"),
    h("p", { class: "faint small" }, `It answers with a probability of about ${Math.min(99, Math.round(hit.score * 100))} in 100. What went into it:`),
    bars(hit.factors, { caption: "Parts of the score" }),
    typeof hit.answers === "number" ? h("p", { class: "faint small" }, `Read together with the question, it answers it with a probability of ${Math.round(hit.answers * 100)} in 100.`) : null,
    hit.text.length > hit.snippet.length ? h("details", null, h("summary", null, `All of it, ${count(hit.text.length)} characters`), saidLong(hit.text, 4000)) : null);
}

// Titles of conversations as they were last seen; what none is known of shows its id.
const titles = new Map();

function nameOf(id, index) {
  return `${titles.get(`${api.namespace}\n${id}`) || id}, turn ${index}`;
}

/** Learn the titles of conversations, for the links of turns. */
async function titled(signal) {
  try {
    const page = await api.threads({ limit: 1000 }, signal);
    for (const thread of page.items) titles.set(`${api.namespace}\n${thread.conversation_id}`, thread.title);
  } catch {
    // Their ids say where to look, too.
  }
}
