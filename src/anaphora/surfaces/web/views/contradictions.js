// Contradictions: memories that seem to say otherwise of one thing, and which of them holds.

import { api } from "../api.js";
import { add, fill, h, many, saidLong, to, when } from "../dom.js";
import { badge, deeds, empty, heading, into, meta, waiting } from "../parts.js";

const STATES = [["", "Open"], ["true", "Settled"]];
const VERDICTS = { replaces: "replaced", both_hold: "both hold", wrong: "wrong" };

export const view = {
  title: "Contradictions",
  show(main, route, signal) {
    const tabs = h("nav", { "aria-label": "State of contradictions", class: "tabs" });
    const place = h("div", null);
    add(main, h("p", { class: "back" }, h("a", { href: "#/memories" }, "All memories")), heading("Contradictions"),
      h("p", { class: "lead" }, "Memories that are close and say otherwise. Both are kept until you say what holds, and whatever you say can be taken back."),
      tabs, place);
    let settled = "";
    const fetched = () => into(place, signal, async () => list(await api.contradictions(Boolean(settled), signal), settled, fetched), fetched);
    const update = (next) => {
      settled = next.parameters.get("settled") === "true" ? "true" : "";
      fill(tabs, STATES.map(([value, text]) => h("a", { href: to(["contradictions"], { settled: value }), "aria-current": value === settled ? "page" : null }, text)));
      if (!place.childElementCount) fill(place, waiting());
      fetched();
      return true;
    };
    update(route);
    return update;
  },
};

function list(pairs, settled, again) {
  if (!pairs.length) return empty(settled ? "None was settled." : "Nothing that is kept contradicts itself, as far as its words tell.");
  return [h("p", { class: "summary" }, many(pairs.length, "contradiction")),
    h("ul", { class: "plain" }, pairs.map((pair) => h("li", { class: "card" }, card(pair, again))))];
}

function card(pair, again) {
  const report = h("div", { "aria-live": "polite" });
  const deed = deeds(report, again);
  const { older, newer, verdict } = pair;
  return [said(older, "Older", pair), said(newer, "Newer", pair),
    meta(verdict ? badge(VERDICTS[verdict], "plain") : badge("open", "warn"), h("span", { class: "number" }, `similarity ${pair.similarity.toFixed(2)}`)),
    h("div", { class: "actions" }, verdict
      ? deed("Take it back", () => api.reopen(newer.id, older.id))
      : [deed("The newer one holds", () => api.settle(newer.id, older.id, "replaces")),
        deed("Both hold", () => api.settle(newer.id, older.id, "both_hold")),
        deed("The newer one is wrong", () => api.settle(newer.id, older.id, "wrong"))]),
    report];
}

function said(memory, which, pair) {
  return h("section", null,
    meta(h("a", { href: to(["memories", memory.id]) }, which), when(memory.created_at),
      pair.verdict && !pair.holds.includes(memory.id) ? badge("no longer holds", "warn") : null),
    saidLong(memory.text, 600));
}
