// Conversations: a list, and one to read from its first turn to its last.

import { api } from "../api.js";
import { add, announce, fill, h, many, saidLong, to, when } from "../dom.js";
import { ask, badge, empty, field, heading, into, meta, trouble, waiting } from "../parts.js";

const PAGE = 100;

export const view = {
  title: "Conversations",
  show(main, route, signal) {
    if (route.rest[0]) {
      one(main, route.rest[0], Number(route.parameters.get("turn") ?? -1), signal);
      return (next) => next.rest[0] === route.rest[0] && jump(Number(next.parameters.get("turn") ?? -1));
    }
    list(main, signal);
    return null;
  },
};

function list(main, signal) {
  const place = h("div", null, waiting());
  const input = h("input", { type: "search", placeholder: "Title or words of its last turn", autocomplete: "off" });
  add(main, heading("Conversations"), h("div", { class: "controls" }, field("Narrow the list", input)), place);
  const fetched = () => into(place, signal, async () => {
    const all = [];
    let cursor = null;
    const shown = h("div", { class: "results" });
    const draw = () => {
      const words = input.value.toLowerCase();
      const fits = all.filter((thread) => `${thread.title} ${thread.preview} ${thread.conversation_id}`.toLowerCase().includes(words));
      fill(shown, fits.length ? [
        h("p", { class: "summary" }, cursor ? `${many(fits.length, "conversation")} of the newest ${all.length}` : many(fits.length, "conversation")),
        h("ul", { class: "plain threads" }, fits.map(summary)),
      ] : empty(all.length ? "No conversation here fits these words." : "No conversation has been kept here yet.",
        all.length ? null : "Drop an export on this page, or import one: anaphora import FILE"),
      cursor ? h("button", { type: "button", onclick: () => more().catch((error) => add(shown, trouble(error))) }, "Show older conversations") : null);
    };
    const more = async () => {
      const page = await api.threads({ limit: PAGE, cursor }, signal);
      all.push(...page.items);
      cursor = page.cursor;
      draw();
    };
    input.oninput = draw;
    await more();
    return shown;
  }, fetched);
  fetched();
}

function summary(thread) {
  return h("li", null, h("a", { class: "card thread", href: to(["conversations", thread.conversation_id]) },
    h("span", { class: "title", dir: "auto" }, thread.title || thread.conversation_id),
    h("span", { class: "faint said", dir: "auto" }, thread.preview),
    h("span", { class: "meta" }, h("span", null, many(thread.turn_count, "turn")), when(thread.updated))));
}

function one(main, id, turn, signal) {
  const place = h("div", null, waiting());
  add(main, h("p", { class: "back" }, h("a", { href: "#/conversations" }, "All conversations")), place);
  const fetched = () => into(place, signal, async () => {
    const [thread, calls] = await Promise.all([api.thread(id, signal), api.toolCalls(id, signal)]);
    if (!thread) return empty("There is no such conversation.");
    const title = thread.title || thread.turns.find((one) => one.role === "user")?.text.slice(0, 60) || id;
    setTimeout(() => jump(turn), 0);
    return [
      heading(title, h("button", { type: "button", class: "danger quiet", onclick: () => remove(id, title) }, "Delete the conversation")),
      meta(many(thread.turns.length, "turn"), ["updated ", when(thread.updated)], h("code", { class: "id" }, id)),
      calls.length ? h("details", null, h("summary", null, `What was done with tools: ${many(calls.length, "call")}`),
        h("ol", { class: "plain tight calls" }, calls.map((call) => h("li", null, when(call.ts), " ", h("code", { dir: "auto" }, call.text))))) : null,
      h("ol", { class: "turns", start: 0 }, thread.turns.map((one, index) => said(id, one, index))),
    ];
  }, fetched);
  fetched();
}

function said(id, turn, index) {
  const item = h("li", { class: `turn ${turn.role === "user" ? "user" : "other"}`, id: `turn-${index}`, tabindex: "-1" });
  return add(item,
    h("header", null, h("b", null, turn.speaker || turn.role),
      turn.speaker ? h("span", { class: "faint" }, turn.role) : null,
      turn.source ? badge(turn.source) : null, when(turn.ts),
      h("a", { class: "faint number", href: to(["conversations", id], { turn: index }), "aria-label": `Turn ${index}` }, `#${index}`),
      h("button", { type: "button", class: "quiet small redact", "aria-label": `Redact turn ${index}`, onclick: () => redact(id, index, item) }, "Redact")),
    saidLong(turn.text, 4000));
}

function jump(index) {
  if (!(index >= 0)) return true;
  const item = document.getElementById(`turn-${index}`);
  document.querySelector(".turn.found")?.classList.remove("found");
  if (!item) return true;
  item.classList.add("found");
  item.scrollIntoView({ block: "center" });
  item.focus({ preventScroll: true });
  return true;
}

function redact(id, index, item) {
  return ask({
    title: `Redact turn ${index}?`,
    body: [h("p", null, "Its words are taken out of the conversation and of every index, for good. Its place, time and role stay."),
      h("blockquote", null, saidLong(item.querySelector(".said").textContent, 300))],
    confirm: "Redact it",
    danger: true,
    deed: async () => {
      await api.redact(id, index);
      const thread = await api.thread(id);
      item.replaceWith(said(id, thread.turns[index], index));
      announce(`Turn ${index} was redacted`);
    },
  });
}

async function remove(id, title) {
  const gone = await ask({
    title: "Delete the conversation?",
    body: [h("p", null, "All of its turns go, for good, and so does what only they support: kept answers, traces and facts that were taken out of it."),
      h("p", { dir: "auto" }, h("b", null, title))],
    confirm: "Delete it",
    danger: true,
    deed: async () => { await api.deleteThread(id); },
  });
  if (gone) {
    location.hash = "#/conversations";
    announce("The conversation was deleted");
  }
}

