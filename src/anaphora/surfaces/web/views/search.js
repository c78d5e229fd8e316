// Search: one box over everything that is stored, in one list, best first. Before anything is asked,
// it shows what there is and what came last.

import { api } from "../api.js";
import { add, announce, count, duration, fill, firstWords, h, many, marked, saidLong, to, when } from "../dom.js";
import { badge, bars, degraded, empty, field, heading, into, isLoading, meta, waiting, waitsForVectors } from "../parts.js";
import { countText, openContradictions } from "../contradictions.js";
import { firstRun } from "../intake.js";
import { eventRow, recentEvents } from "../recent.js";
import { conversationTitle, fetchTitles } from "../titles.js";
import { finishVectors } from "../vectors.js";
import { versionNotes } from "../versions.js";
import { projectWord } from "../words.js";

const KINDS = [["memory", "Memories"], ["note", "Notes"], ["turn", "Conversations"], ["file", "Project files"], ["document", "Documents"], ["tool_call", "Tool calls"]];
const USUAL = ["memory", "note", "turn", "file", "document"];
const NAMES = { memory: "memory", note: "note", turn: "conversation", file: "file", document: "document", tool_call: "tool call" };
const TYPES = ["semantic", "episodic", "procedural"];
const MOST = "10";
const RECENT = 12;

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
      const address = to(["search"], wanted(form));
      if (address === location.hash) search(form, results, signal);
      else location.hash = address;
    });
    addEventListener("anaphora:vectors", () => search(form, results, signal), { signal });
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
        h("input", { type: "search", name: "q", placeholder: "Ask or search", autocomplete: "off", enterkeyhint: "search", "aria-keyshortcuts": "/ Control+K" })),
      h("kbd", { class: "wide-only", title: "Press / or Ctrl K anywhere to search" }, "/"),
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
  const values = Object.fromEntries(data);
  values.kind = kinds.join() === USUAL.join() || !kinds.length ? "" : kinds.join();
  if (values.k === MOST) values.k = "";
  return values;
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
  const values = { ...Object.fromEntries(data), kinds: data.getAll("kind") };
  if (!values.q.trim()) {
    if (!results.childElementCount || results.querySelector(".hits, .empty")) fill(results, waiting());
    into(results, signal, () => begin(signal), () => search(form, results, signal));
    return;
  }
  if (!results.childElementCount || results.querySelector(".empty, .start")) fill(results, waiting());
  into(results, signal, () => found(values, signal), () => search(form, results, signal));
}

// Before anything was asked.

/** What there is, what is to be decided, what came last; in an empty memory, how to begin. */
async function begin(signal) {
  const stats = await api.stats(signal);
  if (!stats.turns && !stats.memories && !stats.notes && !stats.sections && !stats.documents) return firstRun();
  const [{ events }, pairs] = await Promise.all([recentEvents(RECENT, signal), openContradictions(signal)]);
  if (stats.pending + stats.sections_pending) finishVectors();
  return h("div", { class: "start" },
    pairs.length ? toDecide(pairs) : null,
    h("section", { "aria-label": "What there is" }, h("h2", null, "What there is"), tiles(stats)),
    h("section", { "aria-label": "Recent" },
      h("div", { class: "heading" }, h("h2", null, "Recent"), h("a", { href: "#/timeline" }, "All days")),
      events.length ? h("ol", { class: "plain tight rows-list" }, events.slice(0, RECENT).map((entry) => eventRow(entry, { day: true }))) : empty("Nothing with a day yet.")));
}

function toDecide(pairs) {
  const { older, newer } = pairs[0];
  return h("div", { class: "note warn" },
    h("p", null, h("strong", null, pairs.length === 1 ? "1 contradiction" : `${countText(pairs.length)} contradictions`),
      ": memories that say different things of one matter, such as ", h("q", { dir: "auto" }, firstWords(older.text).name), " and ", h("q", { dir: "auto" }, firstWords(newer.text).name), "."),
    h("a", { class: "button", href: "#/contradictions" }, "Decide what holds"));
}

function tiles(stats) {
  const kinds = [
    [stats.conversations, ["conversation"], "conversations", stats.turns ? many(stats.turns, "message") : null],
    [stats.memories, ["memory", "memories"], "memories"], [stats.documents, ["document"], "documents"], [stats.notes, ["note"], "notes"],
    [stats.files, ["project file"], "project", stats.projects > 1 ? many(stats.projects, "project") : null],
    [stats.gaps, ["open question"], "questions"],
  ];
  return h("ul", { class: "tiles" }, kinds.filter(([number]) => number).map(([number, [word, plural = `${word}s`], name, beside]) => h("li", null,
    h("a", { href: to([name]) }, h("b", { class: "number" }, count(number)), " ", number === 1 ? word : plural, beside ? h("span", { class: "faint small" }, beside) : null))));
}

// What was found.

async function found(values, signal) {
  const began = performance.now();
  const recall = await api.search({
    question: values.q, top_k: Number(values.k) || Number(MOST), budget: 20000, kinds: values.kinds.length ? values.kinds : USUAL,
    since: values.since ? `${values.since}T00:00:00Z` : null, until: values.until ? `${values.until}T00:00:00Z` : null,
    speaker: values.speaker || null, project: values.project || null, tags: values.tag ? [values.tag] : [],
  }, signal);
  const took = duration((performance.now() - began) / 1000);
  await fetchTitles([...recall.hits, ...recall.nearest ?? []].map((hit) => hit.conversation_id), signal);
  const partly = recall.degraded.some(waitsForVectors);
  if (partly) finishVectors();
  const summary = recall.hits.length ? `${many(recall.hits.length, "hit")} in ${took}` : `Nothing fits, in ${took}`;
  announce(summary);
  return [
    h("p", { class: "summary" }, summary, partly ? ". Some texts are found by their words alone so far; their meaning is being worked out." : null,
      recall.degraded.some(isLoading) ? [". The order gets better in a moment: the part that reads question and hit together is still loading. ",
        h("button", { type: "button", class: "quiet small", onclick: () => dispatchEvent(new CustomEvent("anaphora:vectors")) }, "Search again")] : null),
    degraded(recall.degraded),
    recall.notices?.length ? h("div", { class: "note" }, h("ul", null, recall.notices.map((notice) => h("li", null, notice)))) : null,
    recall.hits.length ? listed(recall.hits, values.q, true) : nothing(recall, values.q),
  ];
}

function listed(hits, query, best = false) {
  return h("ol", { class: best ? "hits ranked" : "hits" }, hits.map((hit) => h("li", null, card(hit, query))));
}

/** That there is nothing; what came nearest is shown on demand. */
function nothing(recall, query) {
  if (!recall.nearest?.length) return empty("Nothing that is stored fits this.", "Other words or fewer filters may find something.");
  return [empty("No confident match.", "Ask in other words, or see the closest results."),
    h("details", { class: "rejected" }, h("summary", null, "Show what came nearest"), listed(recall.nearest, query))];
}

function card(hit, query) {
  const [title, href] = place(hit, query);
  const who = hit.kind === "turn" && hit.speaker ? h("span", { class: "who", dir: "auto" }, hit.speaker) : null;
  const day = hit.ts ? when(hit.ts, { day: true }) : null;
  const [gone, others] = versionNotes(hit);
  const project = hit.project && hit.kind !== "turn" ? projectWord(hit.project) : null;
  return h("article", { class: `hit card kind-${hit.kind}${hit.current ? "" : " outdated"}` },
    h("header", null, badge(NAMES[hit.kind], "kind"),
      h("a", { href, class: "where", dir: "auto", "data-thread": hit.kind === "turn" ? hit.conversation_id : null, "data-index": hit.kind === "turn" ? hit.index : null }, title),
      h("span", { class: "faint day" }, day, day && who ? " · " : null, who)),
    gone,
    title === hit.snippet ? null : marked(hit.snippet, hit.matches),
    others,
    h("footer", null, why(hit), hit.tags?.length || project ? meta((hit.tags ?? []).map((tag) => badge(tag, "tag")), project ? h("span", { class: "faint" }, project) : null) : null));
}

/** What a hit is called, and where its link leads. */
function place(hit, query) {
  if (hit.kind === "turn" || hit.kind === "tool_call") {
    const title = conversationTitle(hit.conversation_id);
    return [hit.project ? `${projectWord(hit.project)} / ${title}` : title, to(["conversations", hit.conversation_id], { turn: hit.index })];
  }
  if (hit.kind === "file") return [hit.id, to(["project"], { focus: query })];
  if (hit.kind === "document") return [hit.title, to(["documents", hit.id])];
  const named = hit.title && !TYPES.includes(hit.title) && !/[\\/]/.test(hit.title);
  return [named ? hit.title : firstWords(hit.text).name, to([hit.kind === "note" ? "notes" : "memories", hit.id])];
}

function why(hit) {
  return h("details", { class: "why" }, h("summary", null, "Why"),
    h("p", { class: "faint small" }, `It answers with a probability of about ${Math.min(99, Math.round(hit.score * 100))} in 100. What went into it:`),
    bars(hit.factors, { caption: "Parts of the score" }),
    typeof hit.answers === "number" ? h("p", { class: "faint small" }, `Read together with the question, it answers it with a probability of ${Math.round(hit.answers * 100)} in 100.`) : null,
    hit.text.length > hit.snippet.length ? h("details", null, h("summary", null, `All of it, ${count(hit.text.length)} characters`), saidLong(hit.text, 4000)) : null);
}
