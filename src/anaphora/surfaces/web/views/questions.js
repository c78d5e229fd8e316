// Open questions: what memory could not answer, and another look at them.

import { api } from "../api.js";
import { add, announce, duration, fill, h, many, said, to, when } from "../dom.js";
import { conversationTitle, fetchTitles } from "../titles.js";
import { badge, degraded, empty, heading, into, meta, tick, trouble, waiting } from "../parts.js";

const STATES = [["open", "Open"], ["closed", "Answered"], ["expired", "Expired"], ["all", "All"]];
const KINDS = { open: "warn", closed: "good", expired: "plain" };

export const view = {
  title: "Open questions",
  show(main, route, signal) {
    const tabs = h("nav", { "aria-label": "State of questions", class: "tabs" });
    const place = h("div", null);
    const report = h("div", { "aria-live": "polite" });
    const withModel = tick("With the model, within its budget", { name: "model" });
    const start = h("button", { type: "button", class: "primary" }, "Look again now");
    add(main, h("p", { class: "back" }, h("a", { href: "#/ask" }, "Ask")), heading("Open questions"),
      h("p", { class: "lead" }, "Questions that memory could not answer. “Look again now” searches for them in what is stored now; nothing is ever deleted by it."),
      h("div", { class: "controls" }, start, withModel), report, tabs, place);
    let state = "open";
    const fetched = () => into(place, signal, async () => {
      const gaps = await api.gaps(state, signal);
      await fetchTitles(gaps.flatMap((gap) => gap.closed_by).map((id) => /^(.*)#\d+$/s.exec(id)?.[1]), signal);
      return list(gaps, state);
    }, fetched);
    start.addEventListener("click", async () => {
      start.disabled = true;
      fill(report, waiting("Looking …"));
      try {
        const done = await api.dream(withModel.querySelector("input").checked, signal);
        fill(report, told(done));
        announce(`Done: ${many(done.closed.length, "question")} answered`);
        fetched();
      } catch (error) {
        if (!signal.aborted) fill(report, trouble(error));
      } finally {
        start.disabled = false;
      }
    });
    const update = (next) => {
      const asked = next.parameters.get("status");
      state = STATES.some(([value]) => value === asked) ? asked : "open";
      fill(tabs, STATES.map(([value, text]) => h("a", { href: to(["questions"], { status: value === "open" ? "" : value }), "aria-current": value === state ? "page" : null }, text)));
      if (!place.childElementCount) fill(place, waiting());
      fetched();
      return true;
    };
    update(route);
    return update;
  },
};


function list(gaps, state) {
  if (!gaps.length) {
    return empty(state === "open" ? "No question is open: every question that was asked has its answer." : "There are none.");
  }
  return [h("p", { class: "summary" }, many(gaps.length, "question")), h("ul", { class: "plain" }, gaps.map((gap) => h("li", { class: "card" }, row(gap))))];
}

function row(gap) {
  return [said(gap.question, "h2", { class: "question" }),
    meta(badge(gap.status, KINDS[gap.status]), badge(gap.kind === "knowledge_gap" ? "nothing known" : gap.kind.replaceAll("_", " ")),
      h("span", { class: "number" }, `priority ${gap.priority.toFixed(2)}`), `asked ${many(gap.asked, "time")}`, ["since ", when(gap.created_at)],
      gap.closed_at ? ["closed ", when(gap.closed_at)] : gap.status === "open" ? ["until ", when(gap.expires_at)] : null),
    gap.closed_by.length ? meta("Closed by ", gap.closed_by.map((id) => evidence(id))) : null];
}

function evidence(id) {
  const turn = /^(.*)#(\d+)$/s.exec(id);
  const href = turn ? to(["conversations", turn[1]], { turn: turn[2] }) : to(["memories", id.replace(/^memory:/, "")]);
  return h("a", { dir: "auto", href }, turn ? `${conversationTitle(turn[1])}, message ${Number(turn[2]) + 1}` : "a memory");
}

function told(done) {
  const rows = [
    ["Questions looked for", done.explored], ["Answered", done.closed], ["Expired", done.expired],
    ["Memories stored", done.stored], ["Links made", done.links], ["Sessions extracted", done.extracted],
  ];
  return h("section", { class: "card report", "aria-label": "Report" },
    h("h2", null, "What came of it"),
    h("dl", { class: "figures" }, rows.map(([name, items]) => h("div", null, h("dt", null, name), h("dd", { class: "number" }, items.length)))),
    meta(done.with_model ? badge("with the model") : badge("without a model"), duration(done.seconds),
      done.cost.estimated_dollars ? `$${done.cost.estimated_dollars.toFixed(4)}` : null),
    done.closed.length ? h("ul", null, done.closed.map((gap) => h("li", { dir: "auto" }, gap.question))) : null,
    done.stored.length ? meta("Stored ", done.stored.map((id) => h("a", { href: to(["memories", id]) }, "a memory"))) : null,
    degraded(done.degraded));
}
