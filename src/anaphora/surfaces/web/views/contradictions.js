// Contradictions: memories that seem to say otherwise of one thing, and which of them holds.

import { api } from "../api.js";
import { add, announce, fill, h, many, saidLong, to, when } from "../dom.js";
import { badge, deeds, empty, heading, into, meta, waiting } from "../parts.js";
import { settle } from "../contradictions.js";

const STATES = [["", "Open"], ["true", "Settled"]];
const VERDICTS = { replaces: "the newer one holds", both_hold: "both hold", wrong: "the newer one is wrong" };
const PAGE = 20;

export const view = {
  title: "Contradictions",
  show(main, route, signal) {
    const tabs = h("nav", { "aria-label": "State of contradictions", class: "tabs" });
    const place = h("div", null);
    add(main, heading("Contradictions"),
      h("p", { class: "lead" }, "Memories that are close and say different things. Both stay until you decide which holds, and each decision can be taken back."),
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
  if (!pairs.length) return settled ? empty("None was settled.") : empty("Nothing that is stored contradicts itself, as far as its words tell.");
  const rows = h("ul", { class: "plain" });
  const summary = h("p", { class: "summary" }, many(pairs.length, "contradiction"));
  let open = pairs.length;
  const settledOne = () => {
    open -= 1;
    summary.textContent = `${many(open, "contradiction")}, ${pairs.length - open} settled just now`;
  };
  let next = 0;
  const more = h("button", { type: "button", onclick: () => {
    add(rows, pairs.slice(next, next + PAGE).map((pair) => card(pair, again, settledOne)));
    next += PAGE;
    more.hidden = next >= pairs.length;
  } }, "Show more");
  more.click();
  return [summary, rows, more];
}

function card(pair, again, settledOne) {
  const item = h("li", { class: "card pair" });
  const report = h("div", { "aria-live": "polite" });
  const { verdict } = pair;
  let decided = null;
  // What is decided stays at its place: a second click meets no other pair.
  const deed = deeds(report, () => (decided ? fill(item, settledLine(pair, decided)) : again()));
  const decide = (text, how) => deed(text, async () => { await settle(pair, how); decided = how; settledOne(); }, { class: "small" });
  return add(item, h("div", { class: "sides" }, side(pair.older, "Older", pair), side(pair.newer, "Newer", pair)),
    h("div", { class: "actions" }, verdict
      ? [badge(VERDICTS[verdict], "plain"), deed("Take it back", () => api.reopen(pair.newer.id, pair.older.id))]
      : [decide("The newer one holds", "replaces"), decide("Both hold", "both_hold"), decide("The newer one is wrong", "wrong")]),
    report);
}

function settledLine({ older, newer }, verdict) {
  announce(`Settled: ${VERDICTS[verdict]}`);
  const holding = verdict === "replaces" ? [newer] : verdict === "wrong" ? [older] : [older, newer];
  return h("p", { class: "meta" }, badge("settled", "good"), h("span", null, `${VERDICTS[verdict]}: `, holding.map((memory, at) => [at ? " and " : "", h("q", { dir: "auto" }, memory.text)])));
}

function side(memory, which, pair) {
  const gone = pair.verdict && !pair.holds.includes(memory.id);
  return h("section", { class: gone ? "outdated" : null },
    meta(h("a", { href: to(["memories", memory.id]) }, which), when(memory.created_at, { day: true }), gone ? badge("no longer holds", "warn") : null),
    saidLong(memory.text, 600));
}
